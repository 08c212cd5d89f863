//! Any bytes as what a client says.

use rmcp::model::JsonRpcMessage;
use tokio::io::AsyncReadExt as _;

use super::*;
use crate::fuzz::{block_on, spell, target};
use crate::lines::{Line, Lines};

const WORDS: &[&str] = &[
    "{\"jsonrpc\":\"2.0\",",
    "\"jsonrpc\":\"1.0\"",
    "\"id\":1",
    "\"id\":\"a\"",
    "\"id\":null",
    "\"id\":1.0",
    "\"id\":-9223372036854775808",
    "\"id\":{}",
    ",",
    "\"method\":\"tools/call\"",
    "\"method\":\"tools/list\"",
    "\"method\":\"initialize\"",
    "\"method\":\"ping\"",
    "\"method\":\"x\"",
    "\"method\":\"notifications/initialized\"",
    "\"method\":\"notifications/cancelled\"",
    "\"method\":",
    "\"method\":\"completion/complete\"",
    "\"method\":\"logging/setLevel\"",
    "\"method\":\"resources/read\"",
    "\"method\":\"server/discover\"",
    "\"params\":{",
    "\"params\":",
    "\"name\":\"t\"",
    "\"arguments\":{",
    "\"_meta\":{",
    "\"progressToken\":1",
    "\"cursor\":\"c\"",
    "\"protocolVersion\":\"2025-06-18\"",
    "\"capabilities\":{}",
    "\"clientInfo\":{\"name\":\"n\",\"version\":\"1\"}",
    "\"requestId\":1",
    "\"result\":{}",
    "\"result\":",
    "\"error\":{\"code\":1,\"message\":\"m\"}",
    "\"uri\":\"file:///a\"",
    "{",
    "}",
    "}\n",
    "[",
    "]",
    "\n",
    "\r\n",
    "1e999",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "\u{feff}",
    "é",
    "null",
    "true",
    "\"level\":\"info\"",
    "\"ref\":{\"type\":\"ref/prompt\"}",
];

#[test]
fn client_line() {
    target("client_line", 16 * 1024, check);
}

fn check(input: &[u8]) {
    let text = spell(input, WORDS);
    check_lines(input, text.as_bytes());
    check_lines(input, input);
    for line in text.as_bytes().split(|byte| *byte == b'\n').chain([input]) {
        check_line(line.trim_ascii());
    }
}

/// However the bytes come, the lines are the same.
fn check_lines(input: &[u8], text: &[u8]) {
    let limit = input.len() % 50;
    let cut = usize::from(input.first().copied().unwrap_or_default()).min(text.len());
    let read = block_on(async {
        let mut lines = Lines::new(text[..cut].chain(&text[cut..]), limit);
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            let (head, tail) = lines.ends();
            assert!(head.len() <= 256 && tail.len() <= 256);
            read.push(line);
        }
        read
    });
    let lines = text.split_inclusive(|byte| *byte == b'\n').map(|line| {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if line.len() > limit { Line::TooLong } else { Line::Whole(line.trim_ascii().to_vec()) }
    });
    assert_eq!(read, lines.collect::<Vec<_>>());
}

fn check_line(line: &[u8]) {
    let value = serde_json::from_slice::<Value>(line).ok();
    let has = |name: &str| value.as_ref().is_some_and(|value| value.get(name).is_some());
    let id = value.as_ref().and_then(|value| value.get("id"));
    let id = id.and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
    match read(line) {
        Read::Message(message) => {
            let value = value.as_ref().unwrap();
            assert_eq!(value["jsonrpc"], "2.0");
            match &*message {
                JsonRpcMessage::Request(request) => assert_eq!(Some(&request.id), id.as_ref()),
                JsonRpcMessage::Notification(_) => assert!(!has("id"), "{value} has an id"),
                JsonRpcMessage::Response(response) => assert_eq!(Some(&response.id), id.as_ref()),
                JsonRpcMessage::Error(_) => assert!(has("error")),
            }
            // What is passed on is read as what came.
            let again = serde_json::to_vec(&message).unwrap();
            let Read::Message(second) = read(&again) else { panic!("{value} is read but once") };
            assert_eq!(serde_json::to_vec(&second).unwrap(), again);
        }
        Read::Bad(about, error) => {
            assert_eq!(about, id);
            assert_eq!(error.code.0 == -32700, value.is_none(), "{error:?}");
            assert!(error.message.len() < 200, "{error:?}");
        }
        Read::Nothing => assert!(has("method") && !has("id")),
    }
}
