//! What a file turns on and this version does not have: told by its place, so that it is not missed.

use super::decision::Service;
use super::file::AgentFile;
use super::hooks::Hook;
use crate::document::{Document, DocumentError};
use crate::source::builtin;

/// Returns one error for each thing; the file is valid all the same.
pub(super) fn find(
    file: &AgentFile,
    service: Option<&Service>,
    document: &Document,
) -> Vec<DocumentError> {
    let tools = file.tools();
    let mut found = Vec::new();
    let mut add = |path: &str, what: &str, hint: &str| {
        let message = format!("{what} not available in this version");
        found.push(document.error_in(path, message).with_hint(format!("{hint} to serve the rest")));
    };
    for (index, key) in tools.builtin.iter().enumerate() {
        if builtin::check(key).is_err() {
            add(&format!("tools.builtin[{index}]"), &format!("`{key}` is"), "remove it");
        }
    }
    if tools.subagent.is_some() {
        add("tools.subagent", "sub-agents are", "remove it");
    }
    for (index, hook) in file.hooks.iter().flatten().enumerate() {
        if let Some(what) = missing(file, hook) {
            add(&format!("hooks[{index}].handler"), what, "remove the hook");
        }
    }
    if service.is_some_and(Service::is_on) {
        add("decision", "a decision service is", "remove it, or switch its parts off,");
    }
    let switches = [
        ("memory", "memory is", file.memory.as_ref().is_some_and(|memory| memory.enabled)),
        ("goal", "goals are", file.goal.as_ref().is_some_and(|goal| goal.enabled)),
    ];
    for (key, what, on) in switches {
        if on {
            add(&format!("{key}.enabled"), what, "set it to false");
        }
    }
    found.sort_by_key(DocumentError::position);
    found
}

/// Says what this version would need for a hook and does not have.
pub(super) fn missing(file: &AgentFile, hook: &Hook) -> Option<&'static str> {
    (hook.is_command() && !file.command().is_native()).then_some("commands in containers are")
}
