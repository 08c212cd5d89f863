//! A call is made once, whatever becomes of its answer, and the next one works.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{begin_with, rough, with_rough};
use crate::fixture::{Home, eventually, session};
use crate::remote::Served;
use crate::session::{Session, code, text};

/// Every way in which the answer to what was done can be lost over standard streams.
const LOST: [&str; 8] = ["exit", "kill", "close", "half", "garbage", "error", "huge", "mute"];
const ERAS: [&str; 2] = ["legacy", "modern"];

/// Calls a tool as a client of either era.
#[track_caller]
fn call(session: &mut Session, client: &str, name: &str) -> Value {
    let params = json!({"name": name, "arguments": {"text": "heard"}});
    let mut answer = match client {
        "legacy" => session.request("tools/call", &params),
        _ => session.modern("tools/call", &params),
    };
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].take()
}

#[test]
fn what_was_done_is_never_done_again_however_the_answer_is_lost() {
    let tools = [&LOST[..], &["pay"]].concat();
    for era in ERAS {
        let home = Home::new();
        let mut up = rough(&home, json!({"era": era, "tools": tools}));
        up["tool_timeout_sec"] = json!(1);
        home.serve(json!({ "up": up }));
        let mut session = session(&home, &["--max-message-bytes", "100000"]);
        for (way, client) in LOST.iter().flat_map(|way| ERAS.map(|client| (way, client))) {
            let of = format!("{way}: {client} client, {era} server");
            home.write("ledger", "");
            let lost = call(&mut session, client, &format!("mcp__up__{way}"));
            assert_eq!(code(&lost), "TOOL_OUTCOME_UNKNOWN", "{of}: {lost}");
            let remarks = &lost["_meta"]["iris/result"];
            assert_eq!(remarks["details"]["upstream"], "up", "{of}");
            assert!(remarks["call_id"].as_str().is_some_and(|id| !id.is_empty()), "{of}: {lost}");
            let next = call(&mut session, client, "mcp__up__pay");
            assert_eq!(text(&next), r#"["rough", "pay"]"#, "{of}");
            assert_eq!((home.noted(way), home.noted("pay")), (1, 1), "{of}: {:?}", home.ledger());
        }
    }
}

#[test]
fn a_server_that_crashes_is_there_again_for_every_later_call() {
    for era in ERAS {
        let home = with_rough(json!({"era": era, "tools": ["exit", "kill", "echo"]}));
        let mut session = session(&home, &[]);
        let mut lists = 0;
        for (crash, way) in ["exit", "kill", "exit"].into_iter().enumerate() {
            lists = begin_with(&home, "list");
            let lost = session.call(&format!("mcp__up__{way}"), &json!({}));
            assert_eq!(code(&lost), "TOOL_OUTCOME_UNKNOWN", "{era} {way}: {lost}");
            for round in 0..2 {
                let result = session.call("mcp__up__echo", &json!({}));
                assert_ne!(result["isError"], true, "{era}: {round} after {way}: {result}");
            }
            assert_eq!(home.noted("start rough"), crash + 2, "{era}: {:?}", home.ledger());
        }
        // Whoever keeps it looks after it a while later; what is there again stays.
        eventually("it is listed again", || begin_with(&home, "list") > lists);
        assert_ne!(session.call("mcp__up__echo", &json!({}))["isError"], true);
        assert_eq!(session.tools().len(), 3, "{era}");
        assert_eq!(home.noted("start rough"), 4, "{era}: {:?}", home.ledger());
    }
}

#[test]
fn a_call_that_hangs_ends_in_time_and_holds_up_nothing_else() {
    let home = Home::new();
    let mut stdio = home.server(json!({"tools": ["hang", "echo"]}));
    stdio["tool_timeout_sec"] = 5.into();
    let older = Served::start(&home, json!({"tools": ["hang", "echo"]}));
    let newer = Served::start(&home, json!({"tools": ["hang", "echo"], "era": "modern"}));
    home.serve(json!({
        "stdio": stdio,
        "older": {"url": older.url("/mcp"), "tool_timeout_sec": 5},
        "newer": {"url": newer.url("/mcp"), "tool_timeout_sec": 5},
    }));
    let mut session = session(&home, &[]);
    let servers = ["stdio", "older", "newer"];
    session.tools();
    let hang = |name: &str| json!({"name": format!("mcp__{name}__hang"), "arguments": {}});
    let ids = servers.map(|name| session.ask("tools/call", &hang(name)));
    eventually("all hang", || home.noted("hang") == 3);
    for name in servers {
        let result = session.call(&format!("mcp__{name}__echo"), &json!({"text": "meanwhile"}));
        assert_eq!(text(&result), "meanwhile", "{name}");
    }
    assert!(session.request("ping", &json!({}))["result"].is_object());
    assert_eq!(session.tools().len(), 6);
    assert!(session.aside.is_empty(), "they still hang: {:?}", session.aside);
    for id in ids {
        let result = session.answer(id)["result"].take();
        assert_eq!(code(&result), "TOOL_OUTCOME_UNKNOWN", "{result}");
        assert!(text(&result).contains("it did not answer in time"), "{result}");
    }
    assert_eq!(home.noted("hang"), 3);
}

#[test]
fn t22_one_call_at_a_time_is_strictly_so() {
    let home = with_rough(json!({"tools": ["mute", "pay"]}));
    let config = home.write("server.toml", "[upstream.up]\nmax_concurrency = 1\n");
    let mut session = session(&home, &["--config", &config]);
    // One that does not answer, and others behind it, which the server would answer at once.
    let ask = |session: &mut Session, tool: &str| {
        session.ask("tools/call", &json!({"name": format!("mcp__up__{tool}"), "arguments": {}}))
    };
    let first = ask(&mut session, "mute");
    home.wait_for("mute");
    let behind: Vec<u64> = (0..3).map(|_| ask(&mut session, "pay")).collect();
    for _ in 0..20 {
        assert!(session.request("ping", &json!({}))["result"].is_object());
    }
    assert_eq!((home.noted("pay"), session.aside.len()), (0, 0), "none was let in");
    session.notify("notifications/cancelled", &json!({"requestId": first}));
    for id in behind {
        assert_eq!(text(&session.answer(id)["result"]), r#"["rough", "pay"]"#);
    }
}

#[test]
fn t22_the_time_for_a_call_includes_the_wait_for_its_turn() {
    let home = Home::new();
    let mut up = rough(&home, json!({"tools": ["mute", "pay"]}));
    up["tool_timeout_sec"] = json!(1);
    home.serve(json!({ "up": up }));
    let config = home.write("server.toml", "[upstream.up]\nmax_concurrency = 1\n");
    let mut session = session(&home, &["--config", &config]);
    let params = |tool: &str| json!({"name": format!("mcp__up__{tool}"), "arguments": {}});
    // Twelve of a second each, one after the other, would take twelve seconds.
    let began = Instant::now();
    let ids: Vec<u64> = (0..12).map(|_| session.ask("tools/call", &params("mute"))).collect();
    let mut unknown = 0;
    for id in ids {
        let result = session.answer(id)["result"].take();
        match code(&result) {
            "TOOL_OUTCOME_UNKNOWN" => unknown += 1,
            "MCP_CALL_FAILED" => {
                assert!(text(&result).contains("busy for 1 s; the call was not sent"), "{result}");
            }
            other => panic!("{other}: {result}"),
        }
    }
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert_eq!(text(&session.call("mcp__up__pay", &json!({}))), r#"["rough", "pay"]"#);
    assert_eq!(home.noted("mute"), unknown, "those that were not sent say so");
}

#[test]
fn t22_reading_that_is_trusted_fails_and_anything_else_has_an_unknown_outcome() {
    let reading = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
    let home = Home::new();
    let tools = json!(["exit", "error", "mute"].map(reading));
    let changing = json!(["exit", "error", "mute"]);
    let mut servers = json!({
        "reads": rough(&home, json!({"tools": tools})),
        "claims": rough(&home, json!({"tools": tools})),
        "changes": rough(&home, json!({"tools": changing})),
    });
    for server in servers.as_object_mut().unwrap().values_mut() {
        server["tool_timeout_sec"] = json!(1);
    }
    home.serve(servers);
    let trust = "[upstream.reads]\ntrust_annotations = true\n[upstream.changes]\ntrust_annotations = true\n";
    let config = home.write("server.toml", trust);
    let mut session = session(&home, &["--config", &config]);
    for server in ["reads", "claims", "changes"] {
        for way in ["exit", "error", "mute"] {
            home.write("ledger", "");
            let result = session.call(&format!("mcp__{server}__{way}"), &json!({}));
            // A server that is out of time may still be at it.
            let fails = server == "reads" && way != "mute";
            let expected = if fails { "MCP_CALL_FAILED" } else { "TOOL_OUTCOME_UNKNOWN" };
            assert_eq!(code(&result), expected, "{server} {way}: {result}");
            let remarks = &result["_meta"]["iris/result"];
            assert_eq!(remarks["retryable"], fails, "{server} {way}: {result}");
            assert_eq!(remarks["details"]["upstream"], server, "{server} {way}: {result}");
            assert_eq!(home.noted(way), 1, "{server} {way}");
        }
    }
}
