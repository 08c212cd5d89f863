//! The agent file: what an Iris agent may do and which tools it has.
//!
//! What a tool server has no use for is accepted and noted. What it would have to act on and
//! does not yet is refused by name, so that nobody believes it works.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::ConfigError;
use crate::document::{Document, DocumentError, Format, hint};
use crate::permission::{self, Mode};
use crate::source::builtin;
use crate::source::upstream::config::Overrides;

/// Keys that say something about a model's conversation, which we do not lead.
const NOT_USED_HERE: [&str; 9] = [
    "model",
    "system",
    "context",
    "compaction",
    "maintenance",
    "speech",
    "observability",
    "evolution",
    "todo",
];

/// Keys that change which tools there are or what becomes of a call, and that are not built yet.
const NOT_BUILT: [&str; 9] = [
    "command",
    "decision",
    "goal",
    "hooks",
    "memory",
    "middleware",
    "prompts",
    "session",
    "skills",
];

/// The keys that are acted on.
const USED: [&str; 5] = ["context_policy", "mcp", "name", "permissions", "tools"];

/// An agent file.
#[derive(Debug)]
pub struct Agent {
    /// The agent's name, if the file gives one.
    pub name: Option<String>,
    /// The keys in it that a tool server has no use for.
    pub not_used: Vec<String>,
    file: PathBuf,
    document: Document,
    permissions: Permissions,
    tools: Tools,
    mcp: Option<Mcp>,
    context: ContextPolicy,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Permissions {
    workspace: Option<PathBuf>,
    writes: Option<ModeName>,
    execute: Option<ModeName>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ModeName {
    Confirm,
    Allow,
    Deny,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Tools {
    builtin: Vec<String>,
    python: Option<IgnoredAny>,
    subagent: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ContextPolicy {
    enabled: bool,
    deferred_tools: bool,
    /// About a model's conversation, like the next one: checked, and not used by a tool server.
    preserve_recent_tool_groups: u64,
    old_result_preview_chars: u64,
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

impl ContextPolicy {
    fn read(document: &Document) -> Result<Self, DocumentError> {
        let Some(node) = document.root.get("context_policy").filter(|node| !node.is_null()) else {
            return Ok(Self::default());
        };
        let context: Self = document.decode_node(node, "context_policy")?;
        if !context.deferred_tools || context.enabled {
            return Ok(context);
        }
        let entry = node.entry("deferred_tools");
        let position = entry.map_or(document.root.position, |(key, _)| key.position);
        let message = "deferred_tools needs context_policy.enabled";
        Err(document.error_at(position, "context_policy.deferred_tools", message))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mcp {
    path: PathBuf,
    #[serde(default)]
    overrides: Overrides,
}

impl Agent {
    /// Reads an agent file.
    pub fn read(file: &Path) -> Result<Self, DocumentError> {
        let document = Document::open(file, Format::Yaml)?;
        let Some(entries) = document.root.as_mapping() else {
            return Err(document.error_at(
                document.root.position,
                "",
                "an agent file is a mapping",
            ));
        };
        let mut not_used = Vec::new();
        for (key, _) in entries {
            let name = key.text.as_str();
            if NOT_USED_HERE.contains(&name) {
                tracing::debug!(key = name, "not used by a tool server");
                not_used.push(name.to_owned());
            } else if NOT_BUILT.contains(&name) {
                let message = "this part of an agent file is not available in this version; remove it to go on without";
                return Err(document.error_at(key.position, name, message));
            } else if !USED.contains(&name) {
                let known: Vec<&str> =
                    USED.into_iter().chain(NOT_USED_HERE).chain(NOT_BUILT).collect();
                let error = document.error_at(key.position, name, "unknown key");
                return Err(error.with_hint(hint::for_unknown(name, &known)));
            }
        }
        let part = |key: &str| document.root.get(key).filter(|node| !node.is_null());
        let tools: Tools = match part("tools") {
            Some(node) => document.decode_node(node, "tools")?,
            None => Tools::default(),
        };
        for (key, given) in
            [("python", tools.python.is_some()), ("subagent", tools.subagent.is_some())]
        {
            if given {
                let position =
                    part("tools").and_then(|node| node.entry(key)).map(|(key, _)| key.position);
                let message =
                    "these tools are not available in this version; remove them to go on without";
                let position = position.unwrap_or(document.root.position);
                return Err(document.error_at(position, format!("tools.{key}"), message));
            }
        }
        let permissions = match part("permissions") {
            Some(node) => document.decode_node(node, "permissions")?,
            None => Permissions::default(),
        };
        let context = ContextPolicy::read(&document)?;
        let policy = part("context_policy");
        let idle = ["preserve_recent_tool_groups", "old_result_preview_chars"].into_iter();
        let idle = idle.filter(|key| policy.is_some_and(|node| node.entry(key).is_some()));
        not_used.extend(idle.map(|key| format!("context_policy.{key}")));
        let mcp = part("mcp").map(|node| document.decode_node(node, "mcp")).transpose()?;
        let name = part("name").map(|node| document.decode_node(node, "name")).transpose()?;
        let file = file.to_path_buf();
        Ok(Self { name, not_used, file, document, permissions, tools, mcp, context })
    }

    /// Returns the keys of the built-in tools; each is known, available and there once.
    pub(super) fn builtin(&self) -> Result<Vec<String>, ConfigError> {
        let nodes =
            self.document.root.get("tools").and_then(|tools| tools.get("builtin")?.as_sequence());
        let place = |index: usize| {
            let position = nodes
                .and_then(|nodes| nodes.get(index))
                .map_or(self.document.root.position, |node| node.position);
            move |document: &Document, message: &str| {
                document.error_at(position, format!("tools.builtin[{index}]"), message)
            }
        };
        for (index, key) in self.tools.builtin.iter().enumerate() {
            if let Err(error) = builtin::check(key) {
                return Err(place(index)(&self.document, &error.to_string()).into());
            }
            if self.tools.builtin[..index].contains(key) {
                return Err(place(index)(&self.document, &format!("`{key}` is there twice")).into());
            }
        }
        Ok(self.tools.builtin.clone())
    }

    /// Returns what the agent may do without asking.
    pub(super) fn permissions(&self) -> permission::Config {
        permission::Config {
            writes: mode(self.permissions.writes),
            execute: mode(self.permissions.execute),
            ..permission::Config::default()
        }
    }

    /// Returns the folder of the file tools.
    pub(super) fn workspace(&self) -> PathBuf {
        self.folder().join(self.permissions.workspace.as_deref().unwrap_or_else(|| Path::new(".")))
    }

    /// Returns the MCP file and what is said beyond it.
    pub(super) fn mcp(&self) -> Option<(PathBuf, Overrides)> {
        let Mcp { path, overrides } = self.mcp.as_ref()?;
        Some((self.folder().join(path), overrides.clone()))
    }

    /// Returns whether the tools of upstreams have to be searched for.
    pub(super) fn defers(&self) -> bool {
        self.context.deferred_tools
    }

    /// Returns whether clients can read again what was called and what came of it.
    pub(super) fn context(&self) -> bool {
        self.context.enabled
    }

    fn folder(&self) -> &Path {
        self.file.parent().unwrap_or_else(|| Path::new(""))
    }
}

fn mode(name: Option<ModeName>) -> Mode {
    match name {
        None | Some(ModeName::Confirm) => Mode::Confirm,
        Some(ModeName::Allow) => Mode::Allow,
        Some(ModeName::Deny) => Mode::Deny,
    }
}

#[cfg(test)]
mod tests;
