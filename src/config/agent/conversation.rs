//! The parts about a model's conversation: prompts, sessions, goals and lists of things to do.

use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text::Text;

/// A structured prompt.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ContextFile {
    /// The file it is made from, relative to this one.
    path: Text,
}

/// Where conversations are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Session {
    /// In memory, or in a file.
    backend: Backend,
    /// The file, relative to this one; `.iris/session.db` unless said otherwise.
    path: Option<Text>,
}

/// Where conversations are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Backend {
    /// In memory.
    #[default]
    None,
    /// In a file.
    Sqlite,
}

/// Where named prompts are kept.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Prompts {
    /// The folder, relative to the workspace.
    root: Text,
}

/// Goals over several runs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Goal {
    /// Whether there are goals; they need `context_policy.enabled`.
    pub(super) enabled: bool,
    /// How many runs a new goal may take.
    max_rounds: NonZeroU64,
}

/// The session's list of things to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Todo {
    /// Whether the model is shown the list; that needs `context_policy.enabled`.
    pub(super) enabled: bool,
}

impl Default for Prompts {
    fn default() -> Self {
        Self { root: Text::of(".iris/prompts") }
    }
}

impl Default for Goal {
    fn default() -> Self {
        Self { enabled: false, max_rounds: NonZeroU64::new(20).unwrap_or(NonZeroU64::MIN) }
    }
}
