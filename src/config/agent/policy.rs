//! `context_policy`: what a session can read again, and which tools have to be searched for.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::document::{Document, DocumentError};

/// What a session can read again, and which tools have to be searched for.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ContextPolicy {
    /// Whether there are `context_read` and `context_search`.
    pub(super) enabled: bool,
    /// Whether the tools of upstream servers have to be searched for.
    pub(super) deferred_tools: bool,
    /// How many calls a model keeps whole; not used by iris-mcp.
    preserve_recent_tool_groups: u64,
    /// How much a model keeps of older results; not used by iris-mcp.
    old_result_preview_chars: u64,
}

impl ContextPolicy {
    /// The keys that are about a model's conversation.
    pub(super) const NOT_USED: [&str; 2] =
        ["preserve_recent_tool_groups", "old_result_preview_chars"];

    pub(super) fn check(self, document: &Document) -> Result<(), DocumentError> {
        if !self.deferred_tools || self.enabled {
            return Ok(());
        }
        let path = "context_policy.deferred_tools";
        let error = document.error_in(path, "it needs `context_policy.enabled`");
        Err(error.with_hint("set that to true, or remove this".to_owned()))
    }
}

impl Default for ContextPolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            deferred_tools: false,
            preserve_recent_tool_groups: 2,
            old_result_preview_chars: 512,
        }
    }
}
