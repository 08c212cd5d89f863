//! The real binary and its real peers as processes, with an end to every wait.

use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// How long a gateway may take until it says where it listens.
const START: Duration = Duration::from_secs(20);

/// A program to start, with nothing to read on its standard input.
#[expect(clippy::disallowed_methods, reason = "tests start the binary from outside")]
pub(crate) fn command(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The binary under test.
pub(crate) fn exe() -> &'static str {
    env!("CARGO_BIN_EXE_iris-mcp")
}

/// Returns the path of something below the installed peers.
///
/// # Panics
/// If it is not there: a missing peer is never a skipped test.
#[track_caller]
pub(crate) fn peer(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let peers =
        std::env::var_os("IRIS_PEERS").map_or_else(|| root.join("target/peers"), Into::into);
    let found = peers.join(path);
    assert!(found.exists(), "{} is missing: run `bash tests/run`", found.display());
    found
}

/// What a process left behind.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a program to its end; a program that takes longer than `limit` is killed.
///
/// A stream that is no pipe is told as if it had been silent.
#[track_caller]
pub(crate) fn run(mut command: Command, limit: Duration) -> Ended {
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stdout = child.stdout.take().map(drain);
    let stderr = child.stderr.take().map(drain);
    let text = |pipe: Option<Receiver<String>>, limit| match pipe {
        Some(pipe) => pipe.recv_timeout(limit),
        None => Ok(String::new()),
    };
    let began = Instant::now();
    let read = text(stdout, limit);
    let ended = read.ok().and_then(|stdout| Some((status(&mut child, began + limit)?, stdout)));
    let Some((status, stdout)) = ended else {
        child.kill().expect("killed");
        let stderr = text(stderr, Duration::from_secs(1)).unwrap_or_default();
        panic!("{command:?} was still running after {limit:?}:\n{stderr}");
    };
    let stderr = text(stderr, Duration::from_secs(5)).unwrap_or_default();
    Ended { code: status.code(), stdout, stderr }
}

/// Waits until a child ends and returns how; nothing if it takes too long.
fn status(child: &mut Child, until: Instant) -> Option<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait().expect("our child") {
            return Some(status);
        }
        if Instant::now() > until {
            return None;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Reads everything on a thread of its own.
fn drain(mut pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("readable");
        // The other side may have stopped waiting.
        drop(sender.send(String::from_utf8_lossy(&bytes).into_owned()));
    });
    receiver
}

/// How a peer is reached.
#[derive(Clone, Copy, Debug)]
pub(crate) enum By {
    Stdio,
    Http,
}

impl By {
    /// Returns what a client program is told of a gateway with these arguments, and the gateway
    /// where it is not the client that starts it.
    #[track_caller]
    pub(crate) fn reach(self, arguments: &[String]) -> (Value, Option<Gateway>) {
        match self {
            Self::Stdio => {
                let line = [&[exe().to_owned(), "serve".to_owned()][..], arguments].concat();
                (json!({ "command": line }), None)
            }
            Self::Http => {
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                let gateway = Gateway::start(&arguments);
                (json!({ "url": gateway.url }), Some(gateway))
            }
        }
    }
}

/// A gateway that serves HTTP on a port of its own; it ends with the test.
#[derive(Debug)]
pub(crate) struct Gateway {
    /// `http://127.0.0.1:PORT/mcp`
    pub(crate) url: String,
    child: Child,
    stderr: Arc<Mutex<String>>,
}

impl Gateway {
    /// Starts `iris-mcp serve --http 127.0.0.1:0` with further arguments.
    #[track_caller]
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, |_| {})
    }

    /// Starts it, its command changed first.
    #[track_caller]
    pub(crate) fn start_with(arguments: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        let mut command = command(exe());
        command.args(["serve", "--http", "127.0.0.1:0"]).args(arguments).stdout(Stdio::null());
        change(&mut command);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stderr = Arc::new(Mutex::new(String::new()));
        let urls = watch(child.stderr.take().expect("a pipe"), Arc::clone(&stderr));
        match urls.recv_timeout(START) {
            Ok(url) => Self { url, child, stderr },
            Err(error) => {
                child.kill().expect("killed");
                let ended = matches!(error, RecvTimeoutError::Disconnected);
                let how = if ended { "ended" } else { "did not say where it listens" };
                let said = stderr.lock().expect("not poisoned").clone();
                panic!("{command:?} {how}:\n{said}");
            }
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// Asks it to end, and waits until it does; returns its exit code and how long that took.
    #[track_caller]
    pub(crate) fn terminate(&mut self) -> (Option<i32>, Duration) {
        kill(self.pid(), Signal::SIGTERM).expect("running");
        self.wait()
    }

    /// Waits until it ends; returns its exit code and how long that took.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> (Option<i32>, Duration) {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("our child") {
                return (status.code(), began.elapsed());
            }
            assert!(began.elapsed() < START, "it does not end:\n{}", self.said());
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Returns what it has said so far.
    pub(crate) fn said(&self) -> String {
        self.stderr.lock().expect("not poisoned").clone()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // Already gone is as good.
        drop(self.child.kill());
        drop(self.child.wait());
        if thread::panicking() {
            #[expect(clippy::print_stderr, reason = "shown with a failed test")]
            {
                eprintln!("the gateway said:\n{}", self.said());
            }
        }
    }
}

/// Collects the lines of a gateway and sends the endpoint it names.
fn watch(pipe: impl Read + Send + 'static, said: Arc<Mutex<String>>) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let words = line.split_whitespace();
            let url = words
                .into_iter()
                .find(|word| word.starts_with("http://127.0.0.1:") && word.ends_with("/mcp"));
            if let Some(url) = url {
                // Only the first one is waited for.
                drop(sender.send(url.to_owned()));
            }
            let mut said = said.lock().expect("not poisoned");
            said.push_str(&line);
            said.push('\n');
        }
    });
    receiver
}
