//! A person is asked about a call: by every client, in both eras, over both transports.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::{Gateway, command, exe, peer};
use crate::peers::{Client, Mode};

const TIME: &str = "mcp__time__get_current_time";

/// An agent with one upstream, whose calls nobody has allowed.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let upstreams = json!({"mcpServers": {"time": {
            "command": peer("servers/bin/mcp-server-time"), "args": ["--local-timezone", "UTC"],
        }}});
        fs::write(folder.path().join("mcp.json"), upstreams.to_string()).unwrap();
        fs::write(folder.path().join("agent.yaml"), "name: asking\nmcp: {path: mcp.json}\n")
            .unwrap();
        Self(folder)
    }

    fn arguments(&self) -> [String; 2] {
        ["--agent".to_owned(), self.0.path().join("agent.yaml").to_string_lossy().into_owned()]
    }
}

/// Makes the call twice with each client over each transport, and checks what came of it.
#[track_caller]
fn check(client: Client, elicit: Option<&Value>, asked: usize, expected: &str) {
    let home = Home::new();
    let call = json!({"op": "call", "name": TIME, "arguments": {"timezone": "UTC"}});
    let steps = json!([call, call]);
    let gateway = Gateway::start(&home.arguments().each_ref().map(String::as_str));
    let line: Vec<String> =
        [exe().to_owned(), "serve".to_owned()].into_iter().chain(home.arguments()).collect();
    for transport in [json!({"url": gateway.url}), json!({"command": line})] {
        let seen = client.answering(&transport, &steps, elicit);
        let questions = seen["elicited"].as_array().unwrap();
        assert_eq!(questions.len(), asked, "{client:?} {transport} {seen}");
        for question in questions {
            assert!(question.as_str().unwrap().contains(TIME), "{question}");
        }
        for step in seen["steps"].as_array().unwrap() {
            let text = step["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.contains(expected), "{client:?} {transport} {step}");
        }
    }
}

fn answered(answer: &str) -> Value {
    json!({"action": "accept", "content": {"answer": answer}})
}

#[test]
fn a_person_approves_each_call() {
    for client in [Client::Python(Mode::Legacy), Client::TypeScript(Mode::Auto)] {
        check(client, Some(&answered("once")), 2, "\"timezone\": \"UTC\"");
    }
}

#[test]
fn a_person_approves_for_the_session_where_it_is_the_clients_own() {
    check(Client::TypeScript(Mode::Legacy), Some(&answered("session")), 1, "\"timezone\": \"UTC\"");
}

#[test]
fn a_person_refuses() {
    for client in [Client::FastMcp(Mode::Auto), Client::TypeScript(Mode::Legacy)] {
        check(client, Some(&answered("refuse")), 2, "Error[USER_REJECTED]");
        check(client, Some(&json!({"action": "decline"})), 2, "Error[USER_REJECTED]");
    }
}

#[test]
fn a_client_that_can_not_ask_gets_the_line_to_add() {
    for client in [Client::Python(Mode::Legacy), Client::TypeScript(Mode::Auto)] {
        check(client, None, 0, &format!("`--permit {TIME}` allows it"));
    }
}

/// A client of the modern era that writes its own messages.
struct Raw {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Raw {
    fn start(home: &Home) -> Self {
        let mut command = command(exe());
        command.arg("serve").args(home.arguments()).stdin(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output, next: 1 }
    }

    fn call(&mut self, arguments: &Value, retry: Option<(&str, &Value)>) -> Value {
        let id = self.next;
        self.next += 1;
        let mut params = json!({"name": TIME, "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        }});
        if let Some((state, responses)) = retry {
            params["requestState"] = state.into();
            params["inputResponses"] = responses.clone();
        }
        let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        writeln!(self.input, "{message}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn a_sealed_state_holds_once_and_for_its_own_call() {
    let home = Home::new();
    let mut raw = Raw::start(&home);
    let utc = json!({"timezone": "UTC"});
    let yes = json!({"approval": answered("once")});
    let asked = raw.call(&utc, None);
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    assert_eq!(result["inputRequests"]["approval"]["method"], "elicitation/create", "{asked}");
    let state = result["requestState"].as_str().unwrap().to_owned();
    let void = |answer: &Value| {
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert_eq!(answer["error"]["data"]["code"], "REQUEST_STATE_INVALID", "{answer}");
    };
    void(&raw.call(&json!({"timezone": "Europe/Paris"}), Some((&state, &yes))));
    void(&raw.call(&utc, Some((&format!("{state}x"), &yes))));
    let done = raw.call(&utc, Some((&state, &yes)));
    assert_eq!(done["result"]["structuredContent"]["timezone"], "UTC", "{done}");
    void(&raw.call(&utc, Some((&state, &yes))));
    let mut restarted = Raw::start(&home);
    let again = raw.call(&utc, None);
    let state = again["result"]["requestState"].as_str().unwrap();
    void(&restarted.call(&utc, Some((state, &yes))));
    let unanswered = raw.call(&utc, Some((state, &json!({}))));
    assert_eq!(unanswered["result"]["resultType"], "input_required", "asked again: {unanswered}");
}

#[test]
fn a_question_that_nobody_answers_is_withdrawn_and_the_call_refused() {
    let home = Home::new();
    let mut command = command(exe());
    command.arg("serve").args(home.arguments()).stdin(Stdio::piped()).stderr(Stdio::null());
    command.env("IRIS_MCP_APPROVAL_TIMEOUT_SECONDS", "1");
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "silent", "version": "1"},
    }});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let arguments = json!({"timezone": "UTC"});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": TIME, "arguments": arguments}});
    for message in [hello, ready, call] {
        writeln!(input, "{message}").unwrap();
    }
    let mut asked = None;
    let mut withdrawn = None;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        match message["method"].as_str() {
            Some("elicitation/create") => asked = Some(message["id"].clone()),
            Some("notifications/cancelled") => {
                withdrawn = Some(message["params"]["requestId"].clone());
            }
            None if message["id"] == 2 => {
                let text = message["result"]["content"][0]["text"].as_str().unwrap();
                assert!(text.contains("nobody answered within 1 s"), "{text}");
                break;
            }
            _ => {}
        }
    }
    assert!(asked.is_some());
    assert_eq!(withdrawn, asked);
    drop(child.kill());
    drop(child.wait());
}
