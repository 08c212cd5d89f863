//! Legacy sessions over HTTP: what they belong to, and when they end.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::{Stream, StreamExt as _};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, SessionConfig,
};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId as TransportId, SessionManager,
};

use super::seats::{Busy, Full, Seats};
use super::{Shared, admit, refuse};
use crate::server::caller::SESSION_HEADER;
use crate::server::envelope::Opening;
use crate::session::Sessions;
use crate::tool::{Principal, SessionId};

/// How long the answers of a session are kept for a client that lost its stream.
const REPLAY: Duration = Duration::from_secs(10);

/// What is said of a session that does not exist, or not for this principal.
const NO_SESSION: &str = "Not Found: Session not found";

/// The principal that each session belongs to (MCP 2025-11-25 §basic/security: a session is no
/// proof of who is asking).
#[derive(Debug, Default)]
pub(super) struct Bindings(Mutex<HashMap<String, Principal>>);

/// Sessions whose messages are unpacked when they are sent, and whose state ends with them.
#[derive(Debug)]
pub(super) struct Managed {
    inner: LocalSessionManager,
    sessions: Arc<Sessions>,
    bindings: Arc<Bindings>,
    seats: Arc<Seats>,
}

/// Why a session cannot do something.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    /// There can be no more of them.
    #[error(transparent)]
    Full(#[from] Full),
    /// The library says so.
    #[error(transparent)]
    Library(#[from] LocalSessionManagerError),
}

impl Bindings {
    fn bind(&self, session: &str, principal: Principal) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(session.to_owned(), principal);
    }

    fn belongs_to(&self, session: &str, principal: &Principal) -> bool {
        let bindings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bindings.get(session).is_none_or(|owner| owner == principal)
    }

    fn end(&self, session: &str) {
        let ended = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(session);
        drop(ended);
    }
}

/// Binds a new session to its principal; a session of another does not exist for this one.
pub(super) async fn bind(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    // The library says of any session that it has ended it.
    if request.method() == Method::DELETE && !shared.manager.has(request.headers()).await {
        return refuse(StatusCode::NOT_FOUND, NO_SESSION);
    }
    let Some(principal) = request.extensions().get::<Principal>().cloned() else {
        return admit(request, next).await;
    };
    let session = request.headers().get(SESSION_HEADER).and_then(|id| id.to_str().ok());
    if session.is_some_and(|session| !shared.bindings.belongs_to(session, &principal)) {
        return refuse(StatusCode::NOT_FOUND, NO_SESSION);
    }
    let response = admit(request, next).await;
    if let Some(session) = response.headers().get(SESSION_HEADER).and_then(|id| id.to_str().ok()) {
        shared.bindings.bind(session, principal);
    }
    response
}

impl Managed {
    pub(super) fn new(
        (idle, most): (Duration, NonZeroUsize),
        sessions: Arc<Sessions>,
        bindings: Arc<Bindings>,
    ) -> Self {
        let mut inner = LocalSessionManager::default();
        let mut config = SessionConfig::default();
        config.keep_alive = Some(idle);
        config.completed_cache_ttl = REPLAY;
        inner.session_config = config;
        Self { inner, sessions, bindings, seats: Seats::new(most) }
    }

    /// Says why there can be no more sessions, if there can be none.
    pub(super) fn full(&self) -> Option<Full> {
        self.seats.full()
    }

    /// Returns whether a request names no session, or one that there is.
    async fn has(&self, headers: &HeaderMap) -> bool {
        let Some(session) = headers.get(SESSION_HEADER).and_then(|id| id.to_str().ok()) else {
            return true;
        };
        self.inner.has_session(&session.into()).await.unwrap_or(true)
    }
}

impl SessionManager for Managed {
    type Error = SessionError;
    type Transport = Opening<<LocalSessionManager as SessionManager>::Transport>;

    async fn create_session(&self) -> Result<(TransportId, Self::Transport), Self::Error> {
        if let Some(outgoing) = self.seats.outgoing()? {
            tracing::info!(
                session = outgoing,
                "a session was ended for a new one; there are limits.max_sessions of them"
            );
            self.close_session(&outgoing.into()).await?;
        }
        let (id, transport) = self.inner.create_session().await?;
        self.seats.take(&id);
        Ok((id, Opening(transport)))
    }

    async fn initialize_session(
        &self,
        id: &TransportId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        Ok(self.inner.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &TransportId) -> Result<bool, Self::Error> {
        Ok(self.inner.has_session(id).await?)
    }

    async fn close_session(&self, id: &TransportId) -> Result<(), Self::Error> {
        self.sessions.end(&SessionId::new(id.as_ref()));
        self.bindings.end(id);
        self.seats.leave(id);
        Ok(self.inner.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &TransportId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let busy = self.seats.busy(id);
        Ok(while_streaming(self.inner.create_stream(id, message).await?, busy))
    }

    async fn accept_message(
        &self,
        id: &TransportId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        // Also what says that the handshake is over; it makes no difference.
        Ok(self.inner.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &TransportId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let busy = self.seats.busy(id);
        Ok(while_streaming(self.inner.create_standalone_stream(id).await?, busy))
    }

    async fn resume(
        &self,
        id: &TransportId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let busy = self.seats.busy(id);
        Ok(while_streaming(self.inner.resume(id, last_event_id).await?, busy))
    }
}

/// Keeps something for as long as a stream lives.
fn while_streaming<S: Stream>(stream: S, busy: Busy) -> impl Stream<Item = S::Item> {
    stream.inspect(move |_| busy.touch())
}
