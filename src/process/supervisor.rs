//! The gateway's side of a guard: one task that owns it until it is gone.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::spawn::Launched;
use super::stderr::{self, LastLines};
use super::wire::{Order, REPORT_BYTES, Report};
use super::{Child, Exit, Grace, Spec, Stderr, orphans};
use crate::shutdown::Shutdown;

/// The grace at the shutdown: even the most stubborn family is gone within 3 s.
const AT_SHUTDOWN: Grace = Grace { stdin: Duration::from_secs(1), term: Duration::from_secs(1) };
/// How long a guard may take to kill its family before it is killed itself.
const GUARD_PATIENCE: Duration = Duration::from_secs(2);
/// How long a stream is read after the last process that could write to it is gone.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a [`Child`] asks its supervisor for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Request {
    /// End it all, with this much time.
    Stop(Grace),
    /// Go on after the handle is dropped.
    Release,
}

/// What a supervisor tells the [`Child`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Status {
    /// How the program ended, once it has.
    pub(super) exit: Option<Exit>,
    /// Nothing is left of it.
    pub(super) gone: bool,
}

/// How a start went.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start {
    /// The program runs under this process id.
    Running(i32),
    /// There was no process to run it in: an errno.
    NotForked(i32),
    /// The process could not become the program: an errno.
    NotExecuted(i32),
}

/// Starts the tasks that look after a guard, and makes the handle of its child.
///
/// The handle's process id is filled in after the start went well.
pub(super) fn supervise(
    shutdown: &Shutdown,
    spec: &Spec,
    launched: Launched,
) -> (Child, oneshot::Receiver<Start>) {
    let Launched { mut guard, control, stdin } = launched;
    let guard_pid = guard.id().unwrap_or_default();
    let last_lines = LastLines::default();
    let (stdout, mut stderr) = (guard.stdout.take(), guard.stderr.take());
    let reader = match spec.stderr {
        Stderr::Piped => {
            last_lines.end();
            None
        }
        Stderr::Logged => stderr.take().map(|stream| {
            let follow = stderr::follow(spec.name.clone(), stream, last_lines.clone());
            shutdown.spawn("stderr", follow)
        }),
    };
    let (requests, inbox) = mpsc::channel(1);
    let (sender, status) = watch::channel(Status::default());
    let (started, start) = oneshot::channel();
    let supervisor = Supervisor {
        name: spec.name.clone(),
        guard,
        guard_pid,
        control: Some(control),
        frames: Vec::new(),
        reader,
        inbox: Some(inbox),
        status: sender,
        started: Some(started),
        ladder: Ladder::default(),
        shutting_down: false,
    };
    shutdown.spawn("process", supervisor.run(shutdown.child()));
    let pid = 0;
    let child =
        Child { stdin: Some(stdin), stdout, stderr, pid, guard_pid, last_lines, requests, status };
    (child, start)
}

struct Supervisor {
    name: String,
    guard: tokio::process::Child,
    guard_pid: u32,
    /// The socket to the guard, until it closes.
    control: Option<UnixStream>,
    /// What has arrived of reports.
    frames: Vec<u8>,
    /// The task that reads standard error.
    reader: Option<JoinHandle<()>>,
    /// The handle, until it is dropped.
    inbox: Option<mpsc::Receiver<Request>>,
    status: watch::Sender<Status>,
    /// Who waits for the start.
    started: Option<oneshot::Sender<Start>>,
    ladder: Ladder,
    shutting_down: bool,
}

enum Event {
    Heard(io::Result<usize>),
    Asked(Option<Request>),
    GuardEnded(io::Result<ExitStatus>),
    ShuttingDown,
    TimeIsUp,
}

impl Supervisor {
    async fn run(mut self, shutdown: CancellationToken) {
        let ended = loop {
            match self.next(&shutdown).await {
                Event::Heard(Ok(1..)) => self.read_reports(),
                Event::Heard(_) => self.control = None,
                Event::Asked(Some(Request::Stop(grace))) => self.begin(grace),
                Event::Asked(Some(Request::Release)) => self.inbox = None,
                Event::Asked(None) => {
                    self.inbox = None;
                    self.begin(Grace::default());
                }
                Event::ShuttingDown => {
                    self.shutting_down = true;
                    self.begin(AT_SHUTDOWN);
                }
                Event::TimeIsUp => self.climb().await,
                Event::GuardEnded(status) => break status,
            }
        };
        self.finish(ended).await;
    }

    /// Waits for what comes next; every branch is cancel-safe.
    async fn next(&mut self, shutdown: &CancellationToken) -> Event {
        let Self { guard, control, frames, inbox, ladder, shutting_down, .. } = self;
        let heard = async {
            match control {
                Some(control) => control.read_buf(frames).await,
                None => std::future::pending().await,
            }
        };
        let asked = async {
            match inbox {
                Some(inbox) => inbox.recv().await,
                None => std::future::pending().await,
            }
        };
        let time = async {
            match ladder.until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            heard = heard => Event::Heard(heard),
            asked = asked => Event::Asked(asked),
            status = guard.wait() => Event::GuardEnded(status),
            () = shutdown.cancelled(), if !*shutting_down => Event::ShuttingDown,
            () = time => Event::TimeIsUp,
        }
    }

    fn read_reports(&mut self) {
        while let Some((frame, rest)) = self.frames.split_first_chunk::<REPORT_BYTES>() {
            let report = Report::decode(*frame);
            self.frames = rest.to_vec();
            match report {
                Some(Report::Started(pid)) => self.start(Start::Running(pid)),
                Some(Report::NotForked(errno)) => self.start(Start::NotForked(errno)),
                Some(Report::NotExecuted(errno)) => self.start(Start::NotExecuted(errno)),
                Some(Report::Exited(code)) => self.exit(Exit::Code(code)),
                Some(Report::Signalled(number)) => self.exit(Exit::Signal(number)),
                None => {}
            }
        }
    }

    fn start(&mut self, start: Start) {
        if let Some(started) = self.started.take() {
            // Nobody waits any more: then the handle is dropped, too.
            let _unheard = started.send(start);
        }
    }

    fn exit(&self, exit: Exit) {
        tracing::debug!(process.name = self.name, "ended: {exit}");
        self.status.send_modify(|status| status.exit = Some(exit));
    }

    /// Begins to end the family; without the program, nobody heeds the end of its input.
    fn begin(&mut self, mut grace: Grace) {
        if self.status.borrow().exit.is_some() {
            grace.stdin = Duration::ZERO;
        }
        self.ladder.begin(grace, Instant::now());
    }

    /// Does what the next rung of the ladder says.
    async fn climb(&mut self) {
        let order = match self.ladder.climb(Instant::now()) {
            Rung::Terminate => Order::Terminate,
            Rung::Kill => Order::Kill,
            Rung::KillGuard => {
                tracing::warn!(process.name = self.name, "its guard does not answer: killing it");
                // Gone already: then the next event says so.
                let _gone = self.guard.start_kill();
                return;
            }
            Rung::Running | Rung::CloseStdin => return,
        };
        if let Some(control) = &mut self.control {
            // Gone already: then the next event says so. One byte always fits.
            let _gone = control.write_all(&[order.encode()]).await;
        }
    }

    async fn finish(mut self, ended: io::Result<ExitStatus>) {
        orphans::guards().remove(&self.guard_pid.cast_signed());
        if let Some(control) = self.control.take() {
            while let Ok(1..) = control.try_read_buf(&mut self.frames) {}
            self.read_reports();
        }
        // Whoever waits for a start that will never come need not wait for the rest.
        self.started = None;
        if !ended.is_ok_and(|status| status.success()) {
            let left = orphans::sweep().await;
            tracing::warn!(process.name = self.name, left, "its guard failed or was killed");
        }
        if let Some(mut reader) = self.reader.take()
            && tokio::time::timeout(LAST_WORDS, &mut reader).await.is_err()
        {
            reader.abort();
        }
        self.status.send_modify(|status| status.gone = true);
    }
}

/// The steps from a running child to a dead one; a pure state machine fed with instants.
#[derive(Clone, Copy, Debug, Default)]
struct Ladder {
    rung: Rung,
    grace: Grace,
    /// When the next rung is due; none before [`begin`](Self::begin), and on the last one.
    until: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Rung {
    #[default]
    Running,
    /// Standard input was closed, which is the handle's part.
    CloseStdin,
    Terminate,
    Kill,
    KillGuard,
}

impl Ladder {
    fn begun(&self) -> bool {
        self.rung != Rung::Running
    }

    /// Begins to climb; begun already, only hurries.
    fn begin(&mut self, grace: Grace, now: Instant) {
        if !self.begun() {
            self.rung = Rung::CloseStdin;
            self.grace = grace;
        }
        self.grace.stdin = self.grace.stdin.min(grace.stdin);
        self.grace.term = self.grace.term.min(grace.term);
        self.until = match (self.until, self.time(now)) {
            (Some(planned), Some(until)) => Some(planned.min(until)),
            (planned, until) => planned.or(until),
        };
    }

    /// Steps onto the next rung.
    fn climb(&mut self, now: Instant) -> Rung {
        self.rung = match self.rung {
            Rung::Running | Rung::CloseStdin if self.grace.term.is_zero() => Rung::Kill,
            Rung::Running | Rung::CloseStdin => Rung::Terminate,
            Rung::Terminate => Rung::Kill,
            Rung::Kill | Rung::KillGuard => Rung::KillGuard,
        };
        self.until = self.time(now);
        self.rung
    }

    /// Returns when the rung that we stand on ends, if we stepped on it at `now`.
    fn time(&self, now: Instant) -> Option<Instant> {
        match self.rung {
            Rung::CloseStdin => Some(now + self.grace.stdin),
            Rung::Terminate => Some(now + self.grace.term),
            Rung::Kill => Some(now + GUARD_PATIENCE),
            Rung::Running | Rung::KillGuard => None,
        }
    }
}

#[cfg(test)]
mod tests;
