//! The context tools: a session's own calls and results, to be read and searched again.
//!
//! A model that got only a part of a long result reads the rest here, whatever its client can do.
//! Nothing is called again, and no other session can be named.

pub mod read;
pub mod search;

mod casefold;
mod matches;
mod source;

use std::sync::Arc;

use serde_json::Value;

use super::Parts;
use crate::tool::{Capability, ErrorCode, Presence, Retention, Tool, ToolDefinition, Typed};

/// A reference that leads to nothing that can be read in this session.
pub const CONTEXT_SOURCE_UNAVAILABLE: ErrorCode = ErrorCode::new("CONTEXT_SOURCE_UNAVAILABLE");
/// What is referred to does not have the form that is asked for.
pub const CONTEXT_REPRESENTATION_UNAVAILABLE: ErrorCode =
    ErrorCode::new("CONTEXT_REPRESENTATION_UNAVAILABLE");

/// The longest result of a context tool; a page with its head always fits.
const MAX_RESULT_CHARS: usize = 12_000;

/// Makes both context tools.
pub fn tools(parts: &Parts, presence: Presence) -> [Arc<dyn Tool>; 2] {
    [
        Arc::new(Typed(read::ContextRead::new(parts, presence))),
        Arc::new(Typed(search::ContextSearch::new(Arc::clone(&parts.sessions), presence))),
    ]
}

fn definition(name: &str, title: &str, description: &str, schema: Value) -> ToolDefinition {
    let mut definition = super::file_tool(name, title, description, schema);
    "context".clone_into(&mut definition.group);
    definition.capabilities = [Capability::Read].into();
    definition.retention = Retention::Keep;
    definition.max_result_chars = MAX_RESULT_CHARS;
    definition
}

#[cfg(test)]
mod tests;
