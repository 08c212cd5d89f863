//! Starting, over and over, and being killed: nothing is left behind.

use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::binary::{command, exe, run};
use crate::fixture::{Home, within};
use crate::process::traces::Mark;
use crate::session::{Session, text};

/// How long the most stubborn child may live after the gateway.
const GONE: Duration = Duration::from_secs(3);

/// Starts a shell beside the server: forked twice, with a session of its own, deaf to signals.
const STUBBORN: &str = r#"
    ( ( exec setsid sh -c 'trap "" TERM HUP INT; : > "$1"; while :; do sleep 1; done' - "$1" ) & )
    shift
    exec "$@"
"#;

/// Wraps a server so that something stubborn is started with it.
fn stubborn(home: &Home, mark: &Mark) -> Value {
    let up = home.server(json!({"tools": ["echo", "slow"]}));
    let mut args = vec![json!("-c"), STUBBORN.into(), "-".into(), home.path("stubborn").into()];
    args.push(up["command"].clone());
    args.extend(up["args"].as_array().unwrap().clone());
    json!({"command": "sh", "args": args, "env": {"MARK": mark.to_string()}})
}

#[test]
fn a_killed_gateway_leaves_nothing() {
    let (home, mark) = (Home::new(), Mark::new());
    let up = stubborn(&home, &mark);
    home.serve(json!({ "up": up }));
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        fs::write(home.file("ledger"), "").unwrap();
        let mut session = Session::start(&home.arguments());
        session.initialize();
        session.ask("tools/call", &json!({"name": "mcp__up__slow", "arguments": {}}));
        home.wait_for("slow");
        crate::fixture::eventually("the stubborn one is up", || home.file("stubborn").exists());
        fs::remove_file(home.file("stubborn")).unwrap();
        assert!(mark.bearers().len() >= 3, "guard, server, stubborn");
        session.signal(signal);
        session.end();
        within(GONE, &format!("nothing is left after {signal}"), || mark.bearers().is_empty());
    }
}

#[test]
fn two_hundred_starts_leave_nothing() {
    let (home, mark) = (Home::new(), Mark::new());
    let temporary = home.file("temporary");
    fs::create_dir(&temporary).unwrap();
    let up = json!({
        "command": "${IRIS_MCP_EXE}",
        "args": ["serve", "--stdio", "--workspace", home.path("workspace")],
        "env": {"MARK": mark.to_string()},
    });
    home.serve(json!({ "up": up }));
    fs::write(home.file("workspace/a.txt"), "alpha").unwrap();
    let descriptors = || fs::read_dir("/proc/self/fd").unwrap().count();
    let mut before = 0;
    for round in 0..200 {
        let mut session = Session::start_with(&home.arguments(), |command| {
            command.env("TMPDIR", &temporary);
        });
        session.initialize();
        // Every second one is ended while its upstream starts.
        if round % 2 == 0 {
            let read = session.call("mcp__up__read_file", &json!({"file_path": "a.txt"}));
            assert!(text(&read).starts_with("alpha"), "{read}");
        }
        session.close();
        assert_eq!(session.end().0, Some(0), "round {round}");
        drop(session);
        if round == 0 {
            before = descriptors();
        }
    }
    within(GONE, "nothing is left", || mark.bearers().is_empty());
    // Threads that read our pipes may be a moment behind.
    within(GONE, "no descriptor is left", || descriptors() <= before);
    let left: Vec<_> = fs::read_dir(&temporary).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_workspace_is_never_guessed_to_be_everything() {
    let home = Home::new();
    for folder in ["/", &home.path("workspace")] {
        let mut tools = command(exe());
        tools.arg("tools").current_dir(folder).env("HOME", home.path("workspace"));
        let ended = run(tools, Duration::from_secs(20));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains("--workspace"), "{ended:?}");
        let mut tools = command(exe());
        tools.args(["tools", "--workspace", folder]).env("HOME", home.path("workspace"));
        assert_eq!(run(tools, Duration::from_secs(20)).code, Some(0));
    }
}

#[test]
fn a_start_that_cannot_be_says_what_is_wrong() {
    let home = Home::new();
    home.write("folder.json", "");
    let (missing, folder) = (home.path("missing"), home.path("workspace"));
    let http = ["--http", "127.0.0.1:0"];
    let table: [(&[&str], &[&str]); 12] = [
        (&["--agent", &missing], &[&missing, "No such file"]),
        (&["--mcp", "none.json"], &["none.json", "No such file"]),
        (&["--mcp", &folder], &["this is a folder; --mcp takes a file"]),
        (&[&http[..], &["--token-file", &missing]].concat(), &["token file", &missing]),
        (&[&http[..], &["--token-file", &folder]].concat(), &["token file", &folder]),
        (&["--workspace", &missing], &["workspace", &missing]),
        (&["--log-file", &home.path("no/log")], &["log file"]),
        (&["--log", "no=such"], &["no=such"]),
        (&["--log", "wran"], &["`wran`", "the levels are `off`", "did you mean `warn`?"]),
        (&["--activity-log", &home.path("no/calls")], &["--activity-log", "No such file"]),
        (&["--activity-log", &folder], &["--activity-log", "it is no file"]),
        (&["--mcp", &home.path("folder.json")], &["the file is empty"]),
    ];
    for (arguments, parts) in table {
        let mut serve = command(exe());
        serve.arg("serve").args(arguments);
        let ended = run(serve, Duration::from_secs(20));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.starts_with("error: "), "{ended:?}");
        for part in parts {
            assert!(ended.stderr.contains(part), "{part}: {ended:?}");
        }
    }
    let mut serve = command(exe());
    serve.arg("serve").current_dir(folder).env("IRIS_MCP_STDIO", "false");
    let ended = run(serve, Duration::from_secs(20));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("nothing to serve"), "{ended:?}");
}
