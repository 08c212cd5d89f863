//! Each folder of `examples/`, as its README says to run it, and the library in a program of one's own.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::binary::{Ended, Gateway, command, exe, peer, run};
use crate::peers::{Client, Mode};
use crate::session::{Session, code, hello, text};
use crate::web::Web;

#[path = "../../examples/embed.rs"]
#[expect(dead_code, reason = "the test serves over streams of its own")]
mod embed;

/// A copy of the examples, since some of them write into their folder.
fn copied() -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    copy_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples"), copy.path());
    copy
}

fn copy_folder(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&to).unwrap();
            copy_folder(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn ask(folder: &Path, arguments: &[&str]) -> Ended {
    let mut process = command(exe());
    process.current_dir(folder).args(arguments);
    run(process, Duration::from_mins(1))
}

#[test]
fn the_agent_with_file_tools_has_them_and_asks_before_it_writes() {
    let copy = copied();
    let agent = ["--agent", "files/agent.yaml"];
    let checked = ask(copy.path(), &[&["check"][..], &agent].concat());
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.stdout.contains("write_file"), "{checked:?}");
    let read = ask(
        copy.path(),
        &[&["call", "read_file", r#"{"file_path": "today.md"}"#][..], &agent].concat(),
    );
    assert!(read.stdout.contains("read the README"), "{read:?}");
    let write = r#"{"file_path": "new.md", "content": "x"}"#;
    let refused = ask(copy.path(), &[&["call", "write_file", write][..], &agent].concat());
    assert_eq!(refused.code, Some(3), "{refused:?}");
    let done = ask(copy.path(), &[&["call", "write_file", write, "--yes"][..], &agent].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(fs::read_to_string(copy.path().join("files/notes/new.md")).unwrap(), "x");
}

#[test]
fn the_agent_with_a_skill_has_it() {
    let copy = copied();
    let agent = ["--agent", "skills/agent.yaml"];
    let checked = ask(copy.path(), &[&["check"][..], &agent].concat());
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let expected = "ready  skills: release-notes\nown tools: ";
    assert!(checked.stdout.starts_with(expected), "{checked:?}");
    let call = ["call", "load_skill", r#"{"name": "release-notes"}"#];
    let loaded = ask(copy.path(), &[&call[..], &agent].concat());
    assert!(loaded.stdout.contains("# Release notes"), "{loaded:?}");
}

#[test]
fn the_gateway_has_short_names_and_keeps_to_its_rules() {
    let copy = copied();
    let config = ["--config", "gateway/server.toml"];
    let listed = ask(copy.path(), &[&["tools"][..], &config].concat());
    assert_eq!(listed.code, Some(0), "{listed:?}");
    for name in ["notes__read_file\n", "notes__write_file\n", "handbook__list_files\n"] {
        assert!(listed.stdout.contains(name), "{name}: {listed:?}");
    }
    for name in ["publish_artifact", "handbook__grep_search"] {
        assert!(!listed.stdout.contains(name), "{name}: {listed:?}");
    }
    let call = |name: &str, arguments: &str| {
        ask(copy.path(), &[&["call", name, arguments, "--yes"][..], &config].concat())
    };
    let read = call("handbook__read_file", r#"{"file_path": "today.md"}"#);
    assert!(read.stdout.contains("read the README"), "{read:?}");
    let write = call("notes__write_file", r#"{"file_path": "new.md", "content": "x"}"#);
    assert_eq!(write.code, Some(3), "{write:?}");
    assert!(write.stdout.contains("approval.forbid in server.toml"), "{write:?}");
}

#[test]
fn the_team_is_served_with_tokens_and_recorded() {
    let copy = copied();
    let config = copy.path().join("team/server.toml");
    let config = config.to_str().unwrap();
    let gateway = Gateway::start(&["--config", config]);
    let call = json!({"name": "read_file", "arguments": {"file_path": "today.md"}});
    let stranger = Web::new(&gateway.url).ask_modern("tools/call", &call);
    assert_eq!(stranger.status, 401, "{stranger:?}");
    let alice = Web::new(&gateway.url).bearer("example").ask_modern("tools/call", &call);
    assert_eq!(alice.status, 200, "{alice:?}");
    drop(alice);
    let records = fs::read_to_string(copy.path().join("team/calls.jsonl")).unwrap();
    let record: Value = serde_json::from_str(records.lines().next().unwrap()).unwrap();
    assert_eq!((&record["principal"], &record["tool"]), (&json!("alice"), &json!("read_file")));
}

#[test]
fn the_agent_with_hooks_is_told_no_and_what_to_say() {
    let copy = copied();
    let agent = ["--agent", "hooks/agent.yaml"];
    let checked = ask(copy.path(), &[&["check"][..], &agent].concat());
    assert!(checked.stdout.contains("hooks: freeze (tool.before), changes (tool.after)"));
    let write = r#"{"file_path": "new.md", "content": "x"}"#;
    let call = [&["call", "write_file", write][..], &agent].concat();
    let done = ask(copy.path(), &call);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.stdout.ends_with("[Hook feedback]\ntell the person what you changed\n"),
        "{done:?}"
    );
    let changes = fs::read_to_string(copy.path().join("hooks/changes.jsonl")).unwrap();
    assert_eq!(changes.lines().count(), 1, "{changes}");
    fs::write(copy.path().join("hooks/notes/FREEZE"), "").unwrap();
    let refused = ask(copy.path(), &call);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let reason = "Error[HOOK_REJECTED]: nothing is changed while there is a file called FREEZE\n";
    assert_eq!(refused.stdout, reason);
}

#[tokio::test]
async fn a_program_of_ones_own_has_its_tool_and_its_middleware() {
    let config = embed::config().unwrap();
    let app =
        iris_mcp::app::App::start(config, iris_mcp::process::Config::default()).await.unwrap();
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(theirs);
    let gateway = app.gateway().clone();
    let serving = iris_mcp::server::stdio::serve_over(gateway, input, output);
    let talking = async {
        let (reader, mut writer) = tokio::io::split(ours);
        let mut lines = BufReader::new(reader).lines();
        let call = json!({"name": "shout", "arguments": {"text": "hello"}});
        for message in [
            json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello("2025-11-25")}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}),
        ] {
            writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        }
        loop {
            let line = lines.next_line().await.unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == 1 {
                return message["result"].clone();
            }
        }
    };
    let result = tokio::select! {
        result = talking => result,
        ended = serving => panic!("{ended:?}"),
    };
    assert_eq!(result["content"][0]["text"], "HELLO", "{result}");
    assert_eq!(result["_meta"]["iris/result"]["stats"]["characters"], 5, "{result}");
    app.end().await;
}

/// Calls of each tool of the agent with everything, and a part of the answer.
fn calls() -> [(&'static str, Value, &'static str); 9] {
    [
        ("word_count", json!({"text": "to be or not to be"}), "6"),
        ("word_count", json!({"text": "to be or not to be", "unique": "true"}), "4"),
        (
            "reading_time",
            json!({"text": "one two", "words_per_minute": 60}),
            r#"{"words":2,"seconds":2}"#,
        ),
        ("compare", json!({"texts": ["a", "b c"]}), "number 2 is the longest, with 2 words"),
        ("compare", json!({"texts": []}), "Error[EXECUTION_ERROR]: there are no texts to compare"),
        ("jot", json!({"title": "Plan"}), "there is no such note yet"),
        ("note", json!({"title": "../x"}), "Error[VALIDATION_ERROR]"),
        ("load_skill", json!({"name": "meeting-notes"}), "# Notes of a meeting"),
        ("read_file", json!({"file_path": "today.md"}), "try the tools of this agent"),
    ]
}

#[test]
fn the_agent_with_everything_serves_each_of_its_tools_over_both_transports() {
    let copy = copied();
    let agent = copy.path().join("agent/agent.yaml");
    let arguments = ["--agent", agent.to_str().unwrap(), "--approval", "client"];
    let python = peer("fastmcp/bin/python");
    let mut session = Session::start_with(&arguments, |command| {
        command.env("IRIS_MCP_PYTHON_INTERPRETER", &python);
    });
    session.initialize();
    let gateway = Gateway::start_with(&arguments, |command| {
        command.env("IRIS_MCP_PYTHON_INTERPRETER", &python);
    });
    let mut web = Web::new(&gateway.url);
    web.initialize();
    for (name, arguments, part) in calls() {
        let over_stdio = session.call(name, &arguments);
        let params = json!({"name": name, "arguments": arguments});
        let over_http = web.request("tools/call", &params)["result"].take();
        for called in [over_stdio, over_http] {
            assert!(text(&called).contains(part), "{name}: {called}");
            if called["isError"] != true {
                // The middleware was there.
                let metadata = &called["_meta"]["iris/result"]["metadata"];
                assert!(metadata["body_ms"].is_number(), "{name}: {called}");
            }
        }
    }
    let added = session.call("note", &json!({"title": "Plan", "line": "begin"}));
    assert_eq!(text(&added), "- begin\n");
    let refused = session.call("write_file", &json!({"file_path": "x.py", "content": ""}));
    assert_eq!(code(&refused), "HOOK_REJECTED", "{refused}");
    assert!(text(&refused).contains("only files that end with .md or .txt"), "{refused}");
    let journal = fs::read_to_string(copy.path().join("agent/notes/journal.jsonl")).unwrap();
    let events: Vec<Value> =
        journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = events.last().unwrap();
    assert_eq!((&last["tool_name"], &last["body_status"]), (&json!("note"), &json!("success")));
}

#[test]
fn real_clients_call_each_tool_of_the_agent_with_everything() {
    let copy = copied();
    let agent = copy.path().join("agent/agent.yaml");
    let arguments = ["--agent", agent.to_str().unwrap(), "--approval", "client"];
    let python = peer("fastmcp/bin/python");
    let env =
        json!({"IRIS_MCP_PYTHON_INTERPRETER": python, "PATH": std::env::var("PATH").unwrap()});
    let line: Vec<&str> = [exe(), "serve", "--stdio"].into_iter().chain(arguments).collect();
    let gateway = Gateway::start_with(&arguments, |command| {
        command.env("IRIS_MCP_PYTHON_INTERPRETER", &python);
    });
    let steps = calls()
        .map(|(name, arguments, _)| json!({"op": "call", "name": name, "arguments": arguments}));
    for (client, transport) in [
        (Client::FastMcp(Mode::Auto), json!({"command": line, "env": env})),
        (Client::TypeScript(Mode::Legacy), json!({"url": gateway.url})),
    ] {
        let seen = client.answering(&transport, &json!(steps), None);
        for (step, (name, _, part)) in seen["steps"].as_array().unwrap().iter().zip(calls()) {
            assert!(text(&step["result"]).contains(part), "{client:?} {name}: {step}");
        }
    }
}

#[test]
fn a_new_folder_is_filled_once_and_works() {
    let home = tempfile::tempdir().unwrap();
    let python = peer("fastmcp/bin/python");
    let whole = ask(home.path(), &["init", "whole"]);
    assert_eq!(whole.code, Some(0), "{whole:?}");
    assert!(whole.stderr.contains("whole/.venv/bin/pip install 'pydantic>=2'"), "{whole:?}");
    let mut checked = command(exe());
    checked.current_dir(home.path()).args(["check", "--agent", "whole/agent.yaml"]);
    checked.env("IRIS_MCP_PYTHON_INTERPRETER", python);
    let checked = run(checked, Duration::from_mins(1));
    assert_eq!(checked.code, Some(0), "{checked:?}");
    for part in ["word_count", "note", "load_skill"] {
        assert!(checked.stdout.contains(part), "{part}: {checked:?}");
    }

    let made = ask(home.path(), &["init", "--bare", "mine"]);
    assert_eq!((made.code, made.stdout.as_str()), (Some(0), ""), "{made:?}");
    assert!(made.stderr.contains("iris-mcp check --agent mine/agent.yaml"), "{made:?}");
    let checked = ask(home.path(), &["check", "--agent", "mine/agent.yaml"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.stdout.contains("switched off: memory, remote, time"), "{checked:?}");
    let before = fs::read(home.path().join("mine/agent.yaml")).unwrap();
    let again = ask(home.path(), &["init", "--bare", "mine"]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.stderr.contains("mine/agent.yaml is there already"), "{again:?}");
    assert_eq!(fs::read(home.path().join("mine/agent.yaml")).unwrap(), before);
    fs::write(home.path().join("file"), "").unwrap();
    let wrong = ask(home.path(), &["init", "file/below"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("file/below cannot be written"), "{wrong:?}");
}

#[test]
fn every_command_has_a_manual_page() {
    let home = tempfile::tempdir().unwrap();
    let page = ask(home.path(), &["man"]);
    assert!(page.stdout.contains(".TH iris-mcp 1"), "{page:?}");
    for name in ["serve", "check", "tools", "search", "call", "init", "completions"] {
        let page = ask(home.path(), &["man", name]);
        assert_eq!(page.code, Some(0), "{page:?}");
        assert!(page.stdout.contains(&format!("iris\\-mcp\\-{name}")), "{page:?}");
    }
    let none = ask(home.path(), &["man", "__guard"]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.stderr.contains("there is no command `__guard`; there are serve"), "{none:?}");
}
