//! Who is there: what each request says of its client, and what is logged of a new one.

use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use rmcp::RoleServer;
use rmcp::service::RequestContext;

use super::Gateway;
use super::caller::{self, Caller};
use crate::session::Session;
use crate::tool::Era;

/// How many clients are remembered for the log.
const KNOWN_CLIENTS: usize = 1_000;

impl Gateway {
    /// Says who is asking, and logs the first message of a connection.
    pub(super) fn caller(&self, method: &str, context: &RequestContext<RoleServer>) -> Caller {
        let mut caller = caller::identify(context, &self.connection);
        if caller.client.era == Era::Legacy {
            self.remember(&mut caller);
        }
        if self.is_first(&caller) {
            let version = context.protocol_version().map(|version| version.to_string());
            tracing::info!(
                transport = self.connection.transport(),
                method,
                client.name = caller.client.name,
                client.version = caller.client_version,
                protocol = version,
                principal = caller.principal.as_str(),
                "a client connected"
            );
        }
        caller
    }

    /// Says whether a client was not heard of yet.
    fn is_first(&self, caller: &Caller) -> bool {
        if self.greeted.swap(true, Ordering::Relaxed) {
            return false;
        }
        if self.connection.transport() == "stdio" || caller.client.era == Era::Legacy {
            return true;
        }
        // Each request is a connection of its own here; a client is known by what it calls itself.
        let session = caller.session.as_str().to_owned();
        let client = (session, caller.client.name.clone(), caller.client_version.clone());
        let mut known = self.shared.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_CLIENTS {
            known.clear();
        }
        known.insert(client)
    }

    /// Notes the session of a connection of the older era, and what its client has said before.
    fn remember(&self, caller: &mut Caller) {
        // It is the same for all its requests, but unknown during the handshake.
        self.session.store(Some(Arc::new(caller.session.clone())));
        let is_own =
            self.connection.is_one_client() || caller.session != *self.connection.process();
        let sessions = &self.shared.parts.sessions;
        let session = if is_own {
            let session = sessions.get(&caller.session);
            session.keep();
            Some(session)
        } else {
            sessions.find(&caller.session)
        };
        caller.client.log_level = session.and_then(|session| session.log_level());
    }

    /// Ends the session of a connection that has one client, when that is gone.
    pub(super) fn end_session(&self) {
        self.shared.parts.sessions.end(self.connection.process());
    }

    /// Returns the session of a connection of the older era.
    pub(super) fn known_session(&self) -> Option<Arc<Session>> {
        let id = self.session.load_full()?;
        self.shared.parts.sessions.find(&id)
    }
}
