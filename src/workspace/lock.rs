//! Who may change a file now: one at a time, in this process and beside it.
//!
//! Two locks do it. Within the process there is one for each file, which costs nothing while it is
//! waited for. Between processes it is the advisory lock (`flock`) of the folder's own handle:
//! there is no lock file to leave behind, the kernel lets go of it whoever dies, and the folder
//! stays the same while files in it are replaced. It holds off other processes of ours, nobody
//! else. Where a file system has no such lock, or the folder may not be read, only the first lock
//! is left.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use cap_std::fs::{Dir, OpenOptions};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;

use super::mutate::{not_cancelled, unwritable};
use crate::tool::Failure;
use crate::tool::result::EXECUTION_ERROR;
use crate::workspace::{ResolvedPath, one_line};

/// How long to wait before looking again whether another process is done.
const PAUSE: Duration = Duration::from_millis(2);
/// How often to look: half a minute in all.
const LOOKS: usize = 15_000;

type PerFile = HashMap<PathBuf, Arc<AsyncMutex<()>>>;

/// The files that are being changed, or waited for, in this process.
#[derive(Debug, Default)]
pub(super) struct Locks(Arc<Mutex<PerFile>>);

/// The right to change one file, until it is dropped.
#[derive(Debug)]
pub struct LockedFile {
    path: ResolvedPath,
    /// Let go of first, and only then forgotten.
    guard: Option<OwnedMutexGuard<()>>,
    lock: Option<Arc<AsyncMutex<()>>>,
    locks: Arc<Mutex<PerFile>>,
}

impl Locks {
    /// Waits until nobody else in this process changes the file.
    pub(super) async fn lock(&self, path: ResolvedPath) -> LockedFile {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(locks.entry(path.absolute().to_owned()).or_default())
        };
        // Made before the wait, so that one who gives up waiting is forgotten, too.
        let locks = Arc::clone(&self.0);
        let mut locked = LockedFile { path, guard: None, lock: Some(Arc::clone(&lock)), locks };
        locked.guard = Some(lock.lock_owned().await);
        locked
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl LockedFile {
    /// Returns the path of the file.
    pub fn path(&self) -> &ResolvedPath {
        &self.path
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        self.guard = None;
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock = None;
        let path = self.path.absolute();
        if locks.get(path).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(path);
        }
    }
}

/// Waits until no other process changes files of a folder; nothing where there is no such lock.
pub(super) fn lock_folder(
    folder: &Dir,
    path: &ResolvedPath,
    stop: &CancellationToken,
) -> Result<Option<Flock<File>>, Failure> {
    let mut handle = match folder.open_with(".", OpenOptions::new().read(true)) {
        Ok(handle) => handle.into_std(),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return Ok(None),
        Err(error) => return Err(unwritable(path, error)),
    };
    for _ in 0..LOOKS {
        not_cancelled(stop)?;
        match Flock::lock(handle, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(Some(lock)),
            Err((same, Errno::EWOULDBLOCK | Errno::EINTR)) => handle = same,
            Err((_, errno)) => {
                tracing::debug!(%errno, "the folder of a file cannot be locked for other processes");
                return Ok(None);
            }
        }
        thread::sleep(PAUSE);
    }
    let name = one_line(path.given());
    let message = format!("another process keeps the folder of this file locked: {name}");
    Err(Failure::new(EXECUTION_ERROR, message).retryable())
}
