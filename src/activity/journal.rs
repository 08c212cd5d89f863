//! The file of records: whole lines only, by any number of gateways, through rotations.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::telemetry;

/// How often it is looked whether the file is still where it was.
const LOOK: Duration = Duration::from_secs(1);

/// A file that lines are appended to.
///
/// A line that cannot be written is lost, and no call waits for it or fails with it.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    /// When it was last looked whether the file is still there.
    looked: Instant,
    /// Whether the last line was written in part only.
    torn: bool,
    /// How many lines were lost since one was written.
    lost: u64,
    /// Whether a new file could not be opened where the old one was.
    stuck: bool,
}

/// Why there can be no file of records.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be opened.
    #[error("the record of calls {} cannot be written: {error}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It is our standard output, which belongs to the protocol.
    #[error("the record of calls {} is standard output, which belongs to the protocol; name another file", .0.display())]
    StandardOutput(PathBuf),
}

impl Journal {
    /// Opens the file, or makes it for its owner alone; the folder must be there.
    pub(super) fn open(path: &Path) -> Result<Self, JournalError> {
        let failed = |error| JournalError::File { file: path.to_owned(), error };
        let file = open(path).map_err(failed)?;
        if telemetry::is_standard_output(&file).unwrap_or(false) {
            return Err(JournalError::StandardOutput(path.to_owned()));
        }
        let state = State { file, looked: Instant::now(), torn: false, lost: 0, stuck: false };
        Ok(Self { path: path.to_owned(), state: Mutex::new(state) })
    }

    /// Appends a line, in one write.
    pub(super) fn append(&self, line: &str, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(state.looked) >= LOOK {
            state.looked = now;
            self.follow(&mut state);
        }
        match state.write(line) {
            Ok(()) if state.lost > 0 => {
                tracing::warn!(lost = state.lost, "the activity log can be written again");
                state.lost = 0;
            }
            Ok(()) => {}
            Err(error) => {
                state.lost += 1;
                if state.lost == 1 {
                    let file = self.path.display();
                    tracing::error!(%error, %file, "the activity log cannot be written; records are lost");
                }
            }
        }
    }

    /// Returns how many lines were lost since one was written.
    #[cfg(test)]
    pub(super) fn lost(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).lost
    }

    /// Opens the file anew if it was renamed or removed; until that can be done, the old one is kept.
    fn follow(&self, state: &mut State) {
        let open_one = state.file.metadata().map(|file| (file.dev(), file.ino()));
        let there = self.path.metadata().map(|file| (file.dev(), file.ino()));
        if matches!((&open_one, &there), (Ok(ours), Ok(there)) if ours == there) {
            state.stuck = false;
            return;
        }
        match open(&self.path) {
            Ok(file) => (state.file, state.torn, state.stuck) = (file, false, false),
            Err(error) => {
                if !state.stuck {
                    let file = self.path.display();
                    tracing::error!(%error, %file, "the activity log was moved and cannot be made anew; the old file is written on");
                }
                state.stuck = true;
            }
        }
    }
}

impl State {
    fn write(&mut self, line: &str) -> io::Result<()> {
        // A torn line is ended first, so that it spoils no other.
        let line = if self.torn { format!("\n{line}") } else { line.to_owned() };
        let written = loop {
            match self.file.write(line.as_bytes()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => break written?,
            }
        };
        if written == line.len() {
            self.torn = false;
            return Ok(());
        }
        // Where only the first line feed fitted, nothing is torn any more.
        if let Some(last) = line.as_bytes()[..written].last() {
            self.torn = *last != b'\n';
        }
        Err(io::ErrorKind::StorageFull.into())
    }
}

/// Opens a file for appending; what would wait for a reader is refused.
fn open(path: &Path) -> io::Result<File> {
    if path.metadata().is_ok_and(|file| !file.is_file() && !file.file_type().is_char_device()) {
        return Err(io::Error::other("it is no file"));
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}
