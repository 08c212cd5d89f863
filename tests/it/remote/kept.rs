//! Servers that come, go and change while they are used.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{ERAS, Served, session};
use crate::fixture::{Home, eventually, within};
use crate::session::{code, text};

/// How long something may take that is tried again after a second, and then two.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn a_server_that_is_down_at_the_start_appears_when_it_is_up() {
    let home = Home::new();
    let mut served = Served::start(&home, json!({}));
    let port = served.port;
    served.stop();
    home.serve(json!({"up": {"url": served.url("/mcp")}}));
    let mut session = session(&home, &[]);
    assert!(session.tools().is_empty());
    let _served = Served::start(&home, json!({"port": port}));
    within(SOON, "it is there", || session.tools() == ["mcp__up__echo"]);
    // What is said follows what is so.
    within(SOON, "the list is said to have changed", || {
        session.request("ping", &json!({}));
        session.changes > 0
    });
    assert_eq!(text(&session.call("mcp__up__echo", &json!({"text": "heard"}))), "heard");
}

#[test]
fn a_program_that_fails_at_the_start_is_tried_again() {
    let home = Home::new();
    let flag = home.path("flag");
    let up = home.server(json!({"tools": ["echo"]}));
    let script = format!("test -e {flag} || exit 3; exec \"$0\" \"$@\"");
    let mut args = vec![json!("-c"), json!(script), up["command"].clone()];
    args.extend(up["args"].as_array().expect("a list").iter().cloned());
    home.serve(json!({"up": {"command": "sh", "args": args}}));
    let mut session = session(&home, &[]);
    assert!(session.tools().is_empty());
    home.write("flag", "");
    within(SOON, "it is there", || session.tools() == ["mcp__up__echo"]);
    // What is said follows what is so.
    within(SOON, "the list is said to have changed", || {
        session.request("ping", &json!({}));
        session.changes > 0
    });
}

#[test]
fn a_program_that_dies_is_started_again_without_a_call() {
    let home = Home::new();
    let up = home.server(json!({"tools": ["echo", "crash"], "gate": home.path("gate")}));
    home.serve(json!({ "up": up }));
    let mut session = session(&home, &[]);
    home.write("gate", "");
    within(SOON, "the first list is announced", || {
        session.request("ping", &json!({}));
        session.changes == 1
    });
    assert_eq!(home.noted("start"), 1);
    assert_eq!(code(&session.call("mcp__up__crash", &json!({}))), "TOOL_OUTCOME_UNKNOWN");
    within(SOON, "it is started again", || home.noted("start") == 2);
    assert_eq!(session.tools().len(), 2);
    assert_eq!(session.changes, 1, "nothing has changed");
}

#[test]
fn a_restarted_server_is_used_again() {
    for era in ERAS {
        let home = Home::new();
        let mut served = Served::start(&home, json!({"era": era}));
        let port = served.port;
        home.serve(json!({"up": {"url": served.url("/mcp")}}));
        let mut session = session(&home, &[]);
        assert_eq!(text(&session.call("mcp__up__echo", &json!({"text": "one"}))), "one");
        served.stop();
        let result = session.call("mcp__up__echo", &json!({"text": "lost"}));
        assert_eq!(code(&result), "MCP_CALL_FAILED", "{era} {result}");
        assert!(text(&result).contains("cannot be reached: Connection refused"), "{result}");
        let _served = Served::start(&home, json!({"era": era, "port": port}));
        assert_eq!(text(&session.call("mcp__up__echo", &json!({"text": "two"}))), "two", "{era}");
    }
}

#[test]
fn a_change_is_seen() {
    let cases = [
        json!({"era": "modern"}),
        json!({"era": "legacy", "standing": true}),
        json!({"transport": "sse"}),
    ];
    for mut options in cases {
        let home = Home::new();
        options["tools"] = json!(["change"]);
        let served = Served::start(&home, options.clone());
        let kind = if options["transport"] == "sse" { "sse" } else { "http" };
        home.serve(json!({"up": {"type": kind, "url": served.url("/mcp")}}));
        let mut session = session(&home, &[]);
        assert_eq!(session.tools(), ["mcp__up__change"]);
        if kind == "http" {
            let stream = if options["era"] == "modern" { "listen" } else { "get" };
            home.wait_for(stream);
        }
        for _ in 0..3 {
            session.call("mcp__up__change", &json!({}));
        }
        eventually("the new tools are there", || session.tools().len() == 4);
        // What is said follows what is so.
        within(SOON, "the list is said to have changed", || {
            session.request("ping", &json!({}));
            session.changes > 0
        });
        let lists = home.noted("list");
        assert!(lists <= 5, "{lists} lists for three changes at once");
    }
}

/// Waits until something has happened three times, after 0, 1 and 3 seconds.
#[track_caller]
fn ever_less_often(what: &str, began: Instant, happened: impl Fn() -> usize) {
    eventually(what, || happened() >= 3);
    assert!(began.elapsed() > Duration::from_secs(3), "{what}: {:?}", began.elapsed());
}

#[test]
fn a_stream_that_ends_at_once_is_opened_ever_less_often() {
    let home = Home::new();
    let served = Served::start(&home, json!({"standing": "brief"}));
    home.serve(json!({"up": {"url": served.url("/mcp")}}));
    let began = Instant::now();
    let mut session = session(&home, &[]);
    assert_eq!(session.tools(), ["mcp__up__echo"]);
    ever_less_often("the stream is opened", began, || home.noted("get"));
}

#[test]
fn a_server_that_fails_is_tried_ever_less_often() {
    let home = Home::new();
    let served = Served::start(&home, json!({"door": {"status": 503, "headers": {}}}));
    home.serve(json!({"up": {"url": served.url("/mcp")}}));
    let began = Instant::now();
    let mut session = session(&home, &[]);
    assert!(session.tools().is_empty());
    // Each time both eras are asked for.
    ever_less_often("the server is tried", began, || home.noted("door") / 2);
}
