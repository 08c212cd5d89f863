//! `mcp`: the upstream servers, and what the agent says of them beyond their own file.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use super::text::Text;
use crate::source::upstream::config::Overrides;

/// The upstream MCP servers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Servers {
    /// The file of servers (JSON, JSONC or TOML), relative to this one.
    path: Text,
    /// What counts instead of what that file says, by server.
    pub(super) overrides: Option<Overrides>,
}

impl Servers {
    /// Returns the file, relative to the agent file's folder.
    pub(super) fn path(&self) -> &Path {
        Path::new(self.path.as_str())
    }
}
