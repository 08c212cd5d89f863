//! How the process ends: one token that says so, one tracker of every task, and the signals.
//!
//! Every task has a parent: it is started with [`Shutdown::spawn`], so that [`Shutdown::drain`]
//! can wait for it. What must end earlier than the rest (a connection, a call) gets a
//! [`child`](Shutdown::child) token; what must end later gets a `Shutdown` of its own.

use std::fmt;
use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal as Listener, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

/// For how long the same wish to end may come again: a launcher passes on what a terminal or
/// `timeout` has sent to everybody, so that one Ctrl-C is two signals.
const ECHO: Duration = Duration::from_millis(250);

/// The token and the tasks that end together.
///
/// Clones share both.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    token: CancellationToken,
    tasks: TaskTracker,
}

/// What [`Shutdown::drain`] found at the end of its grace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Drained {
    /// Every task has ended.
    All,
    /// So many tasks are still running.
    Left(usize),
}

/// Does work that takes long and waits for nothing, beside the other tasks of its thread.
///
/// There are few threads: one that is busy for a second is a second in which others are not served.
/// Where there is but one for all tasks, the work is done as it is.
pub fn beside_others<T>(work: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

impl Shutdown {
    /// Makes a shutdown that nobody has asked for yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a task that [`drain`](Self::drain) waits for; `name` labels its span.
    pub fn spawn<F>(&self, name: &str, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.tasks.spawn(future.instrument(tracing::debug_span!("task", task.name = name)))
    }

    /// Returns the tracker, for those who start tasks of their own on it.
    pub fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Returns the token that is cancelled when everything must end.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Makes a token that ends with this shutdown and can be cancelled alone.
    pub fn child(&self) -> CancellationToken {
        self.token.child_token()
    }

    /// Tells every task to end.
    pub fn cancel(&self) {
        self.token.cancel();
    }

    /// Waits until every task has ended, but no longer than `grace`.
    pub async fn drain(&self, grace: Duration) -> Drained {
        self.tasks.close();
        match tokio::time::timeout(grace, self.tasks.wait()).await {
            Ok(()) => Drained::All,
            Err(_) => Drained::Left(self.tasks.len()),
        }
    }
}

/// A signal that asks the process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// `SIGTERM`: a service manager.
    Terminate,
    /// `SIGINT`: Ctrl-C.
    Interrupt,
    /// `SIGHUP`: the terminal went away.
    Hangup,
}

impl Signal {
    const ALL: [Self; 3] = [Self::Terminate, Self::Interrupt, Self::Hangup];

    fn kind(self) -> SignalKind {
        match self {
            Self::Terminate => SignalKind::terminate(),
            Self::Interrupt => SignalKind::interrupt(),
            Self::Hangup => SignalKind::hangup(),
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
            Self::Hangup => "SIGHUP",
        })
    }
}

/// The signals that ask the process to end, caught from [`signals`] on.
#[derive(Debug)]
pub struct Signals {
    listeners: Vec<(Signal, Listener)>,
}

/// Starts to catch `SIGTERM`, `SIGINT` and `SIGHUP` instead of dying from them.
///
/// One that was ignored when we were started (`nohup`, a background job) stays ignored.
pub fn signals() -> io::Result<Signals> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = ignored(&status);
    let listeners = Signal::ALL
        .into_iter()
        .filter(|one| mask & (1 << (one.kind().as_raw_value() - 1)) == 0)
        .map(|one| Ok((one, signal(one.kind())?)))
        .collect::<io::Result<_>>()?;
    Ok(Signals { listeners })
}

impl Signals {
    /// Waits for the next signal and says which it was.
    ///
    /// Cancel-safe: no signal is lost.
    pub async fn next(&mut self) -> Signal {
        std::future::poll_fn(|cx| {
            for (one, listener) in &mut self.listeners {
                if listener.poll_recv(cx).is_ready() {
                    return std::task::Poll::Ready(*one);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }

    /// Waits for a second signal from somebody who does not want to wait, and says which it was.
    ///
    /// One that comes within a quarter of a second is still the first.
    pub async fn second(&mut self) -> Signal {
        self.next().await;
        let first = Instant::now();
        loop {
            let signal = self.next().await;
            if first.elapsed() > ECHO {
                return signal;
            }
        }
    }
}

/// Returns the mask of ignored signals that `/proc/self/status` reports.
fn ignored(status: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
