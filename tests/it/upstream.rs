//! Upstream servers that behave badly, and one that behaves well beside them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::binary::{Gateway, command, exe, run};
use crate::fixture::{Home, eventually, session};
use crate::session::{Session, code, names, text};
use crate::web::Web;

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(30);
/// What is added to an upstream's result on its way.
const OURS: [&str; 2] = ["iris/result", "io.modelcontextprotocol/serverInfo"];

/// Starts a gateway between a client and one fixture.
fn up(options: Value) -> (Home, Session) {
    let home = Home::with_up(options);
    let session = session(&home, &[]);
    (home, session)
}

fn echo(session: &mut Session, server: &str) {
    let result = session.call(&format!("mcp__{server}__echo"), &json!({"text": "heard"}));
    assert_eq!(text(&result), "heard");
}

/// Returns what the gateway says of a result.
fn remarks(result: &Value) -> &Value {
    &result["_meta"]["iris/result"]
}

// ---- Lists ----------------------------------------------------------------------------------

#[test]
fn a_list_is_read_to_its_last_page() {
    let names: Vec<String> = (0..25).map(|number| format!("t{number:02}")).collect();
    let (home, mut session) = up(json!({"tools": names, "page": 10}));
    let listed = session.tools();
    assert_eq!(listed.len(), 25);
    assert_eq!(listed[24], "mcp__up__t24");
    let pages: Vec<String> =
        home.ledger().into_iter().filter(|line| line.starts_with("list")).collect();
    assert_eq!(pages, ["list 0", "list 10", "list 20"]);
    assert!(text(&session.call("mcp__up__t24", &json!({}))).starts_with("this is t24"));
}

#[test]
fn a_list_that_goes_round_is_cut() {
    let (home, mut session) = up(json!({"tools": ["a", "b", "echo"], "page": 2, "loop": true}));
    assert_eq!(session.tools(), ["mcp__up__a", "mcp__up__b", "mcp__up__echo"]);
    echo(&mut session, "up");
    let pages = home.ledger().iter().filter(|line| line.starts_with("list")).count();
    assert!(pages <= 4, "{pages} pages");
    assert!(session.said().contains("comes back to a page it had"), "{}", session.said());
}

/// Tools with schemas that a strict client refuses, and those with something missing.
fn bad_tools() -> Value {
    let object = json!({"type": "object"});
    json!([
        "echo",
        {"name": "string_root", "inputSchema": {"type": "string"}},
        {"name": "any_of", "inputSchema": {"anyOf": [{"type": "object"}, {"type": "string"}]}},
        {"name": "dangling", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/Missing"}}}},
        {"name": "remote", "inputSchema": {"$ref": "https://example.com/schema.json"}},
        {"name": "output", "inputSchema": object, "outputSchema": {"properties": {"n": {"type": "integer"}}}},
        {"name": "list_in_required", "inputSchema": {"type": "object", "properties": {"required": ["a"]}}},
        {"name": "null_schema", "inputSchema": null},
        {"name": "no_schema"},
        {"name": "dialect", "inputSchema": {"$schema": "https://example.com/own", "type": "object"}},
        {"inputSchema": object},
        {"name": 7, "inputSchema": object},
        17,
        {"name": "echo", "inputSchema": {"type": "string"}},
        {"name": "odd name/with.dots", "inputSchema": object, "annotations": "not a mapping", "icons": 5},
    ])
}

#[test]
fn a_bad_tool_costs_nobody_else_anything() {
    let home = Home::new();
    let bad = home.server(json!({"tools": bad_tools()}));
    let good = home.server(json!({"tools": ["echo"]}));
    home.serve(json!({"bad": bad, "good": good}));
    let mut session = session(&home, &[]);
    let list = session.request("tools/list", &json!({}))["result"].take();
    let listed = names(&list);
    assert!(listed.contains(&"mcp__good__echo".to_owned()), "{listed:?}");
    echo(&mut session, "bad");
    echo(&mut session, "good");
    for name in &listed {
        let word = name.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '_');
        assert!(word && name.len() <= 64, "{name}");
    }
    let said = session.said();
    for tool in list["tools"].as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        let output = tool.get("outputSchema");
        assert!(output.is_none_or(|output| output["type"] == "object"), "{tool}");
    }
    // Each tool is listed or named with the reason.
    for tool in bad_tools().as_array().unwrap() {
        if let Some(name) = tool["name"].as_str() {
            let is_listed =
                listed.iter().any(|listed| listed.contains(&name.replace([' ', '/', '.'], "_")));
            assert!(is_listed || said.contains(name), "{name}: {listed:?}\n{said}");
        }
    }
    for name in ["string_root", "dangling", "remote", "dialect"] {
        assert!(!listed.contains(&format!("mcp__bad__{name}")), "{listed:?}");
        assert!(said.contains(name), "{name} is not named:\n{said}");
    }
}

#[test]
fn names_that_would_be_one_are_told_apart() {
    let home = Home::new();
    let servers = json!({
        "a": home.server(json!({"tools": ["b__c", "read-file", "read_file"]})),
        "a__b": home.server(json!({"tools": ["c"]})),
    });
    home.serve(servers);
    let mut session = session(&home, &[]);
    let listed = session.tools();
    assert_eq!(listed.len(), 4, "{listed:?}");
    let mut called: Vec<String> =
        listed.iter().map(|name| text(&session.call(name, &json!({}))).to_owned()).collect();
    called.sort();
    let expected =
        ["b__c", "c", "read-file", "read_file"].map(|name| format!("this is {name}: {{}}"));
    assert_eq!(called, expected);
}

// ---- Servers that fail ----------------------------------------------------------------------

#[test]
fn a_server_that_cannot_start_is_named_and_the_other_one_works() {
    let home = Home::new();
    let one = home.server(json!({"tools": ["echo"]}));
    let bad = json!({"command": "no-such-program"});
    home.serve(json!({"bad": bad, "one": one}));
    let mut session = session(&home, &[]);
    echo(&mut session, "one");
    let mut tools = command(exe());
    tools.arg("tools").args(home.arguments());
    let ended = run(tools, LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("mcp__one__echo"), "{ended:?}");
    for part in ["bad: failed", "no-such-program", "PATH"] {
        assert!(ended.stderr.contains(part), "{part}: {ended:?}");
    }
}

#[test]
fn a_program_that_is_no_server_is_told_in_plain_words() {
    let home = Home::new();
    let table = [
        ("quits", json!({"command": "true"}), "the connection was closed; it ended: exit code 0"),
        ("file", json!({"command": home.path("mcp.json")}), "is not an executable file"),
        ("folder", json!({"command": "/"}), "is not an executable file"),
        ("cwd", json!({"command": "cat", "cwd": "/none"}), "`/none` cannot be used"),
        ("parrot", json!({"command": "cat", "startup_timeout_sec": 1}), "startup_timeout_sec"),
        ("chatty", json!({"command": "yes", "startup_timeout_sec": 1}), "startup_timeout_sec"),
    ];
    let servers = table.iter().map(|(name, server, _)| ((*name).to_owned(), server.clone()));
    home.serve(Value::Object(servers.collect()));
    let mut tools = command(exe());
    tools.arg("tools").args(home.arguments());
    let ended = run(tools, LIMIT);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
    for (name, _, part) in table {
        let mut said =
            ended.stderr.lines().filter(|line| line.starts_with(&format!("{name}: failed")));
        let said = said.next().unwrap_or_else(|| panic!("{name}: {}", ended.stderr));
        assert!(said.contains(part), "{said}");
    }
    assert!(!ended.stderr.contains("iris_mcp::source::upstream::wire::Wire"), "{}", ended.stderr);
}

#[test]
fn a_required_server_of_an_agent_ends_the_start() {
    let home = Home::new();
    let one = home.server(json!({"tools": ["echo"]}));
    let bad = json!({"command": "no-such-program"});
    home.serve(json!({"bad": bad, "one": one}));
    let agent = home.write("agent.yaml", "mcp:\n  path: mcp.json\n");
    let workspace = home.path("workspace");
    let arguments = ["--agent", &agent, "--workspace", &workspace, "--approval", "client"];
    for subcommand in
        [&["serve", "--http", "127.0.0.1:0"][..], &["tools"], &["call", "mcp__one__echo"]]
    {
        let mut command = command(exe());
        command.args(subcommand).args(arguments);
        let ended = run(command, LIMIT);
        assert_eq!(ended.code, Some(1), "{subcommand:?}: {ended:?}");
        for part in ["bad", "no-such-program", "required: false", "--keep-going"] {
            assert!(ended.stderr.contains(part), "{subcommand:?}: {part}: {ended:?}");
        }
        assert_eq!(ended.stdout, "", "{subcommand:?}");
    }
    let mut session = Session::start(&[&arguments[..], &["--keep-going"]].concat());
    session.initialize();
    echo(&mut session, "one");
    drop(session);
    let overridden = "mcp:\n  path: mcp.json\n  overrides:\n    bad:\n      required: false\n";
    home.write("agent.yaml", overridden);
    let mut session = Session::start(&arguments);
    session.initialize();
    echo(&mut session, "one");
}

#[test]
fn the_last_words_of_a_server_are_in_the_message() {
    let words = ["Traceback (most recent call last):", "KeyError: 'API_TOKEN'"];
    let home = Home::with_up(json!({"tools": [], "last_words": words}));
    let gateway = Gateway::start(&home.arguments().iter().map(String::as_str).collect::<Vec<_>>());
    let mut report = Value::Null;
    eventually("it has failed", || {
        report = Web::new(&gateway.url).at("/healthz").get().json();
        report["status"] == "degraded"
    });
    let error = report["sources"][0]["error"].as_str().unwrap();
    for part in ["KeyError: 'API_TOKEN'", "exit code 3"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn the_line_that_names_the_error_is_told_however_much_comes_after_it() {
    let home = Home::new();
    let words = "throw err;\n  ^\n\nError: Cannot find module 'x'\n    at a\n    at b\n    at c\n\n    at d\n    at e\n}\n\n";
    let words: Vec<&str> = words.split('\n').collect();
    home.serve(json!({"up": home.server(json!({"last_words": words}))}));
    let mut check = command(exe());
    check.arg("check").args(home.arguments());
    let ended = run(check, Duration::from_secs(30));
    let told = "       | Error: Cannot find module 'x'\n       | …\n       |     at b\n";
    assert!(ended.stdout.contains(told), "{ended:?}");
    assert!(ended.stdout.contains("       |     at e\n       | }\n"), "{ended:?}");
}

#[test]
fn what_a_failed_server_repeats_of_its_variables_reaches_nobody() {
    let home = Home::new();
    let mut up = home.server(json!({"tools": [], "last_words": ["key s3cret-value is wrong"]}));
    up["env"] = json!({"API_KEY": "s3cret-value"});
    home.serve(json!({"up": up}));
    let mut session = Session::start(&home.arguments());
    // A request that waits for all servers.
    session.modern("tools/list", &json!({}));
    let about = session.modern("server/discover", &json!({}))["result"].take();
    let said = about["instructions"].as_str().expect("text");
    assert!(said.contains("key *** is wrong"), "{said}");
    eventually("it is logged", || session.said().contains("key *** is wrong"));
    assert!(!session.said().contains("s3cret-value"), "{}", session.said());
}

#[test]
fn a_mute_server_is_given_up_and_holds_up_nobody_else_for_longer() {
    let home = Home::new();
    let mut mute = home.server(json!({"tools": [], "mute": true, "banner": true}));
    mute["startup_timeout_ms"] = 2000.into();
    let one = home.server(json!({"tools": ["echo"]}));
    home.serve(json!({"mute": mute, "one": one}));
    let began = Instant::now();
    let mut session = session(&home, &[]);
    assert_eq!(session.tools(), ["mcp__one__echo"]);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    echo(&mut session, "one");
    let said = session.said();
    assert!(said.contains("2 s (startup_timeout_sec)"), "{said}");
    assert!(said.contains("and on standard error"), "{said}");
    // Every handshake from now on says so, too.
    let about = session.modern("server/discover", &json!({}));
    let instructions = about["result"]["instructions"].as_str().unwrap();
    assert!(instructions.contains("mute: not available"), "{instructions}");
    assert!(instructions.contains("one: Be kind to it."), "{instructions}");
}

#[test]
fn a_server_that_dies_of_an_unknown_request_is_spoken_to_as_older() {
    let (_home, mut session) = up(json!({"tools": ["echo"], "fragile": true}));
    echo(&mut session, "up");
}

#[test]
fn a_server_that_speaks_the_newer_era_only_is_understood() {
    let (_home, mut session) = up(json!({"tools": ["echo"], "era": "modern"}));
    echo(&mut session, "up");
    let result =
        session.modern("tools/call", &json!({"name": "mcp__up__echo", "arguments": {"text": "x"}}));
    assert_eq!(text(&result["result"]), "x");
}

// ---- Calls that fail ------------------------------------------------------------------------

#[test]
fn a_call_that_kills_its_server_is_made_once_and_the_next_one_works() {
    let (home, mut session) = up(json!({"tools": ["echo", "crash"]}));
    let began = Instant::now();
    let result = session.call("mcp__up__crash", &json!({}));
    assert_eq!(code(&result), "TOOL_OUTCOME_UNKNOWN");
    assert_ne!(remarks(&result)["call_id"], "", "{result}");
    assert_eq!(remarks(&result)["details"]["upstream"], "up", "{result}");
    assert!(text(&result).starts_with("Error[TOOL_OUTCOME_UNKNOWN]: "), "{result}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    echo(&mut session, "up");
    echo(&mut session, "up");
    assert_eq!((home.noted("crash"), home.noted("start")), (1, 2));
}

#[test]
fn a_call_out_of_time_is_made_once_and_the_server_is_told() {
    let home = Home::new();
    let mut up = home.server(json!({"tools": ["slow", "echo"]}));
    up["tool_timeout_sec"] = json!(0.5);
    home.serve(json!({ "up": up }));
    let mut session = session(&home, &[]);
    let result = session.call("mcp__up__slow", &json!({}));
    assert_eq!(code(&result), "TOOL_OUTCOME_UNKNOWN");
    assert_eq!(remarks(&result)["details"]["upstream"], "up");
    assert_ne!(remarks(&result)["call_id"], "", "{result}");
    home.wait_for("cancelled slow");
    echo(&mut session, "up");
    assert_eq!((home.noted("slow"), home.noted("start")), (1, 1));
}

#[test]
fn progress_prolongs_a_call_where_the_operator_says_so() {
    let home = Home::new();
    let mut up = home.server(json!({"tools": ["long_steps"]}));
    up["tool_timeout_sec"] = json!(3);
    home.serve(json!({"up": up}));
    for (config, steps, expected) in [
        ("", 20, "TOOL_OUTCOME_UNKNOWN"),
        ("reset_on_progress = true\n", 20, "OK"),
        ("reset_on_progress = true\nmax_timeout_sec = 4\n", 60, "TOOL_OUTCOME_UNKNOWN"),
    ] {
        let config = home.write("server.toml", &format!("[upstream.up]\n{config}"));
        let mut session = session(&home, &["--config", &config]);
        let result = session.call("mcp__up__long_steps", &json!({"steps": steps}));
        let came_to = if result["isError"] == true { code(&result) } else { "OK" };
        assert_eq!(came_to, expected, "{config}: {result}");
    }
}

#[test]
fn calls_overlap_and_one_that_hangs_blocks_no_other() {
    let (home, mut session) = up(json!({"tools": ["hang", "meet", "echo"]}));
    let hung = session.ask("tools/call", &json!({"name": "mcp__up__hang", "arguments": {}}));
    home.wait_for("hang");
    echo(&mut session, "up");
    assert!(session.request("ping", &json!({}))["result"].is_object());
    let meet = json!({"name": "mcp__up__meet", "arguments": {"count": 7}});
    let ids: Vec<u64> = (0..7).map(|_| session.ask("tools/call", &meet)).collect();
    for id in ids {
        assert_eq!(text(&session.answer(id)["result"]), "met");
    }
    session.notify("notifications/cancelled", &json!({"requestId": hung}));
}

#[test]
fn a_server_takes_no_more_calls_than_it_is_said_to() {
    let home = Home::with_up(json!({"tools": ["slow", "echo"]}));
    let config = home.write("server.toml", "[upstream.up]\nmax_concurrency = 1\n");
    let mut session = session(&home, &["--config", &config]);
    let slow = session.ask("tools/call", &json!({"name": "mcp__up__slow", "arguments": {}}));
    home.wait_for("slow");
    let waiting = json!({"name": "mcp__up__echo", "arguments": {"text": "at last"}});
    let waiting = session.ask("tools/call", &waiting);
    assert!(session.request("ping", &json!({}))["result"].is_object());
    assert!(session.aside.is_empty(), "{:?}", session.aside);
    session.notify("notifications/cancelled", &json!({"requestId": slow}));
    assert_eq!(text(&session.answer(waiting)["result"]), "at last");
}

#[test]
fn a_server_that_stops_reading_blocks_nobody() {
    let home = Home::new();
    let mut deaf = home.server(json!({"tools": ["deafen", "sink"]}));
    deaf["tool_timeout_sec"] = json!(0.7);
    let other = home.server(json!({"tools": ["echo"]}));
    home.serve(json!({"deaf": deaf, "other": other}));
    let mut session = session(&home, &[]);
    assert_eq!(text(&session.call("mcp__deaf__deafen", &json!({}))), "what?");
    // More than the pipe holds, so that nothing more can be written to it.
    let params = json!({"name": "mcp__deaf__sink", "arguments": {"x": "y".repeat(2_000_000)}});
    let ids: Vec<u64> = (0..3).map(|_| session.ask("tools/call", &params)).collect();
    echo(&mut session, "other");
    for id in ids {
        assert_eq!(code(&session.answer(id)["result"]), "TOOL_OUTCOME_UNKNOWN");
    }
    session.close();
    assert_eq!(session.end().0, Some(0));
}

#[test]
fn an_answer_that_is_too_long_ends_its_call_at_once() {
    let home = Home::with_up(json!({"tools": ["huge", "echo"]}));
    let mut session = session(&home, &["--max-message-bytes", "100000"]);
    for bytes in [100_000, 5_000_000] {
        let began = Instant::now();
        let result = session.call("mcp__up__huge", &json!({"bytes": bytes}));
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        assert_eq!(code(&result), "TOOL_OUTCOME_UNKNOWN");
        assert!(text(&result).contains("100000 bytes of limits.max_message_bytes"), "{result}");
        echo(&mut session, "up");
    }
}

#[test]
fn an_answer_that_cannot_be_read_ends_its_call() {
    let (_home, mut session) = up(json!({"tools": ["answer", "echo"]}));
    for (answer, expected) in [
        (json!({"error": {}}), "TOOL_OUTCOME_UNKNOWN"),
        (json!({"error": "broken"}), "TOOL_OUTCOME_UNKNOWN"),
        (json!({"error": {"code": -32603, "message": "inside"}}), "TOOL_OUTCOME_UNKNOWN"),
        (json!({"error": {"code": -32602, "message": "arguments"}}), "MCP_CALL_FAILED"),
        (json!({"nothing": 1}), "TOOL_OUTCOME_UNKNOWN"),
        (json!({"result": null}), "MCP_CALL_FAILED"),
        (json!({"result": [1]}), "MCP_CALL_FAILED"),
    ] {
        let began = Instant::now();
        assert_eq!(code(&session.call("mcp__up__answer", &answer)), expected, "{answer}");
        assert!(began.elapsed() < Duration::from_secs(5), "{answer}");
    }
    let result = session.call("mcp__up__answer", &json!({"result": {}}));
    assert_ne!(result["isError"], true, "{result}");
    echo(&mut session, "up");
}

#[test]
fn calls_that_die_together_start_the_server_once() {
    let (home, mut session) = up(json!({"tools": ["crash", "slow", "echo"]}));
    let call = |name: &str| json!({"name": format!("mcp__up__{name}"), "arguments": {}});
    let mut ids: Vec<u64> = (0..4).map(|_| session.ask("tools/call", &call("slow"))).collect();
    eventually("all run", || home.noted("slow") == 4);
    ids.push(session.ask("tools/call", &call("crash")));
    for id in ids {
        assert_eq!(code(&session.answer(id)["result"]), "TOOL_OUTCOME_UNKNOWN");
    }
    let echo = json!({"name": "mcp__up__echo", "arguments": {"text": "again"}});
    let ids: Vec<u64> = (0..4).map(|_| session.ask("tools/call", &echo)).collect();
    for id in ids {
        assert_eq!(text(&session.answer(id)["result"]), "again");
    }
    assert_eq!((home.noted("slow"), home.noted("crash"), home.noted("start")), (4, 1, 2));
}

#[test]
fn a_server_that_does_not_come_back_says_why() {
    let home = Home::new();
    let up = home.server(json!({"tools": ["crash", "echo"], "once": home.path("once")}));
    home.serve(json!({ "up": up }));
    let mut session = session(&home, &[]);
    assert_eq!(code(&session.call("mcp__up__crash", &json!({}))), "TOOL_OUTCOME_UNKNOWN");
    let result = session.call("mcp__up__echo", &json!({"text": "x"}));
    assert_eq!(code(&result), "MCP_CALL_FAILED");
    assert_eq!(remarks(&result)["retryable"], true, "{result}");
    for part in ["there is only one of me", "was not sent"] {
        assert!(text(&result).contains(part), "{part}: {result}");
    }
    // Whoever comes back later is taken again.
    std::fs::remove_file(home.file("once")).unwrap();
    echo(&mut session, "up");
}

// ---- Results --------------------------------------------------------------------------------

/// Takes away what is ours, so that what is left is the upstream's.
fn theirs(mut result: Value) -> String {
    let meta = result["_meta"].as_object_mut().unwrap();
    for key in OURS {
        meta.shift_remove(key);
    }
    let members = result.as_object_mut().unwrap();
    members.shift_remove("resultType");
    result.to_string()
}

#[test]
fn a_result_goes_out_as_it_came() {
    let home = Home::with_up(json!({"tools": ["odd"]}));
    let script = std::fs::read_to_string(crate::fixture::script("upstream.py")).unwrap();
    let odd = script.split_once("ODD = (").unwrap().1.split_once("\n)\n").unwrap().0;
    let odd: String =
        odd.lines().filter_map(|line| line.trim().strip_prefix('\'')?.strip_suffix('\'')).collect();
    let odd: Value = serde_json::from_str(&odd.replace("\\\\", "\\")).unwrap();
    let odd = odd.to_string();
    let params = json!({"name": "mcp__up__odd", "arguments": {}});
    let mut session = session(&home, &[]);
    assert_eq!(theirs(session.request("tools/call", &params)["result"].take()), odd);
    assert_eq!(theirs(session.modern("tools/call", &params)["result"].take()), odd);
    let gateway = Gateway::start(&home.arguments().iter().map(String::as_str).collect::<Vec<_>>());
    let mut web = Web::new(&gateway.url);
    assert_eq!(theirs(web.modern("tools/call", &params)["result"].take()), odd);
    web.initialize();
    assert_eq!(theirs(web.request("tools/call", &params)["result"].take()), odd);
}

#[test]
fn a_listed_tool_keeps_what_its_server_says_of_it() {
    let tool = json!({
        "name": "rich", "title": "Rich", "description": "Says much.",
        "inputSchema": {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "integer", "x-own": 1}}},
        "annotations": {"readOnlyHint": true, "x-novel": [1]},
        "icons": [{"src": "https://example.com/i.png", "novel": 1}],
        "_meta": {"ui": {"resourceUri": "ui://x"}},
        "novel": {"b": 1, "a": 2},
    });
    let (_home, mut session) = up(json!({"tools": [tool.clone()]}));
    let mut listed = session.request("tools/list", &json!({}))["result"]["tools"][0].take();
    assert_eq!(listed["name"], "mcp__up__rich");
    assert_eq!(listed["_meta"]["iris/tool"]["group"], "mcp");
    listed["_meta"].as_object_mut().unwrap().shift_remove("iris/tool");
    for key in ["title", "description", "annotations", "icons", "_meta", "novel"] {
        assert_eq!(listed[key].to_string(), tool[key].to_string(), "{key}");
    }
    assert_eq!(
        listed["inputSchema"]["properties"].to_string(),
        tool["inputSchema"]["properties"].to_string()
    );
}

#[test]
fn a_tool_of_an_older_dialect_works_by_its_own_rules() {
    let (_home, mut session) = up(json!({"tools": ["ordered"]}));
    let list = session.request("tools/list", &json!({}))["result"].take();
    let schema = &list["tools"][0]["inputSchema"];
    let dialect = schema.get("$schema").and_then(Value::as_str).unwrap_or("2020-12");
    assert!(dialect.contains("2020-12"), "{schema}");
    let good = session.call("mcp__up__ordered", &json!({"pair": ["a", 1]}));
    assert!(text(&good).contains("[\"a\", 1]"), "{good}");
    // In the older dialect a list under `items` is about positions.
    let bad = session.call("mcp__up__ordered", &json!({"pair": [1, "a"]}));
    assert_eq!(code(&bad), "VALIDATION_ERROR");
    let bad = session.call("mcp__up__ordered", &json!({"pair": ["a", 1], "more": 1}));
    assert_eq!(code(&bad), "VALIDATION_ERROR");
}

#[test]
fn a_failed_result_is_handed_on_and_a_refused_call_is_a_failure() {
    let (home, mut session) = up(json!({"tools": ["fail", "refuse"]}));
    let failed = session.call("mcp__up__fail", &json!({}));
    assert_eq!(code(&failed), "MCP_TOOL_ERROR");
    assert_eq!(text(&failed), "no luck");
    assert_eq!(failed["_meta"]["vendor/why"], "tired");
    let refused = session.call("mcp__up__refuse", &json!({}));
    assert_eq!(code(&refused), "MCP_CALL_FAILED");
    assert!(text(&refused).contains("not these arguments"), "{refused}");
    assert_eq!(home.noted("refuse"), 1);
}

#[test]
fn what_a_server_asks_for_is_declined_and_the_call_goes_on() {
    let (_home, mut session) = up(json!({"tools": ["ask"]}));
    let result = session.call("mcp__up__ask", &json!({}));
    let answer: Value = serde_json::from_str(text(&result)).unwrap();
    let declined = answer[0]["result"]["action"] == "decline";
    assert!(declined, "{answer}");
    let (home, mut session) = up(json!({"tools": ["once_more"], "era": "modern"}));
    let result = session.call("mcp__up__once_more", &json!({}));
    let answer: Value = serde_json::from_str(text(&result)).unwrap();
    assert_eq!(answer, json!([{"who": {"action": "decline"}}, "sealed"]));
    assert_eq!(home.noted("once_more"), 2);
}

#[test]
fn a_result_that_breaks_its_schema_is_handed_on_unless_the_operator_is_strict() {
    let (home, mut lenient) = up(json!({"tools": ["broken_output"]}));
    for _ in 0..2 {
        let result = lenient.call("mcp__up__broken_output", &json!({}));
        assert_eq!(result["structuredContent"], json!({"n": "no number"}), "{result}");
        assert_ne!(result["isError"], true);
    }
    lenient.close();
    lenient.end();
    assert_eq!(lenient.said().matches("break the tool's own output schema").count(), 1);
    let config = home.write("server.toml", "[upstream.up]\nstrict_output = true\n");
    let mut strict = session(&home, &["--config", &config]);
    assert_eq!(code(&strict.call("mcp__up__broken_output", &json!({}))), "MCP_RESULT_INVALID");
}

// ---- Environment ----------------------------------------------------------------------------

#[test]
fn a_server_gets_what_is_declared_and_no_secret() {
    let home = Home::new();
    let mut up = home.server(json!({"tools": ["environment"]}));
    up["args"].as_array_mut().unwrap().extend([
        "${WORD}".into(),
        "${env:WORD}-${NONE:-d}".into(),
        "$WORD".into(),
    ]);
    up["env"] = json!({"DECLARED": "${WORD} ${NONE:-other}", "PLAIN": "1"});
    up["env_vars"] = json!(["HANDED_ON"]);
    up["cwd"] = "${FOLDER}".into();
    home.serve(json!({ "up": up }));
    let folder = home.path("workspace");
    let mut session = Session::start_with(&home.arguments(), |command| {
        command.env("WORD", "a b").env("HANDED_ON", "here").env("FOLDER", &folder);
        command.env("SECRET_TOKEN", "s3cret").env("AWS_SECRET_ACCESS_KEY", "s3cret");
        command.env("IRIS_MCP_LOG", "debug");
    });
    session.initialize();
    let result = session.call("mcp__up__environment", &json!({}));
    let [environment, arguments, cwd]: [Value; 3] = serde_json::from_str(text(&result)).unwrap();
    assert_eq!(arguments, json!(["a b", "a b-d", "$WORD"]));
    assert_eq!(cwd, folder.as_str());
    let of = |name: &str| environment.get(name).and_then(Value::as_str);
    assert_eq!(of("DECLARED"), Some("a b other"));
    assert_eq!((of("PLAIN"), of("HANDED_ON")), (Some("1"), Some("here")));
    assert!(of("PATH").is_some() && of("HOME").is_some());
    assert_eq!((of("WORD"), of("IRIS_MCP_LOG")), (None, None));
    assert!(!environment.to_string().contains("s3cret"), "{environment}");
    assert!(!session.said().contains("s3cret"));
}

#[test]
fn a_missing_variable_is_named_with_its_key() {
    let home = Home::new();
    let mut up = home.server(json!({"tools": ["echo"]}));
    up["env"] = json!({"TOKEN": "${NO_SUCH_VARIABLE}"});
    home.serve(json!({ "up": up }));
    let mut tools = command(exe());
    tools.arg("tools").args(home.arguments());
    let ended = run(tools, LIMIT);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
    for part in ["up", "NO_SUCH_VARIABLE", "env.TOKEN"] {
        assert!(ended.stderr.contains(part), "{part}: {ended:?}");
    }
}

// ---- Permission -----------------------------------------------------------------------------

#[test]
fn what_the_view_hides_does_not_exist() {
    let home = Home::with_up(json!({"tools": ["echo", "look"]}));
    let config = home.write("server.toml", "[view]\ndeny = [\"mcp__up__echo\"]\n");
    let mut session = session(&home, &["--config", &config]);
    assert_eq!(session.tools(), ["mcp__up__look"]);
    for name in ["mcp__up__echo", "mcp__up__echa"] {
        let answer = session.request("tools/call", &json!({"name": name, "arguments": {}}));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert_eq!(answer["error"]["data"]["code"], "NOT_FOUND");
        assert!(!answer["error"]["data"]["nearest"].to_string().contains("echo"), "{answer}");
    }
    assert_eq!(home.noted("echo"), 0);
}

#[test]
fn where_nobody_is_asked_a_call_is_refused_and_trusted_reading_is_not() {
    let home = Home::with_up(json!({"tools": ["slow", "look"]}));
    let mut untrusting = session(&home, &["--approval", "deny"]);
    for name in ["mcp__up__slow", "mcp__up__look"] {
        let result = untrusting.call(name, &json!({"x": 1}));
        assert_eq!(code(&result), "PERMISSION_ERROR");
        let details = &remarks(&result)["details"];
        assert_eq!(details["effect"], "require_human", "{result}");
        assert_eq!(details["require_confirmation"], true);
        assert_eq!(details["tool"], name);
        assert_eq!(details["params"], json!({"x": 1}));
        assert!(text(&result).contains("--approval client"), "{result}");
    }
    drop(untrusting);
    assert_eq!((home.noted("slow"), home.noted("look")), (0, 0));
    let config = home.write("server.toml", "[upstream.up]\ntrust_annotations = true\n");
    let mut trusting = session(&home, &["--approval", "deny", "--config", &config]);
    assert!(text(&trusting.call("mcp__up__look", &json!({}))).starts_with("this is look"));
    assert_eq!(code(&trusting.call("mcp__up__slow", &json!({}))), "PERMISSION_ERROR");
    assert_eq!((home.noted("slow"), home.noted("look")), (0, 1));
}
