//! A client of the real binary over its standard streams, one message at a time.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::binary::{command, exe};

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(20);

/// A running `iris-mcp serve --stdio`; it is killed with the test.
#[derive(Debug)]
pub(crate) struct Session {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Arc<Mutex<String>>,
    next: u64,
    /// What came and was not asked for yet.
    pub(crate) aside: Vec<Value>,
    /// How often the list was said to have changed.
    pub(crate) changes: usize,
}

impl Session {
    /// Starts the server with further arguments.
    pub(crate) fn start(arguments: &[impl AsRef<str>]) -> Self {
        Self::start_with(arguments, |_| {})
    }

    /// Starts the server, its command changed first.
    pub(crate) fn start_with(
        arguments: &[impl AsRef<str>],
        change: impl FnOnce(&mut Command),
    ) -> Self {
        let mut command = command(exe());
        command.args(["serve", "--stdio"]).args(arguments.iter().map(AsRef::as_ref));
        command.stdin(Stdio::piped());
        change(&mut command);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdin = child.stdin.take();
        let lines = lines(child.stdout.take().expect("a pipe"));
        let stderr = collect(child.stderr.take().expect("a pipe"));
        Self { child, stdin, lines, stderr, next: 0, aside: Vec::new(), changes: 0 }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// Returns what it has said on standard error so far.
    pub(crate) fn said(&self) -> String {
        self.stderr.lock().expect("not poisoned").clone()
    }

    /// Writes a line, whatever it is.
    pub(crate) fn line(&mut self, line: &str) {
        self.bytes(format!("{line}\n").as_bytes());
    }

    /// Writes any bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("open");
        stdin.write_all(bytes).expect("written");
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.line(&message.to_string());
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request and returns its id.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        self.next
    }

    /// Returns the next message, which must be one; changed lists are counted only.
    #[track_caller]
    pub(crate) fn read(&mut self) -> Value {
        loop {
            let line = self.lines.recv_timeout(ANSWER);
            let line =
                line.unwrap_or_else(|error| panic!("no message ({error}):\n{}", self.said()));
            let message = message(&line);
            if message["method"] != "notifications/tools/list_changed" {
                return message;
            }
            self.changes += 1;
        }
    }

    /// Returns the next message, if one comes; changed lists are left out.
    #[track_caller]
    pub(crate) fn heard(&self) -> Option<Value> {
        loop {
            let message = message(&self.lines.recv_timeout(ANSWER).ok()?);
            if message["method"] != "notifications/tools/list_changed" {
                return Some(message);
            }
        }
    }

    /// Returns the answer to a request; everything else that came is put aside.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        let is_answer = |message: &Value| message["id"] == id && message.get("method").is_none();
        if let Some(found) = self.aside.iter().position(is_answer) {
            return self.aside.remove(found);
        }
        loop {
            let message = self.read();
            if is_answer(&message) {
                return message;
            }
            self.aside.push(message);
        }
    }

    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Makes a request of the newer era.
    #[track_caller]
    pub(crate) fn modern(&mut self, method: &str, params: &Value) -> Value {
        self.request(method, &modern(params.clone()))
    }

    /// Shakes hands as a client of the older era.
    #[track_caller]
    pub(crate) fn initialize(&mut self) -> Value {
        let answer = self.request("initialize", &hello("2025-11-25"));
        self.notify("notifications/initialized", &json!({}));
        answer["result"].clone()
    }

    /// Calls a tool and returns its result.
    #[track_caller]
    pub(crate) fn call(&mut self, name: &str, arguments: &Value) -> Value {
        let mut answer = self.request("tools/call", &json!({"name": name, "arguments": arguments}));
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    /// Returns the names of the tools.
    #[track_caller]
    pub(crate) fn tools(&mut self) -> Vec<String> {
        names(&self.request("tools/list", &json!({}))["result"])
    }

    /// Closes its standard input.
    pub(crate) fn close(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("running");
    }

    /// Waits until it ends by itself; returns its exit code, how long that took, and its last messages.
    #[track_caller]
    pub(crate) fn end(&mut self) -> (Option<i32>, Duration, Vec<Value>) {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("our child") {
                break status;
            }
            assert!(began.elapsed() < ANSWER, "it does not end:\n{}", self.said());
            thread::sleep(Duration::from_millis(2));
        };
        let took = began.elapsed();
        let rest = std::iter::from_fn(|| self.lines.recv_timeout(ANSWER).ok());
        // A change of the lists may be told at any time.
        let is_said = |said: &Value| said["method"] != "notifications/tools/list_changed";
        (status.code(), took, rest.map(|line| message(&line)).filter(is_said).collect())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Already gone is as good.
        drop(self.child.kill());
        drop(self.child.wait());
        if thread::panicking() {
            #[expect(clippy::print_stderr, reason = "shown with a failed test")]
            {
                eprintln!("the server said:\n{}", self.said());
            }
        }
    }
}

/// The parameters of `initialize`.
pub(crate) fn hello(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "probe", "version": "9.8"},
    })
}

/// Adds what every request of the newer era says of itself.
pub(crate) fn modern(mut params: Value) -> Value {
    let meta = &mut params["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "probe", "version": "9.8"});
    params
}

/// Returns the names of the tools in a result of `tools/list`.
#[track_caller]
pub(crate) fn names(result: &Value) -> Vec<String> {
    let tools = result["tools"].as_array().unwrap_or_else(|| panic!("no list: {result}"));
    tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

/// Returns the first text of a result.
#[track_caller]
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}

/// Returns the code of a failed result, which its text must begin with.
#[track_caller]
pub(crate) fn code(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    result["_meta"]["iris/result"]["code"].as_str().unwrap_or_else(|| panic!("no code: {result}"))
}

/// Reads a line, which must be a JSON-RPC message.
#[track_caller]
fn message(line: &str) -> Value {
    let message: Value =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
    let kinds = ["method", "result", "error"].iter().filter(|key| message.get(key).is_some());
    assert_eq!(kinds.count(), 1, "no message: {line}");
    assert_eq!(message["jsonrpc"], "2.0", "{line}");
    message
}

fn lines(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn collect(pipe: impl Read + Send + 'static) -> Arc<Mutex<String>> {
    let said = Arc::new(Mutex::new(String::new()));
    let into = Arc::clone(&said);
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let mut said = into.lock().expect("not poisoned");
            said.push_str(&line);
            said.push('\n');
        }
    });
    said
}
