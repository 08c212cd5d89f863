//! Lines of single clients to a server that keeps something for whoever it speaks with.
//!
//! A client's line is made when it is first needed, and ends with the client's session, or when it
//! was not used for a while. What the server lists is not asked for over it.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::line::Line;
use super::notices::Notices;
use super::server::Shared;
use crate::process::Grace;
use crate::registry::Apart;
use crate::session::Session;
use crate::tool::SessionId;

/// Who shares the connections to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// All clients.
    #[default]
    Shared,
    /// Nobody: each client has its own.
    PerClient {
        /// How many clients may have one at once.
        most: usize,
        /// After how long without use one is ended.
        idle: Duration,
    },
}

/// The lines of the clients of one server.
#[derive(Debug)]
pub(super) struct Clients {
    server: String,
    idle: Duration,
    lines: Mutex<HashMap<SessionId, Arc<Own>>>,
    /// How many there are, for whoever wants to know.
    apart: Arc<Apart>,
}

/// One client's line, and by how many it is used now.
#[derive(Debug)]
struct Own {
    line: Arc<Line>,
    uses: watch::Sender<usize>,
}

/// A line for as long as it is used.
#[derive(Debug)]
pub(super) struct Held {
    line: Arc<Line>,
    /// Counts its use, if it is one client's own.
    own: Option<Arc<Own>>,
}

impl Clients {
    /// Makes it for a server whose clients are kept apart.
    pub(super) fn new(server: &str, scope: Scope) -> Option<Arc<Self>> {
        let Scope::PerClient { most, idle } = scope else { return None };
        let (server, apart) = (server.to_owned(), Arc::new(Apart::new(most)));
        Some(Arc::new(Self { server, idle, lines: Mutex::default(), apart }))
    }

    /// Returns how many there are and may be.
    pub(super) fn apart(&self) -> &Arc<Apart> {
        &self.apart
    }

    /// Returns the line of a session, made anew if there is none.
    pub(super) fn hold(
        self: &Arc<Self>,
        session: &Session,
        shared: &Shared,
    ) -> Result<Held, String> {
        let id = session.id();
        let mut lines = self.lines();
        if let Some(own) = lines.get(id) {
            return Ok(Held::of(own));
        }
        let most = self.apart.most();
        if lines.len() >= most {
            return Err(format!(
                "{most} clients have a connection of their own to it, and no more may (upstream.{}.max_clients)",
                self.server
            ));
        }
        let notices = Notices::new(&self.server, shared.events.clone(), Some(id.clone()));
        let own =
            Arc::new(Own { line: Arc::new(Line::new(notices)), uses: watch::Sender::default() });
        let held = Held::of(&own);
        lines.insert(id.clone(), Arc::clone(&own));
        self.apart.count(lines.len());
        let (clients, id, ended) = (Arc::clone(self), id.clone(), session.ended().clone());
        let shutdown = shared.ended.clone();
        drop(shared.tasks.spawn(Box::pin(async move {
            clients.attend(&id, &own, &ended, &shutdown).await;
        })));
        Ok(held)
    }

    /// Stays with a line for as long as it is needed, and ends it then.
    async fn attend(
        &self,
        id: &SessionId,
        own: &Arc<Own>,
        ended: &CancellationToken,
        shutdown: &CancellationToken,
    ) {
        loop {
            tokio::select! {
                () = ended.cancelled() => {}
                () = shutdown.cancelled() => {}
                () = own.idle(self.idle) => {}
                () = own.line.listen() => {}
            }
            let is_over = ended.is_cancelled() || shutdown.is_cancelled();
            if self.forget(id, own, is_over) {
                break;
            }
        }
        tracing::debug!(upstream = self.server, session.id = %id, "a client's own connection is ended");
        own.line.end(Grace::default()).await;
    }

    /// Takes a line out, if it is not used or must end anyway; returns whether it is out.
    fn forget(&self, id: &SessionId, own: &Arc<Own>, must_end: bool) -> bool {
        let mut lines = self.lines();
        // With the lock nobody else can take it up.
        if !must_end && *own.uses.borrow() > 0 {
            return false;
        }
        if lines.get(id).is_some_and(|there| Arc::ptr_eq(there, own)) {
            lines.remove(id);
        }
        self.apart.count(lines.len());
        true
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Own>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Own {
    /// Waits until nobody has used it for so long.
    async fn idle(&self, limit: Duration) {
        let mut uses = self.uses.subscribe();
        loop {
            // The sender lives as long as we do.
            drop(uses.wait_for(|count| *count == 0).await);
            tokio::select! {
                () = tokio::time::sleep(limit) => return,
                _ = uses.changed() => {}
            }
        }
    }
}

impl Held {
    /// Holds the line that all clients share.
    pub(super) fn shared(line: &Arc<Line>) -> Self {
        Self { line: Arc::clone(line), own: None }
    }

    fn of(own: &Arc<Own>) -> Self {
        own.uses.send_modify(|count| *count += 1);
        Self { line: Arc::clone(&own.line), own: Some(Arc::clone(own)) }
    }
}

impl Deref for Held {
    type Target = Line;

    fn deref(&self) -> &Line {
        &self.line
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(own) = &self.own {
            own.uses.send_modify(|count| *count -= 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_line_is_idle_when_nobody_has_used_it_for_so_long() {
        let notices = Notices::new("s", crate::relay::Events::default(), None);
        let own =
            Arc::new(Own { line: Arc::new(Line::new(notices)), uses: watch::Sender::default() });
        let began = tokio::time::Instant::now();
        let held = Held::of(&own);
        let user = async {
            tokio::time::sleep(Duration::from_mins(1)).await;
            drop(held);
            tokio::time::sleep(Duration::from_secs(9)).await;
            drop(Held::of(&own));
        };
        tokio::join!(own.idle(Duration::from_secs(10)), user);
        assert_eq!(began.elapsed(), Duration::from_secs(79));
    }
}
