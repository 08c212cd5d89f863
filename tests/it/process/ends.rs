//! How a gateway ends, and what kind of children it has: a table, and each cell of it is empty.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant, UNIX_EPOCH};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::host::Host;
use super::traces::{Mark, children};
use crate::binary::{Gateway, command, exe, run};
use crate::fixture::{Home, eventually, script, within};
use crate::session::{Session, code, modern, text};
use crate::web::{Reply, Web};

/// How long the most stubborn process may live after whatever has ended it.
const GONE: Duration = Duration::from_secs(3);

/// What ends a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The client closes our standard input.
    Input,
    Signal(Signal),
    /// The guard of the child is killed; the gateway goes on.
    Guard,
    /// Gateway and guard are killed, with no time between for either.
    Both,
}

/// What kind of server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One process that ends with its input.
    Plain,
    /// One that ignores signals and the end of its input, and so does a child of it.
    Stubborn,
    /// One that has put another into the background: a session of its own, forked twice, deaf.
    Daemon,
    /// A shell in a shell that waits for a program that does not end with its input.
    Chain,
}

const KINDS: [Kind; 4] = [Kind::Plain, Kind::Stubborn, Kind::Daemon, Kind::Chain];

const DAEMON: &str = r#"
    setsid sh -c '( ( trap "" TERM HUP INT; exec setsid sleep 1000 ) & ) &' </dev/null >/dev/null 2>&1
    exec "$@"
"#;

/// What a shell starts in the background has no input but what it is given.
const CHAIN: &str = r#"exec 3<&0; sh -c '"$@" <&3; true' - "$@" & wait"#;

impl Kind {
    /// Describes such a server, its processes marked.
    fn server(self, home: &Home, mark: &Mark) -> Value {
        let rough =
            |options: Value| vec!["python3".to_owned(), script("rough.py"), options.to_string()];
        let tools = || json!({"tools": ["echo"]});
        let wrapped = |script: &str, line: Vec<String>| {
            [vec!["sh".to_owned(), "-c".to_owned(), script.to_owned(), "-".to_owned()], line]
                .concat()
        };
        let line = match self {
            Self::Plain => rough(tools()),
            Self::Stubborn => rough(json!({"tools": ["echo"], "stubborn": home.path("deaf")})),
            Self::Daemon => wrapped(DAEMON, rough(tools())),
            Self::Chain => wrapped(CHAIN, vec!["node".to_owned(), script("lingering.mjs")]),
        };
        json!({"command": line[0], "args": line[1..], "env": {"MARK": mark.to_string()}})
    }

    /// Returns how many processes it is with its guard, and how many of them are deaf.
    fn size(self) -> (usize, usize) {
        match self {
            Self::Plain => (2, 0),
            Self::Stubborn => (3, 2),
            Self::Daemon => (3, 1),
            Self::Chain => (4, 0),
        }
    }

    /// Waits until all of it is there, and returns it.
    #[track_caller]
    fn family(self, mark: &Mark) -> BTreeSet<i32> {
        let (all, deaf) = self.size();
        eventually(&format!("{self:?} is complete"), || {
            mark.bearers().len() >= all && mark.deaf() == deaf
        });
        mark.bearers().into_iter().collect()
    }
}

/// A gateway with a client that was served.
enum Serving {
    Stdio(Session),
    Http(Gateway, Web),
}

const CALL: &str = "mcp__up__echo";

impl Serving {
    fn start(over_http: bool, home: &Home) -> Self {
        let arguments = home.arguments();
        let mut serving = if over_http {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let gateway = Gateway::start(&arguments);
            let mut web = Web::new(&gateway.url);
            web.initialize();
            Self::Http(gateway, web)
        } else {
            let mut session = Session::start(&arguments);
            session.initialize();
            Self::Stdio(session)
        };
        serving.call();
        serving
    }

    fn call(&mut self) {
        let params = json!({"name": CALL, "arguments": {}});
        let answer = match self {
            Self::Stdio(session) => session.request("tools/call", &params),
            Self::Http(_, web) => web.request("tools/call", &params),
        };
        assert_ne!(text(&answer["result"]), "", "{answer}");
    }

    fn pid(&self) -> Pid {
        match self {
            Self::Stdio(session) => session.pid(),
            Self::Http(gateway, _) => gateway.pid(),
        }
    }

    /// Waits until it has ended by itself.
    fn wait(&mut self) {
        match self {
            Self::Stdio(session) => drop(session.end()),
            Self::Http(gateway, _) => drop(gateway.wait()),
        }
    }
}

/// Lets a gateway with such a child end so, and returns how long the family was there.
fn cell(end: End, kind: Kind, over_http: bool) -> Duration {
    let of = format!("{end:?}, {kind:?}, over HTTP: {over_http}");
    let (home, mark) = (Home::new(), Mark::new());
    home.serve(json!({"up": kind.server(&home, &mark)}));
    let mut serving = Serving::start(over_http, &home);
    let mut family = kind.family(&mark);
    let gateway = serving.pid();
    let guard = children(gateway).into_iter().find(|pid| family.contains(pid)).expect("a guard");
    let began = Instant::now();
    match (end, &mut serving) {
        (End::Input, Serving::Stdio(session)) => session.close(),
        (End::Input, Serving::Http(..)) => unreachable!("it has no input"),
        (End::Signal(signal), _) => kill(gateway, signal).unwrap(),
        (End::Guard, _) => kill(Pid::from_raw(guard), Signal::SIGKILL).unwrap(),
        (End::Both, _) => {
            // The documented limit: the child dies, and what it put into the background may live.
            let direct = children(Pid::from_raw(guard));
            family.retain(|pid| *pid == guard || direct.contains(pid));
            if kind == Kind::Daemon {
                // The one that was forked twice is the guard's child by now.
                family.retain(|pid| !deaf(*pid));
            }
            // Stopped, the gateway cannot clean up after the guard.
            for (pid, signal) in [
                (gateway, Signal::SIGSTOP),
                (Pid::from_raw(guard), Signal::SIGKILL),
                (gateway, Signal::SIGKILL),
            ] {
                kill(pid, signal).unwrap();
            }
        }
    }
    // What was started since, such as the server that takes a dead one's place, is none of it.
    let left = || mark.bearers().into_iter().filter(|pid| family.contains(pid)).count();
    within(GONE, &format!("nothing is left: {of}"), || left() == 0);
    let took = began.elapsed();
    match end {
        End::Guard => {
            serving.call();
            eventually(&format!("the dead are reaped: {of}"), || children(gateway).len() == 1);
        }
        End::Both => {
            serving.wait();
            mark.kill();
        }
        End::Input | End::Signal(_) => {
            serving.wait();
            mark.has_vanished();
        }
    }
    took
}

fn deaf(pid: i32) -> bool {
    super::traces::is_deaf(pid)
}

/// Checks the row of the table for one end.
fn row(end: End) {
    for over_http in [false, true] {
        if (end, over_http) == (End::Input, true) {
            continue;
        }
        std::thread::scope(|scope| {
            let cells = KINDS.map(|kind| (kind, scope.spawn(move || cell(end, kind, over_http))));
            for (kind, cell) in cells {
                let took = cell.join().unwrap_or_else(|failure| std::panic::resume_unwind(failure));
                println!(
                    "{end:?} | {kind:?} | {} | {took:.2?}",
                    if over_http { "HTTP" } else { "stdio" }
                );
            }
        });
    }
}

#[test]
fn the_end_of_the_input_leaves_nothing_of_any_kind() {
    row(End::Input);
}

#[test]
fn sigterm_leaves_nothing_of_any_kind() {
    row(End::Signal(Signal::SIGTERM));
}

#[test]
fn sigint_leaves_nothing_of_any_kind() {
    row(End::Signal(Signal::SIGINT));
}

#[test]
fn a_killed_gateway_leaves_nothing_of_any_kind() {
    row(End::Signal(Signal::SIGKILL));
}

#[test]
fn an_aborted_gateway_leaves_nothing_of_any_kind() {
    row(End::Signal(Signal::SIGABRT));
}

#[test]
fn a_killed_guard_leaves_nothing_of_any_kind_and_the_gateway_goes_on() {
    row(End::Guard);
}

#[test]
fn with_gateway_and_guard_killed_the_child_of_any_kind_is_gone() {
    row(End::Both);
}

#[test]
fn a_panic_leaves_nothing_of_any_kind() {
    for kind in KINDS {
        let (home, mark) = (Home::new(), Mark::new());
        let server = kind.server(&home, &mark);
        let mut line = vec![server["command"].clone()];
        line.extend(server["args"].as_array().unwrap().clone());
        let line = Value::from(line).to_string();
        let mut host = Host::start_with("family", &mark, &[("IT_FAMILY", line)]);
        host.family();
        kind.family(&mark);
        let began = Instant::now();
        host.tell("panic");
        within(GONE, &format!("nothing is left: {kind:?}"), || mark.bearers().is_empty());
        println!("panic | {kind:?} | {:.2?}", began.elapsed());
        assert!(!host.wait().success());
    }
}

// ---- Who has how much time ------------------------------------------------------------------

/// When something of a family happened.
#[derive(Debug)]
struct Times {
    /// From the order to end until its input was closed, to `SIGTERM`, to its end.
    eof: f64,
    term: f64,
    gone: f64,
}

/// Ends a server that only writes down what it is told.
#[track_caller]
fn times(home: &Home, mark: &Mark, end: impl FnOnce()) -> Times {
    let now = || UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    let began = now();
    end();
    eventually("it is gone", || mark.bearers().is_empty());
    let gone = now();
    let ledger = home.ledger();
    let at = |word: &str| {
        let mut times = ledger.iter().filter_map(|line| line.strip_prefix(word));
        let time: f64 =
            times.next().unwrap_or_else(|| panic!("no{word}: {ledger:?}")).trim().parse().unwrap();
        assert_eq!(times.next(), None, "once: {ledger:?}");
        time
    };
    let (eof, term) = (at("eof"), at("term"));
    Times { eof: eof - began, term: term - eof, gone: gone - term }
}

impl Times {
    /// Checks them, with some time for a busy machine.
    #[track_caller]
    fn are(&self, [eof, term, gone]: [f64; 3]) {
        for (is, should) in [(self.eof, eof), (self.term, term), (self.gone, gone)] {
            assert!(
                is > should - 0.3 && is < should + 0.8,
                "{self:?}, not {:?}",
                [eof, term, gone]
            );
        }
    }
}

fn telling(home: &Home, mark: &Mark) -> Value {
    let options = json!({"tools": ["echo"], "tells": true, "ledger": home.path("ledger")});
    let args = json!([script("rough.py"), options.to_string()]);
    json!({"command": "python3", "args": args, "env": {"MARK": mark.to_string()}})
}

#[test]
fn z2_a_server_has_a_second_after_its_input_and_one_after_sigterm() {
    for signal in [None, Some(Signal::SIGTERM), Some(Signal::SIGINT)] {
        let (home, mark) = (Home::new(), Mark::new());
        home.serve(json!({"up": telling(&home, &mark)}));
        let mut session = Session::start(&home.arguments());
        session.initialize();
        session.call(CALL, &json!({}));
        let times = times(&home, &mark, || match signal {
            Some(signal) => session.signal(signal),
            None => session.close(),
        });
        times.are([if signal.is_none() { 0.3 } else { 0.0 }, 1.0, 1.0]);
        assert_eq!(session.end().0, Some(0));
    }
}

#[test]
fn z2_a_guard_that_hangs_holds_up_no_end() {
    let (_home, mark, mut session) = slow_to_end();
    let guard = children(session.pid())[0];
    kill(Pid::from_raw(guard), Signal::SIGSTOP).unwrap();
    session.signal(Signal::SIGTERM);
    let (code, took, _) = session.end();
    assert_eq!(code, Some(0), "{}", session.said());
    assert!(took < Duration::from_secs(10), "{took:?}");
    mark.has_vanished();
}

#[test]
fn z5_a_server_of_a_session_that_has_ended_has_two_seconds_and_one() {
    let (home, mark) = (Home::new(), Mark::new());
    home.serve(json!({"up": telling(&home, &mark)}));
    let config = home.write("server.toml", "[upstream.up]\nscope = 'per_client'\n");
    let mut arguments = home.arguments();
    arguments.extend(["--config".to_owned(), config]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let gateway = Gateway::start(&arguments);
    let mut web = Web::new(&gateway.url);
    web.initialize();
    web.request("tools/list", &json!({}));
    let everybodys = mark.bearers();
    web.request("tools/call", &json!({"name": CALL, "arguments": {}}));
    let began = Instant::now();
    assert_eq!(web.open("DELETE", "").status, 202);
    eventually("its own is gone", || mark.bearers() == everybodys);
    let took = began.elapsed().as_secs_f64();
    assert!(took > 2.7 && took < 4.5, "{took}");
    assert_eq!(home.ledger().iter().filter(|line| line.starts_with("term")).count(), 1);
}

// ---- The second signal ----------------------------------------------------------------------

/// What takes two seconds to end, of which our tests need to see the first half only.
fn slow_to_end() -> (Home, Mark, Session) {
    let (home, mark) = (Home::new(), Mark::new());
    home.serve(json!({"up": Kind::Stubborn.server(&home, &mark)}));
    let mut session = Session::start(&home.arguments());
    session.initialize();
    session.call(CALL, &json!({}));
    Kind::Stubborn.family(&mark);
    (home, mark, session)
}

#[test]
fn z3_a_second_signal_ends_at_once_and_leaves_nothing() {
    for (first, second) in [
        (Some(Signal::SIGTERM), Signal::SIGTERM),
        (Some(Signal::SIGINT), Signal::SIGINT),
        (Some(Signal::SIGINT), Signal::SIGTERM),
        (None, Signal::SIGTERM),
    ] {
        let (_home, mark, mut session) = slow_to_end();
        match first {
            Some(first) => session.signal(first),
            None => {
                session.close();
                std::thread::sleep(Duration::from_millis(100));
                session.signal(second);
            }
        }
        std::thread::sleep(Duration::from_millis(400));
        let began = Instant::now();
        session.signal(second);
        let (code, took, _) = session.end();
        assert_eq!(code, Some(130), "{first:?} {second}: {}", session.said());
        assert!(took < Duration::from_millis(700), "{first:?} {second}: {took:?}");
        within(GONE, "nothing is left", || mark.bearers().is_empty());
        println!(
            "{first:?} {second}: ended after {took:.2?}, all gone after {:.2?}",
            began.elapsed()
        );
    }
}

#[test]
fn z3_a_signal_that_is_passed_on_by_a_launcher_is_one() {
    let (_home, mark, mut session) = slow_to_end();
    for _ in 0..3 {
        session.signal(Signal::SIGTERM);
        std::thread::sleep(Duration::from_millis(5));
    }
    let (code, took, _) = session.end();
    assert_eq!(code, Some(0), "{}", session.said());
    assert!(took > Duration::from_secs(1), "in order, with time for the server: {took:?}");
    mark.has_vanished();
}

#[test]
fn z3_a_command_that_nobody_wants_to_wait_for_ends_at_the_second_signal() {
    let (home, mark) = (Home::new(), Mark::new());
    // Not ready, and deaf.
    let script = r#"trap "" TERM HUP INT; while :; do sleep 1; done"#;
    let env = json!({"MARK": mark.to_string()});
    home.serve(json!({"up": {"command": "sh", "args": ["-c", script], "env": env}}));
    for subcommand in ["check", "tools"] {
        let mut command = command(exe());
        command.arg(subcommand).args(home.arguments());
        let running = std::thread::spawn(|| run(command, Duration::from_secs(20)));
        eventually("its server is deaf", || mark.deaf() > 0);
        let guard = mark.bearers()[0];
        let gateway = Pid::from_raw(super::traces::parent(guard).expect("running"));
        kill(gateway, Signal::SIGINT).unwrap();
        std::thread::sleep(Duration::from_millis(400));
        let began = Instant::now();
        kill(gateway, Signal::SIGINT).unwrap();
        let ended = running.join().unwrap();
        assert_eq!(ended.code, Some(130), "{subcommand}: {ended:?}");
        assert!(
            began.elapsed() < Duration::from_millis(700),
            "{subcommand}: {:?}",
            began.elapsed()
        );
        within(GONE, "nothing is left", || mark.bearers().is_empty());
    }
}

/// Each era's way to call something that is under way when the signal comes.
#[test]
fn z1_a_call_that_is_broken_off_by_a_signal_has_an_unknown_outcome() {
    let slow = json!({"name": "mcp__up__slow", "arguments": {}});
    let is_unknown = |answer: &Value| {
        assert_eq!(code(&answer["result"]), "TOOL_OUTCOME_UNKNOWN", "{answer}");
    };
    for newer in [false, true] {
        let home = Home::with_up(json!({"tools": ["slow"]}));
        let mut session = Session::start(&home.arguments());
        let id = if newer {
            session.ask("tools/call", &modern(slow.clone()))
        } else {
            session.initialize();
            session.ask("tools/call", &slow)
        };
        home.wait_for("slow");
        session.signal(Signal::SIGTERM);
        let (ended, took, rest) = session.end();
        assert_eq!((ended, rest.len()), (Some(0), 1), "newer: {newer}: {rest:?}");
        assert_eq!(rest[0]["id"], id);
        is_unknown(&rest[0]);
        assert!(took < Duration::from_secs(2), "{took:?}");

        fs::write(home.file("ledger"), "").unwrap();
        let arguments = home.arguments();
        let mut gateway = Gateway::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        let mut web = Web::new(&gateway.url);
        web.initialize();
        let stream = web.get();
        let call = if newer {
            web.begin_modern("tools/call", &slow)
        } else {
            web.begin("tools/call", &slow)
        };
        home.wait_for("slow");
        let answered = std::thread::spawn(|| Reply::begin(call).answer());
        let (ended, took) = gateway.terminate();
        assert_eq!(ended, Some(0), "{}", gateway.said());
        assert!(took < Duration::from_secs(2), "{took:?}");
        is_unknown(&answered.join().unwrap());
        drop(stream);
    }
}

/// A server by URL that never answers, and one that is being reached, hold up no end.
#[test]
fn z1_a_server_that_is_still_being_reached_holds_up_no_end() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let home = Home::new();
    home.serve(json!({"up": {"url": url}, "old": {"url": url, "type": "sse"}}));
    for signalled in [false, true] {
        let mut session = Session::start(&home.arguments());
        session.initialize();
        let came = [listener.accept().unwrap(), listener.accept().unwrap()];
        session.ask("tools/list", &json!({}));
        if signalled {
            session.signal(Signal::SIGTERM);
        } else {
            session.close();
        }
        let (code, took, _) = session.end();
        assert_eq!(code, Some(0), "{}", session.said());
        assert!(took < Duration::from_secs(3), "{took:?}: {}", session.said());
        drop(came);
    }
}
