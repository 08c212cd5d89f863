//! Agent files that turn on what this version does not have: nothing starts, and `check` tells why.

use std::time::Duration;

use expect_test::expect;
use serde_json::{Value, json};

use crate::binary::{Ended, command, exe, run};
use crate::fixture::Home;

const LIMIT: Duration = Duration::from_secs(20);

/// A build bot with commands, a hook and a function of Python's, beside what there is.
const BUILDER: &str = r#"name: builder
model: {provider: acme, name: big-2}
system: Build and report.
permissions: {workspace: ./workspace, writes: allow, execute: confirm}
command:
  mode: docker
  timeout_seconds: 60
  docker: {network: bridge, memory_mb: 2048, environment: {CI: "1"}}
tools:
  builtin: [file.read, file.write, exec.command]
hooks:
  - name: freeze
    event: tool.before
    tools: [write_file, edit_file]
    timeout_seconds: 3
    handler: {type: command, command: "python hooks/freeze.py"}
mcp: {path: mcp.json}
"#;

fn iris(home: &Home, arguments: &[&str]) -> Ended {
    let mut iris = command(exe());
    let (name, rest) = arguments.split_first().expect("a command");
    iris.arg(name).args(["--agent", &home.path("agent.yaml")]).args(rest);
    let mut ended = run(iris, LIMIT);
    let folder = format!("{}/", home.path("").trim_end_matches('/'));
    ended.stdout = ended.stdout.replace(&folder, "");
    ended.stderr = ended.stderr.replace(&folder, "");
    ended
}

fn builder() -> Home {
    let home = Home::new();
    home.serve(json!({"up": home.server(json!({"tools": ["echo"]}))}));
    home.write("agent.yaml", BUILDER);
    home
}

#[test]
fn nothing_starts_with_a_part_that_this_version_does_not_have() {
    let home = builder();
    let serve = iris(&home, &["serve"]);
    expect![[r#"
        error: agent.yaml:10:36: tools.builtin[2]: `exec.command` is not available in this version; remove it to serve the rest
           |
        10 |   builtin: [file.read, file.write, exec.command]
           |                                    ^
        agent.yaml:16:5: hooks[0].handler: commands in containers are not available in this version; remove the hook to serve the rest
           |
        16 |     handler: {type: command, command: "python hooks/freeze.py"}
           |     ^
    "#]]
    .assert_eq(&serve.stderr);
    for arguments in
        [&["serve"][..], &["tools"], &["call", "read_file", "{}"], &["search", "a file"]]
    {
        let ended = iris(&home, arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert_eq!(ended.stderr, serve.stderr);
    }
    assert_eq!(home.ledger(), Vec::<String>::new(), "no server was started");
}

#[test]
fn check_tells_of_it_as_a_problem_and_of_the_rest() {
    let home = builder();
    let text = iris(&home, &["check"]);
    assert_eq!((text.code, text.stderr.as_str()), (Some(1), ""), "{text:?}");
    assert!(text.stdout.starts_with("ready  up: 1 tool"), "{text:?}");
    let (rest, cost) = text.stdout.split_once('\n').unwrap().1.split_once("clients see ").unwrap();
    assert!(cost.ends_with("\n2 problems\n"), "{text:?}");
    expect![[r"
        failed agent.yaml:10:36: tools.builtin[2]: `exec.command` is not available in this version; remove it to serve the rest
        failed agent.yaml:16:5: hooks[0].handler: commands in containers are not available in this version; remove the hook to serve the rest
        own tools: read_file, write_file, context_read, context_search
        not used here, in the agent file: model, system
    "]].assert_eq(rest);
    let json = iris(&home, &["check", "--json"]);
    assert_eq!(json.code, Some(1), "{json:?}");
    let found: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(found["ok"], false);
    assert_eq!(found["not_built"].as_array().unwrap().len(), 2);
    assert_eq!(found["problems"], found["not_built"]);
    assert_eq!(found["servers"][0]["state"], "ready");
}

#[test]
fn what_is_there_but_switched_off_is_no_hindrance() {
    let home = Home::new();
    home.write(
        "agent.yaml",
        "tools: {builtin: [file.list], python: {functions: []}}\nskills: {enabled: false}\n\
         memory: {enabled: false}\ngoal: {enabled: false}\nhooks: []\nmiddleware: {tools: []}\n\
         command: {mode: docker}\nsession: {backend: sqlite}\nprompts: {root: p}\n",
    );
    let ended = iris(&home, &["call", "list_files", r#"{"path": "."}"#]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let check = iris(&home, &["check"]);
    assert_eq!(check.code, Some(0), "{check:?}");
    let told = "not used here, in the agent file: command, session, prompts\n";
    assert!(check.stdout.contains(told), "{check:?}");
}

#[test]
fn a_mistake_ends_it_with_2_and_a_caret() {
    let home = Home::new();
    home.write("agent.yaml", "tools:\n  builtin: [file.read]\npermisions: {}\n");
    for name in ["serve", "check", "tools"] {
        let ended = iris(&home, &[name]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        let expected = "error: agent.yaml:3:1: permisions: unknown key; did you mean `permissions`?\n  |\n3 | permisions: {}\n  | ^\n";
        assert_eq!(ended.stderr, expected);
    }
}
