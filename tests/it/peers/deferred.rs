//! Real clients whose tools have to be searched for, with a person who is asked for each call.

use serde_json::{Value, json};

use super::{Client, Mode, root};
use crate::binary::{By, peer};
use crate::fixture::Home;

const LOG: &str = "mcp__up__log";
const PROGRESS: &str = "mcp__up__progress";
const SLOW: &str = "mcp__up__slow";

/// Makes a home with our own file tools and a real server whose calls nobody has allowed.
fn home() -> Home {
    let home = Home::new();
    let server = root().join("tests/peers/servers/py_server.py");
    home.serve(json!({"up": {
        "command": peer("client/bin/python"), "args": [server, "mcp", "stdio"],
        "env": {"IRIS_PEERS": peer("")},
    }}));
    home.write("agent.yaml", "tools: {builtin: [file.read]}\nmcp: {path: mcp.json}\n");
    home.write("workspace/a.txt", "alpha\n");
    home
}

fn arguments(home: &Home) -> Vec<String> {
    let [agent, workspace] = [home.path("agent.yaml"), home.path("workspace")];
    let line = ["--agent", &agent, "--workspace", &workspace, "--defer", "always"];
    [&line[..], &["--approval", "ask"]].concat().into_iter().map(str::to_owned).collect()
}

/// Returns a call by the tool's own name.
fn by_name(name: &str, arguments: &Value) -> Value {
    json!({"op": "call", "name": name, "arguments": arguments})
}

/// Returns the same call through `call_tool`.
fn through(name: &str, arguments: &Value) -> Value {
    by_name("call_tool", &json!({"name": name, "arguments": arguments}))
}

/// Adds what the client does besides calling.
fn with(mut step: Value, more: &Value) -> Value {
    for (key, value) in more.as_object().expect("an object") {
        step[key] = value.clone();
    }
    step
}

/// Returns the steps, of which those after the search ask a person.
fn steps(home: &Home, grows: bool) -> Value {
    let queries = ["log", "progress", "slow"];
    let progress = |call: fn(&str, &Value) -> Value, seen: &str| {
        let seen = home.path(seen);
        with(call(PROGRESS, &json!({"until": seen})), &json!({"progress": 3, "touch": seen}))
    };
    let cancelled = |call: fn(&str, &Value) -> Value, ledger: &str| {
        let ledger = home.path(ledger);
        let more = json!({"op": "cancel_call", "after_progress": 1, "until": ledger});
        with(call(SLOW, &json!({"ledger": ledger})), &more)
    };
    let nothing = json!({});
    json!([
        {"op": "list"},
        by_name("read_file", &json!({"file_path": "a.txt"})),
        by_name(LOG, &nothing),
        by_name("tool_search", &json!({"queries": queries})),
        {"op": "list", "changes": u8::from(grows)},
        by_name(LOG, &nothing),
        by_name(LOG, &nothing),
        through(LOG, &nothing),
        through(LOG, &nothing),
        progress(by_name, "named"),
        progress(through, "meant"),
        cancelled(by_name, "first"),
        cancelled(through, "second"),
        through(LOG, &nothing),
    ])
}

/// Returns what the person says to the calls that ask, in order.
fn answers() -> [Value; 9] {
    let answer = |answer| json!({"action": "accept", "content": {"answer": answer}});
    ["once", "refuse", "once", "refuse", "once", "once", "once", "once", "once"].map(answer)
}

#[track_caller]
fn check(client: Client, by: By) {
    let home = home();
    let arguments = arguments(&home);
    let (transport, _gateway) = by.reach(&arguments);
    let grows = !client.is_modern();
    let seen = client.answering(&transport, &steps(&home, grows), Some(&answers()));
    lists(&seen, grows);
    calls(&seen["steps"]);
    for ledger in ["first", "second"] {
        let noted = std::fs::read_to_string(home.file(ledger)).expect("the upstream heard of it");
        assert_eq!(noted, "cancelled\n", "{ledger}");
    }
    let asked: Vec<_> = seen["elicited"].as_array().unwrap().iter().map(Value::to_string).collect();
    let tools = [LOG, LOG, LOG, LOG, PROGRESS, PROGRESS, SLOW, SLOW, LOG];
    assert_eq!(asked.len(), tools.len(), "{asked:#?}");
    for (question, tool) in asked.iter().zip(tools) {
        assert!(question.contains(tool), "{tool}: {question}");
    }
}

/// Checks what is listed before and after the search.
#[track_caller]
fn lists(seen: &Value, grows: bool) {
    let own = json!(["read_file", "context_read", "context_search", "tool_search", "call_tool"]);
    assert_eq!(seen["steps"][0]["tools"], own, "{seen:#}");
    let mut after = own.clone();
    if grows {
        after.as_array_mut().unwrap().extend([LOG, PROGRESS, SLOW].map(Value::from));
        assert!(seen["changes"].as_u64() >= Some(1), "{seen:#}");
    }
    let sorted = |names: &Value| {
        let mut names: Vec<_> = names.as_array().unwrap().iter().map(Value::to_string).collect();
        names.sort();
        names
    };
    assert_eq!(sorted(&seen["steps"][4]["tools"]), sorted(&after), "{seen:#}");
}

/// Checks what came of each call.
#[track_caller]
fn calls(steps: &Value) {
    let text = |step: usize| {
        let text = &steps[step]["result"]["content"][0]["text"];
        text.as_str().unwrap_or_else(|| panic!("no text: {steps:#}"))
    };
    assert!(text(1).starts_with("alpha\n"), "{}", text(1));
    assert!(text(2).starts_with("Error[TOOL_NOT_ALLOWED]"), "{}", text(2));
    let found: Vec<_> = steps[3]["result"]["structuredContent"]["selections"]
        .as_array()
        .unwrap_or_else(|| panic!("{steps:#}"))
        .iter()
        .map(|selection| &selection["tool"])
        .collect();
    assert_eq!(found, [LOG, PROGRESS, SLOW]);
    for approved in [5, 7, 13] {
        assert_eq!(text(approved), "logged", "{approved}");
    }
    for refused in [6, 8] {
        assert!(text(refused).starts_with("Error[USER_REJECTED]"), "{}", text(refused));
        assert_eq!(steps[refused]["result"]["isError"], true);
    }
    for reported in [9, 10] {
        assert_eq!(text(reported), "done");
        let reports = steps[reported]["progress"].to_string().replace(".0", "");
        assert_eq!(reports, r#"[[1,3,"step 1"],[2,3,"step 2"],[3,3,"step 3"]]"#);
    }
    for cancelled in [11, 12] {
        assert_eq!(steps[cancelled]["cancelled"], true, "{steps:#}");
    }
}

/// Makes a test of each client and way.
macro_rules! clients {
    ($($name:ident: $client:expr, $by:expr;)*) => {
        $(
            #[test]
            fn $name() {
                check($client, $by);
            }
        )*
    };
}

clients! {
    python_finds_and_calls: Client::Python(Mode::Auto), By::Stdio;
    older_python_finds_and_calls: Client::Python(Mode::Legacy), By::Stdio;
    fastmcp_finds_and_calls: Client::FastMcp(Mode::Auto), By::Stdio;
    older_fastmcp_finds_and_calls: Client::FastMcp(Mode::Legacy), By::Stdio;
    typescript_finds_and_calls: Client::TypeScript(Mode::Auto), By::Stdio;
    older_typescript_finds_and_calls: Client::TypeScript(Mode::Legacy), By::Stdio;
    python_over_http_finds_and_calls: Client::Python(Mode::Auto), By::Http;
    older_python_over_http_finds_and_calls: Client::Python(Mode::Legacy), By::Http;
    fastmcp_over_http_finds_and_calls: Client::FastMcp(Mode::Auto), By::Http;
    older_fastmcp_over_http_finds_and_calls: Client::FastMcp(Mode::Legacy), By::Http;
    typescript_over_http_finds_and_calls: Client::TypeScript(Mode::Auto), By::Http;
    older_typescript_over_http_finds_and_calls: Client::TypeScript(Mode::Legacy), By::Http;
}
