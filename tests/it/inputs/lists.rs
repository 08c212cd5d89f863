//! Lists that a client or a model provider would choke on: schemas, names, pages and changes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{begin_with, rough, with_rough};
use crate::binary::{Gateway, command, exe, run};
use crate::fixture::{Home, eventually, session};
use crate::remote::Served;
use crate::session::{Session, names, text};
use crate::web::Web;

const STYLES: [&str; 3] = ["iris", "plain", "bare"];

/// Tools whose schemas are wrong, and whether they can be put right.
fn bad_schemas() -> Vec<(&'static str, Value, bool)> {
    let object = || json!({"type": "object"});
    let property =
        |schema: Value| json!({"inputSchema": {"type": "object", "properties": {"a": schema}}});
    vec![
        ("a_text", json!({"inputSchema": {"type": "string"}}), false),
        ("a_flag", json!({"inputSchema": true}), false),
        ("a_list", json!({"inputSchema": []}), false),
        ("none", json!({}), true),
        ("null", json!({"inputSchema": null}), true),
        ("untyped", json!({"inputSchema": {"properties": {"a": {}}}}), true),
        (
            "alternatives",
            json!({"inputSchema": {"anyOf": [{"type": "object"}, {"type": "null"}]}}),
            true,
        ),
        ("dangling", property(json!({"$ref": "#/$defs/Missing"})), false),
        ("far", property(json!({"$ref": "https://example.com/s.json"})), false),
        (
            "misplaced",
            json!({"inputSchema": {"type": "object", "properties": {"required": ["a"]}}}),
            false,
        ),
        ("no_type", property(json!({"type": "objekt"})), false),
        ("pattern", property(json!({"pattern": "(["})), true),
        (
            "output_untyped",
            json!({"inputSchema": object(), "outputSchema": {"properties": {"n": {}}}}),
            true,
        ),
        (
            "output_dangling",
            json!({"inputSchema": object(), "outputSchema": {"$ref": "#/nowhere"}}),
            true,
        ),
        ("output_list", json!({"inputSchema": object(), "outputSchema": {"type": "array"}}), true),
        (
            "output_either",
            json!({"inputSchema": object(), "outputSchema": {"anyOf": [{}, {}]}}),
            true,
        ),
    ]
}

fn tool(name: &str, more: &Value) -> Value {
    let mut tool = json!({ "name": name });
    tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    tool
}

/// Lists and calls everything of the servers as a client of one era; nothing listed is unreadable.
fn check_schemas(era: &str, servers: &[&str], mut request: impl FnMut(&str, &Value) -> Value) {
    let list = request("tools/list", &json!({}))["result"].take();
    let listed = names(&list);
    for tool in list["tools"].as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["type"], "object", "{era}: {tool}");
        let output = tool.get("outputSchema");
        // Before 2026-07-28 it is about an object, and a client that checks drops the whole list.
        let is_free = era == "newer";
        assert!(is_free || output.is_none_or(|output| output["type"] == "object"), "{era}: {tool}");
    }
    for server in servers {
        for (name, _, is_listed) in bad_schemas() {
            let name = format!("mcp__{server}__{name}");
            assert_eq!(listed.contains(&name), is_listed, "{era}: {name}: {listed:?}");
        }
        let good = listed.iter().filter(|name| name.starts_with(&format!("mcp__{server}__")));
        for name in good {
            let params = json!({"name": name, "arguments": {"text": "heard"}});
            let answer = request("tools/call", &params);
            assert_ne!(answer["result"]["isError"], true, "{era}: {name}: {answer}");
        }
    }
    assert!(listed.contains(&"mcp__well__echo".to_owned()), "{listed:?}");
}

#[test]
fn a_bad_schema_costs_its_own_tool_only_for_every_client_and_server() {
    let home = Home::new();
    let mut tools: Vec<Value> =
        bad_schemas().iter().map(|(name, more, _)| tool(name, more)).collect();
    tools.push(tool("echo", &json!({"inputSchema": {"type": "object"}})));
    let older = Served::start(&home, json!({"tools": tools}));
    let newer = Served::start(&home, json!({"tools": tools, "era": "modern"}));
    home.serve(json!({
        "stdio": home.server(json!({"tools": tools})),
        "older": {"url": older.url("/mcp")},
        "newer": {"url": newer.url("/mcp")},
        "well": home.server(json!({"tools": ["echo"]})),
    }));
    let servers = ["stdio", "older", "newer"];
    let gateway = Gateway::start(&home.arguments().iter().map(String::as_str).collect::<Vec<_>>());
    let mut web = Web::new(&gateway.url);
    check_schemas("newer", &servers, |method, params| web.modern(method, params));
    web.initialize();
    check_schemas("older", &servers, |method, params| web.request(method, params));
    // Each of them is named with what is wrong, and nothing else is.
    let mut check = command(exe());
    check.args(["check", "--json"]).args(home.arguments());
    let check = run(check, std::time::Duration::from_secs(30));
    let report: Value = serde_json::from_str(&check.stdout).unwrap();
    assert_eq!((check.code, &report["ok"]), (Some(0), &true.into()), "{report}");
    for server in report["servers"].as_array().unwrap() {
        let said = server["diagnostics"].as_array().unwrap();
        let told: BTreeSet<&str> =
            said.iter().filter_map(|said| said["wire_name"].as_str()).collect();
        // A result that is no object is well where it can be had.
        let is_well = |name: &&str| ["output_list", "output_either"].contains(name);
        let bad = bad_schemas().into_iter().map(|(name, ..)| name).filter(|name| !is_well(name));
        let bad: BTreeSet<&str> = bad.collect();
        assert_eq!(told, if server["name"] == "well" { BTreeSet::new() } else { bad }, "{server}");
    }
}

#[test]
fn a_result_that_is_a_list_reaches_every_client_that_can_read_it() {
    let list = json!({"name": "rows", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}});
    let home = with_rough(json!({"tools": [list]}));
    let mut session = session(&home, &[]);
    let params = json!({"name": "mcp__up__rows", "arguments": {"data": [1, 2]}});
    let older = session.request("tools/call", &params)["result"].take();
    assert!(older.get("structuredContent").is_none() && older["isError"] != true, "{older}");
    let newer = session.modern("tools/call", &params)["result"].take();
    assert_eq!(newer["structuredContent"], json!([1, 2]), "{newer}");
    let tools = session.modern("tools/list", &json!({}))["result"]["tools"].take();
    assert_eq!(tools[0]["outputSchema"]["type"], "array", "{tools}");
}

/// What every model provider takes as a name.
fn is_legal(name: &str) -> bool {
    let word = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-');
    (1..=64).contains(&name.len()) && name.chars().all(word)
}

/// Calls every listed tool, and returns which tool of which server each call reached.
fn reached(session: &mut Session) -> (Vec<String>, Vec<(String, String)>) {
    let listed = session.tools();
    let mut reached: Vec<(String, String)> = listed
        .iter()
        .map(|name| serde_json::from_str(text(&session.call(name, &json!({})))).unwrap())
        .collect();
    reached.sort();
    (listed, reached)
}

/// Serves tools of several servers in each style; every name is legal, there once, and leads to
/// its own tool, today and tomorrow.
#[track_caller]
fn check_names(servers: &[(&str, &[&str])]) -> Home {
    let home = Home::new();
    let entries = servers.iter().map(|(name, tools)| {
        ((*name).to_owned(), rough(&home, json!({"name": name, "tools": tools})))
    });
    home.serve(Value::Object(entries.collect()));
    let mut expected: Vec<(String, String)> = servers
        .iter()
        .flat_map(|(server, tools)| {
            tools.iter().map(|tool| ((*server).to_owned(), (*tool).to_owned()))
        })
        .collect();
    expected.sort();
    for style in STYLES {
        let (listed, called) = reached(&mut session(&home, &["--names", style]));
        assert_eq!(called, expected, "{style}: {listed:?}");
        let unique: BTreeSet<&String> = listed.iter().collect();
        assert_eq!(unique.len(), expected.len(), "{style}: {listed:?}");
        for name in &listed {
            assert!(is_legal(name), "{style}: {name}");
        }
        assert_eq!(session(&home, &["--names", style]).tools(), listed, "{style}: they stay");
    }
    home
}

#[test]
fn every_name_is_one_that_all_providers_take() {
    let server = "a-server-whose-name-has-36-characters";
    let long = "a_tool_whose_name_has_sixty_characters_and_says_what_it_does";
    let longer = "a_tool_whose_name_has_sixty_characters_and_says_what_it_is__";
    assert_eq!((server[1..].len(), long.len(), longer.len()), (36, 60, 60));
    let longest = "x".repeat(300);
    check_names(&[
        (&server[1..], &[long, longer, "get/user.info", "my tool", "a.b", "a_b", &longest]),
        (
            "server with spaces",
            &["get/user.info", "get.user/info", "1st", "ünïcödé", "查询", "😀", "a\"b", "-"],
        ),
        ("查询", &["查询", "a.b"]),
        ("1", &["__", "_"]),
    ]);
}

#[test]
fn tools_whose_names_would_be_one_are_two() {
    let home = check_names(&[
        ("a", &["b_c", "b__c", "c"]),
        ("a_b", &["c"]),
        ("a__b", &["c"]),
        ("a-b", &["c", "read-file", "read_file", "read.file", "Read_File"]),
        ("a.b", &["c", "read-file"]),
    ]);
    let said = {
        let mut session = session(&home, &[]);
        session.tools();
        session.said()
    };
    assert!(said.contains("the name `mcp__a__b__c` is taken"), "it is said: {said}");
}

#[test]
fn a_tool_of_our_own_is_nobody_elses() {
    let home = Home::new();
    let tools = json!(["read_file", "context_read", "echo"]);
    home.serve(json!({"up": rough(&home, json!({"name": "up", "tools": tools}))}));
    let agent = "permissions: {workspace: workspace}\ntools: {builtin: [file.read]}\nmcp: {path: mcp.json}\n";
    let agent = home.write("agent.yaml", agent);
    for style in STYLES {
        let mut session = Session::start(&["--agent", &agent, "--names", style, "--permit", "mcp"]);
        session.initialize();
        let listed = session.tools();
        assert_eq!(listed[..3], ["read_file", "context_read", "context_search"], "{style}");
        assert_eq!(listed.len(), 6, "{style}: {listed:?}");
        let ours = session.call("read_file", &json!({"file_path": "none"}));
        assert!(text(&ours).starts_with("Error[FILE_NOT_FOUND]"), "{style}: {ours}");
        for (name, tool) in listed[3..].iter().zip(["read_file", "context_read", "echo"]) {
            let result = session.call(name, &json!({}));
            assert_eq!(text(&result), format!(r#"["up", "{tool}"]"#), "{style} {name}");
        }
    }
}

#[test]
fn pages_are_read_to_the_last_and_no_list_goes_on_for_ever() {
    let tools: Vec<String> = (0..25).map(|number| format!("t{number:02}")).collect();
    let all = [&tools[..], &["echo".to_owned(), "look".to_owned()]].concat();
    for goes_round in [false, true] {
        let options = json!({"tools": all, "page": 10, "loop": goes_round});
        let home = Home::with_up(options);
        let mut session = session(&home, &[]);
        assert_eq!(session.tools().len(), 27);
        let pages: Vec<String> =
            home.ledger().into_iter().filter(|line| line.starts_with("list")).collect();
        let more: &[&str] = if goes_round { &["list 0"] } else { &[] };
        assert_eq!(pages, [&["list 0", "list 10", "list 20"], more].concat(), "one page more");
        let again = "comes back to a page it had";
        if goes_round {
            eventually(again, || session.said().contains(again));
        }
        assert_eq!(session.said().contains(again), goes_round);
        assert!(text(&session.call("mcp__up__t24", &json!({}))).starts_with("this is t24"));
    }
    for (pages, read, words) in
        [("same", 2, "comes back to a page it had"), ("new", 1_000, "more than 1000 pages")]
    {
        let home = with_rough(json!({"tools": ["echo"], "pages": pages}));
        let mut session = session(&home, &[]);
        assert_eq!(session.tools(), ["mcp__up__echo"], "{pages}");
        assert_eq!(begin_with(&home, "list"), read, "{pages}");
        eventually(words, || session.said().contains(words));
        assert_eq!(text(&session.call("mcp__up__echo", &json!({}))), r#"["rough", "echo"]"#);
    }
}

#[test]
fn a_list_that_grows_is_listed_anew_and_said_so_once() {
    for era in ["legacy", "modern"] {
        let home = with_rough(json!({"era": era, "tools": ["grow"]}));
        let mut session = session(&home, &[]);
        assert_eq!(session.tools(), ["mcp__up__grow"]);
        if era == "modern" {
            home.wait_for("listen");
        }
        let grow = json!({"name": "mcp__up__grow", "arguments": {}});
        let ids: Vec<u64> = (0..5).map(|_| session.ask("tools/call", &grow)).collect();
        for id in ids {
            session.answer(id);
        }
        eventually("they are listed", || session.tools().len() == 6);
        assert_eq!(text(&session.call("mcp__up__new5", &json!({}))), r#"["rough", "new5"]"#);
        eventually("it is said", || {
            session.request("ping", &json!({}));
            session.changes > 0
        });
        let (lists, said) = (begin_with(&home, "list"), session.changes);
        assert!(lists <= 3 && said <= 2, "{era}: {lists} lists and {said} words for five changes");
    }
}

#[test]
fn a_failed_result_is_held_against_no_schema_even_where_the_operator_is_strict() {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let tool = json!({"name": "count", "inputSchema": {"type": "object"}, "outputSchema": schema});
    let home = with_rough(json!({"tools": [tool]}));
    let config = home.write("server.toml", "[upstream.up]\nstrict_output = true\n");
    let mut session = session(&home, &["--config", &config]);
    for arguments in [json!({"failed": 1}), json!({"failed": 1, "data": {"why": "no luck"}})] {
        let result = session.call("mcp__up__count", &arguments);
        assert_eq!(crate::session::code(&result), "MCP_TOOL_ERROR", "{result}");
        assert_eq!(text(&result), r#"["rough", "count"]"#, "the server's own words");
        assert_eq!(result.get("structuredContent"), arguments.get("data"), "{result}");
    }
    assert_ne!(session.call("mcp__up__count", &json!({"data": {"n": 1}}))["isError"], true);
}
