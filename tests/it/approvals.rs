//! A person is asked about a call: by every client, in both eras, over both transports.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::{Gateway, command, exe, peer};
use crate::peers::{Client, Mode};
use crate::web::Web;

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

fn answered(answer: &str) -> Value {
    json!({"action": "accept", "content": {"answer": answer}})
}

/// Makes calls with a client, over standard streams and over HTTP, and returns what it saw.
#[track_caller]
fn drive(client: Client, more: &[&str], calls: usize, elicit: [Option<&[Value]>; 2]) -> [Value; 2] {
    let home = Home::new();
    let call = json!({"op": "call", "name": TIME, "arguments": {"timezone": "UTC"}});
    let steps = vec![call; calls].into();
    let mut arguments: Vec<String> = home.arguments().into();
    arguments.extend(more.iter().map(ToString::to_string));
    let gateway = Gateway::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let line: Vec<String> =
        [exe().to_owned(), "serve".to_owned()].into_iter().chain(arguments).collect();
    let transports = [json!({"command": line}), json!({"url": gateway.url})];
    [0, 1].map(|index| {
        let (transport, elicit) = (&transports[index], elicit[index]);
        let seen = client.answering(transport, &steps, elicit);
        for question in seen["elicited"].as_array().unwrap() {
            assert!(question.as_str().unwrap().contains(TIME), "{question}");
        }
        seen
    })
}

/// Returns the first text of each step, which is what the model reads.
fn texts(seen: &Value) -> Vec<&str> {
    let steps = seen["steps"].as_array().unwrap().iter();
    steps.map(|step| step["result"]["content"][0]["text"].as_str().unwrap_or("nothing")).collect()
}

/// Lets a person approve, refuse, decline, and approve for the session, over each transport.
#[track_caller]
fn check(client: Client) {
    const DONE: &str = "\"timezone\": \"UTC\"";
    const REFUSED: &str = "Error[USER_REJECTED]";
    let answers = |last: &str| {
        [answered("once"), answered("refuse"), json!({"action": "decline"}), answered(last)]
    };
    // In the newer era all clients of one principal share a session over HTTP.
    let (over_http, asked) = if client.is_modern() { ("once", 5) } else { ("session", 4) };
    let elicit = [answers("session"), answers(over_http)];
    let seen = drive(client, &[], 5, elicit.each_ref().map(|answers| Some(&answers[..])));
    for (seen, asked) in seen.iter().zip([4, asked]) {
        assert_eq!(seen["elicited"].as_array().unwrap().len(), asked, "{client:?} {seen}");
        for (text, part) in texts(seen).into_iter().zip([DONE, REFUSED, REFUSED, DONE, DONE]) {
            assert!(text.contains(part), "{client:?}: {part}: {seen}");
        }
    }
}

#[test]
fn a_person_answers_at_fastmcp() {
    check(Client::FastMcp(Mode::Auto));
}

#[test]
fn a_person_answers_at_a_python_client() {
    check(Client::Python(Mode::Auto));
}

#[test]
fn a_person_answers_at_a_python_client_of_the_older_era() {
    check(Client::Python(Mode::Legacy));
}

#[test]
fn a_person_answers_at_a_typescript_client() {
    check(Client::TypeScript(Mode::Auto));
}

#[test]
fn a_person_answers_at_a_typescript_client_of_the_older_era() {
    check(Client::TypeScript(Mode::Legacy));
}

#[test]
fn a_person_who_never_answers_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("server.toml");
    fs::write(&config, "[approval]\ntimeout_seconds = 1\n").unwrap();
    let config = ["--config", config.to_str().unwrap()];
    for client in [Client::Python(Mode::Legacy), Client::TypeScript(Mode::Legacy)] {
        for seen in drive(client, &config, 1, [Some(&[Value::Null]); 2]) {
            assert_eq!(seen["elicited"].as_array().unwrap().len(), 1, "{client:?} {seen}");
            let text = texts(&seen)[0];
            assert!(text.starts_with("Error[PERMISSION_ERROR]"), "{client:?}: {text}");
            assert!(text.contains("nobody answered within 1 s"), "{client:?}: {text}");
        }
    }
}

#[test]
fn a_client_that_can_not_ask_gets_the_line_to_add() {
    for client in [Client::Python(Mode::Legacy), Client::TypeScript(Mode::Auto)] {
        for seen in drive(client, &[], 1, [None; 2]) {
            let text = texts(&seen)[0];
            assert!(text.contains(&format!("`--permit {TIME}` allows it")), "{client:?}: {text}");
        }
    }
    // The line does what it says.
    for seen in drive(Client::TypeScript(Mode::Auto), &["--permit", TIME], 1, [None; 2]) {
        assert!(texts(&seen)[0].contains("UTC"), "{seen}");
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
        Self::start_with(home, "300")
    }

    fn start_with(home: &Home, patience: &str) -> Self {
        let mut command = command(exe());
        command.env("IRIS_MCP_APPROVAL_TIMEOUT_SECONDS", patience);
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
fn a_sealed_state_expires() {
    let home = Home::new();
    let mut raw = Raw::start_with(&home, "0.001");
    let utc = json!({"timezone": "UTC"});
    let asked = raw.call(&utc, None);
    let state = asked["result"]["requestState"].as_str().unwrap();
    let answer = raw.call(&utc, Some((state, &json!({"approval": answered("once")}))));
    assert_eq!(answer["error"]["data"]["code"], "REQUEST_STATE_INVALID", "{answer}");
}

#[test]
fn a_sealed_state_is_no_others() {
    let home = crate::fixture::Home::with_up(json!({"tools": ["plain"]}));
    let tokens = crate::http::tokens(&home);
    let mut arguments = home.arguments();
    arguments.extend(["--approval", "ask", "--token-file", &tokens].map(str::to_owned));
    let gateway = Gateway::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let call = |who: &str, state: Option<&str>| {
        let mut params = json!({"name": "mcp__up__plain", "arguments": {}});
        if let Some(state) = state {
            params["requestState"] = state.into();
            params["inputResponses"] = json!({"approval": answered("once")});
        }
        let web = Web::new(&gateway.url).bearer(&format!("{who}-token"));
        web.asked("tools/call", &params)
    };
    let asked = call("alice", None);
    let state = asked["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{asked}"));
    let stolen = call("bob", Some(state));
    assert_eq!(stolen["error"]["code"], -32602, "{stolen}");
    assert_eq!(stolen["error"]["data"]["code"], "REQUEST_STATE_INVALID", "{stolen}");
    assert_eq!(home.noted("plain"), 0);
    assert_eq!(call("alice", Some(state))["result"]["content"][0]["text"], "this is plain: {}");
    let again = call("alice", Some(state));
    assert_eq!(again["error"]["data"]["code"], "REQUEST_STATE_INVALID", "{again}");
    assert_eq!(home.noted("plain"), 1, "the body ran once");
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
