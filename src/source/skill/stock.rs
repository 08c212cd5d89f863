//! The skills there are now, for whoever answers a question about them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use super::scan::{Found, Skill};
use super::watched::Watched;
use crate::session::Sessions;
use crate::workspace::{Stamp, Workspace};

/// How many digests are remembered.
const MOST_DIGESTS: usize = 20_000;

/// What was found last, and what it takes to read it.
#[derive(Debug)]
pub(super) struct Stock {
    workspace: Arc<Workspace>,
    sessions: Arc<Sessions>,
    roots: Vec<String>,
    found: ArcSwap<Found>,
    /// What was reckoned of files that may not have changed since.
    digests: Mutex<HashMap<PathBuf, Digested>>,
    watched: Watched,
}

#[derive(Debug)]
struct Digested {
    stamp: Stamp,
    /// Whether the stamp was the same twice: a file may be written twice in one moment.
    is_settled: bool,
    of: Reckoned,
}

/// The digest and the size of the same bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reckoned {
    pub(super) digest: String,
    pub(super) size: u64,
}

impl Stock {
    pub(super) fn new(
        workspace: Arc<Workspace>,
        sessions: Arc<Sessions>,
        roots: Vec<String>,
    ) -> Self {
        let (found, digests) = (ArcSwap::default(), Mutex::default());
        Self { workspace, sessions, roots, found, digests, watched: Watched::default() }
    }

    pub(super) fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    pub(super) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    pub(super) fn roots(&self) -> &[String] {
        &self.roots
    }

    pub(super) fn watched(&self) -> &Watched {
        &self.watched
    }

    pub(super) fn found(&self) -> Arc<Found> {
        self.found.load_full()
    }

    pub(super) fn put(&self, found: Arc<Found>) {
        self.found.store(found);
    }

    pub(super) fn get(&self, name: &str) -> Option<Arc<Skill>> {
        self.found().skills.iter().find(|skill| skill.name == name).cloned()
    }

    /// Returns all names, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.found().skills.iter().map(|skill| skill.name.clone()).collect();
        names.sort();
        names
    }

    /// Returns what was reckoned of a file, if that has not changed.
    pub(super) fn reckoned(&self, file: &Path, stamp: Stamp) -> Option<Reckoned> {
        let digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        let known = digests.get(file)?;
        (known.is_settled && known.stamp == stamp).then(|| known.of.clone())
    }

    pub(super) fn remember(&self, file: PathBuf, stamp: Stamp, of: Reckoned) {
        let mut digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        if digests.len() >= MOST_DIGESTS {
            digests.clear();
        }
        let is_settled = digests.get(&file).is_some_and(|known| known.stamp == stamp);
        digests.insert(file, Digested { stamp, is_settled, of });
    }
}
