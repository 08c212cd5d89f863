//! `context_search`: which calls and results of the session hold a text.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::casefold::Needle;
use crate::session::Sessions;
use crate::session::record::{Message, Part, Record};
use crate::source::builtin::on_thread::{on_thread, unless_stopped};
use crate::tool::{CallContext, Presence, ToolDefinition, ToolError, ToolResult, TypedTool};

/// How many messages one call looks at.
const LOOKED_AT: usize = 200;
/// How many characters around a place are shown.
const SNIPPET: usize = 240;
/// How many of them stand before it.
const BEFORE: usize = 40;

const DESCRIPTION: &str = "\
Finds text in this session's calls and results; read around a hit with \
context_read. While has_more, go on at after=next_after.";

/// Searches the record of the caller's session.
#[derive(Debug)]
pub struct ContextSearch {
    definition: ToolDefinition,
    sessions: Arc<Sessions>,
}

/// The arguments of `context_search`.
#[derive(Clone, Debug, Deserialize)]
pub struct Input {
    query: String,
    #[serde(default)]
    after: u64,
    #[serde(default = "ten")]
    limit: usize,
}

fn ten() -> usize {
    10
}

#[derive(Debug)]
struct Hit {
    reference: String,
    role: &'static str,
    tool: String,
    snippet: String,
}

impl ContextSearch {
    /// Makes the tool.
    pub fn new(sessions: Arc<Sessions>, presence: Presence) -> Self {
        let mut definition =
            super::definition("context_search", "Search this session", DESCRIPTION, schema());
        definition.presence = presence;
        Self { definition, sessions }
    }
}

#[async_trait]
impl TypedTool for ContextSearch {
    type Input = Input;

    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn run(&self, input: &Input, cx: &CallContext) -> Result<ToolResult, ToolError> {
        let record = self.sessions.get(&cx.session).record(&cx.client);
        let input = input.clone();
        on_thread(cx, move |stop| search(&record, &input, || unless_stopped(stop))).await
    }
}

fn search(
    record: &Record,
    input: &Input,
    unless_stopped: impl Fn() -> Result<(), ToolError>,
) -> Result<ToolResult, ToolError> {
    let needle = Needle::new(&input.query);
    let page = record.read(input.after, LOOKED_AT);
    let mut next_after = input.after;
    let mut hits = Vec::new();
    for (index, message) in &page.items {
        unless_stopped()?;
        next_after = index + 1;
        hits.extend(first_hit(*index, message, &needle));
        if hits.len() == input.limit {
            break;
        }
    }
    let has_more = next_after < page.total;
    let lines: Vec<String> = hits
        .iter()
        .map(|Hit { reference, role, tool, snippet }| {
            format!("{reference} {role} {tool}\n{snippet}")
        })
        .collect();
    let text = format!("next_after={next_after} has_more={has_more}\n{}", lines.join("\n"));
    let matches: Vec<Value> = hits
        .iter()
        .map(|Hit { reference, role, tool, snippet }| {
            json!({"ref": reference, "role": role, "tool_name": tool, "snippet": snippet})
        })
        .collect();
    let mut result = ToolResult::text(text);
    result.data.insert("matches".to_owned(), matches.into());
    result.data.insert("next_after".to_owned(), next_after.into());
    result.data.insert("has_more".to_owned(), has_more.into());
    Ok(result)
}

/// Returns the first place of a message; there is at most one hit for each.
fn first_hit(index: u64, message: &Message, needle: &Needle) -> Option<Hit> {
    message.blocks.iter().enumerate().find_map(|(block, part)| {
        let (reference, tool, text) = match part {
            Part::Text(text) => (format!("message:{index}"), "", text.as_str().into()),
            Part::Use { name, .. } => (
                format!("message:{index}"),
                name.as_str(),
                std::borrow::Cow::from(part.input_text()),
            ),
            Part::Result { name, text, .. } => {
                (format!("result:{index}:{block}"), name.as_str(), text.as_str().into())
            }
        };
        let at = needle.find(&text)?;
        let snippet = text.chars().skip(at.saturating_sub(BEFORE)).take(SNIPPET).collect();
        Some(Hit { reference, role: message.role, tool: tool.to_owned(), snippet })
    })
}

fn schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["query"],
        "properties": {
            "query": {"type": "string", "pattern": "\\S"},
            "after": {"type": "integer", "minimum": 0, "default": 0},
            "limit": {"type": "integer", "minimum": 1, "maximum": 20, "default": 10},
        },
    })
}
