//! What we say of ourselves and of the tools: `initialize`, `server/discover`, `tools/list`.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use serde_json::{Map, Value, json};

use super::project::{SERVER_NAME, for_era};
use crate::exposure::names::Names;
use crate::registry::{Catalogue, State};
use crate::tool::{Capability, Era, Tool, ToolDefinition};

/// The most tools on one page; many clients read only the first.
const PAGE_TOOLS: usize = 2_000;
/// The most bytes of tools on one page.
const PAGE_BYTES: usize = 4_000_000;
/// The most characters of instructions; some clients cut what is longer.
const INSTRUCTIONS_CHARS: usize = 2_000;

/// Makes what a handshake says of us.
pub(super) fn about(catalogue: &Catalogue) -> ServerConfig {
    let capabilities = ServerCapabilities::builder()
        .enable_tools()
        .enable_tool_list_changed()
        .enable_resources()
        .build();
    let implementation = Implementation::new(SERVER_NAME, env!("CARGO_PKG_VERSION"));
    let mut config = ServerConfig::new(capabilities).with_server_info(implementation);
    config.instructions = instructions(catalogue);
    config
}

/// Joins what the sources have to say, and names those that failed; cut at a whole entry.
fn instructions(catalogue: &Catalogue) -> Option<String> {
    let entries = catalogue.sources().iter().filter_map(|source| {
        match (&source.state, &source.instructions) {
            (State::Failed(reason), _) => Some(format!(
                "{}: not available ({})",
                source.source,
                reason.lines().next().unwrap_or_default()
            )),
            (_, Some(text)) if !text.trim().is_empty() => {
                Some(format!("{}: {}", source.source, text.trim()))
            }
            _ => None,
        }
    });
    let mut joined = String::new();
    for entry in entries {
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
    let start = match cursor {
        Some(cursor) => offset(cursor, version, tools.len())?,
        None => 0,
    };
    let mut page = Vec::new();
    let mut bytes = 0;
    for tool in tools.iter().skip(start).take(PAGE_TOOLS) {
        let entry = Value::Object(wire(tool.definition(), names));
        bytes += entry.to_string().len();
        if bytes > PAGE_BYTES && !page.is_empty() {
            break;
        }
        page.push(entry);
    }
    let end = start + page.len();
    let mut reply = Map::from_iter([("tools".to_owned(), Value::Array(page))]);
    if end < tools.len() {
        reply.insert("nextCursor".to_owned(), format!("{version}:{end}").into());
    }
    if era == Era::Modern {
        // What a client may see depends on who it is, and changes without notice.
        reply.insert("ttlMs".to_owned(), 0.into());
        reply.insert("cacheScope".to_owned(), "private".into());
    }
    for_era(&mut reply, era);
    if era == Era::Legacy {
        reply.shift_remove("_meta");
    }
    Ok(Value::Object(reply))
}

/// Returns how many bytes tools take in a list.
pub fn bytes(tools: &[Arc<dyn Tool>], names: &Names) -> usize {
    let entries = tools.iter().map(|tool| Value::Object(wire(tool.definition(), names)));
    Value::Array(entries.collect()).to_string().len()
}

/// Reads a cursor of ours; one for another snapshot of the list is refused, not misread.
fn offset(cursor: &str, version: u64, length: usize) -> Result<usize, ErrorData> {
    let refused = |message: &str| {
        let message = format!("{message}; start again without a cursor");
        Err(ErrorData::invalid_params(message, Some(json!({"cursor": cursor}))))
    };
    let Some((made_for, offset)) = cursor.split_once(':') else {
        return refused("this cursor is not one of ours");
    };
    match (made_for.parse::<u64>(), offset.parse::<usize>()) {
        (Ok(made_for), Ok(offset)) if made_for == version && offset <= length => Ok(offset),
        (Ok(_), Ok(_)) => refused("the list has changed since this cursor was given"),
        _ => refused("this cursor is not one of ours"),
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
