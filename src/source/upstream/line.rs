//! One line to a server: the connection there is, made again when it is gone, and what is wanted
//! over it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use super::client::Connection;
use super::dial::Dial;
use super::last_words::Stray;
use super::notices::Notices;
use super::wanted::Wanted;
use crate::process::{Child, Grace};
use crate::registry::Cause;

/// How long a server that is reached by URL may take to end a session.
const FAREWELL: Duration = Duration::from_secs(2);

/// A line to a server.
#[derive(Debug)]
pub(super) struct Line {
    /// The connection there is; the lock also lets only one start it again.
    link: Mutex<Option<Link>>,
    /// Whether none is to be made any more.
    ended: AtomicBool,
    /// Counts the connections that were made.
    made: watch::Sender<u64>,
    notices: Arc<Notices>,
    wanted: Arc<Wanted>,
}

/// A connection, and the process at its other end if it is ours.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) connection: Arc<Connection>,
    pub(super) child: Option<Child>,
    /// What the process wrote to its standard output that was no message.
    pub(super) stray: Stray,
}

impl Line {
    pub(super) fn new(notices: Notices) -> Self {
        Self {
            link: Mutex::default(),
            ended: AtomicBool::new(false),
            made: watch::Sender::default(),
            notices: Arc::new(notices),
            wanted: Arc::default(),
        }
    }

    /// Returns what our clients want to hear over it.
    pub(super) fn wanted(&self) -> &Arc<Wanted> {
        &self.wanted
    }

    /// Returns the connection there is.
    pub(super) async fn current(&self) -> Option<Arc<Connection>> {
        let link = self.link.lock().await;
        link.as_ref().map(|link| Arc::clone(&link.connection))
    }

    /// Returns the connection, making it if there is none any more.
    pub(super) async fn connection(
        &self,
        dial: &Dial,
        deadline: Instant,
    ) -> Result<Arc<Connection>, Cause> {
        let mut link = self.link.lock().await;
        if let Some(link) = link.as_ref().filter(|link| !link.connection.is_closed()) {
            return Ok(Arc::clone(&link.connection));
        }
        if self.ended.load(Ordering::Relaxed) {
            return Err("the session that it belonged to has ended".to_owned().into());
        }
        if let Some(gone) = link.take() {
            tracing::warn!(
                upstream = dial.server.name,
                "the connection to an upstream server has ended and is made again"
            );
            // Ends what the old process left behind, in the background.
            drop(gone);
        }
        let made = dial.connect(&self.notices, deadline).await?;
        let connection = Arc::clone(&made.connection);
        *link = Some(made);
        self.made.send_modify(|count| *count += 1);
        Ok(connection)
    }

    /// Hears what its process said last, if it has one.
    pub(super) async fn last_words(&self, dial: &Dial) -> String {
        match &*self.link.lock().await {
            Some(Link { child: Some(child), stray, .. }) => dial.last_words(child, stray).await,
            _ => String::new(),
        }
    }

    /// Ends the connection, and the process if there is one.
    pub(super) async fn stop(&self, grace: Grace) {
        let link = self.link.lock().await.take();
        match link {
            Some(Link { connection, child: Some(mut child), .. }) => {
                drop(connection);
                child.stop(grace).await;
            }
            Some(Link { connection, child: None, .. }) => {
                // One that takes longer learns of it when it looks for us.
                drop(tokio::time::timeout(FAREWELL, connection.close()).await);
            }
            None => {}
        }
    }

    /// Ends the line for good.
    pub(super) async fn end(&self, grace: Grace) {
        // Whoever starts a connection just now has the lock, and what it made is stopped.
        self.ended.store(true, Ordering::Relaxed);
        self.stop(grace).await;
    }

    /// Listens, on each connection there will be, to what is wanted; never ends.
    pub(super) async fn listen(&self) {
        let mut made = self.made.subscribe();
        loop {
            made.mark_unchanged();
            if let Some(connection) = self.current().await {
                tokio::select! {
                    () = connection.listen(&self.wanted) => {}
                    () = connection.left() => {}
                }
            }
            drop(made.changed().await);
        }
    }
}
