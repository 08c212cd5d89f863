//! A process that hosts children as a gateway does, to be killed: this test binary once more.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use iris_mcp::process::{Grace, Processes, become_subreaper};
use iris_mcp::shutdown::Shutdown;
use nix::poll::{PollFd, PollFlags, poll};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _};

use super::traces::{Mark, children};
use super::{STUBBORN, config, marked, pid};

/// Begins the lines that are meant for the test; the test harness writes others.
const PREFIX: &str = "host: ";

/// How long a host may be silent.
const DEADLINE_MS: u16 = 60_000;

/// A running host.
pub(super) struct Host {
    process: Child,
    lines: BufReader<ChildStdout>,
}

impl Host {
    pub(super) fn start(mode: &str, mark: &Mark) -> Self {
        Self::start_with(mode, mark, &[] as &[(&str, &str)])
    }

    pub(super) fn start_with<V: AsRef<OsStr>>(mode: &str, mark: &Mark, env: &[(&str, V)]) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::fixture_host", "--nocapture"])
            .env("IT_HOST", mode)
            .envs(env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        let mut host = Self { process, lines };
        // Told here and not in its environment, which would make it a bearer itself.
        host.tell(&mark.to_string());
        host
    }

    pub(super) fn pid(&self) -> Pid {
        Pid::from_raw(self.process.id().cast_signed())
    }

    pub(super) fn children(&self) -> Vec<i32> {
        children(self.pid())
    }

    /// Returns the next line that is meant for us.
    pub(super) fn line(&mut self) -> String {
        loop {
            if self.lines.buffer().is_empty() {
                let mut stream = [PollFd::new(self.lines.get_ref().as_fd(), PollFlags::POLLIN)];
                assert_eq!(poll(&mut stream, DEADLINE_MS).unwrap(), 1, "the host says nothing");
            }
            let mut line = String::new();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the host has ended");
            // The harness has written the test's name without a line break before.
            if let Some((_, line)) = line.trim_end().split_once(PREFIX) {
                return line.to_owned();
            }
        }
    }

    /// Waits until the family is complete; returns guard and child.
    pub(super) fn family(&mut self) -> (Pid, Pid) {
        let line = self.line();
        let (guard, child) = line.split_once(' ').unwrap();
        (pid(guard), pid(child))
    }

    pub(super) fn tell(&mut self, order: &str) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{order}").unwrap();
    }

    pub(super) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.wait();
    }

    pub(super) fn wait(&mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _ended = self.process.wait();
    }
}

/// Acts as the host that the environment asks for.
pub(super) fn act() {
    let Ok(mode) = std::env::var("IT_HOST") else { return };
    become_subreaper().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut orders = tokio::io::BufReader::new(tokio::io::stdin()).lines();
        let mark = orders.next_line().await.unwrap().unwrap();
        match mode.as_str() {
            "family" => family(&mark, orders).await,
            "rounds" => rounds(&mark).await,
            other => panic!("no mode {other}"),
        }
    });
}

type Orders = tokio::io::Lines<tokio::io::BufReader<tokio::io::Stdin>>;

async fn family(mark: &str, mut orders: Orders) {
    let processes = Processes::new(config(), Shutdown::new());
    let mark = Mark::from(mark);
    let mut child = match std::env::var("IT_FAMILY") {
        Ok(line) => {
            let line: Vec<String> = serde_json::from_str(&line).unwrap();
            let args: Vec<&str> = line[1..].iter().map(String::as_str).collect();
            processes.spawn(marked(&mark, &line[0], &args)).await.unwrap()
        }
        Err(_) => {
            let mut child = processes.spawn(marked(&mark, "sh", &["-c", STUBBORN])).await.unwrap();
            child.stdout.as_mut().unwrap().read_exact(&mut [0; 22]).await.unwrap();
            child
        }
    };
    println!("{PREFIX}{} {}", child.guard_pid(), child.pid());
    while let Some(order) = orders.next_line().await.unwrap() {
        match order.as_str() {
            "stop" => {
                let grace = Duration::from_millis(50);
                let exit = child.stop(Grace { stdin: grace, term: grace }).await;
                println!("{PREFIX}stopped {exit}");
            }
            "panic" => panic!("as the test wishes"),
            other => panic!("no order {other}"),
        }
    }
}

async fn rounds(mark: &str) {
    let processes = Processes::new(config(), Shutdown::new());
    let mark = Mark::from(mark);
    let mut before = 0;
    for round in 0..=200 {
        let spec = marked(&mark, "sh", &["-c", "sleep 1000 & echo up; cat"]);
        let mut child = processes.spawn(spec).await.unwrap();
        if round % 2 == 0 {
            child.stdout.as_mut().unwrap().read_exact(&mut [0; 3]).await.unwrap();
        }
        child.stop(Grace::NONE).await;
        drop(child);
        if round == 0 {
            // Whatever the runtime opens once is open now.
            before = descriptors();
        }
    }
    let (more, left) = (descriptors() - before, children(Pid::this()).len());
    println!("{PREFIX}descriptors {more:+}, children {left}");
}

fn descriptors() -> isize {
    fs::read_dir("/proc/self/fd").unwrap().count().cast_signed()
}
