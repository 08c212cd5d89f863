//! How a place in a document is named: `mcpServers.github.args[0]`.
//!
//! A key of other characters than letters, digits, `_` and `-` stands in double quotes, as JSON
//! would write it.

use super::node::{Kind, Node, Position};

/// Returns the name of the value under `key` in the mapping that `parent` names.
pub fn key(parent: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    let key = if plain { key.to_owned() } else { serde_json::Value::from(key).to_string() };
    if parent.is_empty() { key } else { format!("{parent}.{key}") }
}

/// Returns the name of the item at `index` in the sequence that `parent` names.
pub fn index(parent: &str, index: usize) -> String {
    format!("{parent}[{index}]")
}

/// Finds where `path` begins: at its key, at its item, or at the nearest place above.
pub(super) fn locate(root: &Node, path: &str) -> Position {
    let mut position = root.position;
    walk(root, path, |found| position = found);
    position
}

/// Finds the value that `path` names, or the nearest one above it, and its name.
pub(super) fn find<'a>(root: &'a Node, path: &str) -> (&'a Node, String) {
    walk(root, path, |_| {})
}

fn walk<'a>(root: &'a Node, path: &str, mut passed: impl FnMut(Position)) -> (&'a Node, String) {
    let (mut node, mut name) = (root, String::new());
    while name != path {
        let Some((child, child_name, position)) = step(node, &name, path) else { break };
        passed(position);
        (node, name) = (child, child_name);
    }
    (node, name)
}

/// Goes one level down towards `path`, whose first part is `name`.
fn step<'a>(node: &'a Node, name: &str, path: &str) -> Option<(&'a Node, String, Position)> {
    let leads = |child: &str| {
        path.strip_prefix(child).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    match &node.kind {
        Kind::Mapping(entries) => entries.iter().find_map(|(entry, child)| {
            let child_name = key(name, &entry.text);
            leads(&child_name).then_some((child, child_name, entry.position))
        }),
        Kind::Sequence(items) => items.iter().enumerate().find_map(|(number, child)| {
            let child_name = index(name, number);
            leads(&child_name).then_some((child, child_name, child.position))
        }),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => None,
    }
}
