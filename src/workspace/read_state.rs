//! What a session has read, and whether it is still so.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::tool::{ErrorCode, Failure};
use crate::workspace::{ResolvedPath, one_line};

/// An existing file that the session has not read.
pub const FILE_NOT_READ: ErrorCode = ErrorCode::new("FILE_NOT_READ");
/// A file that changed after the session read it.
pub const STALE_FILE_STATE: ErrorCode = ErrorCode::new("STALE_FILE_STATE");

/// What was last seen of each file, by its resolved path.
#[derive(Debug, Default)]
pub struct ReadState {
    seen: Mutex<HashMap<PathBuf, Observation>>,
}

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// When it was last modified, in nanoseconds since 1970.
    pub mtime_ns: i128,
    /// Its size.
    pub size_bytes: u64,
}

impl ReadState {
    /// Remembers what was seen of a file when it was read, written or edited.
    pub fn record(&self, path: &ResolvedPath, observation: Observation) {
        self.seen().insert(path.absolute().to_owned(), observation);
    }

    /// Returns what was last seen of a file.
    pub fn get(&self, path: &ResolvedPath) -> Option<Observation> {
        self.seen().get(path.absolute()).copied()
    }

    /// Checks that a file was read and has not changed since; `now` is how it is now.
    pub fn check_fresh(&self, path: &ResolvedPath, now: Observation) -> Result<(), Failure> {
        let name = one_line(path.given());
        match self.get(path) {
            Some(seen) if seen == now => Ok(()),
            Some(_) => Err(Failure::new(
                STALE_FILE_STATE,
                format!("the file changed after it was read; read it again: {name}"),
            )),
            None => Err(Failure::new(
                FILE_NOT_READ,
                format!("an existing file must be read before it is changed: {name}"),
            )),
        }
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<PathBuf, Observation>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
