//! Clients over HTTP: who may come, what is refused and how, sessions, streams and cancelling.

use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::binary::{Gateway, command, exe, run};
use crate::fixture::{Home, eventually};
use crate::session::{Session, hello, names, text};
use crate::web::Web;

/// How long a start that fails may take.
const REFUSED: Duration = Duration::from_secs(20);

fn gateway(home: &Home, more: &[&str]) -> Gateway {
    let arguments = home.arguments();
    let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    arguments.extend(more);
    Gateway::start(&arguments)
}

/// Serves the built-in tools.
fn builtin(home: &Home, more: &[&str]) -> Gateway {
    let workspace = home.path("workspace");
    Gateway::start(&[&["--workspace", &workspace], more].concat())
}

/// Writes the token file of alice and bob, and returns its path.
pub(crate) fn tokens(home: &Home) -> String {
    let line = |name: &str| {
        let hash = Sha256::digest(format!("{name}-token"));
        let hex: Vec<String> = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        format!(
            "{name} sha256:{}
",
            hex.concat()
        )
    };
    home.write("tokens", &[line("alice"), line("bob")].concat())
}

fn health(gateway: &Gateway) -> Web {
    Web::new(&gateway.url).at("/healthz")
}

#[test]
fn only_a_known_token_opens_the_door() {
    let home = Home::new();
    let gateway = builtin(&home, &["--token-file", &tokens(&home)]);
    let web = Web::new(&gateway.url);
    let ping =
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello("2025-11-25")});
    for client in
        [web.clone(), web.clone().bearer("wrong"), web.clone().header("authorization", "Basic x")]
    {
        let reply = client.post(&ping);
        assert_eq!(reply.status, 401);
        assert!(reply.headers["www-authenticate"].starts_with("Bearer"), "{reply:?}");
    }
    let (mut alice, mut bob) = (web.clone().bearer("alice-token"), web.bearer("bob-token"));
    alice.initialize();
    assert_eq!(names(&alice.request("tools/list", &json!({}))["result"]).len(), 3);
    bob.initialize();
    // A session of another does not exist, whatever is asked of it.
    let thief = alice.clone().bearer("bob-token");
    let list = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {}});
    let statuses = [thief.post(&list), thief.get(), thief.open("DELETE", "")];
    assert_eq!(statuses.map(|reply| reply.status), [404; 3]);
    assert_eq!(alice.post(&list).status, 200);
    let known = health(&gateway).bearer("alice-token").get().json();
    assert_eq!(known["sources"][0]["name"], "built-in", "{known}");
    let stranger = health(&gateway).get().json();
    assert_eq!(stranger["status"], "ok");
    assert!(stranger.get("sources").is_none(), "{stranger}");
    assert!(!gateway.said().contains("alice-token"), "{}", gateway.said());
}

#[test]
fn an_open_address_needs_tokens() {
    let home = Home::new();
    let mut command = command(exe());
    command.args(["serve", "--http", "0.0.0.0:0", "--workspace", &home.path("workspace")]);
    let ended = run(command, REFUSED);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("--token-file"), "{ended:?}");
    assert_eq!(ended.stdout, "");
}

#[test]
fn a_port_in_use_is_said() {
    let home = Home::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut command = command(exe());
    command.args(["serve", "--http", &address, "--workspace", &home.path("workspace")]);
    let ended = run(command, REFUSED);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains(&format!("cannot listen on {address}")), "{ended:?}");
    assert!(ended.stderr.contains("in use"), "{ended:?}");
}

#[test]
fn what_a_browser_could_be_made_to_send_is_refused() {
    let home = Home::new();
    let gateway = builtin(&home, &[]);
    let web = Web::new(&gateway.url);
    let port = gateway.url.split(':').nth(2).unwrap().split('/').next().unwrap();
    let hello =
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello("2025-11-25")});
    let of = |name: &str, value: &str| web.clone().header(name, value).post(&hello).status;
    assert_eq!(of("host", &format!("evil.example:{port}")), 403);
    assert_eq!(of("host", "evil.example"), 403);
    for origin in ["http://evil.example", "https://localhost.evil.example", "null"] {
        assert_eq!(of("origin", origin), 403, "{origin}");
    }
    assert_eq!(of("host", &format!("localhost:{port}")), 200);
    assert_eq!(of("origin", "http://localhost:6274"), 200);
    // What is said of our sources is nobody else's business either.
    let health = health(&gateway);
    assert_eq!(health.clone().header("host", "evil.example").get().status, 403);
    assert_eq!(health.header("origin", "http://evil.example").get().status, 403);
}

#[test]
fn a_request_that_is_none_has_a_status_of_its_own() {
    let home = Home::new();
    let gateway = builtin(&home, &["--max-message-bytes", "2000"]);
    let mut web = Web::new(&gateway.url);
    let list = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {}});
    let big =
        json!({"jsonrpc": "2.0", "id": 5, "method": "ping", "params": {"x": "y".repeat(4000)}});
    assert_eq!(web.post(&big).status, 413);
    assert_eq!(web.clone().header("accept", "text/html").post(&list).status, 406);
    assert_eq!(web.clone().header("content-type", "text/plain").post(&list).status, 415);
    let unknown = web.clone().header("mcp-session-id", "deadbeef");
    assert_eq!(unknown.post(&list).status, 404);
    assert_eq!(unknown.get().status, 404);
    assert_eq!(unknown.open("DELETE", "").status, 404);
    assert!((400..500).contains(&web.post(&list).status));
    for (body, code) in [("{", -32700), ("", -32700), ("[]", -32600), ("17", -32600)] {
        let reply = web.open("POST", body);
        assert_eq!(reply.status, 400, "{body}");
        assert_eq!(reply.json()["error"]["code"], code, "{body}");
    }
    assert_eq!(web.clone().at("/").get().status, 404);
    web.initialize();
    assert_eq!(web.post(&list).status, 200);
    let ended = web.open("DELETE", "").status;
    assert!((200..300).contains(&ended), "{ended}");
    assert_eq!(web.post(&list).status, 404);
    assert_eq!(web.get().status, 404);
}

#[test]
fn health_follows_the_sources() {
    let home = Home::new();
    let gate = home.path("gate");
    let up = home.server(json!({"tools": ["echo"], "gate": gate}));
    let bad = json!({"command": "/nonexistent/program"});
    home.serve(json!({"up": up, "bad": bad}));
    let gateway = gateway(&home, &[]);
    let health = health(&gateway);
    assert_eq!(health.get().json()["status"], "starting");
    let mut web = Web::new(&gateway.url);
    // A handshake waits for nobody; a list waits until all are ready or have failed.
    web.initialize();
    home.write("gate", "");
    assert_eq!(names(&web.request("tools/list", &json!({}))["result"]), ["mcp__up__echo"]);
    let report = health.get().json();
    assert_eq!(report["status"], "degraded", "{report}");
    let source = |name: &str| {
        let sources = report["sources"].as_array().unwrap();
        sources.iter().find(|source| source["name"] == name).unwrap().clone()
    };
    assert_eq!((&source("up")["state"], &source("up")["tools"]), (&"ready".into(), &1.into()));
    assert_eq!(source("bad")["state"], "failed");
    assert!(source("bad")["error"].as_str().unwrap().contains("/nonexistent/program"), "{report}");
}

#[test]
fn a_legacy_stream_hears_of_a_changed_list() {
    let home = Home::new();
    let gate = home.path("gate");
    let up = home.server(json!({"tools": ["echo"], "gate": gate}));
    home.serve(json!({ "up": up }));
    let gateway = gateway(&home, &[]);
    let mut web = Web::new(&gateway.url);
    web.initialize();
    let mut stream = web.get();
    assert_eq!(stream.status, 200);
    home.write("gate", "");
    let event = stream.event().expect("an event");
    assert_eq!(event["method"], "notifications/tools/list_changed");
}

#[test]
fn standard_streams_and_http_are_served_at_once() {
    let home = Home::with_up(json!({"tools": ["echo"]}));
    let arguments = [home.arguments(), vec!["--http".into(), "127.0.0.1:0".into()]].concat();
    let mut session = Session::start(&arguments);
    session.initialize();
    assert_eq!(text(&session.call("mcp__up__echo", &json!({"text": "one"}))), "one");
    let mut url = None;
    eventually("the endpoint is named", || {
        let said = session.said();
        url = said.lines().find(|line| line.starts_with("http://")).map(str::to_owned);
        url.is_some()
    });
    let mut web = Web::new(&url.unwrap());
    web.initialize();
    let params = json!({"name": "mcp__up__echo", "arguments": {"text": "two"}});
    assert_eq!(text(&web.request("tools/call", &params)["result"]), "two");
    // The client at the standard streams goes; the others stay.
    session.close();
    assert_eq!(text(&web.request("tools/call", &params)["result"]), "two");
    assert_eq!(home.noted("start"), 1);
    session.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(session.end().0, Some(0));
}

#[test]
fn a_modern_client_cancels_by_closing_its_stream() {
    let home = Home::with_up(json!({"tools": ["slow", "echo"]}));
    let gateway = gateway(&home, &[]);
    let mut web = Web::new(&gateway.url);
    // With a token for progress and without, since the reply takes another form.
    for meta in [json!({}), json!({"progressToken": "t"})] {
        home.write("ledger", "");
        let params = crate::session::modern(json!({"name": "mcp__up__slow", "_meta": meta}));
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let client = web
            .clone()
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "mcp__up__slow");
        let stream = client.send(&message);
        home.wait_for("slow");
        drop(stream);
        home.wait_for("cancelled slow");
    }
    let params = json!({"name": "mcp__up__echo", "arguments": {"text": "on"}});
    assert_eq!(text(&web.modern("tools/call", &params)["result"]), "on");
}

#[test]
fn a_legacy_client_cancels_by_saying_so() {
    let home = Home::with_up(json!({"tools": ["slow", "echo"]}));
    let gateway = gateway(&home, &[]);
    let mut web = Web::new(&gateway.url);
    web.initialize();
    let params = json!({"name": "mcp__up__slow", "arguments": {}});
    let (_, stream) = web.ask("tools/call", &params);
    home.wait_for("slow");
    drop(stream);
    // Its closed stream says nothing: the call is still there to be cancelled after another one.
    let echo = json!({"name": "mcp__up__echo", "arguments": {"text": "on"}});
    assert_eq!(text(&web.request("tools/call", &echo)["result"]), "on");
    assert_eq!(home.noted("cancelled slow"), 0);
    let (id, stream) = web.ask("tools/call", &params);
    eventually("both run", || home.noted("slow") == 2);
    web.notify("notifications/cancelled", &json!({"requestId": id}));
    home.wait_for("cancelled slow");
    drop(stream);
    assert_eq!(home.noted("cancelled slow"), 1);
    // The end of the session is the end of its calls.
    assert!(web.open("DELETE", "").status < 300);
    eventually("the other one is cancelled", || home.noted("cancelled slow") == 2);
}

#[test]
fn progress_comes_with_the_token_of_the_client() {
    let home = Home::with_up(json!({"tools": ["steps"]}));
    let gateway = gateway(&home, &[]);
    let mut web = Web::new(&gateway.url);
    let params =
        json!({"name": "mcp__up__steps", "arguments": {}, "_meta": {"progressToken": "mine"}});
    let newer = web.ask_modern("tools/call", &params).messages();
    web.initialize();
    let older = web.ask("tools/call", &params).1.messages();
    let mut session = Session::start(&home.arguments());
    session.initialize();
    let id = session.ask("tools/call", &params);
    let answer = session.answer(id);
    let local = [session.aside.clone(), vec![answer]].concat();
    for (of, messages) in [("newer", newer), ("older", older), ("local", local)] {
        let [reports @ .., answer] = messages.as_slice() else { panic!("nothing") };
        assert!(text(&answer["result"]).starts_with("token "), "{answer}");
        let reports: Vec<Value> = reports
            .iter()
            .filter(|message| message["method"] == "notifications/progress")
            .map(|message| message["params"].clone())
            .collect();
        let report = |step: f64| json!({"progressToken": "mine", "progress": step, "total": 3.0, "message": format!("step {step}")});
        assert_eq!(reports, [report(1.0), report(2.0), report(3.0)], "{of}");
    }
}

#[test]
fn clients_of_both_eras_share_an_endpoint_and_an_upstream() {
    let home = Home::with_up(json!({"tools": ["meet"]}));
    let gateway = gateway(&home, &[]);
    let (mut older, mut newer) = (Web::new(&gateway.url), Web::new(&gateway.url));
    older.initialize();
    let params = json!({"name": "mcp__up__meet", "arguments": {"count": 2}});
    std::thread::scope(|scope| {
        let older = scope.spawn(|| older.request("tools/call", &params));
        let newer = scope.spawn(|| newer.modern("tools/call", &params));
        for answer in [older.join().unwrap(), newer.join().unwrap()] {
            assert_eq!(text(&answer["result"]), "met", "{answer}");
        }
    });
    assert_eq!(home.noted("start"), 1);
}

#[test]
fn a_signal_ends_open_streams_and_running_calls() {
    let home = Home::with_up(json!({"tools": ["slow"]}));
    let mut gateway = gateway(&home, &[]);
    let mut web = Web::new(&gateway.url);
    let params = json!({"name": "mcp__up__slow", "arguments": {}});
    web.initialize();
    let stream = web.get();
    let older = web.begin("tools/call", &params);
    eventually("the older call runs", || home.noted("slow") == 1);
    let mut newer = Web::new(&gateway.url);
    let newer = newer.begin_modern("tools/call", &params);
    eventually("both calls run", || home.noted("slow") == 2);
    // One that says nothing, and one that does not come to an end.
    let silent = std::net::TcpStream::connect(web.address()).unwrap();
    let mut half = std::net::TcpStream::connect(web.address()).unwrap();
    half.write_all(b"POST /mcp HTTP/1.1\r\ncontent-length: 100\r\n").unwrap();
    let (code, took) = gateway.terminate();
    assert_eq!(code, Some(0), "{}", gateway.said());
    assert!(took < Duration::from_secs(2), "{took:?}: {}", gateway.said());
    drop((stream, older, newer, silent, half));
}

#[test]
fn a_client_of_the_newer_era_is_logged_once() {
    let home = Home::new();
    let gateway = builtin(&home, &[]);
    let mut web = Web::new(&gateway.url);
    for _ in 0..3 {
        assert_eq!(names(&web.modern("tools/list", &json!({}))["result"]).len(), 3);
    }
    web.initialize();
    assert_eq!(names(&web.request("tools/list", &json!({}))["result"]).len(), 3);
    eventually("the session is logged", || gateway.said().contains("method=\"initialize\""));
    assert_eq!(gateway.said().matches("a client connected").count(), 2, "{}", gateway.said());
}
