//! The activity log of the real program: who called what, how it was decided, what came of it.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::binary::{Gateway, command, exe, run};
use crate::fixture::{Home, eventually};
use crate::http::tokens;
use crate::session::{Session, code, modern};
use crate::web::Web;

/// Returns the records of a file, each of which must be a whole line.
fn records(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "{text}");
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// Starts a gateway with an activity log called `calls`.
fn start(home: &Home, more: &[&str]) -> Session {
    let mut arguments = home.arguments();
    arguments.extend(["--activity-log".to_owned(), home.path("calls")]);
    arguments.extend(more.iter().map(ToString::to_string));
    Session::start(&arguments)
}

/// Returns the last record, which must be the only one since `seen`, shortened to its texts.
#[track_caller]
fn next(home: &Home, seen: &mut usize) -> [String; 5] {
    let records = records(&home.file("calls"));
    assert_eq!(records.len(), *seen + 1, "one record a call: {records:#?}");
    *seen += 1;
    ["tool", "decision", "rule", "approved_by", "outcome"]
        .map(|key| records[*seen - 1][key].as_str().unwrap_or("-").to_owned())
}

#[test]
fn every_call_has_its_record_before_its_answer() {
    let home = Home::with_up(json!({"tools": ["echo", "fail", "slow", "look"]}));
    let mut session = start(&home, &["--approval", "client", "--forbid", "*look"]);
    let mut seen = 0;
    session.initialize();
    session.tools();
    assert_eq!(records(&home.file("calls")), [] as [Value; 0], "a list is no call");
    let up = |tool: &str| format!("mcp__up__{tool}");
    session.call(&up("echo"), &json!({"text": "s3cret"}));
    assert_eq!(
        next(&home, &mut seen),
        ["mcp__up__echo", "require_human", "default", "client", "OK"]
    );
    session.call(&up("echo"), &json!({"text": ["s3cret"]}));
    assert_eq!(next(&home, &mut seen), ["mcp__up__echo", "none", "-", "-", "VALIDATION_ERROR"]);
    let failed = session.call(&up("fail"), &json!({"text": "s3cret"}));
    let said = next(&home, &mut seen);
    assert_eq!(said, ["mcp__up__fail", "require_human", "default", "client", "MCP_TOOL_ERROR"]);
    assert_eq!(
        records(&home.file("calls"))[2]["call_id"],
        failed["_meta"]["iris/result"]["call_id"]
    );
    let refused = session.call(&up("look"), &json!({}));
    assert_eq!(code(&refused), "PERMISSION_ERROR");
    assert_eq!(
        next(&home, &mut seen),
        ["mcp__up__look", "deny", "--forbid", "-", "PERMISSION_ERROR"]
    );
    let id = session.ask("tools/call", &json!({"name": up("slow"), "arguments": {}}));
    home.wait_for("slow");
    session.notify("notifications/cancelled", &json!({"requestId": id}));
    eventually("the cancelled call is recorded", || records(&home.file("calls")).len() > seen);
    assert_eq!(
        next(&home, &mut seen),
        ["mcp__up__slow", "require_human", "default", "client", "CANCELLED"]
    );
    let forged = format!("no\n{{\"such\": \"tool\"}}{}", "x".repeat(100));
    session.request("tools/call", &json!({"name": forged, "arguments": {"a": "s3cret"}}));
    let cut: String = forged.chars().take(64).collect();
    assert_eq!(next(&home, &mut seen), [&cut, "none", "-", "-", "NOT_FOUND"]);
    check_lines(&home);
}

/// Checks that each line has all keys and none has what was given or answered.
#[track_caller]
fn check_lines(home: &Home) {
    let text = fs::read_to_string(home.file("calls")).unwrap();
    assert!(!text.contains("s3cret") && !text.contains("no luck"), "{text}");
    for record in records(&home.file("calls")) {
        let keys: Vec<&String> = record.as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            [
                "time",
                "call_id",
                "tool",
                "principal",
                "session",
                "client",
                "decision",
                "rule",
                "approved_by",
                "outcome",
                "duration_ms",
            ]
        );
        assert_eq!((&record["principal"], &record["client"]), (&json!("local"), &json!("probe")));
        assert!(record["time"].as_str().unwrap().ends_with('Z'), "{record}");
        assert_eq!(record["time"].as_str().unwrap().len(), "2026-07-28T00:00:00.042Z".len());
        assert!(record["duration_ms"].as_f64().unwrap() >= 0.0, "{record}");
    }
}

/// Calls a tool as a client of the newer era that can be asked.
fn modern_call(session: &mut Session, retry: Option<&str>) -> Value {
    let mut params = modern(json!({"name": "mcp__up__echo", "arguments": {"text": "hello"}}));
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
    if let Some(state) = retry {
        params["requestState"] = state.into();
        params["inputResponses"] =
            json!({"approval": {"action": "accept", "content": {"answer": "once"}}});
    }
    session.request("tools/call", &params)
}

#[test]
fn a_question_and_its_answer_are_two_records_of_one_call() {
    let home = Home::with_up(json!({"tools": ["echo"]}));
    let mut session = start(&home, &["--approval", "ask"]);
    let mut seen = 0;
    let asked = modern_call(&mut session, None);
    let said = next(&home, &mut seen);
    assert_eq!(said, ["mcp__up__echo", "require_human", "default", "-", "INPUT_REQUIRED"]);
    let state = asked["result"]["requestState"].as_str().unwrap();
    modern_call(&mut session, Some(state));
    assert_eq!(
        next(&home, &mut seen),
        ["mcp__up__echo", "require_human", "default", "person", "OK"]
    );
    let again = modern_call(&mut session, Some(state));
    assert_eq!(again["error"]["data"]["code"], "REQUEST_STATE_INVALID");
    assert_eq!(
        next(&home, &mut seen),
        ["mcp__up__echo", "none", "-", "-", "REQUEST_STATE_INVALID"]
    );
    let records = records(&home.file("calls"));
    assert_eq!(records[0]["call_id"], records[1]["call_id"], "one call in two rounds");
    assert_ne!(records[1]["call_id"], records[2]["call_id"]);
}

#[test]
fn a_hidden_tool_is_recorded_like_one_that_does_not_exist() {
    let home = Home::with_up(json!({"tools": ["echo"]}));
    let mut arguments = home.arguments();
    arguments.extend(["--activity-log".to_owned(), home.path("calls")]);
    let mut session = Session::start_with(&arguments, |command| {
        command.env("IRIS_MCP_VIEW_DENY", "mcp__up__echo");
    });
    session.initialize();
    session.request("tools/call", &json!({"name": "mcp__up__echo", "arguments": {"text": "a"}}));
    assert_eq!(next(&home, &mut 0), ["mcp__up__echo", "none", "-", "-", "NOT_FOUND"]);
}

#[test]
fn over_http_a_record_names_the_principal() {
    let home = Home::new();
    fs::write(home.file("workspace/a.txt"), "alpha").unwrap();
    let (workspace, file, tokens) = (home.path("workspace"), home.path("calls"), tokens(&home));
    let gateway = Gateway::start(&[
        "--workspace",
        &workspace,
        "--token-file",
        &tokens,
        "--activity-log",
        &file,
    ]);
    let call = json!({"name": "read_file", "arguments": {"file_path": "a.txt"}});
    let web = Web::new(&gateway.url);
    let mut alice = web.clone().bearer("alice-token");
    alice.initialize();
    alice.request("tools/call", &call);
    web.clone().bearer("bob-token").modern("tools/call", &call);
    // Who is turned away at the door makes no call.
    let stranger = web.bearer("eve-token").post(&json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call,
    }));
    assert_eq!(stranger.status, 401);
    let records = records(&home.file("calls"));
    let said = |key: &str| -> Vec<&str> {
        records.iter().map(|record| record[key].as_str().unwrap()).collect()
    };
    assert_eq!(said("principal"), ["alice", "bob"]);
    assert_eq!(said("session")[1], "principal:bob");
    assert_eq!(said("outcome"), ["OK", "OK"]);
    assert_eq!(said("rule"), ["read-only", "read-only"]);
    assert!(!fs::read_to_string(home.file("calls")).unwrap().contains("token"));
}

#[test]
fn two_gateways_share_a_file_and_tear_no_line() {
    const EACH: usize = 200;
    let home = Home::with_up(json!({"tools": ["echo"]}));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut session = start(&home, &[]);
                session.initialize();
                let name = "n".repeat(64);
                let ids: Vec<u64> = (0..EACH)
                    .map(|_| session.ask("tools/call", &json!({"name": name, "arguments": {}})))
                    .collect();
                for id in ids {
                    session.answer(id);
                }
            });
        }
    });
    let records = records(&home.file("calls"));
    assert_eq!(records.len(), 2 * EACH);
    let mut ids: Vec<&str> = records.iter().map(|one| one["call_id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 2 * EACH);
}

#[test]
fn a_full_disk_breaks_no_call_and_is_logged_once() {
    let home = Home::with_up(json!({"tools": ["echo"]}));
    let mut arguments = home.arguments();
    arguments.extend(["--activity-log", "/dev/full"].map(str::to_owned));
    let mut session = Session::start(&arguments);
    session.initialize();
    for _ in 0..3 {
        let result = session.call("mcp__up__echo", &json!({"text": "hello"}));
        assert_eq!(result["content"][0]["text"], "hello", "{result}");
    }
    session.close();
    assert_eq!(session.end().0, Some(0));
    let told = "the activity log cannot be written";
    eventually("it is logged", || session.said().contains(told));
    assert_eq!(session.said().matches(told).count(), 1, "{}", session.said());
    assert!(session.said().contains("No space left on device"), "{}", session.said());
}

#[test]
fn a_rotated_file_is_left_for_a_new_one() {
    let home = Home::with_up(json!({"tools": ["echo"]}));
    let mut session = start(&home, &[]);
    session.initialize();
    let mut call = || session.call("mcp__up__echo", &json!({"text": "hello"}));
    call();
    fs::rename(home.file("calls"), home.file("calls.1")).unwrap();
    let mut calls = 1;
    eventually("there is a new file", || {
        call();
        calls += 1;
        home.file("calls").exists()
    });
    let (old, new) = (records(&home.file("calls.1")), records(&home.file("calls")));
    assert_eq!((old.len() + new.len(), new.len()), (calls, 1), "nothing is lost");
}

#[test]
fn a_call_under_way_at_the_end_is_recorded() {
    for by_signal in [true, false] {
        let home = Home::with_up(json!({"tools": ["slow"]}));
        let mut session = start(&home, &["--permit", "mcp"]);
        session.initialize();
        session.ask("tools/call", &json!({"name": "mcp__up__slow", "arguments": {}}));
        home.wait_for("slow");
        if by_signal {
            session.signal(Signal::SIGTERM);
        } else {
            session.close();
        }
        session.end();
        let [tool, decision, rule, _, outcome] = next(&home, &mut 0);
        assert_eq!([&*tool, &decision, &rule], ["mcp__up__slow", "allow", "--permit"]);
        // Its server may be gone before it can be told to give up.
        assert!(["CANCELLED", "TOOL_OUTCOME_UNKNOWN"].contains(&&*outcome), "{outcome}");
    }
}

#[test]
fn a_call_from_the_command_line_is_recorded() {
    let home = Home::new();
    fs::write(home.file("workspace/a.txt"), "alpha").unwrap();
    for (name, outcome) in [("list_files", "OK"), ("list_filesx", "NOT_FOUND")] {
        let mut command = command(exe());
        command.args(["call", name, "--workspace", &home.path("workspace")]);
        command.env("IRIS_MCP_ACTIVITY_LOG", home.path("calls"));
        run(command, Duration::from_secs(20));
        let record = records(&home.file("calls")).pop().unwrap();
        assert_eq!((&record["tool"], &record["outcome"]), (&json!(name), &json!(outcome)));
        assert_eq!(record["client"], "iris-mcp call");
    }
    assert_eq!(records(&home.file("calls")).len(), 2);
}

/// A home whose server has prompts and resources beside a tool.
fn rich() -> Home {
    Home::with_up(json!({
        "tools": ["slow"],
        "prompts": [{"name": "plain"}, {"name": "refused"}],
        "resources": [{"uri": "a://host/s3cret", "name": "one"}],
        "completes": true,
    }))
}

#[test]
fn a_prompt_and_a_resource_of_an_upstream_have_a_record_each() {
    let home = rich();
    let mut session = start(&home, &[]);
    session.initialize();
    let cases = [
        (
            "prompts/get",
            json!({"name": "mcp__up__plain", "arguments": {"a": "s3cret"}}),
            "prompts/get mcp__up__plain",
            "OK",
        ),
        (
            "prompts/get",
            json!({"name": "mcp__up__refused"}),
            "prompts/get mcp__up__refused",
            "MCP_CALL_FAILED",
        ),
        ("prompts/get", json!({"name": "none"}), "prompts/get none", "NOT_FOUND"),
        ("resources/read", json!({"uri": "a://host/s3cret"}), "resources/read up", "OK"),
        ("resources/read", json!({"uri": "b://host/s3cret"}), "resources/read", "NOT_FOUND"),
    ];
    for (seen, (method, params, tool, outcome)) in cases.into_iter().enumerate() {
        session.request(method, &params);
        let said = next(&home, &mut seen.clone());
        assert_eq!(said, [tool, "none", "-", "-", outcome], "{method} {params}");
    }
    let params = json!({"ref": {"type": "ref/prompt", "name": "mcp__up__plain"}, "argument": {"name": "a", "value": "b"}});
    session.request("completion/complete", &params);
    let text = fs::read_to_string(home.file("calls")).unwrap();
    assert!(text.lines().count() == 5 && !text.contains("s3cret"), "{text}");
}

#[test]
fn a_prompt_waits_for_its_turn_among_the_calls() {
    let home = rich();
    let mut session = start(&home, &["--concurrent-calls", "1", "--approval", "client"]);
    session.initialize();
    let slow = session.ask("tools/call", &json!({"name": "mcp__up__slow", "arguments": {}}));
    home.wait_for("slow");
    let prompt = session.ask("prompts/get", &json!({"name": "mcp__up__plain"}));
    session.notify("notifications/cancelled", &json!({"requestId": prompt}));
    eventually("it is given up", || !records(&home.file("calls")).is_empty());
    let said = next(&home, &mut 0);
    assert_eq!(said, ["prompts/get mcp__up__plain", "none", "-", "-", "CANCELLED"]);
    assert_eq!(home.noted("prompt plain"), 0);
    session.notify("notifications/cancelled", &json!({"requestId": slow}));
}
