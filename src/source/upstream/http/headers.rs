//! The headers that the protocol wants beside those of the file.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde_json::Value;

use super::mirror::Mirrors;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Where a request of the newer era says which version it is of.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// Returns whether a header is for us to set.
pub(in crate::source::upstream) fn is_ours(name: &HeaderName) -> bool {
    [header::ACCEPT, header::CONTENT_TYPE, header::CONTENT_LENGTH, header::TRANSFER_ENCODING]
        .contains(name)
        || [header::CONNECTION, header::UPGRADE, header::TE, header::EXPECT].contains(name)
        || name.as_str().starts_with("mcp-")
        || *name == LAST_EVENT
}

/// Returns the version that a request of the newer era says it is of.
pub(super) fn version_of(message: &Value) -> Option<&str> {
    message.get("params")?.get("_meta")?.get(VERSION_KEY)?.as_str()
}

/// Returns what a request of the newer era says in headers as well (MCP 2026-07-28
/// §basic/transports/streamable-http).
pub(super) fn newer(message: &Value, version: &str, mirrors: &Mirrors) -> HeaderMap {
    let mut headers = version_header(version);
    let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
    put(&mut headers, METHOD, method);
    let params = message.get("params");
    let text = |key: &str| params.and_then(|params| params.get(key)).and_then(Value::as_str);
    let name = match method {
        "tools/call" | "prompts/get" => text("name"),
        "resources/read" => text("uri"),
        _ => None,
    };
    if let Some(name) = name {
        put(&mut headers, NAME, name);
        if let ("tools/call", Some(arguments)) = (method, params.and_then(|p| p.get("arguments"))) {
            for (header, value) in mirrors.of(name, arguments) {
                put(&mut headers, header, &value);
            }
        }
    }
    headers
}

/// Returns the header that names the version that was agreed upon.
pub(super) fn version_header(version: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    put(&mut headers, VERSION, version);
    headers
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(&encoded(value)) {
        headers.insert(name, value);
    }
}

/// Writes a value so that it stays what it is in a header.
fn encoded(value: &str) -> String {
    let edge = |c: char| matches!(c, ' ' | '\t');
    let changed = value.contains(|c| !matches!(c, ' '..='~'))
        || value.starts_with(edge)
        || value.ends_with(edge)
        || value.starts_with("=?base64?") && value.ends_with("?=");
    if changed { format!("=?base64?{}?=", BASE64_STANDARD.encode(value)) } else { value.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_of_the_newer_era_says_what_it_is() {
        let message = json!({"method": "tools/call", "params": {"name": "größe", "arguments": {}}});
        let headers = newer(&message, "2026-07-28", &Mirrors::default());
        assert_eq!(headers["mcp-protocol-version"], "2026-07-28");
        assert_eq!(headers["mcp-method"], "tools/call");
        assert_eq!(headers["mcp-name"], "=?base64?Z3LDtsOfZQ==?=");
        let message = json!({"method": "tools/list", "params": {}});
        assert!(!newer(&message, "2026-07-28", &Mirrors::default()).contains_key("mcp-name"));
    }

    #[test]
    fn a_value_that_a_header_would_change_is_encoded() {
        assert_eq!(encoded("a b"), "a b");
        assert_eq!(encoded(" a"), "=?base64?IGE=?=");
        assert_eq!(encoded("a\n"), "=?base64?YQo=?=");
        assert_eq!(encoded("=?base64?x?="), "=?base64?PT9iYXNlNjQ/eD89?=");
    }
}
