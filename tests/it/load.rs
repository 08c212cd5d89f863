//! Many at once, and much at once: nothing is lost or mixed up, and memory stays within bounds.
//!
//! The sizes are those of a small machine. `IRIS_LOAD_UPSTREAMS`, `IRIS_LOAD_CALLS` and
//! `IRIS_LOAD_SESSIONS` make them larger; the figures in the documentation are from 200, 1000 and 100.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::binary::{Gateway, command, exe};
use crate::fixture::{Home, eventually};
use crate::session::{Session, hello, text};
use crate::web::{Reply, Web};

const MIB: usize = 1 << 20;

/// Returns how many there are to be of something, unless the environment says otherwise.
fn size(variable: &str, usual: usize) -> usize {
    std::env::var(variable).map_or(usual, |size| size.parse().expect("a number"))
}

/// Makes a home with so many upstreams, `up0` and so on, that echo.
fn many(count: usize) -> Home {
    let home = Home::new();
    let server = || crate::fixture::server(&json!({"tools": ["echo", "look"]}));
    let servers = (0..count).map(|number| (format!("up{number}"), server()));
    home.serve(Value::Object(servers.collect()));
    home
}

/// Returns arguments with which nothing has to be searched for, however much there is.
fn all_listed(home: &Home) -> Vec<String> {
    let more = ["--defer", "never"].map(str::to_owned);
    home.arguments().into_iter().chain(more).collect()
}

/// Returns the tool and the arguments of a call by its number.
fn numbered(number: usize, upstreams: usize) -> Value {
    let name = format!("mcp__up{}__echo", number % upstreams);
    json!({"name": name, "arguments": {"text": format!("the text of call {number}")}})
}

#[test]
fn calls_to_many_upstreams_at_once_are_each_answered_once() {
    let (upstreams, calls) = (size("IRIS_LOAD_UPSTREAMS", 40), size("IRIS_LOAD_CALLS", 200));
    let home = many(upstreams);
    let mut session = Session::start(&all_listed(&home));
    session.initialize();
    let ids: Vec<u64> =
        (0..calls).map(|number| session.ask("tools/call", &numbered(number, upstreams))).collect();
    let mut open: BTreeSet<u64> = ids.iter().copied().collect();
    while !open.is_empty() {
        let answer = session.read();
        let id = answer["id"].as_u64().unwrap();
        assert!(open.remove(&id), "a second answer: {answer}");
        let number = ids.iter().position(|of| *of == id).unwrap();
        assert_eq!(text(&answer["result"]), format!("the text of call {number}"));
    }
    // Nobody else's answer comes after them.
    session.close();
    let (code, _, rest) = session.end();
    assert_eq!((code, rest), (Some(0), Vec::new()));
}

#[test]
fn many_sessions_of_both_eras_get_their_own_answers() {
    let (upstreams, calls) = (size("IRIS_LOAD_UPSTREAMS", 40).min(8), size("IRIS_LOAD_CALLS", 200));
    let sessions = size("IRIS_LOAD_SESSIONS", 20);
    let home = many(upstreams);
    let arguments = home.arguments();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let gateway = Gateway::start(&arguments);
    let ready = Web::new(&gateway.url).at("/healthz");
    eventually("all are ready", || ready.get().json()["status"] == "ok");
    let client = |number: usize| {
        let mut web = Web::new(&gateway.url);
        let is_newer = number % 2 == 1;
        if !is_newer {
            web.initialize();
        }
        let own: Vec<usize> = (number..calls).step_by(sessions).collect();
        let begun: Vec<_> = own
            .iter()
            .map(|number| {
                let params = numbered(*number, upstreams);
                if is_newer {
                    web.begin_modern("tools/call", &params)
                } else {
                    web.begin("tools/call", &params)
                }
            })
            .collect();
        for (number, stream) in own.iter().zip(begun) {
            let answers = Reply::begin(stream).messages();
            assert_eq!(answers.len(), 1, "{answers:?}");
            assert_eq!(text(&answers[0]["result"]), format!("the text of call {number}"));
        }
    };
    thread::scope(|scope| {
        for number in 0..sessions {
            scope.spawn(move || client(number));
        }
    });
}

#[test]
fn a_slow_reader_loses_nothing_and_nobody_waits_for_it() {
    let home = Home::with_up(json!({"tools": ["echo", "huge"]}));
    let mut slow = Beside::start(&home, &[]);
    let count = 40;
    for number in 0..count {
        let arguments = json!({"bytes": 30_000 + number});
        slow.ask(
            100 + number,
            "tools/call",
            &json!({"name": "mcp__up__huge", "arguments": arguments}),
        );
    }
    // More than a pipe holds is on its way to it, and others get their answers.
    let mut web = Web::new(&slow.url());
    web.initialize();
    for number in 0..count {
        let said = number.to_string();
        let params = json!({"name": "mcp__up__echo", "arguments": {"text": said}});
        assert_eq!(text(&web.request("tools/call", &params)["result"]), said);
    }
    let mut open: BTreeSet<u64> = (100..100 + count).collect();
    while !open.is_empty() {
        thread::sleep(Duration::from_millis(50));
        let answer = slow.read();
        let Some(id) = answer["id"].as_u64() else { continue };
        assert!(open.remove(&id), "a second answer: {id}");
        let length = text(&answer["result"]).len() as u64;
        assert_eq!(length, 30_000 + id - 100);
    }
}

#[test]
fn a_client_that_only_writes_is_not_read_for_ever() {
    let home = Home::with_up(json!({"tools": ["huge"]}));
    let mut deaf = Beside::start(&home, &["--max-message-bytes", "1000000"]);
    let before = deaf.memory("VmRSS");
    // What would be 200 MB of answers. It may be that not all of it is taken.
    let mut stdin = deaf.child.stdin.take().unwrap();
    let flood = thread::spawn(move || {
        for id in 0..5000 {
            let arguments = json!({"bytes": 40_000, "padding": "x".repeat(200)});
            let params = json!({"name": "mcp__up__huge", "arguments": arguments});
            let call =
                json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            if writeln!(stdin, "{call}").is_err() {
                return;
            }
        }
    });
    let mut web = Web::new(&deaf.url());
    web.initialize();
    for _ in 0..100 {
        let params = json!({"name": "mcp__up__huge", "arguments": {"bytes": 1}});
        assert_eq!(text(&web.request("tools/call", &params)["result"]), "x");
        thread::sleep(Duration::from_millis(20));
    }
    let grown = deaf.memory("VmHWM").saturating_sub(before);
    assert!(grown < 120 * MIB, "{} MiB", grown / MIB);
    drop(deaf);
    flood.join().unwrap();
}

#[test]
fn a_large_text_takes_a_few_times_its_size_and_no_more() {
    let grown = grown_by("mcp__up__big", "text", 50 * MIB);
    assert!(grown < 5 * 50 * MIB, "{} MiB", grown / MIB);
}

#[test]
fn large_structured_content_is_not_taken_apart() {
    let grown = grown_by("mcp__up__promised", "structured", 24 * MIB);
    assert!(grown < 6 * 24 * MIB, "{} MiB", grown / MIB);
}

/// Returns by how much the peak of memory grows with one result.
fn grown_by(tool: &str, kind: &str, size: usize) -> usize {
    let home = Home::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/load/server.py");
    home.serve(json!({"up": {"command": "python3", "args": [script]}}));
    let mut client = Beside::start(&home, &[]);
    let mut call = |id: u64, size: usize| {
        let params = json!({"name": tool, "arguments": {"kind": kind, "size": size}});
        client.ask(id, "tools/call", &params);
        let answer = client.read_line();
        assert!(answer.contains("\"content\""), "{}", &answer[..answer.len().min(1000)]);
        (client.memory("VmHWM"), answer.len())
    };
    let (before, _) = call(2, 1000);
    let (after, length) = call(3, size);
    // A text is cut; what is promised goes out whole.
    assert_eq!(length > size / 2, kind != "text", "{length}");
    after - before
}

#[test]
fn a_session_too_many_takes_the_place_of_one_that_nobody_uses() {
    let home = Home::new();
    let config = home.write("server.toml", "[limits]\nmax_sessions = 3\n");
    let gateway = Gateway::start(&["--workspace", &home.path("workspace"), "--config", &config]);
    let list = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {}});
    let begun = || {
        let mut web = Web::new(&gateway.url);
        web.initialize();
        web
    };
    let used = begun();
    assert_eq!(used.post(&list).status, 200);
    let unused = begun();
    // A flood ends its own sessions.
    let flood: Vec<Web> = (0..20).map(|_| begun()).collect();
    assert_eq!(used.post(&list).status, 200);
    assert_eq!(unused.post(&list).status, 404);
    let statuses = flood.iter().map(|web| web.post(&list).status);
    assert_eq!(statuses.filter(|status| *status == 200).count(), 2);
    // While a stream is open a session is in use.
    let standing: Vec<Reply> = flood[18..].iter().chain([&used]).map(Web::get).collect();
    assert!(standing.iter().all(|reply| reply.status == 200));
    let hello =
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello("2025-11-25")});
    let refused = Web::new(&gateway.url).post(&hello);
    assert_eq!(refused.status, 503);
    assert!(refused.text().contains("3 sessions are all in use (limits.max_sessions)"));
    drop(standing);
    eventually("there is room again", || Web::new(&gateway.url).post(&hello).status == 200);
}

/// A gateway over standard streams and HTTP, whose client reads only when told to.
struct Beside {
    child: Child,
    output: BufReader<ChildStdout>,
    said: Arc<Mutex<String>>,
}

impl Beside {
    fn start(home: &Home, more: &[&str]) -> Self {
        let mut command = command(exe());
        command.args(["serve", "--stdio", "--http", "127.0.0.1:0"]).args(home.arguments());
        let mut child = command.args(more).stdin(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (said, stderr) = (Arc::<Mutex<String>>::default(), child.stderr.take().unwrap());
        let saying = Arc::clone(&said);
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                saying.lock().unwrap().extend([line.as_str(), "\n"]);
            }
        });
        let mut started = Self { child, output, said };
        started.ask(1, "initialize", &hello("2025-11-25"));
        started.read();
        started.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        started
    }

    fn url(&self) -> String {
        let mut url = None;
        eventually("it says where it listens", || {
            let said = self.said.lock().unwrap();
            let start = said.find("http://127.0.0.1");
            url = start
                .and_then(|start| said[start..].split(['"', ' ', '\n']).next().map(str::to_owned));
            url.is_some()
        });
        url.unwrap()
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn ask(&mut self, id: u64, method: &str, params: &Value) {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// Returns the next answer as it came.
    fn read_line(&mut self) -> String {
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).unwrap();
            assert!(read > 0, "{}", self.said.lock().unwrap());
            if !line[..line.len().min(200)].contains("\"method\"") {
                return line;
            }
        }
    }

    fn read(&mut self) -> Value {
        serde_json::from_str(&self.read_line()).unwrap()
    }

    /// Returns a figure of the process in bytes.
    fn memory(&self, key: &str) -> usize {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        let kib: usize = line.unwrap().trim().trim_end_matches(" kB").parse().unwrap();
        kib * 1024
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // Already gone is as good.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
