//! Any text as an MCP file, and any bytes as what a server says.

use std::path::Path;

use rmcp::model::{
    ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerResult,
};
use serde_json::{Value, json};

use super::config::{LoadError, Loaded, OnError, Overrides};
use super::pending::Pending;
use super::*;
use crate::document::{Document, Format, Key, Node};
use crate::fuzz::{check_error, spell, target};

/// What no message may say; all of it stands in values.
const SECRET: &str = "S3CRET";

const FILE_WORDS: &[&str] = &[
    "{\"mcpServers\":{\"a\":{",
    "{servers:{b:{",
    "[mcp_servers.a]\n",
    "[mcp_servers.b.env]\n",
    "\"S3CRET\"",
    "'S3CRET'",
    "S3CRET",
    "\"\"\"",
    "'''",
    "\\\n",
    "\\u0041",
    "\\ud800",
    "\n",
    "\r\n",
    "// ",
    "/*",
    "*/",
    "# ",
    "\"",
    "'",
    "{",
    "}",
    "}}",
    "[",
    "]",
    ",",
    ":",
    "= ",
    ".",
    "null",
    "true",
    "false",
    "-1",
    "1e3",
    "0x1F",
    "Infinity",
    "nan",
    "1979-05-27T07:32:00Z",
    "é",
    "\u{2028}",
    "\u{feff}",
    "command",
    "args",
    "env",
    "env_vars",
    "envFile",
    "cwd",
    "url",
    "headers",
    "type",
    "stdio",
    "http",
    "sse",
    "enabled",
    "disabled",
    "required",
    "startup_timeout_sec",
    "tool_timeout_sec",
    "enabled_tools",
    "disabled_tools",
    "bearer_token_env_var",
    "env_http_headers",
    "http_headers",
    "https://",
    "ftp://",
    "${TOKEN}",
    "${NONE:-",
    "${",
    "Authorization",
    "X-A",
    "timeout",
    "disabledTools",
    "alwaysAllow",
];

#[test]
fn mcp_file() {
    target("mcp_file", 16 * 1024, check_file);
}

fn check_file(input: &[u8]) {
    let (first, input) = input.split_first().unwrap_or((&b'{', input));
    let format = if *first == b'[' { Format::Toml } else { Format::Json5 };
    let text = char::from(first & 127).to_string() + &spell(input, FILE_WORDS);
    let document = match Document::parse("mcp.json", format, text.clone()) {
        Ok(document) => document,
        Err(error) => {
            assert!(!error.message().contains(SECRET), "{error}");
            assert!(!error.hint().is_some_and(|hint| hint.contains(SECRET)), "{error}");
            return check_error(&text, &error);
        }
    };
    let open = names_a_secret(&document.root);
    let hides = |shown: &str| assert!(open || !shown.contains(SECRET), "{shown}");
    let documents = [document];
    let read = |on_error| config::read(&documents, &Overrides::default(), on_error);
    match (read(OnError::Fail), read(OnError::Skip)) {
        (Ok(strict), Ok(lenient)) => {
            let required =
                |loaded: &Loaded| loaded.servers.iter().filter(|server| server.required).count();
            assert_eq!(required(&strict), required(&lenient));
            assert_eq!(strict.disabled, lenient.disabled);
            check_loaded(&lenient, hides);
        }
        (Err(LoadError::Document(error)), lenient) => {
            check_error(&text, &error);
            hides(&error.to_string());
            if kept(&documents[0].root, false) == text.matches(SECRET).count() {
                hides(&error.render());
            }
            if let Ok(lenient) = lenient {
                check_loaded(&lenient, hides);
            }
        }
        (strict, lenient) => panic!("{strict:?} {lenient:?}"),
    }
}

/// Returns whether there is a secret where none is kept: in a key, or in a URL, of which host and
/// path are shown.
fn names_a_secret(node: &Node) -> bool {
    let below = node.as_mapping().unwrap_or_default();
    let is_open = |(key, node): &(Key, Node)| {
        let is_url = key.text.to_lowercase().ends_with("url");
        key.text.contains(SECRET)
            || is_url && node.as_str().is_some_and(|url| url.contains(SECRET))
            || names_a_secret(node)
    };
    below.iter().any(is_open) || node.as_sequence().unwrap_or_default().iter().any(names_a_secret)
}

/// Counts how often the secret stands where values are secret: under `env`, in a text of its own.
fn kept(node: &Node, secret: bool) -> usize {
    let items = node.as_sequence().unwrap_or_default().iter();
    let members = node.as_mapping().unwrap_or_default().iter();
    usize::from(secret && node.as_str() == Some(SECRET))
        + items.map(|node| kept(node, secret)).sum::<usize>()
        + members.map(|(key, node)| kept(node, secret || key.text == "env")).sum::<usize>()
}

fn check_loaded(loaded: &Loaded, hides: impl Fn(&str)) {
    for diagnostic in &loaded.diagnostics {
        hides(&diagnostic.message);
        assert!(!diagnostic.message.chars().any(char::is_control), "{:?}", diagnostic.message);
    }
    let variables = [("TOKEN".to_owned(), SECRET.to_owned())].into();
    let read = |_: &Path| Ok(b"A=${TOKEN}\nB=${NONE:-\n".to_vec());
    let host = env::Host { variables: &variables, workspace: Path::new("/work"), read: &read };
    for server in &loaded.servers {
        if let Err(error) = env::resolve(server, host) {
            hides(&error.to_string());
        }
    }
}

/// The longest line that is read.
const LONGEST: usize = 512;

const LINE_WORDS: &[&str] = &[
    "{\"jsonrpc\":\"2.0\",",
    "\"id\":1",
    "\"id\":2",
    "\"id\":\"a\"",
    "\"id\":null",
    "\"id\":1.0",
    "\"id\":3",
    ",",
    "\"result\":{}",
    "\"result\":{\"content\":[]}",
    "\"result\":",
    "\"error\":{\"code\":-32000,\"message\":\"m\"}",
    "\"error\":",
    "\"method\":\"notifications/message\"",
    "\"method\":\"notifications/progress\"",
    "\"method\":\"ping\"",
    "\"method\":",
    "\"method\":\"sampling/createMessage\"",
    "\"method\":\"elicitation/create\"",
    "\"method\":\"roots/list\"",
    "\"method\":\"notifications/tools/list_changed\"",
    "\"params\":{}",
    "\"params\":",
    "\"progressToken\":1",
    "\"progress\":",
    "\"_meta\":{}",
    "{",
    "}",
    "}\n",
    "[",
    "]",
    "\n",
    "\r\n",
    "1E999",
    "\"\\ud800\"",
    "\u{feff}",
    "é",
    "null",
    "true",
    "-1",
    "\"supportedVersions\":[]",
    "\"protocolVersion\":\"2025-06-18\"",
    "\"level\":\"info\",\"data\":",
    "\"requestId\":1",
];

#[test]
fn upstream_line() {
    target("upstream_line", 16 * 1024, check_lines);
}

fn check_lines(input: &[u8]) {
    let text = spell(input, LINE_WORDS).into_bytes();
    // Among the lines may be one that is no UTF-8.
    let text = [&text[..], b"\n", input].concat();
    let pending = Arc::new(Pending::default());
    for request in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t"}}),
        json!({"jsonrpc": "2.0", "id": "a", "method": "x/y", "params": {}}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}),
    ] {
        pending.note(&serde_json::from_value::<ClientJsonRpcMessage>(request).unwrap());
    }
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let heard = lines.iter().filter_map(|line| hear(&pending, line.trim_ascii()));
    let heard: Vec<ServerJsonRpcMessage> = heard.collect();
    for id in [RequestId::Number(1), RequestId::String("a".into())] {
        let answers = heard.iter().filter(|message| answers(message, &id));
        let mut read = lines.iter().filter(|line| line.trim_ascii().len() <= LONGEST);
        let expected = read.find_map(|line| answer_in(line, &id));
        match (answers.clone().next(), expected) {
            // Nothing is lost of a result.
            (Some(JsonRpcMessage::Response(answer)), Some(expected)) => {
                let ServerResult::CustomResult(result) = &answer.result else {
                    panic!("{answer:?}")
                };
                // That of a call travels as the text it came in.
                let whole = match &result.0 {
                    Value::String(text) => {
                        serde_json::from_str(text).unwrap_or_else(|_| result.0.clone())
                    }
                    other => other.clone(),
                };
                assert_eq!(Some(&whole), expected.get("result"));
            }
            (None, Some(expected)) => panic!("{expected} is lost"),
            _ => {}
        }
    }
}

/// Hears a line as a [wire](super::wire) does; one that is too long is known by its ends only.
fn hear(pending: &Pending, line: &[u8]) -> Option<ServerJsonRpcMessage> {
    if line.len() > LONGEST {
        let ends = (&line[..20], &line[line.len() - 20..]);
        let answer = pending.too_long(ends, LONGEST);
        assert!(answer.as_ref().is_none_or(|answer| matches!(answer, JsonRpcMessage::Error(_))));
        return answer;
    }
    let value = serde_json::from_slice::<Value>(line).ok();
    value.and_then(|value| pending.read(value).ok()).or_else(|| pending.unread(line))
}

fn answers(message: &ServerJsonRpcMessage, id: &RequestId) -> bool {
    match message {
        JsonRpcMessage::Response(response) => response.id == *id,
        JsonRpcMessage::Error(error) => error.id.as_ref() == Some(id),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => false,
    }
}

fn answer_in(line: &[u8], id: &RequestId) -> Option<Value> {
    let value: Value = serde_json::from_slice(line.trim_ascii()).ok()?;
    let own = serde_json::from_value::<RequestId>(value.get("id")?.clone()).ok()?;
    (own == *id && value.get("method").is_none()).then_some(value)
}
