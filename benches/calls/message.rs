//! What the clients of the benchmark send, and what an answer must look like.

use std::io;

use serde_json::{Value, json};

/// The version of the era with sessions that is spoken.
pub(crate) const LEGACY: &str = "2025-11-25";
/// The version of the era without.
pub(crate) const MODERN: &str = "2026-07-28";

/// A call of one tool, ready but for its id.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) tool: &'static str,
    before_id: String,
    after_id: String,
    /// What an answer contains.
    expected: &'static str,
}

impl Call {
    /// The upstream's tool, under the name that a server has for it.
    pub(crate) fn echo(tool: &'static str, version: &str) -> Self {
        Self::new(tool, json!({"text": "hello"}), version, r#""text":"hello""#)
    }

    /// The upstream's tool whose result is a megabyte of data, which no model reads as text.
    pub(crate) fn large(tool: &'static str, version: &str) -> Self {
        Self::new(tool, json!({}), version, r#""blob":"AAAA"#)
    }

    /// A built-in tool that returns before it looks at any file.
    pub(crate) fn nothing(version: &str) -> Self {
        Self::new("list_files", json!({"max_results": 0}), version, r#""isError":false"#)
    }

    fn new(tool: &'static str, arguments: Value, version: &str, expected: &'static str) -> Self {
        let mut params = json!({"name": tool, "arguments": arguments});
        if version == MODERN {
            params["_meta"] = meta();
        }
        let before_id = r#"{"jsonrpc":"2.0","id":"#.to_owned();
        let after_id = format!(r#","method":"tools/call","params":{params}}}"#);
        Self { tool, before_id, after_id, expected }
    }

    /// Writes the request with its id.
    pub(crate) fn write(&self, id: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(self.before_id.as_bytes());
        out.extend_from_slice(id.to_string().as_bytes());
        out.extend_from_slice(self.after_id.as_bytes());
    }

    /// Returns how long a request with this id is.
    pub(crate) fn length(&self, id: u64) -> usize {
        self.before_id.len() + id.to_string().len() + self.after_id.len()
    }

    /// Refuses anything but the answer of the tool.
    pub(crate) fn check(&self, answer: &[u8]) -> io::Result<()> {
        let found = |text: &str| memchr::memmem::find(answer, text.as_bytes()).is_some();
        if found(r#""result""#) && found(self.expected) {
            return Ok(());
        }
        let answer = String::from_utf8_lossy(answer);
        Err(io::Error::other(format!("{} was answered with {answer}", self.tool)))
    }
}

/// The first message of the era with sessions.
pub(crate) fn initialize() -> Value {
    let client = json!({"name": "calls", "version": "1"});
    let params = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

/// The second one.
pub(crate) fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

/// The list of tools; its answer says that all upstreams are ready.
pub(crate) fn list() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": {}})
}

/// What a request of the modern era says about its client.
fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "calls", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}
