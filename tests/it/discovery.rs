//! Tools that have to be searched for, as clients of both eras see them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::binary::{command, exe, run};
use crate::fixture::{Home, session};
use crate::session::{Session, code, names, text};

/// Makes a server with many tools, of which each is about something else, and one that answers.
fn with_many(count: usize) -> Home {
    Home::with_up(json!({"many": count, "tools": ["echo"]}))
}

fn tools(session: &mut Session, ask: fn(&mut Session, &str, &Value) -> Value) -> Value {
    ask(session, "tools/list", &json!({}))["result"].take()
}

fn called(
    session: &mut Session,
    ask: fn(&mut Session, &str, &Value) -> Value,
    name: &str,
    arguments: &Value,
) -> Value {
    ask(session, "tools/call", &json!({"name": name, "arguments": arguments}))["result"].take()
}

const EACH_ERA: [fn(&mut Session, &str, &Value) -> Value; 2] = [Session::request, Session::modern];

#[test]
fn a_long_list_is_deferred_and_its_tools_are_found_and_called_in_both_eras() {
    let home = with_many(300);
    for ask in EACH_ERA {
        let mut session = session(&home, &[]);
        let listed = tools(&mut session, ask);
        let own = ["context_read", "context_search", "tool_search", "call_tool"];
        assert_eq!(names(&listed), own);
        let echo = "mcp__up__echo";
        let early = called(&mut session, ask, echo, &json!({"text": "hello"}));
        assert_eq!(code(&early), "TOOL_NOT_ALLOWED", "{early}");
        let early = json!({"name": echo, "arguments": {"text": "hello"}});
        let early = called(&mut session, ask, "call_tool", &early);
        assert_eq!(code(&early), "TOOL_NOT_ALLOWED", "{early}");

        let queries = json!({"queries": ["echo", "the thing n7x", "gibberish zzz"]});
        let found = called(&mut session, ask, "tool_search", &queries);
        let answer: Value = serde_json::from_str(text(&found)).unwrap();
        assert_eq!(answer, found["structuredContent"], "the text is the same JSON");
        assert_eq!(answer["selections"][0]["tool"], echo);
        assert_eq!(answer["selections"][1]["tool"], "mcp__up__tool_7");
        assert_eq!(answer["selections"][2]["tool"], Value::Null);
        assert_eq!(answer["tools"][1]["input_schema"]["required"], json!(["text"]));
        assert_eq!(answer["tools"][1]["annotations"], json!({"readOnlyHint": false}));
        assert_eq!(found["_meta"]["iris/result"]["data"]["selections"], answer["selections"]);

        for name in [echo, "call_tool"] {
            let arguments = json!({"text": "hello"});
            let arguments = match name {
                "call_tool" => json!({"name": echo, "arguments": arguments}),
                _ => arguments,
            };
            let result = called(&mut session, ask, name, &arguments);
            assert_eq!(text(&result), "hello", "{name}: {result}");
        }
    }
}

#[test]
fn a_list_grows_for_an_older_client_alone_and_the_client_is_told() {
    let home = with_many(0);
    let found = json!({"queries": ["echo"]});
    for (disclosure, grows) in [("both", true), ("session", true), ("meta", false)] {
        let mut session = session(&home, &["--defer", "always", "--disclosure", disclosure]);
        let before = names(&tools(&mut session, Session::request)).len();
        let changes = session.changes;
        session.call("tool_search", &found);
        let told = session.changes > changes;
        assert!(told || !grows, "{disclosure}");
        let after = names(&tools(&mut session, Session::request));
        assert_eq!(after.contains(&"mcp__up__echo".to_owned()), grows, "{disclosure}");
        assert_eq!(names(&tools(&mut session, Session::modern)).len(), before, "{disclosure}");
        let through = json!({"name": "mcp__up__echo", "arguments": {"text": "x"}});
        let answer =
            session.request("tools/call", &json!({"name": "call_tool", "arguments": through}));
        assert_eq!(answer["error"].is_null(), disclosure != "session", "{disclosure}: {answer}");
    }
}

#[test]
fn ten_thousand_deferred_tools_cost_a_client_two_thousand_bytes() {
    let home = with_many(10_000);
    // One for both eras, since a list of that length takes its time.
    let mut session = session(&home, &[]);
    for ask in EACH_ERA {
        let listed = tools(&mut session, ask);
        let size = |name: &str| {
            let tool = listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name);
            tool.unwrap_or_else(|| panic!("{name} is listed")).to_string().len()
        };
        let search = size("tool_search") + size("call_tool");
        assert!(search <= 2_000, "{search} bytes: {listed}");
        let context = size("context_read") + size("context_search");
        assert!(context <= 1_500, "{context} bytes: {listed}");
        let found = called(&mut session, ask, "tool_search", &json!({"queries": ["thing n9876x"]}));
        assert_eq!(found["structuredContent"]["selections"][0]["tool"], "mcp__up__tool_9876");
        let through = json!({"name": "mcp__up__tool_9876", "arguments": {"text": "x"}});
        let result = called(&mut session, ask, "call_tool", &through);
        assert!(text(&result).starts_with("this is tool_9876"), "{result}");
    }
}

#[test]
fn with_an_agent_file_its_own_key_decides() {
    let home = with_many(300);
    let agent = |deferred: bool| {
        let text = format!(
            "context_policy: {{ enabled: true, deferred_tools: {deferred} }}\nmcp: {{ path: mcp.json }}\n"
        );
        home.write("agent.yaml", &text)
    };
    let list = |more: &[&str]| {
        let arguments = ["--agent", &home.path("agent.yaml"), "--workspace", &home.path("")];
        let mut session = Session::start(&[&arguments, more].concat());
        session.initialize();
        names(&tools(&mut session, Session::request)).len()
    };
    agent(false);
    assert_eq!(list(&[]), 303, "all of them, and the context tools");
    assert_eq!(list(&["--defer", "always"]), 4);
    agent(true);
    assert_eq!(list(&[]), 4);
    assert_eq!(list(&["--defer", "never"]), 303);
}

#[test]
fn the_instructions_of_the_server_say_that_there_is_more() {
    let home = with_many(300);
    let mut session = session(&home, &[]);
    tools(&mut session, Session::request);
    let about = session.modern("server/discover", &json!({}));
    let instructions = about["result"]["instructions"].as_str().unwrap_or_default();
    assert!(instructions.contains("301 more tools"), "{about}");
    assert!(instructions.contains("tool_search"), "{about}");
}

#[test]
fn the_command_line_shows_what_is_deferred_and_calls_it() {
    let home = with_many(300);
    let arguments = home.arguments();
    let of = |command_name: &str, more: &[&str]| {
        let mut process = command(exe());
        process.arg(command_name).args(arguments.iter().filter(|it| *it != "serve")).args(more);
        run(process, Duration::from_mins(1))
    };
    let checked = of("check", &[]);
    assert!(
        checked.stdout.contains("not listed, but found by tool_search: 301 tools"),
        "{checked:?}"
    );
    assert!(checked.stdout.contains("301 tools, about"), "{checked:?}");
    let listed = of("tools", &[]);
    assert!(!listed.stdout.contains("tool_7\n"), "{listed:?}");
    assert!(listed.stderr.contains("301 more tools"), "{listed:?}");
    let all = of("tools", &["--all"]);
    assert!(all.stdout.contains("mcp__up__tool_7 (not listed)\n"), "{all:?}");
    let found = of("search", &["thing n7x"]);
    assert!(found.stdout.starts_with("mcp__up__tool_7\n"), "{found:?}");
    let none = of("search", &["zzz"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""), "{none:?}");
    assert!(none.stderr.contains("no tool fits"), "{none:?}");
    let called = of("call", &["--yes", "mcp__up__echo", r#"{"text": "here"}"#]);
    assert_eq!((called.code, called.stdout.as_str()), (Some(0), "here\n"), "{called:?}");
    let blank = of("search", &[" "]);
    assert_eq!(blank.code, Some(2), "{blank:?}");
}

#[test]
fn what_is_found_after_a_server_came_back_is_called() {
    let home = Home::with_up(json!({"tools": ["echo", "crash"], "many": 3}));
    for ask in EACH_ERA {
        let mut session = session(&home, &["--defer", "always"]);
        let find = json!({"queries": ["echo", "crash"]});
        called(&mut session, ask, "tool_search", &find);
        let crashed = called(&mut session, ask, "mcp__up__crash", &json!({}));
        assert_eq!(code(&crashed), "TOOL_OUTCOME_UNKNOWN", "{crashed}");
        let found = called(&mut session, ask, "tool_search", &find);
        let tool = &found["structuredContent"]["selections"][0]["tool"];
        let echoed = called(&mut session, ask, tool.as_str().unwrap(), &json!({"text": "back"}));
        assert_eq!(text(&echoed), "back");
    }
}

#[test]
fn arguments_that_a_model_sent_as_texts_reach_the_server_as_what_they_are() {
    let schema = json!({
        "type": "object", "required": ["list"],
        "properties": {"list": {"type": "array"}, "count": {"type": "integer"}, "note": {"type": "string"}}
    });
    let mixed = json!({"name": "mixed", "inputSchema": schema});
    let home = Home::with_up(json!({"tools": [mixed]}));
    for ask in EACH_ERA {
        let mut session = session(&home, &[]);
        let said = json!({"list": "[1, \"a\"]", "count": "2", "note": "[1]", "extra": "[1]"});
        let meant = r#"{"list": [1, "a"], "count": 2, "note": "[1]", "extra": "[1]"}"#;
        let result = called(&mut session, ask, "mcp__up__mixed", &said);
        assert_eq!(text(&result), format!("this is mixed: {meant}"));
        let wrong = called(&mut session, ask, "mcp__up__mixed", &json!({"list": "one, two"}));
        assert_eq!(code(&wrong), "VALIDATION_ERROR");
        assert!(text(&wrong).contains("list"), "{wrong}");
    }
}
