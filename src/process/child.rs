//! The handle of a running child.

use std::time::Duration;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, watch};

use super::stderr::LastLines;
use super::supervisor::{Request, Status};
use super::{Exit, Grace};

/// How long the last words of a child that has ended are waited for.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A running child process and everything that descends from it.
///
/// Dropping it ends them all in the background, as [`stop`](Self::stop) with the default
/// [`Grace`] does.
#[derive(Debug)]
pub struct Child {
    /// Its standard input; whoever takes it out closes it, too.
    pub stdin: Option<ChildStdin>,
    /// Its standard output.
    pub stdout: Option<ChildStdout>,
    /// Its standard error, with [`Stderr::Piped`](super::Stderr::Piped).
    pub stderr: Option<ChildStderr>,
    pub(super) pid: u32,
    pub(super) guard_pid: u32,
    pub(super) last_lines: LastLines,
    pub(super) requests: mpsc::Sender<Request>,
    pub(super) status: watch::Receiver<Status>,
}

impl Child {
    /// Returns the process id of the program itself.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the process id of its guard.
    pub fn guard_pid(&self) -> u32 {
        self.guard_pid
    }

    /// Returns the last lines of its standard error, oldest first, if it is logged.
    pub fn last_stderr(&self) -> Vec<String> {
        self.last_lines.get()
    }

    /// Waits until the program has ended, and says how; cancel-safe.
    ///
    /// By then [`last_stderr`](Self::last_stderr) holds its last words. Processes that it left
    /// behind may still be about to end; [`stop`](Self::stop) waits for those, too.
    pub async fn wait(&self) -> Exit {
        let mut status = self.status.clone();
        let exit = match status.wait_for(|status| status.exit.is_some() || status.gone).await {
            Ok(status) => status.exit.unwrap_or(Exit::Lost),
            // The runtime ended the supervisor.
            Err(_) => Exit::Lost,
        };
        // Something left behind may hold the stream open: then these were not the last words.
        let _cut_off = tokio::time::timeout(LAST_WORDS, self.last_lines.ended()).await;
        exit
    }

    /// Ends the program and its descendants, and returns when none is left.
    ///
    /// Closes standard input (unless someone else has taken it: then close it first), asks, and
    /// finally kills. The times overlap with those of an earlier call that was given up; the
    /// shorter ones win.
    pub async fn stop(&mut self, grace: Grace) -> Exit {
        self.stdin = None;
        // The supervisor is gone when all is over already.
        let _over = self.requests.send(Request::Stop(grace)).await;
        drop(self.status.wait_for(|status| status.gone).await);
        self.wait().await
    }

    /// Lets it run without a handle, until it ends by itself or the shutdown ends it.
    ///
    /// With [`Leftovers::Keep`](super::Leftovers::Keep) this lets the background processes of a
    /// finished command go on.
    pub async fn release(self) {
        let _over = self.requests.send(Request::Release).await;
    }
}
