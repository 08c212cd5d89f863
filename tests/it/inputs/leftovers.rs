//! Servers that ignore signals and the end of their input, and what they started: nothing is left.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::rough;
use crate::fixture::{Home, eventually, within};
use crate::process::traces::Mark;
use crate::session::{Session, text};

/// How long the most stubborn process may live after the gateway.
const GONE: std::time::Duration = std::time::Duration::from_secs(3);

/// How a gateway ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Signal(Signal),
    /// Its client goes.
    Input,
}

#[test]
fn a_server_deaf_to_everything_and_its_child_end_with_the_gateway() {
    let ends = [
        End::Signal(Signal::SIGKILL),
        End::Signal(Signal::SIGTERM),
        End::Signal(Signal::SIGINT),
        End::Signal(Signal::SIGHUP),
        End::Signal(Signal::SIGABRT),
        End::Input,
    ];
    for end in ends {
        let (home, mark) = (Home::new(), Mark::new());
        let mut up =
            rough(&home, json!({"tools": ["echo", "mute"], "stubborn": home.path("deaf")}));
        up["env"] = json!({"MARK": mark.to_string()});
        home.serve(json!({ "up": up }));
        let mut session = Session::start(&home.arguments());
        session.initialize();
        assert_eq!(text(&session.call("mcp__up__echo", &json!({}))), r#"["rough", "echo"]"#);
        session.ask("tools/call", &json!({"name": "mcp__up__mute", "arguments": {}}));
        home.wait_for("mute");
        eventually("its child is deaf, too", || home.file("deaf").exists());
        assert!(mark.bearers().len() >= 3, "guard, server, child");
        match end {
            End::Signal(signal) => session.signal(signal),
            End::Input => session.close(),
        }
        session.end();
        within(GONE, &format!("nothing is left after {end:?}"), || mark.bearers().is_empty());
    }
}

#[test]
fn a_server_deaf_to_everything_ends_when_it_is_not_ready_in_time() {
    let (home, mark) = (Home::new(), Mark::new());
    let script = r#"trap "" TERM HUP INT; (setsid sh -c 'trap "" TERM; sleep 1000' &); while :; do sleep 1; done"#;
    let up: Value = json!({"command": "sh", "args": ["-c", script], "env": {"MARK": mark.to_string()}, "startup_timeout_sec": 1});
    home.serve(json!({ "up": up }));
    let mut session = Session::start(&home.arguments());
    session.initialize();
    assert!(session.tools().is_empty());
    session.close();
    session.end();
    within(GONE, "nothing is left", || mark.bearers().is_empty());
}
