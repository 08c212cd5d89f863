//! A client at the standard streams: nothing but the protocol, an answer to everything, an end.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::binary::{command, exe, run};
use crate::fixture::{Home, eventually};
use crate::process::traces::Mark;
use crate::session::{Session, code, hello, names, text};

/// How long the process may live on when its client is gone.
const AT_ONCE: Duration = Duration::from_secs(1);

fn builtin() -> (Home, Session) {
    let home = Home::new();
    let session = Session::start(&["--workspace", &home.path("workspace")]);
    (home, session)
}

/// A home whose one upstream carries a mark.
fn marked(options: Value) -> (Home, Mark) {
    let (home, mark) = (Home::new(), Mark::new());
    let mut up = home.server(options);
    up["env"] = json!({"MARK": mark.to_string()});
    home.serve(json!({ "up": up }));
    (home, mark)
}

#[test]
fn nothing_but_the_protocol_is_on_standard_output() {
    let home = Home::with_up(json!({"tools": ["echo", "noise", "fail", "crash"], "banner": true}));
    let mut session = Session::start_with(&home.arguments(), |command| {
        command.env("IRIS_MCP_LOG", "trace").env("RUST_BACKTRACE", "1");
    });
    session.initialize();
    assert_eq!(session.tools().len(), 4);
    assert_eq!(text(&session.call("mcp__up__noise", &json!({}))), "was noisy");
    assert_eq!(code(&session.call("mcp__up__fail", &json!({}))), "MCP_TOOL_ERROR");
    assert_eq!(code(&session.call("mcp__up__crash", &json!({}))), "TOOL_OUTCOME_UNKNOWN");
    assert_eq!(code(&session.call("mcp__up__echo", &json!({}))), "VALIDATION_ERROR");
    session.line("no JSON at all");
    assert_eq!(session.read()["error"]["code"], -32700);
    session.close();
    // The session has read every line as a message.
    let (exit, _, rest) = session.end();
    assert_eq!((exit, rest), (Some(0), vec![]));
    assert!(session.said().contains("TRACE"), "{}", session.said());
    assert!(session.said().contains("Welcome to the fixture"), "{}", session.said());
}

#[test]
fn the_end_of_standard_input_ends_the_process_and_its_children() {
    let (home, mark) = marked(json!({"tools": ["echo", "slow"]}));
    for busy in [false, true] {
        let mut session = Session::start(&home.arguments());
        session.initialize();
        assert_eq!(text(&session.call("mcp__up__echo", &json!({"text": "up"}))), "up");
        if busy {
            session.ask("tools/call", &json!({"name": "mcp__up__slow"}));
            home.wait_for("slow");
        }
        session.close();
        let (exit, took, rest) = session.end();
        assert_eq!((exit, rest), (Some(0), vec![]), "busy: {busy}");
        assert!(took < AT_ONCE, "busy: {busy}, {took:?}:\n{}", session.said());
        mark.has_vanished();
    }
}

#[test]
fn a_signal_ends_the_process_and_its_children() {
    let (home, mark) = marked(json!({"tools": ["echo", "slow"]}));
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        fs::write(home.file("ledger"), "").unwrap();
        let mut session = Session::start(&home.arguments());
        session.initialize();
        session.ask("tools/call", &json!({"name": "mcp__up__slow"}));
        home.wait_for("slow");
        session.signal(signal);
        let (exit, took, _) = session.end();
        assert_eq!(exit, Some(0), "{signal}");
        assert!(took < AT_ONCE, "{signal}: {took:?}:\n{}", session.said());
        mark.has_vanished();
    }
}

#[test]
fn a_signal_before_any_message_ends_the_process() {
    let (home, mark) = marked(json!({"tools": ["echo"], "mute": true}));
    let mut session = Session::start(&home.arguments());
    home.wait_for("start");
    session.signal(Signal::SIGTERM);
    let (exit, took, rest) = session.end();
    assert_eq!((exit, rest), (Some(0), vec![]));
    assert!(took < AT_ONCE, "{took:?}:\n{}", session.said());
    mark.has_vanished();
}

/// Lines that are no requests that can be served, and the errors that answer them.
fn malformed() -> Vec<(String, Value, i64)> {
    let long =
        json!({"jsonrpc": "2.0", "id": 9, "method": "ping", "params": {"x": "y".repeat(5000)}});
    let table: [(&str, Value, i64); 13] = [
        ("{", Value::Null, -32700),
        ("\u{feff}{}", Value::Null, -32700),
        ("[]", Value::Null, -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, Value::Null, -32600),
        ("17", Value::Null, -32600),
        ("{}", Value::Null, -32600),
        (r#"{"jsonrpc":"1.0","id":"old","method":"ping"}"#, "old".into(), -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, Value::Null, -32600),
        (r#"{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}"#, Value::Null, -32600),
        (r#"{"jsonrpc":"2.0","id":"m","method":7}"#, "m".into(), -32600),
        (r#"{"jsonrpc":"2.0","id":"n","method":"no/such"}"#, "n".into(), -32601),
        (
            r#"{"jsonrpc":"2.0","id":"p","method":"tools/call","params":{"name":5}}"#,
            "p".into(),
            -32602,
        ),
        (r#"{"jsonrpc":"2.0","id":"q","method":"tools/call","params":[1]}"#, "q".into(), -32602),
    ];
    let table = table.map(|(line, id, code)| (line.to_owned(), id, code));
    let mut table = Vec::from(table);
    table.push((long.to_string(), Value::Null, -32600));
    table.push((
        r#"{"jsonrpc":"2.0","id":"r","method":"tools/call","params":{"name":"read_file","arguments":"{}"}}"#.to_owned(),
        "r".into(),
        -32602,
    ));
    table.push((
        r#"{"jsonrpc":"2.0","id":"s","method":"tools/list","params":{"cursor":"no such"}}"#
            .to_owned(),
        "s".into(),
        -32602,
    ));
    table
}

#[test]
fn every_malformed_message_is_answered_and_the_next_one_is_served() {
    let home = Home::new();
    let limit = ["--max-message-bytes", "4096"];
    let workspace = ["--workspace", &home.path("workspace")];
    let mut session = Session::start(&[limit, workspace].concat());
    session.initialize();
    for (line, id, code) in malformed() {
        session.line(&line);
        let answer = session.read();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&id, &code.into()),
            "{line} {answer}"
        );
        assert_ne!(answer["error"]["message"], "", "{line}");
        assert!(session.request("ping", &json!({}))["result"].is_object(), "after {line}");
    }
    // None of these has anybody who waits for an answer.
    for line in [
        "",
        "  \r",
        r#"{"jsonrpc":"2.0","method":"notifications/no_such"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4711}}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
    ] {
        session.line(line);
        let answer = session.request("ping", &json!({}));
        assert!(answer["result"].is_object() && session.aside.is_empty(), "after {line:?}");
    }
}

#[test]
fn an_id_in_use_is_refused_and_its_first_request_is_answered() {
    let home = Home::with_up(json!({"tools": ["meet"]}));
    let mut session = Session::start(&home.arguments());
    session.initialize();
    let call = |id: Value, count: u64| {
        let params = json!({"name": "mcp__up__meet", "arguments": {"count": count}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    session.send(&call("same".into(), 2));
    home.wait_for("meet");
    session.send(&call("same".into(), 2));
    let refused = session.read();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&"same".into(), &(-32600).into()));
    session.send(&call("other".into(), 2));
    let mut answers = [session.read(), session.read()];
    answers.sort_by_key(|answer| answer["id"].to_string());
    assert_eq!(answers.each_ref().map(|answer| answer["id"].clone()), ["other", "same"]);
    assert!(answers.iter().all(|answer| text(&answer["result"]) == "met"), "{answers:?}");
    // Answered, the id is free again.
    session.send(&call("same".into(), 1));
    assert_eq!(text(&session.read()["result"]), "met");
}

#[test]
fn an_unknown_tool_is_an_error_that_names_the_nearest() {
    let (_home, mut session) = builtin();
    session.initialize();
    let answer = session.request("tools/call", &json!({"name": "read_fil", "arguments": {}}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert_eq!(answer["error"]["data"]["code"], "NOT_FOUND");
    assert_eq!(answer["error"]["data"]["nearest"][0], "read_file");
    assert!(answer["error"]["message"].as_str().unwrap().contains("read_file"));
}

#[test]
fn what_comes_before_the_handshake_does_no_harm() {
    let (_home, mut session) = builtin();
    session.notify("notifications/initialized", &json!({}));
    session.notify("notifications/cancelled", &json!({"requestId": 1}));
    session.line("{");
    assert_eq!(session.read()["error"]["code"], -32700);
    let early = session.request("tools/list", &json!({}));
    assert!(early["error"]["code"].is_i64(), "{early}");
    let early = session.request("no/such", &json!({}));
    assert!(early["error"]["code"].is_i64(), "{early}");
    let hello = session.initialize();
    assert_eq!(hello["protocolVersion"], "2025-11-25");
    assert_eq!(hello["serverInfo"]["name"], "iris-mcp");
    assert_eq!(session.tools(), ["read_file", "list_files", "grep_search"]);
}

#[test]
fn a_second_handshake_does_no_harm() {
    let (_home, mut session) = builtin();
    session.initialize();
    let again = session.request("initialize", &hello("2025-06-18"));
    assert!(again.get("result").is_some() || again["error"]["code"].is_i64(), "{again}");
    assert_eq!(session.tools().len(), 3);
}

#[test]
fn a_version_is_agreed_upon() {
    let table = [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        // An older client must be told of a version that has sessions.
        ("2026-07-28", "2025-11-25"),
        ("1999-12-31", "2025-11-25"),
        ("3000-01-01", "2025-11-25"),
    ];
    for (asked, agreed) in table {
        let (_home, mut session) = builtin();
        let answer = session.request("initialize", &hello(asked));
        assert_eq!(answer["result"]["protocolVersion"], agreed, "{asked}: {answer}");
        session.notify("notifications/initialized", &json!({}));
        assert_eq!(session.tools().len(), 3, "{asked}");
    }
}

#[test]
fn a_newer_version_that_is_not_known_is_refused_with_those_that_are() {
    let (_home, mut session) = builtin();
    let mut params = crate::session::modern(json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2999-01-01".into();
    let answer = session.request("tools/list", &params);
    assert_eq!(answer["error"]["code"], -32022, "{answer}");
    let supported = answer["error"]["data"]["supported"].as_array().unwrap();
    assert!(supported.contains(&"2026-07-28".into()), "{answer}");
    assert_eq!(names(&session.modern("tools/list", &json!({}))["result"]).len(), 3);
}

#[test]
fn each_era_gets_results_of_its_own_form() {
    let (home, mut session) = builtin();
    fs::write(home.file("workspace/a.txt"), "a\n").unwrap();
    let about = session.modern("server/discover", &json!({}))["result"].take();
    let versions = about["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&"2026-07-28".into()), "{about}");
    let list = session.modern("tools/list", &json!({}))["result"].take();
    for result in [&about, &list] {
        assert_eq!(result["resultType"], "complete", "{result}");
        assert!(result["ttlMs"].is_u64() && result["cacheScope"].is_string(), "{result}");
    }
    let read = json!({"name": "read_file", "arguments": {"file_path": "a.txt"}});
    let called = session.modern("tools/call", &read)["result"].take();
    assert_eq!(called["resultType"], "complete", "{called}");
    for result in [&about, &list, &called] {
        let server = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert_eq!(server["name"], "iris-mcp", "{result}");
    }
    let mut session = Session::start(&["--workspace", &home.path("workspace")]);
    session.initialize();
    let list = session.request("tools/list", &json!({}))["result"].take();
    let called = session.call("read_file", &json!({"file_path": "a.txt"}));
    for result in [list, called] {
        let keys = ["resultType", "ttlMs", "cacheScope"];
        assert!(keys.iter().all(|key| result.get(key).is_none()), "{result}");
        assert!(!result.to_string().contains("serverInfo"), "{result}");
    }
}

#[test]
fn the_log_goes_to_a_file_and_names_the_client_once() {
    let home = Home::new();
    let (workspace, log) = (home.path("workspace"), home.path("log"));
    let arguments = ["--workspace", &workspace, "--log-file", &log, "--log-format", "json"];
    let mut session = Session::start(&arguments);
    session.initialize();
    session.tools();
    session.modern("tools/list", &json!({}));
    session.close();
    assert_eq!(session.end().0, Some(0));
    assert_eq!(session.said(), "");
    let log = fs::read_to_string(&log).unwrap();
    let lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let connected: Vec<&Value> =
        lines.iter().filter(|line| line["message"] == "a client connected").collect();
    assert_eq!(connected.len(), 1, "{log}");
    let connected = connected[0];
    assert_eq!(connected["client.name"], "probe");
    assert_eq!(connected["client.version"], "9.8");
    assert_eq!(connected["method"], "initialize");
    assert_eq!(connected["transport"], "stdio");
}

#[test]
fn a_cancelled_call_has_no_answer_and_the_upstream_is_told() {
    let home = Home::with_up(json!({"tools": ["slow", "echo"]}));
    let mut session = Session::start(&home.arguments());
    session.initialize();
    for modern in [false, true] {
        fs::write(home.file("ledger"), "").unwrap();
        let mut params = json!({"name": "mcp__up__slow", "arguments": {}});
        if modern {
            params = crate::session::modern(params);
        }
        let id = session.ask("tools/call", &params);
        home.wait_for("slow");
        session.notify("notifications/cancelled", &json!({"requestId": id, "reason": "enough"}));
        home.wait_for("cancelled slow");
        assert_eq!(text(&session.call("mcp__up__echo", &json!({"text": "on"}))), "on");
        assert!(session.aside.is_empty(), "{:?}", session.aside);
    }
}

#[test]
fn files_can_stand_for_the_streams() {
    let home = Home::new();
    let requests = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello("2025-11-25")}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}),
    ];
    let input: Vec<String> = requests.iter().map(ToString::to_string).collect();
    // The last line has no end.
    let input = home.write("in", &input.join("\n"));
    let mut command = command(exe());
    command.args(["serve", "--stdio", "--workspace", &home.path("workspace")]);
    command.stdin(fs::File::open(input).unwrap());
    let ended = run(command, Duration::from_secs(20));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut answers: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [1, 2, 3], "{ended:?}");
    assert_eq!(names(&answers[1]["result"]).len(), 3);
}

#[test]
fn a_client_that_reads_late_gets_every_answer() {
    let (_home, mut session) = builtin();
    session.initialize();
    // Far more than a pipe holds.
    let ids: Vec<u64> = (0..500).map(|_| session.ask("tools/list", &json!({}))).collect();
    for id in ids {
        assert_eq!(names(&session.answer(id)["result"]).len(), 3);
    }
}

#[test]
fn a_client_that_reads_no_more_ends_the_process() {
    let (home, mark) = marked(json!({"tools": ["echo"]}));
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = command(exe());
    command.args(["serve", "--stdio"]).args(home.arguments());
    let mut child = command.stdin(Stdio::piped()).stdout(writer).spawn().unwrap();
    drop((command, reader));
    let mut stdin = child.stdin.take().unwrap();
    let hello =
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello("2025-11-25")});
    writeln!(stdin, "{hello}").unwrap();
    home.wait_for("start");
    let mut status = None;
    eventually("it has ended", || {
        status = child.try_wait().unwrap();
        // Whoever still writes notices, too.
        status.is_some()
            || writeln!(stdin, r#"{{"jsonrpc":"2.0","id":2,"method":"ping"}}"#).is_err()
    });
    eventually("it is over", || child.try_wait().unwrap().is_some());
    eventually("nothing is left", || mark.bearers().is_empty());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked"), "{said}");
}
