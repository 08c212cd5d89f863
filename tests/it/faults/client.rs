//! A client that keeps calls coming and counts what comes back.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::binary::{command, exe};
use crate::fixture::eventually;
use crate::session::hello;

/// A call that was made.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) server: String,
    /// What its body notes when it runs; none of calls that are part of a fault.
    pub(super) id: Option<String>,
    at: Instant,
    /// Whether everything was well when it was made.
    pub(super) quiet: bool,
    pub(super) answers: Vec<(Duration, Value)>,
}

impl Asked {
    fn of(server: &str) -> Self {
        let (server, at) = (server.to_owned(), Instant::now());
        Self { server, id: None, at, quiet: false, answers: Vec::new() }
    }
}

/// The client, and the gateway that it has started.
#[derive(Debug)]
pub(super) struct Client {
    child: Mutex<Child>,
    pid: Pid,
    /// Also what was asked: a number is taken and sent in one go.
    stdin: Mutex<ChildStdin>,
    asked: Arc<Mutex<BTreeMap<u64, Asked>>>,
}

impl Client {
    pub(super) fn start(arguments: &[String], log: &str) -> Self {
        let mut command = command(exe());
        command.args(["serve", "--stdio", "--log-file", log]).args(arguments);
        command.stdin(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let asked: Arc<Mutex<BTreeMap<u64, Asked>>> = Arc::default();
        let answered = Arc::clone(&asked);
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let message: Value = serde_json::from_str(&line).unwrap();
                if message.get("method").is_some() {
                    continue;
                }
                let mut asked = answered.lock().unwrap();
                let asked = asked.get_mut(&message["id"].as_u64().unwrap()).expect("asked for");
                asked.answers.push((asked.at.elapsed(), message));
            }
        });
        let pid = Pid::from_raw(child.id().cast_signed());
        Self { child: Mutex::new(child), pid, stdin: Mutex::new(stdin), asked }
    }

    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Shakes hands, and waits until so many tools are listed.
    pub(super) fn initialize(&self, tools: usize) {
        self.ask(Asked::of(""), "initialize", &hello("2025-11-25"));
        eventually("hands are shaken", || self.is_all_answered());
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        writeln!(self.stdin.lock().unwrap(), "{initialized}").unwrap();
        self.ask(Asked::of(""), "tools/list", &json!({}));
        eventually("tools are listed", || self.is_all_answered());
        let mut asked = std::mem::take(&mut *self.asked.lock().unwrap());
        let (_, list) = asked.pop_last().unwrap().1.answers.remove(0);
        let listed = list["result"]["tools"].as_array().unwrap().len();
        assert_eq!(listed, tools, "{list}");
    }

    fn ask(&self, mut asked: Asked, method: &str, params: &Value) {
        let mut stdin = self.stdin.lock().unwrap();
        asked.at = Instant::now();
        let number = u64::try_from(self.asked.lock().unwrap().len()).unwrap();
        self.asked.lock().unwrap().insert(number, asked);
        let message = json!({"jsonrpc": "2.0", "id": number, "method": method, "params": params});
        writeln!(stdin, "{message}").unwrap();
    }

    /// Calls a tool, and waits for nothing.
    pub(super) fn call(&self, server: &str, tool: &str) {
        let params = json!({"name": format!("mcp__{server}__{tool}"), "arguments": {}});
        self.ask(Asked::of(server), "tools/call", &params);
    }

    /// Has something done that must not be done twice, and waits for nothing.
    pub(super) fn work(&self, server: &str, number: u64, ms: u64, quiet: bool) {
        let id = format!("{server}-{number}");
        let arguments = json!({"id": id, "ms": ms});
        let params = json!({"name": format!("mcp__{server}__work"), "arguments": arguments});
        let asked = Asked { id: Some(id), quiet, ..Asked::of(server) };
        self.ask(asked, "tools/call", &params);
    }

    pub(super) fn is_all_answered(&self) -> bool {
        self.asked.lock().unwrap().values().all(|asked| !asked.answers.is_empty())
    }

    /// Goes, and returns all that was asked.
    pub(super) fn end(self) -> Vec<Asked> {
        drop(self.stdin);
        let status = self.child.into_inner().unwrap().wait().unwrap();
        assert!(status.success(), "{status}");
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked.into_values().collect()
    }
}
