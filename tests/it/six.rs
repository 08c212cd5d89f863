//! Six public servers at once behind one gateway, for clients of both eras over both transports.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::binary::{Gateway, command, exe, peer, run};
use crate::fixture::{Home, eventually, script};
use crate::session::{Session, text};
use crate::web::Web;

/// How long a command may take.
const LIMIT: Duration = Duration::from_mins(1);

/// The servers, each with how many tools it has by itself.
const SERVERS: [(&str, usize); 6] =
    [("everything", 17), ("filesystem", 14), ("fm", 3), ("git", 12), ("memory", 9), ("time", 2)];

fn home() -> Home {
    let home = Home::new();
    let repository = home.path("repository");
    let mut git = command("git");
    git.args(["init", "--quiet", &repository]);
    assert_eq!(run(git, LIMIT).code, Some(0));
    std::fs::write(home.file("workspace").join("a.txt"), "of the filesystem").unwrap();
    let npm = |name: &str| {
        let package = format!("npm/node_modules/@modelcontextprotocol/server-{name}/dist/index.js");
        peer(&package).to_string_lossy().into_owned()
    };
    let node = peer("npm/node");
    home.serve(json!({
        "everything": {"command": node, "args": [npm("everything"), "stdio"]},
        "filesystem": {"command": node, "args": [npm("filesystem"), home.path("workspace")]},
        "memory": {"command": node, "args": [npm("memory")], "env": {"MEMORY_FILE_PATH": home.path("memory.jsonl")}},
        "time": {"command": peer("servers/bin/mcp-server-time"), "args": ["--local-timezone", "UTC"]},
        "git": {"command": peer("servers/bin/mcp-server-git"), "args": ["--repository", repository]},
        "fm": {"command": peer("fastmcp/bin/python"), "args": [script("fastmcp_server.py"), "stdio"]},
    }));
    home
}

/// One call to each, and what its text holds.
fn calls(home: &Home) -> [(&'static str, Value, &'static str); 6] {
    [
        ("mcp__everything__echo", json!({"message": "heard"}), "Echo: heard"),
        (
            "mcp__filesystem__read_text_file",
            json!({"path": home.path("workspace/a.txt")}),
            "of the filesystem",
        ),
        ("mcp__fm__add", json!({"a": 2, "b": 3}), "5"),
        (
            "mcp__git__git_status",
            json!({"repo_path": home.path("repository")}),
            "Repository status",
        ),
        ("mcp__memory__read_graph", json!({}), "entities"),
        ("mcp__time__get_current_time", json!({"timezone": "UTC"}), "\"timezone\": \"UTC\""),
    ]
}

/// Holds a list against what the servers have, and calls one tool of each.
#[track_caller]
fn check(home: &Home, mut request: impl FnMut(&str, Value) -> Value) {
    // One of them adds some of its tools a moment after it has started.
    let mut tools = Vec::new();
    eventually("all tools are listed", || {
        let list = request("tools/list", json!({}));
        tools.clone_from(list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}")));
        tools.len() == SERVERS.iter().map(|(_, count)| count).sum::<usize>()
    });
    let mut counts = BTreeMap::new();
    for tool in &tools {
        let server = tool["name"].as_str().unwrap().split("__").nth(1).unwrap();
        *counts.entry(server).or_insert(0) += 1;
        let dialect = tool["inputSchema"]["$schema"].as_str();
        assert!(dialect.is_none_or(|dialect| dialect.contains("2020-12")), "{tool}");
    }
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), SERVERS);
    for (name, arguments, expected) in calls(home) {
        let answer = request("tools/call", json!({"name": name, "arguments": arguments}));
        let result = &answer["result"];
        assert_ne!(result["isError"], true, "{answer}");
        assert!(text(result).contains(expected), "{name}: {answer}");
    }
}

/// Together they have so many tools that they would be deferred.
fn arguments(home: &Home) -> Vec<String> {
    [home.arguments(), vec!["--defer".to_owned(), "never".to_owned()]].concat()
}

#[test]
fn nothing_of_six_public_servers_is_lost() {
    let home = home();
    let arguments = arguments(&home);
    let mut checked = command(exe());
    checked.args(["check", "--json"]).args(&arguments);
    let checked = run(checked, LIMIT);
    let report: Value =
        serde_json::from_str(&checked.stdout).unwrap_or_else(|_| panic!("{checked:?}"));
    assert_eq!(report["ok"], true, "{report}");
    for server in report["servers"].as_array().unwrap() {
        let diagnostics = server["diagnostics"].as_array().unwrap();
        let lost = diagnostics.iter().filter(|said| said["severity"] == "error");
        assert_eq!(lost.count(), 0, "{server}");
    }
    let mut session = Session::start(&arguments);
    session.initialize();
    check(&home, |method, params| session.request(method, &params));
    let mut session = Session::start(&arguments);
    check(&home, |method, params| session.modern(method, &params));
}

#[test]
fn six_public_servers_are_there_over_http_too() {
    let home = home();
    let arguments = arguments(&home);
    let gateway = Gateway::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let mut web = Web::new(&gateway.url);
    web.initialize();
    check(&home, |method, params| web.request(method, &params));
    let mut web = Web::new(&gateway.url);
    check(&home, |method, params| web.modern(method, &params));
}
