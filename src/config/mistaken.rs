//! Files that are given in each other's place: an agent file as an MCP file, settings as either,
//! and a folder as a file.

use std::path::Path;

use crate::document::{Document, DocumentError, Format, Key};
use crate::source::upstream::config::ROOTS;

/// Keys that an agent file has and an MCP file has not.
const OF_AGENTS: [&str; 8] =
    ["name", "model", "system", "tools", "permissions", "mcp", "context_policy", "hooks"];
/// Keys of settings.
const OF_SETTINGS: [&str; 20] = [
    "activity",
    "agent",
    "approval",
    "artifacts",
    "breaker",
    "context",
    "discovery",
    "http",
    "keep_going",
    "limits",
    "log",
    "max_name",
    "mcp",
    "names",
    "python",
    "stdio",
    "token_file",
    "upstream",
    "view",
    "workspace",
];

/// What a file can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Agent,
    Mcp,
    Settings,
}

impl Kind {
    /// Says what a file is that was read as one of this kind and is another.
    pub(super) fn mistaken(self, path: &Path) -> Option<DocumentError> {
        if path.is_dir() {
            let error = DocumentError::of_file(path, "this is a folder");
            return Some(error.with_hint(format!("{} takes a file: name one", self.flag())));
        }
        let (document, key, found) = find(path)?;
        // A key of its own kind says that it is of this one after all.
        let keys = document.root.as_mapping().unwrap_or_default();
        let is_ours = |key: &Key| self.keys(document.format()).contains(&key.text.as_str());
        if found == self || keys.iter().any(|(key, _)| is_ours(key)) {
            return None;
        }
        let (what, cure) = match (found, document.format()) {
            (Self::Mcp, Format::Yaml) => {
                ("an MCP file", "write it as JSON or TOML, and give it with --mcp")
            }
            (Self::Mcp, _) => ("an MCP file", "give it with --mcp"),
            (Self::Agent, _) => ("an agent file", "give it with --agent"),
            (Self::Settings, _) => ("a file of settings", "give it with --config"),
        };
        let error = document.error_at(key.position, &key.text, format!("this is {what}"));
        Some(error.with_hint(cure.to_owned()))
    }

    fn flag(self) -> &'static str {
        match self {
            Self::Agent => "--agent",
            Self::Mcp => "--mcp",
            Self::Settings => "--config",
        }
    }

    /// Returns the keys that a file of this kind has in a language.
    fn keys(self, format: Format) -> &'static [&'static str] {
        match (self, format) {
            (Self::Mcp, _) => &ROOTS,
            (Self::Settings, Format::Toml) => &OF_SETTINGS,
            (Self::Agent, Format::Json5 | Format::Yaml) => &OF_AGENTS,
            // No agent file is TOML, and only TOML are settings.
            (Self::Settings | Self::Agent, _) => &[],
        }
    }
}

/// Returns what a file is, and the first key that says so.
fn find(path: &Path) -> Option<(Document, Key, Kind)> {
    // Whatever an agent file is called, it is YAML.
    let mut formats = [format_of(path), Format::Yaml].into_iter();
    let document = formats.find_map(|format| Document::open(path, format).ok())?;
    let keys = || document.root.as_mapping().unwrap_or_default().iter().map(|(key, _)| key);
    let (key, kind) = [Kind::Mcp, Kind::Settings, Kind::Agent].into_iter().find_map(|kind| {
        let key = keys().find(|key| kind.keys(document.format()).contains(&key.text.as_str()))?;
        Some((key.clone(), kind))
    })?;
    Some((document, key, kind))
}

fn format_of(path: &Path) -> Format {
    let suffix = path.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
    match suffix.to_ascii_lowercase().as_str() {
        "toml" => Format::Toml,
        "json" | "jsonc" => Format::Json5,
        _ => Format::Yaml,
    }
}
