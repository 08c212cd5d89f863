//! `tool_search`: finds deferred tools and hands out what is needed to call them.
//!
//! What it finds is disclosed to the session once the call has ended well; see
//! [`Exposure::disclose`](super::Exposure::disclose).

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Exposure;
use super::names::Names;
use super::surface::Surface;
use crate::tool::result::VALIDATION_ERROR;
use crate::tool::{
    AutoAllow, Block, CallContext, Capability, Failure, Tool, ToolDefinition, ToolError,
    ToolResult, Typed, TypedTool,
};

/// How much of a description the seed's form of a found tool has.
const SUMMARY_CHARS: usize = 240;
/// The longest answer; schemas that come after it are left out and named.
const ANSWER_CHARS: usize = 40_000;
/// The longest text that is still left alone, with names and summaries alone.
const RESULT_CHARS: usize = 60_000;

const DESCRIPTION: &str = "\
Finds tools that are not listed. Give one query for each thing you need to do: a few words on \
what the tool does, with the server's name if you know it. Each query selects one tool or null; \
call what is found by its name or with call_tool.";

/// The tool.
#[derive(Debug)]
pub(super) struct ToolSearch {
    definition: ToolDefinition,
    exposure: Weak<Exposure>,
}

/// The arguments of `tool_search`.
#[derive(Debug, Deserialize)]
pub(super) struct Input {
    queries: Vec<String>,
    #[serde(default)]
    include_groups: Option<BTreeSet<String>>,
}

/// What the queries have selected.
struct Found {
    /// Each query as it came, trimmed, and its tool.
    selections: Vec<(String, Option<Arc<dyn Tool>>)>,
    /// The tools, each once, in the order they were first selected in.
    tools: Vec<Arc<dyn Tool>>,
}

impl ToolSearch {
    pub(super) fn over(exposure: Weak<Exposure>) -> Arc<dyn Tool> {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["queries"],
            "properties": {
                "queries": {
                    "type": "array",
                    "minItems": 1,
                    "items": {"type": "string", "minLength": 1},
                },
                "include_groups": {
                    "anyOf": [
                        {"type": "array", "items": {"type": "string"}},
                        {"type": "null"},
                    ],
                    "default": null,
                },
            },
        });
        let mut definition = super::own("tool_search", "Find tools", DESCRIPTION, schema);
        definition.capabilities = [Capability::Read].into();
        definition.max_result_chars = RESULT_CHARS;
        Arc::new(Typed(Self { definition, exposure }))
    }
}

#[async_trait]
impl TypedTool for ToolSearch {
    type Input = Input;

    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn auto_allow(&self) -> Option<AutoAllow> {
        Some(AutoAllow::tool_search())
    }

    fn check(&self, input: &Input) -> Result<(), Failure> {
        let Some(at) = input.queries.iter().position(|query| query.trim().is_empty()) else {
            return Ok(());
        };
        let message = format!("invalid arguments for tool_search: queries.{at}: it is blank");
        Err(Failure::new(VALIDATION_ERROR, message))
    }

    async fn run(&self, input: &Input, _cx: &CallContext) -> Result<ToolResult, ToolError> {
        // Whoever holds us without the gate has no sessions to disclose to.
        let Some(exposure) = self.exposure.upgrade() else {
            return Ok(ToolResult::default());
        };
        let queries: Vec<String> =
            input.queries.iter().map(|query| query.trim().to_owned()).collect();
        let surface = exposure.surface(&exposure.registry().snapshot());
        let groups = input.include_groups.as_ref();
        let selected = exposure.selector().select(&queries, surface.candidates(), groups).await?;
        let found = Found::new(queries, selected);
        Ok(found.into_result(&surface))
    }
}

impl Found {
    fn new(queries: Vec<String>, selected: Vec<Option<Arc<dyn Tool>>>) -> Self {
        let selections: Vec<_> = queries.into_iter().zip(selected).collect();
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for tool in selections.iter().filter_map(|(_, tool)| tool.as_ref()) {
            if !tools.iter().any(|other| Arc::ptr_eq(other, tool)) {
                tools.push(Arc::clone(tool));
            }
        }
        Self { selections, tools }
    }

    /// Makes the result: for programs by canonical names, for clients by those that they call.
    fn into_result(self, surface: &Surface) -> ToolResult {
        let canonical = |tool: &ToolDefinition| tool.name.as_str().to_owned();
        let summaries = self.tools.iter().map(|tool| {
            let tool = tool.definition();
            Value::Object(summary(tool, tool.name.as_str()))
        });
        let mut data = Map::new();
        data.insert("selections".to_owned(), self.selections(canonical));
        data.insert("tools".to_owned(), summaries.collect());
        let names = self.tools.iter().map(|tool| Value::from(tool.definition().name.as_str()));
        let revealed: Value = names.collect();
        let answer = Value::Object(self.answer(surface));
        let text = answer.to_string();
        let native = Map::from_iter([
            ("content".to_owned(), json!([{"type": "text", "text": text}])),
            ("structuredContent".to_owned(), answer),
            ("isError".to_owned(), false.into()),
        ]);
        let metadata = Map::from_iter([("context_revealed_tools".to_owned(), revealed)]);
        ToolResult {
            content: vec![Block::Text(text)],
            data,
            metadata,
            native: Some(Arc::new(native.into())),
            ..ToolResult::default()
        }
    }

    fn selections(&self, name: impl Fn(&ToolDefinition) -> String) -> Value {
        let selections = self.selections.iter().map(|(query, tool)| {
            let tool = tool.as_ref().map(|tool| name(tool.definition()));
            json!({"query": query, "tool": tool})
        });
        selections.collect()
    }

    /// Makes what a client reads.
    fn answer(&self, surface: &Surface) -> Map<String, Value> {
        let names: &Names = surface.names();
        let wire = |tool: &ToolDefinition| names.wire(tool).to_owned();
        let mut answer = Map::new();
        answer.insert("selections".to_owned(), self.selections(wire));
        let mut tools = Vec::new();
        let mut without = Vec::new();
        let mut length = answer["selections"].to_string().chars().count();
        for tool in &self.tools {
            let tool = tool.definition();
            let (short, whole) = (summary(tool, names.wire(tool)), whole(tool, names.wire(tool)));
            let (short, whole) = (Value::Object(short), Value::Object(whole));
            let chars = |value: &Value| value.to_string().chars().count();
            let fits = length + chars(&whole) <= ANSWER_CHARS;
            length += chars(if fits { &whole } else { &short });
            without.extend((!fits).then(|| Value::from(names.wire(tool))));
            tools.push(if fits { whole } else { short });
        }
        answer.insert("tools".to_owned(), tools.into());
        if !without.is_empty() {
            // Found again in a search of their own, they come with everything.
            answer.insert("without_schema".to_owned(), without.into());
        }
        if self.tools.is_empty() {
            answer.insert("hint".to_owned(), surface.hint().into());
        }
        answer
    }
}

/// Returns what the seed says of a found tool.
fn summary(tool: &ToolDefinition, name: &str) -> Map<String, Value> {
    let description: String = tool.description().chars().take(SUMMARY_CHARS).collect();
    Map::from_iter([
        ("name".to_owned(), name.into()),
        ("description".to_owned(), description.into()),
        ("group".to_owned(), tool.group.as_str().into()),
    ])
}

/// Returns all that is needed to call a tool, and to know what the call would do.
fn whole(tool: &ToolDefinition, name: &str) -> Map<String, Value> {
    let mut whole = summary(tool, name);
    let rest: String = tool.description().chars().skip(SUMMARY_CHARS).collect();
    if !rest.is_empty() {
        whole.insert("description_continued".to_owned(), rest.into());
    }
    let native = tool.native.as_deref();
    let schema = native.and_then(|native| native.get("inputSchema")).cloned();
    let schema = schema.unwrap_or_else(|| Value::Object(tool.input_schema.document().clone()));
    whole.insert("input_schema".to_owned(), schema);
    let annotations = native.and_then(|native| native.get("annotations")).cloned();
    let of_capabilities = || match &tool.native {
        Some(_) => None,
        None => Some(json!({
            "readOnlyHint": tool.capabilities.read_only(),
            "destructiveHint": tool.capabilities.destructive(),
        })),
    };
    if let Some(annotations) = annotations.or_else(of_capabilities) {
        whole.insert("annotations".to_owned(), annotations);
    }
    whole
}

/// Names the servers whose tools can be found, and how many each has, in so many bytes at most.
pub(super) fn servers(tools: &[Arc<dyn Tool>], room: usize) -> String {
    let mut order: Vec<&str> = Vec::new();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for tool in tools {
        let definition = tool.definition();
        let server = definition
            .origin
            .as_ref()
            .map_or(definition.group.as_str(), |origin| origin.server.as_str());
        let count = counts.entry(server).or_default();
        if *count == 0 {
            order.push(server);
        }
        *count += 1;
    }
    let mut text = String::new();
    for (at, server) in order.iter().enumerate() {
        let entry = format!("{server} ({})", counts[server]);
        let more = format!(" and {} more", order.len() - at);
        let separator = if at == 0 { "" } else { ", " };
        if text.len() + separator.len() + entry.len() + more.len() > room {
            text.push_str(&more);
            break;
        }
        text.extend([separator, &entry]);
    }
    text.trim_start().to_owned()
}
