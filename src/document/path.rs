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

/// Finds the value that `path` names.
pub(super) fn exact<'a>(root: &'a Node, path: &str) -> Option<&'a Node> {
    let (node, name) = find(root, path);
    (name == path).then_some(node)
}

/// Takes out what `path` names, or the nearest value above it, and returns the path of what went.
///
/// Items of a list behind one that went have other numbers then.
pub(super) fn prune(root: &mut Node, path: &str) -> Option<String> {
    prune_in(root, "", path)
}

fn prune_in(node: &mut Node, name: &str, path: &str) -> Option<String> {
    let leads = |child: &str| is_at_or_below(path, child);
    match &mut node.kind {
        Kind::Mapping(entries) => {
            let at = entries.iter().position(|(entry, _)| leads(&key(name, &entry.text)))?;
            let child = key(name, &entries[at].0.text);
            prune_in(&mut entries[at].1, &child, path).or_else(|| {
                entries.remove(at);
                Some(child)
            })
        }
        Kind::Sequence(items) => {
            let at = (0..items.len()).find(|number| leads(&index(name, *number)))?;
            let child = index(name, at);
            prune_in(&mut items[at], &child, path).or_else(|| {
                items.remove(at);
                Some(child)
            })
        }
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => None,
    }
}

/// Finds what stands at `position` under a name that is `path` but for numbers of items.
pub(super) fn renumbered(root: &Node, position: Position, path: &str) -> Option<String> {
    renumbered_in(root, position, "", path)
}

fn renumbered_in(node: &Node, position: Position, name: &str, path: &str) -> Option<String> {
    let children: Vec<(String, Position, &Node)> = match &node.kind {
        Kind::Mapping(entries) => entries
            .iter()
            .map(|(entry, child)| (key(name, &entry.text), entry.position, child))
            .collect(),
        Kind::Sequence(items) => items
            .iter()
            .enumerate()
            .map(|(number, child)| (index(name, number), child.position, child))
            .collect(),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => Vec::new(),
    };
    let wanted = without_numbers(path);
    children.into_iter().find_map(|(child_name, at, child)| {
        let ours = without_numbers(&child_name);
        if ours == wanted && (at == position || child.position == position) {
            return Some(child_name);
        }
        is_at_or_below(&wanted, &ours).then(|| renumbered_in(child, position, &child_name, path))?
    })
}

/// Makes `hooks[]` of `hooks[3]`.
pub fn without_numbers(path: &str) -> String {
    let mut inside = false;
    let keep = |c: &char| {
        inside = *c == '[' || (inside && *c != ']');
        !inside || *c == '['
    };
    path.chars().filter(keep).collect()
}

fn is_at_or_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
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
    let leads = |child: &str| is_at_or_below(path, child);
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
