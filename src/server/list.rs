//! What we say of ourselves and of the tools: `initialize`, `server/discover`, `tools/list`.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{Implementation, SKILLS_EXTENSION_ID, ServerCapabilities, ServerConfig};
use serde_json::{Map, Value, json};

use super::page::Page;
use super::project::SERVER_NAME;
use crate::exposure::names::Names;
use crate::registry::{Catalogue, State};
use crate::tool::{Capability, Era, Tool, ToolDefinition};

/// The most characters of instructions; some clients cut what is longer.
const INSTRUCTIONS_CHARS: usize = 2_000;

/// Makes what a handshake says of us.
#[expect(deprecated, reason = "there is logging, as long as clients have it")]
pub(super) fn about(catalogue: &Catalogue, remark: Option<String>) -> ServerConfig {
    // All there can be, whatever there is now: sources come and go.
    let mut capabilities = ServerCapabilities::builder()
        .enable_logging()
        .enable_completions()
        .enable_prompts()
        .enable_prompts_list_changed()
        .enable_resources()
        .enable_resources_list_changed()
        .enable_resources_subscribe()
        .enable_tools()
        .enable_tool_list_changed()
        .build();
    if !catalogue.offered().skilled().is_empty() {
        let settings = Map::from_iter([("directoryRead".to_owned(), true.into())]);
        let extensions = capabilities.extensions.get_or_insert_default();
        extensions.insert(SKILLS_EXTENSION_ID.to_owned(), settings);
    }
    let implementation = Implementation::new(SERVER_NAME, env!("CARGO_PKG_VERSION"));
    let mut config = ServerConfig::new(capabilities).with_server_info(implementation);
    config.instructions = instructions(catalogue, remark);
    config
}

/// Joins a remark of ours and what the sources have to say, and names those that failed; cut at a whole entry.
fn instructions(catalogue: &Catalogue, remark: Option<String>) -> Option<String> {
    let sources = catalogue.sources().iter().filter_map(|source| {
        match (&source.state, &source.instructions) {
            (State::Failed(cause), _) => {
                Some(format!("{}: not available ({})", source.source, cause.brief()))
            }
            (_, Some(text)) if !text.trim().is_empty() => {
                Some(format!("{}: {}", source.source, text.trim()))
            }
            _ => None,
        }
    });
    let mut joined = String::new();
    for entry in remark.into_iter().chain(sources) {
        let separator = if joined.is_empty() { "" } else { "\n\n" };
        let length = joined.chars().count() + separator.len() + entry.chars().count();
        if length <= INSTRUCTIONS_CHARS {
            joined.push_str(separator);
            joined.push_str(&entry);
        }
    }
    (!joined.is_empty()).then_some(joined)
}

/// Makes one page of `tools/list`.
pub(super) fn tools(
    tools: &[Arc<dyn Tool>],
    names: &Names,
    version: u64,
    cursor: Option<&str>,
    era: Era,
) -> Result<Value, ErrorData> {
    let page = Page { key: "tools", version, cursor, era };
    page.of(tools.len(), |index| {
        let mut wire = wire(tools[index].definition(), names);
        for_era(&mut wire, era);
        Value::Object(wire)
    })
}

/// Returns how many bytes tools take in a list.
pub fn bytes(tools: &[Arc<dyn Tool>], names: &Names) -> usize {
    let entries = tools.iter().map(|tool| Value::Object(wire(tool.definition(), names)));
    Value::Array(entries.collect()).to_string().len()
}

/// Gives a listed tool the form of an era.
fn for_era(wire: &mut Map<String, Value>, era: Era) {
    // Before 2026-07-28 a structured result is an object (§server/tools), and a client that
    // checks the list refuses all of it for one schema of something else.
    let is_object = |schema: &Value| schema.get("type") == Some(&"object".into());
    if era == Era::Legacy && wire.get("outputSchema").is_some_and(|schema| !is_object(schema)) {
        wire.shift_remove("outputSchema");
    }
}

/// Makes the listed form of a tool: its own server's, or ours.
fn wire(definition: &ToolDefinition, names: &Names) -> Map<String, Value> {
    let shown = names.wire(definition);
    let name = Value::from(shown);
    let mut wire = match &definition.native {
        Some(native) => {
            let mut wire = Map::from_iter([("name".to_owned(), name.clone())]);
            wire.extend(native.iter().map(|(key, value)| (key.clone(), value.clone())));
            wire.insert("name".to_owned(), name);
            wire
        }
        None => ours(definition, name),
    };
    if let Some(Value::Object(meta)) = definition.metadata.get("_meta") {
        wire.insert("_meta".to_owned(), Value::Object(meta.clone()));
    }
    let remarks = remarks(definition, shown);
    match wire.get_mut("_meta") {
        Some(Value::Object(meta)) => {
            meta.insert("iris/tool".to_owned(), remarks);
        }
        _ => {
            wire.insert("_meta".to_owned(), json!({"iris/tool": remarks}));
        }
    }
    wire
}

fn ours(definition: &ToolDefinition, name: Value) -> Map<String, Value> {
    let capabilities = &definition.capabilities;
    let open = [Capability::Network, Capability::Mcp, Capability::Agent, Capability::Execute];
    let annotations = json!({
        "readOnlyHint": capabilities.read_only(),
        "destructiveHint": capabilities.destructive(),
        "openWorldHint": open.iter().any(|capability| capabilities.has(*capability)),
    });
    let mut wire = Map::from_iter([("name".to_owned(), name)]);
    if let Some(title) = &definition.title {
        wire.insert("title".to_owned(), title.as_str().into());
    }
    wire.insert("description".to_owned(), definition.description().into());
    wire.insert(
        "inputSchema".to_owned(),
        Value::Object(definition.input_schema.document().clone()),
    );
    wire.insert("annotations".to_owned(), annotations);
    wire
}

fn remarks(definition: &ToolDefinition, shown: &str) -> Value {
    let mut remarks = Map::from_iter([("group".to_owned(), definition.group.as_str().into())]);
    let canonical = definition.name.as_str();
    if canonical != shown {
        remarks.insert("canonical".to_owned(), canonical.into());
    }
    for key in ["tags", "version", "examples", "deprecated"] {
        if let Some(value) = definition.metadata.get(key) {
            remarks.insert(key.to_owned(), value.clone());
        }
    }
    Value::Object(remarks)
}
