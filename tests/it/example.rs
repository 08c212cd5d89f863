//! `mcp.example.json` shows every key of the file, and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

/// Every key a server may have.
pub(crate) const KEYS: &[&str] = &[
    "args",
    "bearer_token_env_var",
    "command",
    "cwd",
    "disabled",
    "disabled_tools",
    "enabled",
    "enabled_tools",
    "env",
    "envFile",
    "env_http_headers",
    "env_vars",
    "headers",
    "http_headers",
    "required",
    "serverUrl",
    "startup_timeout_ms",
    "startup_timeout_sec",
    "tool_timeout_sec",
    "type",
    "url",
];

fn servers() -> Map<String, Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp.example.json");
    let text = fs::read_to_string(path).expect("readable");
    let mut file: Map<String, Value> = serde_json::from_str(&text).expect("plain JSON");
    let servers = file.remove("mcpServers").expect("servers");
    assert!(file.is_empty(), "only servers: {file:?}");
    serde_json::from_value(servers).expect("a mapping")
}

#[test]
fn every_key_is_shown_and_known() {
    let servers = servers();
    let shown: BTreeSet<&str> = servers
        .values()
        .flat_map(|server| server.as_object().expect("a mapping").keys())
        .map(String::as_str)
        .collect();
    assert_eq!(shown, KEYS.iter().copied().collect());
}

#[test]
fn only_our_own_binary_is_enabled() {
    let servers = servers();
    let enabled = servers.iter().filter(|(_, server)| server["disabled"] != true);
    let commands: Vec<&Value> = enabled.map(|(_, server)| &server["command"]).collect();
    assert_eq!(commands, ["${IRIS_MCP_EXE}"]);
}
