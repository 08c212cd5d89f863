//! What a tool of a server is called here.

use std::collections::HashSet;
use std::hash::BuildHasher;

use serde_json::{Value, json};

use crate::source::upstream::diagnostic::{
    Diagnostic, MCP_OFFER_INVALID, MCP_TOOL_INVALID, Severity, Stage,
};
use crate::tool::definition::MAX_NAME_CHARS;
use crate::tool::suffix::{suffixed, worded};

/// Names for a list of tools, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assigned {
    /// The names; each is unique.
    pub names: Vec<String>,
    /// Which tools have another name than their own, since it was taken.
    pub diagnostics: Vec<Diagnostic>,
}

/// Returns the name of a tool: `mcp__<server>__<wire name>`, where that is a name.
///
/// Where it is not, for its characters or its length, it is the suffix form.
pub fn public_name(server: &str, wire_name: &str) -> String {
    let plain = plain(server, wire_name);
    let unchanged = plain.len() <= MAX_NAME_CHARS && plain == base(server, wire_name);
    if unchanged { plain } else { suffix_name(server, wire_name) }
}

/// Returns the suffix form of a tool's name: its beginning and a hash of its two parts.
pub fn suffix_name(server: &str, wire_name: &str) -> String {
    hashed(server, wire_name, &json!([server, wire_name]))
}

/// Names tools in order; one whose name is taken gets the suffix form.
///
/// `taken` are the names that belong to others, who were there first.
pub fn assign<'a>(
    tools: impl IntoIterator<Item = (&'a str, &'a str)>,
    taken: &HashSet<String, impl BuildHasher>,
) -> Assigned {
    let mut assigned = Assigned::default();
    let mut used = HashSet::new();
    for (server, wire_name) in tools {
        let own = public_name(server, wire_name);
        let free = |name: &String| !taken.contains(name) && !used.contains(name);
        let name = if free(&own) {
            own
        } else {
            let name = next_free(server, wire_name, free);
            assigned.diagnostics.push(renamed(server, wire_name, &own, &name));
            name
        };
        used.insert(name.clone());
        assigned.names.push(name);
    }
    assigned
}

/// Names prompts in order, by the rule for tools; prompts and tools may have one name.
pub fn assign_prompts<'a>(prompts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Assigned {
    let mut assigned = assign(prompts, &HashSet::<String>::new());
    for diagnostic in &mut assigned.diagnostics {
        diagnostic.code = MCP_OFFER_INVALID;
        diagnostic.message = diagnostic.message.replacen("so the tool is", "so the prompt is", 1);
    }
    assigned
}

/// Returns the first suffix form that is free; the hash counts on, should even that be taken.
fn next_free(server: &str, wire_name: &str, free: impl Fn(&String) -> bool) -> String {
    let mut name = suffix_name(server, wire_name);
    let mut count = 2_u64;
    while !free(&name) {
        name = hashed(server, wire_name, &json!([server, wire_name, count]));
        count += 1;
    }
    name
}

fn renamed(server: &str, wire_name: &str, own: &str, name: &str) -> Diagnostic {
    Diagnostic {
        server: server.to_owned(),
        stage: Stage::Catalog,
        code: MCP_TOOL_INVALID,
        severity: Severity::Warning,
        wire_name: Some(wire_name.to_owned()),
        field: Some("name".to_owned()),
        message: format!("the name `{own}` is taken, so the tool is called `{name}`"),
        place: None,
    }
}

fn base(server: &str, wire_name: &str) -> String {
    format!("mcp__{server}__{wire_name}")
}

/// Returns the base with `_` for every character that is no ASCII letter, digit or `_`.
fn plain(server: &str, wire_name: &str) -> String {
    worded(&base(server, wire_name))
}

fn hashed(server: &str, wire_name: &str, identity: &Value) -> String {
    suffixed(&plain(server, wire_name), MAX_NAME_CHARS, identity)
}

#[cfg(test)]
mod tests;
