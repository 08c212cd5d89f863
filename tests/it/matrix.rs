//! Real clients before real servers: everything that a server can want of its client during a call.
//!
//! One test is one client, one server, and how each is reached; in it the server's tools ask for a
//! form, for an address to be opened, for a sample and for roots, report progress, log, and are
//! cancelled. What real peers can say is asked here; what they can't is in `asks` and `relays`.
//!
//! | SDK | older era | newer era |
//! |---|---|---|
//! | client `mcp` (Python) | all | all |
//! | client `fastmcp` | all | all; logs always from `debug` on |
//! | client `@modelcontextprotocol/client` | all | all |
//! | server `mcp` (Python) | all; knows no `logging/setLevel` | all |
//! | server `fastmcp` | all | all but its own `ctx.elicit` and the like, which only ask by requests |
//! | server `@modelcontextprotocol/sdk` | all | none: it does not know that era |
//! | server `@modelcontextprotocol/server` | over stdio; over HTTP it has no sessions, so it cannot ask | all |
//!
//! The TypeScript client forgets progress that comes in the same moment as the answer, and Python
//! asks for roots over HTTP outside of its call's stream: `progress` waits until its reports have
//! been seen, and over HTTP too only one call is under way.

use serde_json::{Value, json};

use crate::binary::{By, peer};
use crate::fixture::Home;
use crate::peers::{Client, Mode, root};
use crate::remote::real::Peer;

/// A server SDK and the era it is spoken to in.
#[derive(Clone, Copy, Debug)]
enum Server {
    Python(&'static str),
    FastMcp(&'static str),
    TypeScript1,
    TypeScript2(&'static str),
}

const OLDER: &str = "legacy";
const NEWER: &str = "modern";

impl Server {
    fn era(self) -> &'static str {
        match self {
            Self::Python(era) | Self::FastMcp(era) | Self::TypeScript2(era) => era,
            Self::TypeScript1 => OLDER,
        }
    }

    /// Returns the program below the peers and its first arguments.
    fn line(self) -> (&'static str, [String; 2]) {
        let script = |name: &str| {
            root().join("tests/peers/servers").join(name).to_string_lossy().into_owned()
        };
        match self {
            Self::Python(_) => ("client/bin/python", [script("py_server.py"), "mcp".into()]),
            Self::FastMcp(_) => ("fastmcp/bin/python", [script("py_server.py"), "fastmcp".into()]),
            Self::TypeScript1 => ("npm/node", [script("ts_server.mjs"), "v1".into()]),
            Self::TypeScript2(_) => ("npm/node", [script("ts_server.mjs"), "v2".into()]),
        }
    }

    /// Returns its entry in an MCP file, and what must be kept until the test ends.
    fn entry(self, by: By) -> (Value, Option<Peer>) {
        let (program, [script, sdk]) = self.line();
        match by {
            By::Stdio => {
                let entry = json!({
                    "command": peer(program), "args": [script, sdk, "stdio"],
                    "env": {"IRIS_PEERS": peer("")},
                });
                (entry, None)
            }
            By::Http => {
                let served = Peer::start(
                    |command, port| {
                        command.args([&script, &sdk, "http"]).arg(port.to_string());
                        command.env("IRIS_PEERS", peer(""));
                    },
                    program,
                );
                (json!({"url": served.url("/mcp")}), Some(served))
            }
        }
    }
}

/// What the person at the client answers, by kind.
fn person() -> Value {
    json!({
        "form": {"action": "accept", "content": {"colour": "grün", "count": 3, "sure": true}},
        "url": {"action": "accept"},
        "sampling": {
            "role": "assistant", "model": "m-1", "stopReason": "endTurn",
            "content": {"type": "text", "text": "Paris"},
        },
        "roots": {"roots": [{"uri": "file:///home/k%C3%B6ln", "name": "home"}]},
    })
}

/// The tools that ask, in order, and the answer that each is to hear.
const ASKING: [(&str, &str); 4] =
    [("ask_form", "form"), ("ask_url", "url"), ("sample", "sampling"), ("roots", "roots")];

/// What each question says; `roots` says nothing.
fn questions() -> [Value; 4] {
    [
        json!({
            "message": "Which colour for „Köln“?\nAnd how many? 🎨",
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "colour": {"type": "string", "enum": ["grün", "blau"], "title": "Colour"},
                    "count": {"type": "integer", "minimum": 1, "maximum": 9},
                    "sure": {"type": "boolean", "default": false},
                },
                "required": ["colour", "count"],
            },
        }),
        json!({
            "mode": "url", "message": "Please sign in.",
            "url": "https://example.com/sign-in?flow=a%20b&x=1#top",
        }),
        json!({
            "messages": [{"role": "user", "content": {"type": "text", "text": "Capital of France?"}}],
            "maxTokens": 16, "systemPrompt": "Answer in one word.",
        }),
        json!({}),
    ]
}

fn steps(home: &Home) -> Value {
    let call = |tool: &str| json!({"op": "call", "name": format!("mcp__up__{tool}")});
    let mut steps: Vec<Value> = ASKING.iter().map(|(tool, _)| call(tool)).collect();
    let mut progress = call("progress");
    progress["arguments"] = json!({"until": home.path("seen")});
    progress["progress"] = 3.into();
    progress["touch"] = home.path("seen").into();
    let mut log = call("log");
    log["logs"] = 1.into();
    let mut slow = call("slow");
    slow["op"] = "cancel_call".into();
    slow["arguments"] = json!({"ledger": home.path("ledger")});
    slow["after_progress"] = 1.into();
    slow["until"] = home.path("ledger").into();
    steps.extend([progress, log, slow]);
    steps.into()
}

/// Lets a client use each tool of a server, and checks what either of them heard.
#[track_caller]
fn check((client, from): (Client, By), (server, to): (Server, By)) {
    let home = Home::new();
    let (up, _served) = server.entry(to);
    home.serve(json!({ "up": up }));
    let config = format!("[upstream.up]\nprotocol = \"{}\"\n", server.era());
    let mut arguments = home.arguments();
    let config = home.write("server.toml", &config);
    arguments.extend(["--config", &config, "--approval", "client"].map(str::to_owned));
    let (transport, _gateway) = from.reach(&arguments);
    let seen = client.before_a_person(&transport, &steps(&home), &person());
    heard(&home, &seen);
    was_asked(&seen, client.is_modern());
}

/// Checks what came of each step.
#[track_caller]
fn heard(home: &Home, seen: &Value) {
    let text = |index: usize| {
        let result = &seen["steps"][index]["result"];
        assert_ne!(result["isError"], true, "{seen:#}");
        result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {seen:#}"))
    };
    for (index, (tool, kind)) in ASKING.iter().enumerate() {
        let answer: Value = serde_json::from_str(text(index)).unwrap();
        assert_eq!(answer, person()[kind], "{tool}");
    }
    assert_eq!(text(4), "done");
    let step = |step: usize| json!([step, 3, format!("step {step}")]);
    let reports = &seen["steps"][4]["progress"];
    // The one has whole numbers as such, the other does not.
    assert_eq!(
        reports.to_string().replace(".0", ""),
        json!([step(1), step(2), step(3)]).to_string()
    );
    assert_eq!(text(5), "logged");
    let message = json!({"level": "warning", "logger": "up/engine", "data": {"städte": ["Köln"]}});
    assert_eq!(seen["logs"], json!([message]));
    assert_eq!(seen["steps"][6]["cancelled"], true, "{seen:#}");
    home.wait_for("cancelled");
    assert_eq!(home.ledger(), ["cancelled"]);
}

/// Checks that the client was asked each thing once, as the server has it.
#[track_caller]
fn was_asked(seen: &Value, is_modern: bool) {
    let asked = seen["asked"].as_array().unwrap();
    assert_eq!(asked.len(), ASKING.len(), "{asked:#?}");
    for (asked, question) in asked.iter().zip(questions()) {
        for (key, value) in question.as_object().unwrap() {
            assert_eq!(asked[key], *value, "{asked:#}");
        }
    }
    assert!(["form", ""].contains(&asked[0]["mode"].as_str().unwrap_or_default()), "{asked:#?}");
    // The older era has an id for what is opened; which it is, is the server's affair or ours.
    assert!(is_modern || asked[1]["elicitationId"].is_string(), "{asked:#?}");
}

/// Makes a test of each pair.
macro_rules! pairs {
    ($($name:ident: $client:expr, $server:expr;)*) => {
        $(
            #[test]
            fn $name() {
                check($client, $server);
            }
        )*
    };
}

const PYTHON_OLDER: (Client, By) = (Client::Python(Mode::Legacy), By::Stdio);
const PYTHON_NEWER: (Client, By) = (Client::Python(Mode::Auto), By::Stdio);
const TYPESCRIPT_OLDER: (Client, By) = (Client::TypeScript(Mode::Legacy), By::Stdio);
const TYPESCRIPT_NEWER: (Client, By) = (Client::TypeScript(Mode::Auto), By::Stdio);

pairs! {
    older_python_before_older_python: PYTHON_OLDER, (Server::Python(OLDER), By::Stdio);
    older_python_before_newer_python: PYTHON_OLDER, (Server::Python(NEWER), By::Stdio);
    older_python_before_older_typescript: PYTHON_OLDER, (Server::TypeScript1, By::Stdio);
    older_python_before_newer_typescript: PYTHON_OLDER, (Server::TypeScript2(NEWER), By::Stdio);
    newer_python_before_older_python: PYTHON_NEWER, (Server::Python(OLDER), By::Stdio);
    newer_python_before_newer_python: PYTHON_NEWER, (Server::Python(NEWER), By::Stdio);
    newer_python_before_older_typescript: PYTHON_NEWER, (Server::TypeScript1, By::Stdio);
    newer_python_before_newer_typescript: PYTHON_NEWER, (Server::TypeScript2(NEWER), By::Stdio);
    older_typescript_before_older_python: TYPESCRIPT_OLDER, (Server::Python(OLDER), By::Stdio);
    older_typescript_before_newer_python: TYPESCRIPT_OLDER, (Server::Python(NEWER), By::Stdio);
    older_typescript_before_older_typescript: TYPESCRIPT_OLDER, (Server::TypeScript1, By::Stdio);
    older_typescript_before_newer_typescript:
        TYPESCRIPT_OLDER, (Server::TypeScript2(NEWER), By::Stdio);
    newer_typescript_before_older_python: TYPESCRIPT_NEWER, (Server::Python(OLDER), By::Stdio);
    newer_typescript_before_newer_python: TYPESCRIPT_NEWER, (Server::Python(NEWER), By::Stdio);
    newer_typescript_before_older_typescript: TYPESCRIPT_NEWER, (Server::TypeScript1, By::Stdio);
    newer_typescript_before_newer_typescript:
        TYPESCRIPT_NEWER, (Server::TypeScript2(NEWER), By::Stdio);

    older_python_before_older_fastmcp: PYTHON_OLDER, (Server::FastMcp(OLDER), By::Stdio);
    newer_typescript_before_newer_fastmcp: TYPESCRIPT_NEWER, (Server::FastMcp(NEWER), By::Stdio);
    newer_python_before_typescript_that_makes_requests_of_its_questions:
        PYTHON_NEWER, (Server::TypeScript2(OLDER), By::Stdio);
    older_fastmcp_before_newer_python:
        (Client::FastMcp(Mode::Legacy), By::Stdio), (Server::Python(NEWER), By::Stdio);
    newer_fastmcp_before_older_fastmcp:
        (Client::FastMcp(Mode::Auto), By::Stdio), (Server::FastMcp(OLDER), By::Stdio);

    older_python_over_http_before_newer_typescript:
        (Client::Python(Mode::Legacy), By::Http), (Server::TypeScript2(NEWER), By::Stdio);
    newer_python_over_http_before_older_typescript:
        (Client::Python(Mode::Auto), By::Http), (Server::TypeScript1, By::Stdio);
    older_typescript_over_http_before_older_python:
        (Client::TypeScript(Mode::Legacy), By::Http), (Server::Python(OLDER), By::Stdio);
    newer_typescript_over_http_before_newer_python:
        (Client::TypeScript(Mode::Auto), By::Http), (Server::Python(NEWER), By::Stdio);
    older_typescript_before_newer_python_over_http:
        TYPESCRIPT_OLDER, (Server::Python(NEWER), By::Http);
    newer_typescript_before_older_python_over_http:
        TYPESCRIPT_NEWER, (Server::Python(OLDER), By::Http);
    older_python_before_older_typescript_over_http: PYTHON_OLDER, (Server::TypeScript1, By::Http);
    newer_python_before_newer_typescript_over_http:
        PYTHON_NEWER, (Server::TypeScript2(NEWER), By::Http);
    newer_fastmcp_over_http_before_older_fastmcp_over_http:
        (Client::FastMcp(Mode::Auto), By::Http), (Server::FastMcp(OLDER), By::Http);
    older_python_over_http_before_newer_fastmcp_over_http:
        (Client::Python(Mode::Legacy), By::Http), (Server::FastMcp(NEWER), By::Http);
}
