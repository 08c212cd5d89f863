//! The files of skills that somebody watches, and how each was when that was last looked at.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::files::{self, SkillFile};
use super::stock::Stock;
use crate::relay::Watch;

/// What is watched, by address; clones are one.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched(Arc<Mutex<BTreeMap<String, Wanted>>>);

#[derive(Debug)]
struct Wanted {
    watchers: usize,
    /// The digest of the bytes; none where there is no such file.
    digest: Option<String>,
}

impl Watched {
    /// Watches a file that has this digest, until what comes back is dropped.
    pub(super) fn watch(&self, uri: &str, digest: String) -> Watch {
        let new = || Wanted { watchers: 0, digest: Some(digest) };
        self.wanted().entry(uri.to_owned()).or_insert_with(new).watchers += 1;
        let (watched, uri) = (self.clone(), uri.to_owned());
        Watch::new(move || watched.leave(&uri))
    }

    /// Looks at all that is watched, and returns the addresses of what has changed.
    pub(super) fn changed(&self, stock: &Stock) -> Vec<String> {
        let uris: Vec<String> = self.wanted().keys().cloned().collect();
        let (mut changed, mut of, mut there) = (Vec::new(), None, Vec::new());
        for uri in uris {
            // They are sorted, so that all of one skill come together.
            let name = files::name_in(&uri).map(str::to_owned);
            if of != name {
                there = name.as_deref().map(|name| all(stock, name)).unwrap_or_default();
                of = name;
            }
            let file = there.iter().find(|file| file.uri == uri);
            let digest = file.and_then(|file| files::reckon(stock, file).ok()).map(|it| it.digest);
            if let Some(wanted) = self.wanted().get_mut(&uri)
                && wanted.digest != digest
            {
                wanted.digest = digest;
                changed.push(uri);
            }
        }
        changed
    }

    fn leave(&self, uri: &str) {
        let mut all = self.wanted();
        let Some(wanted) = all.get_mut(uri) else { return };
        wanted.watchers -= 1;
        if wanted.watchers == 0 {
            all.remove(uri);
        }
    }

    fn wanted(&self) -> MutexGuard<'_, BTreeMap<String, Wanted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns all files of the skill of this name; none where there is none, or it is not published.
fn all(stock: &Stock, name: &str) -> Vec<SkillFile> {
    stock.get(name).and_then(|skill| files::of(stock, &skill).ok()).unwrap_or_default()
}
