//! What our clients want to hear from a server, and what it was told of that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::relay::Watch;
use crate::tool::Level;

/// What is wanted; it outlives connections.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    state: Mutex<State>,
    /// Counts the changes.
    changed: watch::Sender<u64>,
    /// The resources that a server of the newer era has agreed to tell of.
    heard: watch::Sender<BTreeSet<String>>,
}

#[derive(Debug, Default)]
struct State {
    /// How many clients want to be told of each resource.
    uris: BTreeMap<String, usize>,
    /// The least grave log messages that anybody wants.
    level: Option<Level>,
}

/// What a connection's server of the older era was told.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) uris: BTreeSet<String>,
    pub(super) level: Option<Level>,
}

impl Wanted {
    /// Notes that a client wants to be told of a resource.
    pub(super) fn watch(self: &Arc<Self>, uri: &str) -> Watch {
        *self.state().uris.entry(uri.to_owned()).or_default() += 1;
        self.changed();
        let (wanted, uri) = (Arc::clone(self), uri.to_owned());
        Watch::new(move || wanted.leave(&uri))
    }

    fn leave(&self, uri: &str) {
        let mut state = self.state();
        if let Some(count) = state.uris.get_mut(uri) {
            *count -= 1;
            if *count == 0 {
                state.uris.remove(uri);
            }
        }
        drop(state);
        self.changed();
    }

    /// Sets the least grave log messages that anybody wants.
    pub(super) fn set_level(&self, level: Level) {
        if self.state().level.replace(level) != Some(level) {
            self.changed();
        }
    }

    /// Sees to it that log messages of a level are wanted; returns whether they were not before.
    pub(super) fn lower_level(&self, level: Level) -> bool {
        let is_new = self.state().level.is_none_or(|least| level < least);
        if is_new {
            self.set_level(level);
        }
        is_new
    }

    pub(super) fn level(&self) -> Option<Level> {
        self.state().level
    }

    /// Returns the resources that somebody wants to be told of.
    pub(super) fn uris(&self) -> BTreeSet<String> {
        self.state().uris.keys().cloned().collect()
    }

    /// Returns a receiver that sees each change.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Notes which resources a server of the newer era tells of.
    pub(super) fn heard(&self, uris: BTreeSet<String>) {
        self.heard.send_replace(uris);
    }

    /// Waits until a server of the newer era tells of a resource.
    pub(super) async fn is_heard(&self, uri: &str) {
        // The sender lives as long as we do.
        drop(self.heard.subscribe().wait_for(|uris| uris.contains(uri)).await);
    }

    fn changed(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_wanted_as_long_as_anybody_wants_it() {
        let wanted = Arc::new(Wanted::default());
        let (one, other) = (wanted.watch("a"), wanted.watch("a"));
        drop(one);
        assert!(wanted.uris().contains("a"));
        drop(other);
        assert!(wanted.uris().is_empty());
    }

    #[test]
    fn a_level_is_only_lowered_by_one_call() {
        let wanted = Wanted::default();
        assert!(wanted.lower_level(Level::Error));
        assert!(!wanted.lower_level(Level::Critical));
        assert!(wanted.lower_level(Level::Info));
        assert_eq!(wanted.level(), Some(Level::Info));
    }
}
