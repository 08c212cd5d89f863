//! What to write instead, where a part of an agent file is of another form than it has.

use crate::document::{Document, DocumentError, Kind, path};
use crate::source::upstream::config::ROOTS;

/// By the part, and what people write there: what it looks like.
const FORMS: [(&str, &[&str], &str); 22] = [
    ("mcp", &["a string", "a list"], "write `mcp: { path: mcp.json }`"),
    ("mcp.overrides", &["a list"], "write `overrides: { SERVER: { required: false } }`"),
    ("context", &["a string"], "write `context: { path: context.yaml }`"),
    ("decision", &["a string"], "write `decision: { path: decision.yaml }`"),
    ("hooks", &["a mapping"], "it is a list, in which each hook begins with `- name:`"),
    ("hooks[].handler", &["a string"], "write `handler: { type: command, command: … }`"),
    ("middleware", &["a string", "a list"], "write `middleware: { tools: […] }`"),
    ("middleware.tools[]", &["a string"], "write `- factory: module:factory`"),
    ("tools", &["a string", "a list"], "write `tools: { builtin: [file.read] }`"),
    ("tools.builtin", &["a mapping"], "write `builtin: [file.read, file.list]`"),
    ("tools.python", &["a string", "a list"], "put it under `tools.python.functions`"),
    ("tools.subagent", &["a list", "a mapping"], "name the file of the other agents"),
    ("permissions", &["a string", "a list"], "write `permissions: { writes: confirm }`"),
    ("permissions.workspace", &["a list", "a mapping"], "name one folder"),
    ("command", &["a string", "a list"], "write `command: { mode: native }`"),
    ("session", &["a string"], "write `session: { backend: sqlite }`"),
    ("prompts", &["a string", "a list"], "write `prompts: { root: .iris/prompts }`"),
    ("context_policy", &["a boolean"], "write `context_policy: { enabled: true }`"),
    ("skills", &["a boolean", "a list"], "write `skills: { enabled: true }`"),
    ("memory", &["a boolean"], "write `memory: { enabled: true }`"),
    ("goal", &["a boolean", "a string"], "write `goal: { enabled: true }`"),
    ("todo", &["a boolean", "a list"], "write `todo: { enabled: true }`"),
];

/// Adds to a mistake what to write instead, where people often write something else.
pub(super) fn with_cure(error: DocumentError, document: &Document) -> DocumentError {
    if ROOTS.contains(&error.path()) {
        let hint = "servers stand in a file of their own: `mcp: { path: mcp.json }`";
        return error.with_hint(hint.to_owned());
    }
    let Some(node) = document.find(error.path()) else { return error };
    // A wrong word, which is of the right form, has had its answer.
    if !error.message().starts_with("expected ") || matches!(node.kind, Kind::Null) {
        return error;
    }
    let (part, found) = (path::without_numbers(error.path()), node.describe());
    let is_it = |form: &&(&str, &[&str], &str)| form.0 == part && form.1.contains(&found);
    match FORMS.iter().find(is_it) {
        Some((_, _, cure)) => error.with_hint((*cure).to_owned()),
        // A part that is not looked into.
        None if error.hint().is_none() && error.message().starts_with("expected a mapping") => {
            error.with_hint("write its keys under it, or remove it".to_owned())
        }
        None => error,
    }
}
