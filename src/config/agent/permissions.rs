//! `permissions`: what is allowed without asking, and where.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::permission::{self, Mode};

/// What is allowed without asking, and where.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Permissions {
    /// The folder that file tools work in, relative to this file; its own folder unless said
    /// otherwise.
    workspace: Option<PathBuf>,
    /// What becomes of calls that write files; `confirm` unless said otherwise.
    writes: Option<ModeName>,
    /// What becomes of calls that run programs; `confirm` unless said otherwise.
    execute: Option<ModeName>,
}

/// What becomes of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ModeName {
    /// A person is asked.
    Confirm,
    /// They run.
    Allow,
    /// They are refused.
    Deny,
}

impl Permissions {
    /// Returns the folder of the file tools, relative to the file's own.
    pub(super) fn workspace(&self) -> &Path {
        self.workspace.as_deref().unwrap_or_else(|| Path::new("."))
    }

    pub(super) fn refuses_writes(&self) -> bool {
        self.writes == Some(ModeName::Deny)
    }

    pub(super) fn config(&self) -> permission::Config {
        permission::Config {
            writes: mode(self.writes),
            execute: mode(self.execute),
            ..permission::Config::default()
        }
    }
}

fn mode(name: Option<ModeName>) -> Mode {
    match name {
        None | Some(ModeName::Confirm) => Mode::Confirm,
        Some(ModeName::Allow) => Mode::Allow,
        Some(ModeName::Deny) => Mode::Deny,
    }
}
