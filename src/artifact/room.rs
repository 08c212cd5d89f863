//! Making room: what is too old, too much, or was never finished, goes.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::PoisonError;
use std::time::{Duration, Instant, SystemTime};

use super::quota::{self, Kept, Quota};
use super::{Area, ArtifactStore, FOLDER, UNFINISHED};
use crate::workspace::folder::Folder;

/// How often to look what is kept, whatever room there is; others may keep files there, too.
const LOOK_AGAIN: Duration = Duration::from_mins(10);
/// How old an unfinished file is that nobody writes any more.
const LEFT_OVER: Duration = Duration::from_mins(1);

impl ArtifactStore {
    /// Returns how often to look for what is too old.
    pub fn sweeps_every(&self) -> Duration {
        self.config.quota.max_age.clamp(Duration::from_secs(1), LOOK_AGAIN)
    }

    /// Removes what is too old or was never finished; blocks. Makes no folder.
    pub fn sweep(&self) {
        let opened = self.root.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        let there = match &self.config.folder {
            Some(place) => place.path().exists(),
            None => self.workspace.root().join(FOLDER).exists(),
        };
        if !opened && !there {
            return;
        }
        match self.root() {
            Ok(root) => {
                let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
                *used = None;
                drop(used);
                self.make_room(&root, 0);
            }
            Err(error) => tracing::warn!(%error, "old artifacts cannot be looked for"),
        }
    }

    /// Removes what has to go before `new` bytes are written.
    pub(super) fn make_room(&self, root: &Folder, new: u64) {
        let Quota { max_bytes, max_age: _ } = self.config.quota;
        // Held while files are looked at, so that only one call does that.
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((used, looked)) = *used
            && used.saturating_add(new) <= max_bytes
            && looked.elapsed() < LOOK_AGAIN
        {
            return;
        }
        let mut gone = 0usize;
        let kept = kept(root).into_iter().filter(|kept| !is_left_over(root, kept)).collect();
        let left = quota::evict(kept, new, self.config.quota, SystemTime::now(), |kept| {
            let removed = remove(root, kept);
            gone += usize::from(removed);
            removed
        });
        if gone > 0 {
            tracing::info!(files = gone, bytes_left = left, "old artifacts were removed");
        }
        *used = Some((left, Instant::now()));
    }
}

/// Lists every artifact of every session.
fn kept(root: &Folder) -> Vec<Kept> {
    let mut all = Vec::new();
    for area in Area::ALL {
        let Ok(Some(sessions)) = root.existing(Path::new(area.folder())) else { continue };
        let entries = sessions.entries().unwrap_or_default();
        for session in entries.into_iter().filter(|entry| entry.is_folder) {
            let Ok(Some(folder)) = sessions.existing(Path::new(&session.name)) else { continue };
            let entries = folder.entries().unwrap_or_default();
            if entries.is_empty() {
                // Fails where somebody is quicker, and then it is not empty any more.
                drop(sessions.remove_empty(&session.name));
            }
            all.extend(entries.into_iter().filter(|entry| !entry.is_folder).map(|entry| Kept {
                area,
                folder: session.name.clone(),
                file: entry.name,
                size: entry.size,
                used: entry.modified,
            }));
        }
    }
    all
}

/// Removes a file that whoever wrote it never finished; says whether it did.
fn is_left_over(root: &Folder, kept: &Kept) -> bool {
    let is_old = kept.used.elapsed().is_ok_and(|age| age > LEFT_OVER);
    is_old && kept.file.ends_with(UNFINISHED) && remove(root, kept)
}

/// Removes a file, unless somebody writes or reads it.
fn remove(root: &Folder, kept: &Kept) -> bool {
    let folder = Path::new(kept.area.folder()).join(&kept.folder);
    let removed = root.existing(&folder).and_then(|folder| {
        let folder = folder.ok_or(ErrorKind::NotFound)?;
        let file = folder.open(&kept.file)?;
        file.try_lock().map_err(|error| io::Error::new(ErrorKind::WouldBlock, error))?;
        folder.remove(&kept.file)
    });
    match removed {
        Ok(()) => true,
        Err(error) => {
            // Gone by itself is gone as well.
            let gone = error.kind() == ErrorKind::NotFound;
            if !gone && error.kind() != ErrorKind::WouldBlock {
                tracing::warn!(%error, file = kept.file, "an old artifact could not be removed");
            }
            gone
        }
    }
}
