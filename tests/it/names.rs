//! What clients call the tools: each style of names, seen from outside, and gateways in a row.

use serde_json::{Value, json};

use crate::binary::{command, exe, run};
use crate::fixture::Home;
use crate::session::{Session, text};

fn session(arguments: &[String], more: &[&str]) -> Session {
    let mut all = arguments.to_vec();
    all.extend(more.iter().map(|argument| (*argument).to_owned()));
    let mut session = Session::start(&all);
    session.initialize();
    session
}

/// Makes an agent with a tool of its own, `read_file`, and two servers that have one as well.
fn crowded() -> (Home, Vec<String>) {
    let home = Home::new();
    let read_file = json!({"name": "read_file", "inputSchema": {"type": "object"}});
    let dotted = json!({"name": "a.b", "inputSchema": {"type": "object"}});
    home.serve(json!({
        "one": home.server(json!({"tools": ["echo", "get-me", read_file]})),
        "two": home.server(json!({"tools": ["echo", dotted]})),
    }));
    let agent = "permissions: { workspace: workspace }\ntools: { builtin: [file.read] }\n\
                 context_policy: { enabled: false }\nmcp: { path: mcp.json }\n";
    let agent = home.write("agent.yaml", agent);
    (home, vec!["--agent".to_owned(), agent, "--permit".to_owned(), "mcp".to_owned()])
}

/// Returns the names of the tools, and the canonical ones where these are others.
fn listed(session: &mut Session) -> Vec<(String, Option<String>)> {
    let tools = session.request("tools/list", &json!({}))["result"]["tools"].take();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let entry = |tool: &Value| {
        (text(&tool["name"]).unwrap(), text(&tool["_meta"]["iris/tool"]["canonical"]))
    };
    tools.as_array().unwrap().iter().map(entry).collect()
}

const CANONICAL: [&str; 6] = [
    "read_file",
    "mcp__one__echo",
    "mcp__one__get_me__bf0ca095f2",
    "mcp__one__read_file",
    "mcp__two__echo",
    "mcp__two__a_b__4c273d33da",
];

#[test]
fn n3_to_n6_each_style_is_listed_and_both_spellings_are_called() {
    let (_home, arguments) = crowded();
    let plain = [
        "read_file",
        "one__echo",
        "one__get-me",
        "one__read_file",
        "two__echo",
        "two__a_b__4c273d33da",
    ];
    let bare = ["read_file", "echo", "get-me", "one__read_file", "two__echo", "a_b__4c273d33da"];
    for (style, names) in [("iris", CANONICAL), ("plain", plain), ("bare", bare)] {
        let mut session = session(&arguments, &["--names", style]);
        let shown = listed(&mut session);
        let expected = names.iter().zip(CANONICAL).map(|(name, canonical)| {
            ((*name).to_owned(), (*name != canonical).then(|| canonical.to_owned()))
        });
        assert_eq!(shown, expected.collect::<Vec<_>>(), "{style}");
        for echo in [names[1], names[4], CANONICAL[1], CANONICAL[4]] {
            let result = session.call(echo, &json!({"text": "heard"}));
            assert_eq!(text(&result), "heard", "{style} {echo}");
        }
        // The name of our own is ours, whatever an upstream calls its own.
        let ours = session.call("read_file", &json!({"file_path": "none"}));
        assert!(text(&ours).starts_with("Error[FILE_NOT_FOUND]"), "{ours}");
        for theirs in [names[3], CANONICAL[3]] {
            let result = session.call(theirs, &json!({}));
            assert!(text(&result).starts_with("this is read_file"), "{style}: {result}");
        }
    }
}

#[test]
fn n3_a_name_that_is_not_there_brings_one_that_is_listed() {
    let (_home, arguments) = crowded();
    let mut session = session(&arguments, &["--names", "plain"]);
    for name in ["mcp__one__get_mee", "one__get_me"] {
        let answer = session.request("tools/call", &json!({"name": name, "arguments": {}}));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert_eq!(answer["error"]["data"]["nearest"][0], "one__get-me", "{answer}");
    }
}

#[test]
fn n8_rules_and_views_take_every_name_of_a_tool() {
    let (home, arguments) = crowded();
    let cases = [
        ("plain", "one__get-me"),
        ("plain", "two__a_b__4c273d33da"),
        ("plain", "two__a.b"),
        ("bare", "a_b__4c273d33da"),
        ("bare", "get-me"),
        ("iris", "mcp__one__get-me"),
        ("iris", "mcp__two__a_b__*"),
        ("iris", "one__get*"),
    ];
    for (style, name) in cases {
        let refused = session(&arguments, &["--names", style, "--forbid", name]);
        let tool = if name.contains("get") { CANONICAL[2] } else { CANONICAL[5] };
        let mut session = refused;
        let answer = session.call(tool, &json!({}));
        assert!(text(&answer).starts_with("Error[PERMISSION_ERROR]"), "{style} {name}: {answer}");
        assert!(text(&answer).contains(&format!("(--forbid: `{name}`)")), "{answer}");
        let other = session.call("mcp__one__echo", &json!({"text": "x"}));
        assert_eq!(text(&other), "x", "{style} {name}");
    }
    for (style, name) in cases {
        // A suffix of a client's name is made of what the view leaves over.
        if style != "iris" && name.contains("4c273d33da") {
            continue;
        }
        let config = home.write("server.toml", &format!("[view]\ndeny = ['{name}']\n"));
        let mut session = session(&arguments, &["--names", style, "--config", &config]);
        assert_eq!(listed(&mut session).len(), CANONICAL.len() - 1, "{style} {name}");
    }
}

#[test]
fn a16_a_refusal_names_the_rule_and_where_it_is_written() {
    let (home, arguments) = crowded();
    let refused = |more: &[&str], set: &[(&str, &str)]| {
        let mut command = command(exe());
        command
            .args(["call", "mcp__one__echo", r#"{"text": "x"}"#])
            .args(&arguments[..2])
            .args(more);
        command.envs(set.iter().copied());
        let ended = run(command, std::time::Duration::from_secs(20));
        assert_eq!(ended.code, Some(3), "{ended:?}");
        ended.stdout
    };
    let config = home.write("server.toml", "[approval]\nforbid = ['no', '*echo']\n");
    let said = refused(&["--config", &config], &[]);
    assert!(said.contains("(approval.forbid in server.toml: `*echo`)"), "{said}");
    let said = refused(&[], &[("IRIS_MCP_FORBID", "mcp")]);
    assert!(said.contains("(IRIS_MCP_FORBID: `mcp`)"), "{said}");
    let said = refused(&["--ask", "echo"], &[]);
    assert!(said.contains("to be asked for (--ask: `echo`)"), "{said}");
    assert!(said.contains("without that rule"), "{said}");
    let said = refused(&["--approval", "deny"], &[]);
    assert!(said.contains("--permit mcp__one__echo"), "{said}");
}

#[test]
fn n8_records_have_canonical_names_only() {
    let (home, arguments) = crowded();
    let log = home.path("calls");
    let more = ["--names", "bare", "--forbid", "mcp__two__echo", "--activity-log", &log];
    let mut session = session(&arguments, &more);
    let refused = session.call("two__echo", &json!({"text": "x"}));
    assert!(text(&refused).starts_with("Error[PERMISSION_ERROR]"), "{refused}");
    session.call("echo", &json!({"text": "x"}));
    let calls = std::fs::read_to_string(&log).unwrap();
    let tools: Vec<Value> = calls
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["tool"].take())
        .collect();
    assert_eq!(tools, ["mcp__two__echo", "mcp__one__echo"]);
}

#[test]
fn the_command_line_has_the_names_of_clients() {
    let (_home, arguments) = crowded();
    let iris = |more: &[&str]| {
        let mut command = command(exe());
        command.args(more).args(&arguments).env("IRIS_MCP_NAMES", "bare");
        run(command, std::time::Duration::from_secs(20))
    };
    let tools = iris(&["tools", "--json"]);
    let tools: Value = serde_json::from_str(&tools.stdout).unwrap();
    assert_eq!(
        (&tools[2]["name"], &tools[2]["canonical"]),
        (&"get-me".into(), &CANONICAL[2].into())
    );
    for name in ["echo", "mcp__one__echo"] {
        let called = iris(&["call", name, r#"{"text": "heard"}"#]);
        assert!(called.stdout.starts_with("heard"), "{called:?}");
    }
    for (variable, value) in [("--names", "short"), ("--max-name", "15"), ("--max-name", "129")] {
        let ended = iris(&["tools", variable, value]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    }
}

/// Describes a gateway that serves what these arguments say.
fn gateway(home: &Home, more: &[&str]) -> Value {
    let workspace = home.path("workspace");
    let arguments = [&["serve", "--stdio", "--workspace", &workspace], more].concat();
    json!({"mcpServers": {"up": {"command": "${IRIS_MCP_EXE}", "args": arguments}}})
}

#[test]
fn n7_three_gateways_in_a_row_have_names_that_do_not_grow() {
    let home = Home::new();
    std::fs::write(home.file("workspace/a.txt"), "alpha").unwrap();
    let (middle, outer) = (home.path("middle.json"), home.path("mcp.json"));
    let outermost = ["mcp__up__mcp__up__read_file", "up__read_file", "read_file"];
    for (style, expected) in ["iris", "plain", "bare"].iter().zip(outermost) {
        for limit in ["64", "16"] {
            let naming = ["--names", style, "--max-name", limit];
            home.write("middle.json", &gateway(&home, &naming).to_string());
            let further = [&naming[..], &["--mcp", &middle]].concat();
            home.write("mcp.json", &gateway(&home, &further).to_string());
            let arguments = ["--mcp", &outer, "--workspace", &home.path("workspace")];
            let arguments = arguments.map(str::to_owned);
            let mut before = None;
            for _ in 0..2 {
                let mut session = session(&arguments, &naming);
                let names = session.tools();
                assert_eq!(names.len(), 3, "{names:?}");
                let most = limit.parse().unwrap();
                assert!(names.iter().all(|name| name.len() <= most), "{names:?}");
                if expected.len() <= most {
                    assert_eq!(names[0], expected);
                }
                for name in [names[0].as_str(), &canonical(&mut session)] {
                    let read = session.call(name, &json!({"file_path": "a.txt"}));
                    assert!(text(&read).starts_with("alpha"), "{name}: {read}");
                }
                assert_eq!(before.get_or_insert_with(|| names.clone()), &names);
            }
        }
    }
}

/// Returns the canonical name of the first tool.
fn canonical(session: &mut Session) -> String {
    let (name, canonical) = listed(session).remove(0);
    canonical.unwrap_or(name)
}
