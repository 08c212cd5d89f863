//! Real servers over HTTP, and ourselves.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::session;
use crate::binary::{Gateway, command, peer};
use crate::fixture::{Home, script};
use crate::session::{Session, code, text};

/// A server that ends with the test.
#[derive(Debug)]
pub(crate) struct Peer {
    child: Child,
    port: u16,
}

impl Peer {
    /// Starts a server that takes a port and says something once it listens.
    pub(crate) fn start(change: impl Fn(&mut Command, u16), program: &str) -> Self {
        // Nobody else takes it in between, but for bad luck.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = port.expect("a free port").port();
        let mut command = command(peer(program));
        change(&mut command, port);
        command.stdout(Stdio::null());
        let mut child = command.spawn().expect("a peer");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut said = String::new();
        while !said.contains("running on") && !said.contains("listening on") {
            let read = lines.read_line(&mut said).expect("readable");
            assert!(read > 0, "it ended: {said}");
        }
        std::thread::spawn(move || drop(lines.read_to_end(&mut Vec::new())));
        Self { child, port }
    }

    pub(crate) fn everything(transport: &str) -> Self {
        let package = "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js";
        let change = |command: &mut Command, port: u16| {
            command.arg(peer(package)).arg(transport).env("PORT", port.to_string());
        };
        Self::start(change, "npm/node")
    }

    pub(crate) fn fastmcp(transport: &str) -> Self {
        let change = |command: &mut Command, port: u16| {
            command.arg(script("fastmcp_server.py")).arg(transport).arg(port.to_string());
        };
        Self::start(change, "fastmcp/bin/python")
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Already gone is as good.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Calls a tool and returns its progress and its text.
#[track_caller]
fn with_progress(session: &mut Session, name: &str, arguments: &Value) -> (usize, String) {
    session.aside.clear();
    let params = json!({"name": name, "arguments": arguments, "_meta": {"progressToken": 7}});
    let id = session.ask("tools/call", &params);
    let answer = session.answer(id);
    let progress = |message: &&Value| message["method"] == "notifications/progress";
    let reports = session.aside.iter().filter(progress).count();
    (reports, text(&answer["result"]).to_owned())
}

#[test]
fn everything_over_both_transports() {
    for (transport, kind, path) in [("streamableHttp", "http", "/mcp"), ("sse", "sse", "/sse")] {
        let served = Peer::everything(transport);
        let home = Home::new();
        home.serve(json!({"ev": {"type": kind, "url": served.url(path)}}));
        let mut session = session(&home, &[]);
        assert!(session.tools().len() > 10, "{transport}");
        let result = session.call("mcp__ev__echo", &json!({"message": "hi"}));
        assert_eq!(text(&result), "Echo: hi", "{transport}");
        let slow = "mcp__ev__trigger_long_running_operation__f4af16c0f3";
        let (reports, _) = with_progress(&mut session, slow, &json!({"duration": 1, "steps": 4}));
        assert_eq!(reports, 4, "{transport}");
    }
}

#[test]
fn fastmcp_over_both_transports_and_eras() {
    for (transport, kind, path, protocols) in [
        ("http", "http", "/mcp", &["auto", "legacy", "modern"][..]),
        ("sse", "sse", "/sse", &["auto"][..]),
    ] {
        let served = Peer::fastmcp(transport);
        for protocol in protocols {
            let home = Home::new();
            home.serve(
                json!({"fm": {"type": kind, "url": served.url(path), "tool_timeout_sec": 2}}),
            );
            let settings = format!("[upstream.fm]\nprotocol = \"{protocol}\"\n");
            let settings = home.write("server.toml", &settings);
            let mut session = session(&home, &["--config", &settings]);
            let result = session.call("mcp__fm__add", &json!({"a": 2, "b": 3}));
            assert_eq!(text(&result), "5", "{transport} {protocol}");
            assert_eq!(result["structuredContent"], json!({"result": 5}));
            let (reports, said) = with_progress(&mut session, "mcp__fm__steps", &json!({}));
            assert_eq!((reports, said.as_str()), (3, "done"), "{transport} {protocol}");
            let ledger = home.path("ledger");
            let arguments = json!({"seconds": 30, "ledger": ledger});
            let result = session.call("mcp__fm__slow", &arguments);
            assert_eq!(code(&result), "TOOL_OUTCOME_UNKNOWN", "{transport} {protocol}");
            home.wait_for("cancelled");
        }
    }
}

#[test]
fn the_gateway_is_an_upstream_of_itself() {
    let digest = "2a58ebae1a53feaeafe97ff6fa3fe047b33267fb918d751995193e157c8dc3eb";
    for protocol in ["auto", "modern", "legacy"] {
        let inner = Home::with_up(json!({"tools": ["echo", "crash", "steps"]}));
        let tokens = inner.write("tokens", &format!("outer sha256:{digest}\n"));
        let mut arguments = inner.arguments();
        arguments.extend([
            "--token-file".to_owned(),
            tokens,
            "--log".to_owned(),
            "warn".to_owned(),
        ]);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let gateway = Gateway::start(&arguments);
        let outer = Home::new();
        outer.serve(json!({"in": {"url": gateway.url, "bearer_token_env_var": "TOKEN"}}));
        let settings = format!("[upstream.in]\nprotocol = \"{protocol}\"\n");
        let settings = outer.write("server.toml", &settings);
        let mut arguments = outer.arguments();
        arguments.extend(["--config".to_owned(), settings]);
        let mut session = Session::start_with(&arguments, |command| {
            command.env("TOKEN", "token-of-outer");
        });
        session.initialize();
        let mut names = session.tools();
        names.sort();
        let expected =
            ["mcp__in__mcp__up__crash", "mcp__in__mcp__up__echo", "mcp__in__mcp__up__steps"];
        assert_eq!(names, expected, "{protocol}: {}", session.said());
        let result = session.call("mcp__in__mcp__up__echo", &json!({"text": "heard"}));
        assert_eq!(text(&result), "heard", "{protocol}");
        let (reports, _) = with_progress(&mut session, "mcp__in__mcp__up__steps", &json!({}));
        assert_eq!(reports, 3, "{protocol}");
        let result = session.call("mcp__in__mcp__up__crash", &json!({}));
        assert_eq!(result["isError"], true);
        assert!(text(&result).contains("TOOL_OUTCOME_UNKNOWN"), "{protocol} {result}");
    }
}
