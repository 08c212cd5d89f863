//! Commands on this machine: a shell of their own, under a guard, in no terminal.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::capture::{BUDGET, Capture};
use super::{CommandError, Outcome, Payload, Request, Status, Truncation};
use crate::process::{Child, Exit, Grace, Leftovers, Processes, Spec, Stderr};
use crate::shutdown::Shutdown;

/// What is run for a line of shell.
const SHELL: &str = "/bin/sh";
/// How a command is stopped: asked at once, killed a little later.
const STOP: Grace = Grace { stdin: Duration::ZERO, term: Duration::from_millis(500) };
/// How long it may take until nothing is left of a command that is stopped.
const GONE: Duration = Duration::from_secs(10);
/// How long a command may wait to be started, on a busy machine among many others.
const START: Duration = Duration::from_secs(30);
/// How long the streams of a command that has ended are read.
const DRAIN: Duration = Duration::from_secs(1);
/// How much of a stream is read at once.
const CHUNK: usize = 64 * 1024;

/// Runs commands on this machine.
#[derive(Clone, Debug)]
pub struct Native {
    processes: Processes,
    shutdown: Shutdown,
}

/// The end of a command's own process, or of our patience with it.
enum End {
    Exited(Exit),
    Stopped(Status),
}

impl Native {
    /// The longest that a command may take beside its time: to be started, stopped, and read to the
    /// end.
    pub const BESIDE_LIMIT: Duration = START.saturating_add(GONE).saturating_add(DRAIN);

    /// Makes what runs commands; they end with the shutdown at the latest.
    pub fn new(processes: Processes, shutdown: Shutdown) -> Self {
        Self { processes, shutdown }
    }

    /// Runs a command, and stops it if this is dropped.
    ///
    /// What it leaves in the background goes on, but not longer than we do.
    pub async fn run(&self, request: Request) -> Result<Outcome, CommandError> {
        // On a task of its own it is stopped in order, whatever becomes of whoever waits.
        let stopped = request.cancelled.child_token();
        let _stop = stopped.clone().drop_guard();
        let tokens = (stopped, self.shutdown.child());
        let running = run(self.processes.clone(), request, tokens);
        let ended = self.shutdown.spawn("command", running).await;
        ended.unwrap_or(Err(CommandError::Unknown("the task that looks after it has panicked")))
    }
}

async fn run(
    processes: Processes,
    request: Request,
    (stopped, ending): (CancellationToken, CancellationToken),
) -> Result<Outcome, CommandError> {
    let Request { name, payload, cwd, environment, limit, stdin, cancelled: _ } = request;
    let Payload::Shell(line) = payload;
    let spec = Spec {
        name,
        program: SHELL.into(),
        args: vec!["-c".into(), line.into()],
        cwd: Some(cwd),
        env: Arc::unwrap_or_clone(environment.0),
        stderr: Stderr::Piped,
        leftovers: Leftovers::Keep,
    };
    // Whoever waits for its turn and is given up is never started; what was started is stopped in
    // order.
    let turn = tokio::select! {
        biased;
        () = stopped.cancelled() => return Ok(not_begun()),
        () = ending.cancelled() => return Ok(not_begun()),
        turn = processes.turn() => turn?,
    };
    let mut child = processes.spawn_in(turn, spec).await?;
    let started = Instant::now();
    let mut streams = Streams::of(&mut child);
    let end = {
        let input = child.stdin.take();
        let mut feeding = std::pin::pin!(feed(input, &stdin));
        let mut reading = std::pin::pin!(streams.read());
        let mut time = std::pin::pin!(sleep(limit));
        let (mut is_fed, mut is_read) = (false, false);
        loop {
            tokio::select! {
                exit = child.wait() => break End::Exited(exit),
                () = &mut time => break End::Stopped(Status::TimedOut),
                () = stopped.cancelled() => break End::Stopped(Status::Cancelled),
                () = ending.cancelled() => break End::Stopped(Status::Cancelled),
                () = &mut feeding, if !is_fed => is_fed = true,
                () = &mut reading, if !is_read => is_read = true,
            }
        }
    };
    let (status, exit_code) = match end {
        End::Exited(exit) => (Status::Exited, Some(code_of(exit)?)),
        End::Stopped(status) => {
            stop(&mut child, &mut streams).await?;
            (status, None)
        }
    };
    let is_drained = timeout(DRAIN, streams.read()).await.is_ok();
    child.release().await;
    let mut truncation = Vec::new();
    let failed = streams.failed;
    let [stdout, stderr] = [streams.stdout.1.end(), streams.stderr.1.end()];
    truncation.extend((stdout.is_cut() || stderr.is_cut()).then_some(Truncation::ByteLimit));
    truncation.extend((!is_drained).then_some(Truncation::DrainTimeout));
    truncation.extend(failed.then_some(Truncation::StreamError));
    let duration = started.elapsed();
    Ok(Outcome { status, exit_code, stdout, stderr, truncation, duration })
}

/// What became of a command that nobody waited for any more before it was started.
fn not_begun() -> Outcome {
    let nothing = || Capture::new(0).end();
    Outcome {
        status: Status::Cancelled,
        exit_code: None,
        stdout: nothing(),
        stderr: nothing(),
        truncation: Vec::new(),
        duration: Duration::ZERO,
    }
}

/// Ends a command and all that descends from it, and reads on, since it may be busy writing.
async fn stop(child: &mut Child, streams: &mut Streams) -> Result<(), CommandError> {
    let mut gone = std::pin::pin!(timeout(GONE, child.stop(STOP)));
    let gone = tokio::select! {
        gone = &mut gone => gone,
        () = streams.read() => gone.await,
    };
    gone.map(drop).map_err(|_| CommandError::Unknown("it was killed and is still there"))
}

/// Returns the exit code, or the number of the signal below zero.
fn code_of(exit: Exit) -> Result<i32, CommandError> {
    match exit {
        Exit::Code(code) => Ok(code),
        Exit::Signal(number) => Ok(-number),
        Exit::Lost => Err(CommandError::Unknown("its guard was killed")),
    }
}

/// Writes all that a command is to read, and closes its input.
async fn feed(input: Option<ChildStdin>, bytes: &[u8]) {
    let Some(mut input) = input else { return };
    match input.write_all(bytes).await {
        // Whoever does not want to read it need not.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            tracing::debug!(%error, "a command could not be given its input");
        }
        _ => {}
    }
}

/// What a command prints.
struct Streams {
    stdout: (Option<ChildStdout>, Capture),
    stderr: (Option<ChildStderr>, Capture),
    failed: bool,
}

impl Streams {
    fn of(child: &mut Child) -> Self {
        Self {
            stdout: (child.stdout.take(), Capture::new(BUDGET)),
            stderr: (child.stderr.take(), Capture::new(BUDGET)),
            failed: false,
        }
    }

    /// Reads both to their ends; cancel-safe.
    async fn read(&mut self) {
        let Self { stdout, stderr, failed } = self;
        let (one, other) = tokio::join!(drain(stdout), drain(stderr));
        for error in [one, other].into_iter().filter_map(Result::err) {
            tracing::debug!(%error, "what a command printed could not be read");
            *failed = true;
        }
    }
}

/// Reads a stream to its end; cancel-safe, since what was read is kept before more is read.
async fn drain(
    (stream, capture): &mut (Option<impl AsyncRead + Unpin>, Capture),
) -> io::Result<()> {
    let Some(open) = stream else { return Ok(()) };
    let mut piece = vec![0; CHUNK];
    let ended = loop {
        match open.read(&mut piece).await {
            Ok(0) => break Ok(()),
            Ok(count) => capture.push(&piece[..count]),
            Err(error) => break Err(error),
        }
    };
    *stream = None;
    ended
}
