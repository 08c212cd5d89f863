//! What a client of the older era wants to hear without asking: logs, and changes of resources.

use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};

use super::{Session, Sessions};
use crate::relay::Watch;
use crate::tool::Level;

/// How many resources one client may watch.
const MOST_WATCHED: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct Hearing {
    level: Option<Level>,
    /// By address: whose it is, and what keeps the news coming.
    watched: HashMap<String, (String, Watch)>,
}

impl Session {
    /// Returns the least grave log messages that the client wants, if it wants any.
    pub fn log_level(&self) -> Option<Level> {
        self.hearing().level
    }

    /// Sets the least grave log messages that the client wants.
    pub fn set_log_level(&self, level: Level) {
        self.hearing().level = Some(level);
    }

    /// Returns whether the client may watch one more resource.
    pub fn may_watch(&self) -> bool {
        self.hearing().watched.len() < MOST_WATCHED
    }

    /// Notes that the client watches a resource of a source.
    pub fn watch(&self, uri: &str, source: &str, watch: Watch) {
        let before = self.hearing().watched.insert(uri.to_owned(), (source.to_owned(), watch));
        drop(before);
    }

    /// Notes that the client does not watch a resource any more.
    pub fn unwatch(&self, uri: &str) {
        let watched = self.hearing().watched.remove(uri);
        drop(watched);
    }

    /// Returns whether the client watches a resource of this source.
    pub fn watches(&self, uri: &str, source: &str) -> bool {
        self.hearing().watched.get(uri).is_some_and(|(of, _)| of == source)
    }

    fn hearing(&self) -> MutexGuard<'_, Hearing> {
        self.hearing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions {
    /// Returns the least grave log messages that any client wants.
    pub fn least_level(&self) -> Option<Level> {
        self.all().iter().filter_map(|session| session.log_level()).min()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::tool::SessionId;

    #[test]
    fn what_is_watched_ends_with_the_session() {
        let sessions = Sessions::default();
        let ended = Arc::new(AtomicUsize::new(0));
        let watch = || {
            let ended = Arc::clone(&ended);
            Watch::new(move || {
                ended.fetch_add(1, Ordering::Relaxed);
            })
        };
        let id = SessionId::new("s");
        let session = sessions.get(&id);
        session.watch("a", "x", watch());
        session.watch("b", "x", watch());
        assert!(session.watches("a", "x") && !session.watches("a", "y"));
        session.unwatch("a");
        assert_eq!(ended.load(Ordering::Relaxed), 1);
        drop(session);
        sessions.end(&id);
        assert_eq!(ended.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn the_least_level_of_all_counts() {
        let sessions = Sessions::default();
        assert_eq!(sessions.least_level(), None);
        sessions.get(&SessionId::new("a")).set_log_level(Level::Error);
        sessions.get(&SessionId::new("b")).set_log_level(Level::Info);
        assert_eq!(sessions.least_level(), Some(Level::Info));
    }
}
