//! An upstream's result as blocks for hooks, wrappers and models; the wire keeps the original.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::tool::printed::spaced;
use crate::tool::{Block, ErrorCode, Failure, Image, Native, ToolResult};

/// The upstream's tool says that it failed.
pub const MCP_TOOL_ERROR: ErrorCode = ErrorCode::new("MCP_TOOL_ERROR");

/// Projects a result of `tools/call`, block by block; the result itself rides along.
pub(super) fn project(native: Native) -> ToolResult {
    let members = native.members();
    let mut content: Vec<Block> = match members.get("content") {
        Some(Value::Array(blocks)) => blocks.iter().map(block).collect(),
        _ => Vec::new(),
    };
    if native.has_structured() {
        content.push(Block::Text(spaced(&native.written_structured())));
    }
    let failed = members.get("isError") == Some(&Value::Bool(true));
    let mut result = ToolResult { content, ..ToolResult::default() };
    if failed {
        let text = result.model_content();
        let message =
            if text.is_empty() { "the tool failed without saying why".to_owned() } else { text };
        result.error = Some(Failure::new(MCP_TOOL_ERROR, message));
    }
    result.native = Some(Arc::new(native));
    result
}

/// Looks whether clients can read a result of `tools/call`; what may be left out is put in.
///
/// A client ends the whole session over a block without a type, or waits for ever for an answer
/// that its library has dropped. Types, fields and blocks that nobody knows are the client's matter.
pub(super) fn put_right(native: &mut Map<String, Value>) -> Result<(), String> {
    let blocks = native.entry("content").or_insert_with(|| Value::Array(Vec::new()));
    let Value::Array(blocks) = blocks else {
        return Err(format!("its `content` is {}, and no list of blocks", kind(blocks)));
    };
    for (number, block) in blocks.iter().enumerate() {
        if !block.get("type").is_some_and(Value::is_string) {
            return Err(format!("`content[{number}]` is {} without a `type`", kind(block)));
        }
    }
    match native.get("isError") {
        None | Some(Value::Bool(_)) => Ok(()),
        Some(other) => Err(format!("its `isError` is {}, and neither true nor false", kind(other))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn block(block: &Value) -> Block {
    let text = |key: &str| block.get(key).and_then(Value::as_str);
    match text("type") {
        Some("text") => Block::Text(text("text").unwrap_or_default().to_owned()),
        Some("image") => match (text("data"), text("mimeType")) {
            (Some(data), Some(mime_type)) => Block::Image(Image::new(mime_type, data)),
            _ => Block::Text("image: without data or media type".to_owned()),
        },
        Some("resource_link") => {
            let (name, uri) = (text("name").unwrap_or_default(), text("uri").unwrap_or_default());
            Block::Text(format!(
                "Resource: {name} {uri} ({})",
                text("mimeType").unwrap_or("unknown")
            ))
        }
        Some("resource") => {
            let resource = block.get("resource");
            let text = |key: &str| resource?.get(key)?.as_str();
            let uri = text("uri").unwrap_or_default();
            let mime_type = text("mimeType").unwrap_or("unknown");
            Block::Text(format!(
                "Resource: {uri} ({mime_type})\n{}",
                text("text").unwrap_or("binary")
            ))
        }
        other => {
            let kind = other.unwrap_or("unknown");
            Block::Text(format!("{kind}: {}", text("mimeType").unwrap_or("unknown")))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(native: Value, expected: &str) {
        let result = project(Native::parse(native.to_string()).unwrap());
        assert_eq!(result.model_content(), expected);
        assert_eq!(result.native.unwrap().to_value(), native);
    }

    #[test]
    fn ex_9_4_structured_content_follows_the_text() {
        check(
            json!({"content": [{"type": "text", "text": "ok"}], "structuredContent": {"answer": 42}}),
            "ok\n{\"answer\": 42}",
        );
        check(json!({"content": [], "structuredContent": null}), "null");
        check(
            json!({"content": [], "structuredContent": {"a": [1, "é"], "b": {}}}),
            "{\"a\": [1, \"é\"], \"b\": {}}",
        );
    }

    #[test]
    fn every_kind_of_block_has_a_projection() {
        check(
            json!({"content": [
                {"type": "resource_link", "name": "n", "uri": "u:1"},
                {"type": "resource", "resource": {"uri": "u:2", "mimeType": "text/plain", "text": "body"}},
                {"type": "resource", "resource": {"uri": "u:3", "blob": "AA=="}},
                {"type": "audio", "mimeType": "audio/wav", "data": "AA=="},
                {"type": "hologram"}, {}, 5,
            ]}),
            "Resource: n u:1 (unknown)\nResource: u:2 (text/plain)\nbody\nResource: u:3 (unknown)\nbinary\naudio: audio/wav\nhologram: unknown\nunknown: unknown\nunknown: unknown",
        );
        let image =
            json!({"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}]});
        let result = project(image.as_object().unwrap().clone().into());
        assert_eq!(result.content, [Block::Image(Image::new("image/png", "AA=="))]);
        check(json!({}), "");
    }

    #[test]
    fn an_error_has_the_upstreams_words() {
        check(
            json!({"content": [{"type": "text", "text": "no"}], "isError": true}),
            "Error[MCP_TOOL_ERROR]: no",
        );
        check(
            json!({"content": [], "isError": true}),
            "Error[MCP_TOOL_ERROR]: the tool failed without saying why",
        );
    }
}
