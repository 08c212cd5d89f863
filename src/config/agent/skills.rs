//! `skills`: instructions in folders of the workspace.

use schemars::JsonSchema;
use serde::Deserialize;

use super::text::{Kebab, Text};
use super::within;
use crate::document::{Document, DocumentError};

/// Skills of the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Skills {
    /// Whether there are skills.
    pub(super) enabled: bool,
    /// Their folder, relative to the workspace and inside it.
    pub(super) root: Text,
    /// Those that must be there.
    pub(super) require: Vec<Kebab>,
}

impl Skills {
    pub(super) fn check(&self, document: &Document) -> Result<(), DocumentError> {
        if self.enabled { within::check(document, "skills.root", &self.root) } else { Ok(()) }
    }
}

impl Default for Skills {
    fn default() -> Self {
        Self { enabled: false, root: Text::of(".agents/skills"), require: Vec::new() }
    }
}
