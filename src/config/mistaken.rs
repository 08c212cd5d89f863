//! Files that are given in each other's place: an agent file as an MCP file, and the other way.

use std::path::Path;

use crate::document::{Document, DocumentError, Format, Key};
use crate::source::upstream::config::ROOTS;

/// Keys that an agent file has and an MCP file has not.
const OF_AGENTS: [&str; 8] =
    ["name", "model", "system", "tools", "permissions", "mcp", "context_policy", "hooks"];

/// Says so where a file that was read as an agent file is an MCP file.
pub(super) fn mcp_file(path: &Path) -> Option<DocumentError> {
    let (document, key) = find(path, &ROOTS, &OF_AGENTS)?;
    let error = document.error_at(key.position, &key.text, "this is an MCP file");
    let cure = match format_of(path) {
        Format::Yaml => "write it as JSON or TOML, and give it with --mcp",
        Format::Json5 | Format::Toml => "give it with --mcp",
    };
    Some(error.with_hint(cure.to_owned()))
}

/// Says so where a file that was read as an MCP file is an agent file.
pub(super) fn agent_file(path: &Path) -> Option<DocumentError> {
    let (document, key) = find(path, &OF_AGENTS, &ROOTS)?;
    let error = document.error_at(key.position, &key.text, "this is an agent file");
    Some(error.with_hint("give it with --agent".to_owned()))
}

/// Returns the first key of a file that is one of its kind, unless it has one of the other, too.
fn find(path: &Path, its: &[&str], others: &[&str]) -> Option<(Document, Key)> {
    // Whatever an agent file is called, it is YAML.
    let mut formats = [format_of(path), Format::Yaml].into_iter();
    let document = formats.find_map(|format| Document::open(path, format).ok())?;
    let keys = || document.root.as_mapping().unwrap_or_default().iter().map(|(key, _)| key);
    let key = keys().find(|key| its.contains(&key.text.as_str()))?.clone();
    let is_either = keys().any(|key| others.contains(&key.text.as_str()));
    (!is_either).then_some((document, key))
}

fn format_of(path: &Path) -> Format {
    let suffix = path.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
    match suffix.to_ascii_lowercase().as_str() {
        "toml" => Format::Toml,
        "json" | "jsonc" => Format::Json5,
        _ => Format::Yaml,
    }
}
