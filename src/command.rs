//! Commands that agent files name: run once, with a deadline, and what they print kept in bounds.

pub mod capture;
mod native;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use self::capture::Captured;
use crate::process::SpawnError;

pub use self::native::Native;

/// What commands are run with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Their complete environment.
    pub environment: Environment,
}

/// All variables of a command; some of their values may be secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(Arc<BTreeMap<String, String>>);

/// A command to run.
#[derive(Clone, Debug)]
pub struct Request {
    /// What logs call it.
    pub name: String,
    /// What is run.
    pub payload: Payload,
    /// Where.
    pub cwd: PathBuf,
    /// Its complete environment.
    pub environment: Environment,
    /// How long it may take.
    pub limit: Duration,
    /// What it reads on standard input.
    pub stdin: Bytes,
    /// Stops it.
    pub cancelled: CancellationToken,
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A line for a shell.
    Shell(String),
}

/// What became of a command that was started.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// Its exit code, or the number of the signal that ended it, below zero; only if it ended by
    /// itself.
    pub exit_code: Option<i32>,
    /// What it printed.
    pub stdout: Captured,
    /// What it printed on standard error.
    pub stderr: Captured,
    /// Why that is not all of what it printed.
    pub truncation: Vec<Truncation>,
    /// How long it took.
    pub duration: Duration,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// By itself.
    Exited,
    /// Stopped, since its time was up.
    TimedOut,
    /// Stopped, since nobody waits for it any more.
    Cancelled,
}

/// Why what was kept is not all that a command printed; in the order in which it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Truncation {
    /// It was too much.
    ByteLimit,
    /// A process that it left behind held a stream open.
    DrainTimeout,
    /// A stream could not be read.
    StreamError,
}

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// It was not started.
    #[error("the command was not started: {}", chain(.0))]
    NotStarted(#[from] SpawnError),
    /// It was started, and how it ended is not known.
    #[error("nobody can say how the command ended: {0}")]
    Unknown(&'static str),
}

impl From<BTreeMap<String, String>> for Environment {
    fn from(variables: BTreeMap<String, String>) -> Self {
        Self(Arc::new(variables))
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Truncation {
    /// Returns the word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ByteLimit => "byte_limit",
            Self::DrainTimeout => "drain_timeout",
            Self::StreamError => "stream_error",
        }
    }
}

impl fmt::Display for Truncation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns an error with its causes.
fn chain(error: &SpawnError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
