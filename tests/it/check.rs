//! `check`: servers that are well, bad, slow, mute and misspelt, told at once and apart.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use expect_test::expect_file;
use nix::pty::{OpenptyResult, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::binary::{Ended, command, exe, run};
use crate::fixture::{Home, eventually, script};

const LIMIT: Duration = Duration::from_secs(20);

fn check(arguments: &[impl AsRef<str>], more: &[&str]) -> Ended {
    let mut command = command(exe());
    command.arg("check").args(arguments.iter().map(AsRef::as_ref)).args(more);
    run(command, LIMIT)
}

/// Makes a home with a server of every kind.
fn mixed() -> Home {
    let home = Home::new();
    let remote = json!({"type": "object", "properties": {"a": {"$ref": "https://example.com/s"}}});
    let odd = json!({"name": "odd", "inputSchema": remote});
    let dotted = json!({"name": "a.b", "inputSchema": {"type": "object"}});
    let mut bad = home.server(json!({"last_words": ["no database", "key s3cret-value is wrong"]}));
    bad["env"] = json!({"API_KEY": "s3cret-value"});
    let brief = |options: Value| {
        let mut server = home.server(options);
        server["startup_timeout_ms"] = 900.into();
        server["required"] = false.into();
        server
    };
    let off = json!({"command": "x", "disabled": true});
    let url = "http://me:s3cret-value@127.0.0.1:9/mcp?key=s3cret-value";
    home.serve(json!({
        // First, so that its place is the same everywhere.
        "wrong": {"command": "x", "arg": ["s3cret-value"]},
        "good": home.server(json!({"tools": ["echo", "plain", odd, dotted]})),
        "bad": bad,
        "slow": brief(json!({"tools": [], "gate": home.path("never")})),
        "mute": brief(json!({"mute": true})),
        "typo": {"command": "pythn3", "args": ["--key", "s3cret-value"]},
        "gone": {"url": url, "headers": {"x-key": "s3cret-value"}},
        "off": off,
    }));
    home
}

/// Replaces what is different on every machine.
fn normalized(home: &Home, text: &str) -> String {
    let path = std::env::var("PATH").unwrap();
    let python = std::env::split_paths(&path).map(|folder| folder.join("python3"));
    let python = python.into_iter().find(|file| file.is_file()).unwrap();
    let text = text
        .replace(&path, "PATH")
        .replace(python.to_str().unwrap(), "/bin/python3")
        .replace(home.path("").trim_end_matches('/'), "HOME")
        .replace(&script(""), "FIXTURES/");
    // The file is one line, of paths that are longer or shorter elsewhere.
    let mut parts = text.split("HOME/mcp.json:1:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |before, after| {
        let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
        format!("{before}HOME/mcp.json:1:N{rest}")
    })
}

fn expected(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures").join(name)
}

#[test]
fn every_server_is_told_of_and_a_failed_one_is_a_problem() {
    let home = mixed();
    let arguments = home.arguments();
    let more = ["--forbid", "no_such_*", "--names", "bare"];
    let text = check(&arguments, &more);
    assert_eq!((text.code, text.stderr.as_str()), (Some(1), ""), "{text:?}");
    expect_file![expected("check.txt")].assert_eq(&normalized(&home, &text.stdout));
    let json = check(&arguments, &[&more[..], &["--json"]].concat());
    assert_eq!((json.code, json.stderr.as_str()), (Some(1), ""), "{json:?}");
    expect_file![expected("check.json")].assert_eq(&normalized(&home, &json.stdout));
    for told in [&text.stdout, &json.stdout] {
        assert!(!told.contains("s3cret-value") && !told.contains('\u{1b}'), "{told}");
    }
}

#[test]
fn what_is_left_out_is_a_warning_only() {
    let home = Home::new();
    let odd = json!({"name": "odd", "inputSchema": {"type": "string"}});
    home.serve(json!({"good": home.server(json!({"tools": ["echo", odd]}))}));
    let server = "[view]\nallow = ['echoo']\n[upstream.god]\nrequired = true\n";
    let config = home.write("server.toml", server);
    let agent = "name: a\nmodel: a/m\nsystem: s\npermissions: { workspace: workspace }\n\
        tools: { builtin: [file.read] }\nmcp: { path: mcp.json }\n\
        context_policy: { old_result_preview_chars: 9 }\n";
    let agent = home.write("agent.yaml", agent);
    let ended = check(&["--agent", &agent, "--config", &config], &["--json"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let found: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(found["ok"], true);
    assert_eq!(found["own_tools"], json!(["read_file", "context_read", "context_search"]));
    let not_used = ["model", "system", "context_policy.old_result_preview_chars"];
    assert_eq!(found["not_used"], json!(not_used));
    let idle = json!([
        {"setting": "view.allow", "value": "echoo"},
        {"setting": "upstream", "value": "god"},
    ]);
    assert_eq!(found["idle"], idle);
    let good = &found["servers"][0];
    assert_eq!((&good["state"], &good["listed"]["tools"]), (&"ready".into(), &1.into()));
    assert_eq!(good["diagnostics"][0]["wire_name"], "odd");
    assert_eq!(found["listed"]["tools"], 4);
    let bytes = found["listed"]["bytes"].as_u64().unwrap();
    assert_eq!(found["listed"]["tokens"], bytes.div_ceil(4));
}

#[test]
fn a_wrong_file_ends_it_with_2_and_prints_nothing() {
    let home = Home::new();
    let broken = home.write("mcp.json", "{");
    for arguments in [["--mcp", &broken], ["--workspace", "/none"]] {
        let ended = check(&arguments, &["--json"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.starts_with("error: "), "{ended:?}");
    }
}

#[test]
fn a_required_server_of_an_agent_is_told_of_with_the_others() {
    let home = Home::new();
    home.serve(json!({"typo": {"command": "pythn3"}}));
    let agent = home
        .write("agent.yaml", "permissions: { workspace: workspace }\nmcp: { path: mcp.json }\n");
    let ended = check(&["--agent", &agent], &[]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.starts_with("failed typo: pythn3; `pythn3` was not found"), "{ended:?}");
    assert!(ended.stdout.ends_with("\n1 problem\n"), "{ended:?}");
}

#[test]
fn a_closed_pipe_changes_no_verdict() {
    let home = Home::new();
    home.serve(json!({"typo": {"command": "pythn3"}}));
    for (arguments, code) in
        [(home.arguments(), 1), (vec!["--workspace".to_owned(), home.path("workspace")], 0)]
    {
        let mut command = command(exe());
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        command.arg("check").args(arguments).stdout(Stdio::from(writer));
        let ended = command.spawn().unwrap().wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!((ended.status.code(), &*stderr), (Some(code), ""));
    }
}

#[test]
fn an_interrupt_ends_it_with_130() {
    let home = Home::with_up(json!({"tools": [], "gate": "/none"}));
    let mut command = command(exe());
    command.arg("check").args(home.arguments());
    let child = command.spawn().unwrap();
    eventually("the server runs", || !home.ledger().is_empty());
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stdout.as_slice()), (Some(130), &b""[..]), "{ended:?}");
}

/// Runs it at a terminal and returns what is shown there.
fn at_a_terminal(home: &Home, variables: &[(&str, &str)]) -> String {
    let OpenptyResult { master, slave } = openpty(None, None).unwrap();
    let mut command = command(exe());
    command.arg("check").args(home.arguments()).env_remove("NO_COLOR").env("TERM", "xterm");
    command.envs(variables.iter().copied());
    command.stdout(slave.try_clone().unwrap()).stderr(slave);
    let mut child = command.spawn().unwrap();
    // It holds the terminal's other end, whose closing ends the reading below.
    drop(command);
    let mut terminal = File::from(master);
    let (mut shown, mut byte) = (Vec::new(), [0]);
    while matches!(terminal.read(&mut byte), Ok(1)) {
        shown.extend(byte);
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    String::from_utf8(shown).unwrap()
}

#[test]
fn a_terminal_gets_colours_and_is_told_what_is_waited_for() {
    let home = Home::with_up(json!({"tools": ["echo"]}));
    let shown = at_a_terminal(&home, &[]);
    let waiting = "\r\u{1b}[2K\u{1b}[?7lwaiting for 1: up\u{1b}[?7h\r\u{1b}[2K";
    assert!(shown.starts_with(waiting), "{shown:?}");
    assert!(shown.contains("\u{1b}[32mready \u{1b}[0m up: 1 tool"), "{shown:?}");
    for plain in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let shown = at_a_terminal(&home, &[plain]);
        assert!(!shown.contains("\u{1b}[3"), "{shown:?}");
    }
}
