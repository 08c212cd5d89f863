//! `tools`: the built-in tools, Python's, and other agents.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::text::{Reference, Text};
use crate::document::{Document, DocumentError, hint};
use crate::source::builtin::{self, BuiltinError};

/// The tools that no list needs, and the key that brings each.
const BY_THEMSELVES: [(&str, &str); 12] = [
    ("memory.search", "memory.enabled"),
    ("memory.fetch", "memory.enabled"),
    ("memory_search", "memory.enabled"),
    ("memory_fetch", "memory.enabled"),
    ("load_skill", "skills.enabled"),
    ("subagent", "tools.subagent"),
    ("tool_search", "context_policy.deferred_tools"),
    ("call_tool", "context_policy.deferred_tools"),
    ("context_read", "context_policy.enabled"),
    ("context_search", "context_policy.enabled"),
    ("get_goal", "goal.enabled"),
    ("report_goal", "goal.enabled"),
];

/// The tools.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Tools {
    /// The built-in tools, in the order in which clients see them.
    #[schemars(schema_with = "keys")]
    pub(super) builtin: Vec<String>,
    /// Tools that are Python functions.
    pub(super) python: Option<Python>,
    /// The file of other agents that can be asked, relative to this one.
    pub(super) subagent: Option<Text>,
}

/// Tools that are Python functions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Python {
    /// Functions, as `module:function`.
    pub(super) functions: Vec<Reference>,
    /// Functions that register tools, as `module:function`.
    pub(super) registrars: Vec<Reference>,
}

impl Tools {
    /// Checks that each key is known and there once; `remembers` says whether there is a memory.
    pub(super) fn check(&self, document: &Document, remembers: bool) -> Vec<DocumentError> {
        let check = |index| self.check_one(index, document, remembers).err();
        (0..self.builtin.len()).filter_map(check).collect()
    }

    fn check_one(
        &self,
        index: usize,
        document: &Document,
        remembers: bool,
    ) -> Result<(), DocumentError> {
        let key = &self.builtin[index];
        let wrong =
            |message: String| document.error_in(&format!("tools.builtin[{index}]"), message);
        if let Some((_, brings)) = BY_THEMSELVES.iter().find(|(name, _)| name == key) {
            let error = wrong(format!("`{key}` is not listed: `{brings}` brings it"));
            return Err(error.with_hint("remove it here".to_owned()));
        }
        if let Err(error @ BuiltinError::Unknown { nearest, .. }) = builtin::check(key) {
            let all: Vec<&str> = builtin::keys().collect();
            let hint = nearest.is_none().then(|| format!("known are {}", hint::list(&all)));
            return Err(wrong(error.to_string()).with_hint(hint));
        }
        if self.builtin[..index].contains(key) {
            let error = wrong(format!("`{key}` is there twice"));
            return Err(error.with_hint("remove it here".to_owned()));
        }
        if key.starts_with("memory.") && !remembers {
            let error = wrong(format!("`{key}` needs `memory.enabled`"));
            return Err(error.with_hint("set that to true, or remove the tool".to_owned()));
        }
        Ok(())
    }
}

/// The schema of the list of built-in tools.
fn keys(_: &mut SchemaGenerator) -> Schema {
    let keys: Vec<&str> = builtin::keys().collect();
    json_schema!({ "type": "array", "items": { "enum": keys }, "uniqueItems": true, "default": [] })
}
