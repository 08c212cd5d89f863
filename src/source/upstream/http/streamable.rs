//! Streamable HTTP: a request for each message, answered by a message or a stream of them.

mod exchange;

use std::borrow::Cow;
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderValue, Method};
use rmcp::RoleClient;
use rmcp::model::{
    ClientNotification, ClientRequest, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::exchange::Request;
use super::{Remote, TELLING, headers};
use crate::source::upstream::pending::Pending;

/// How many messages of a server may wait to be read.
const WAITING: usize = 64;
/// What a response to a message must be.
const BOTH: &str = "application/json, text/event-stream";
const EVENTS: &str = "text/event-stream";

/// The transport to one server.
#[derive(Debug)]
pub(in super::super) struct Streamable {
    inner: Arc<Inner>,
    incoming: mpsc::Receiver<ServerJsonRpcMessage>,
}

/// What the transport and its requests share.
#[derive(Debug)]
struct Inner {
    remote: Remote,
    pending: Arc<Pending>,
    outgoing: mpsc::Sender<ServerJsonRpcMessage>,
    session: Mutex<Session>,
    /// What ends each request that is under way.
    open: Mutex<HashMap<RequestId, Open>>,
    tasks: TaskTracker,
    ended: CancellationToken,
}

/// What a server of the older era knows us by.
#[derive(Clone, Debug, Default)]
struct Session {
    id: Option<HeaderValue>,
    version: Option<String>,
}

#[derive(Clone, Debug)]
struct Open {
    cancelled: CancellationToken,
    /// Whether the end of its response is all that the server needs to be told.
    newer: bool,
}

impl Streamable {
    /// Makes the transport; nothing is sent yet. Its requests are started on `tasks`.
    pub(in super::super) fn new(
        remote: Remote,
        pending: Arc<Pending>,
        tasks: TaskTracker,
        ended: CancellationToken,
    ) -> Self {
        let (outgoing, incoming) = mpsc::channel(WAITING);
        let inner = Inner {
            remote,
            pending,
            outgoing,
            session: Mutex::default(),
            open: Mutex::default(),
            tasks,
            ended,
        };
        Self { inner: Arc::new(inner), incoming }
    }

    /// Starts a request; its answer comes with the other messages.
    fn ask(&self, id: RequestId, request: &ClientRequest, message: Value) {
        let version = headers::version_of(&message).map(str::to_owned);
        let open = Open { cancelled: self.inner.ended.child_token(), newer: version.is_some() };
        self.inner.opened().insert(id.clone(), open.clone());
        let request = Request {
            id,
            initializes: matches!(request, ClientRequest::InitializeRequest(_)),
            discovers: matches!(request, ClientRequest::DiscoverRequest(_)),
            listens: matches!(request, ClientRequest::SubscriptionsListenRequest(_)),
            version,
            message,
        };
        let inner = Arc::clone(&self.inner);
        drop(self.inner.tasks.spawn(async move {
            tokio::select! {
                () = inner.exchange(&request) => {}
                () = open.cancelled.cancelled() => {}
            }
            inner.opened().remove(&request.id);
        }));
    }
}

impl Transport<RoleClient> for Streamable {
    type Error = Infallible;

    /// What the library's messages call it.
    fn name() -> Cow<'static, str> {
        "streamable HTTP".into()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.pending.note(&item);
        // A message of the library's own is JSON.
        let message = serde_json::to_value(&item).unwrap_or_default();
        let (mut cancelled, mut begins, mut told) = (None, false, Some(message));
        match &item {
            JsonRpcMessage::Request(request) => {
                let message = told.take().unwrap_or_default();
                self.ask(request.id.clone(), &request.request, message);
            }
            JsonRpcMessage::Notification(notification) => match &notification.notification {
                ClientNotification::CancelledNotification(notification) => {
                    let id = notification.params.request_id.as_ref();
                    cancelled = id.and_then(|id| self.inner.opened().remove(id));
                    if cancelled.as_ref().is_none_or(|open| open.newer) {
                        told = None;
                    }
                }
                ClientNotification::InitializedNotification(_) => begins = true,
                _ => {}
            },
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        let inner = Arc::clone(&self.inner);
        async move {
            if let Some(message) = told {
                inner.tell(&message).await;
            }
            if let Some(open) = cancelled {
                open.cancelled.cancel();
            }
            if begins {
                let standing = Arc::clone(&inner);
                drop(inner.tasks.spawn(async move {
                    tokio::select! {
                        () = standing.stand() => {}
                        () = standing.ended.cancelled() => {}
                    }
                }));
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        tokio::select! {
            message = self.incoming.recv() => message,
            () = self.inner.ended.cancelled() => None,
        }
    }

    /// Ends what is under way, and a session.
    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.ended.cancel();
        let session = self.inner.session();
        if session.id.is_some() {
            let request = self.inner.request(Method::DELETE, EVENTS, &session);
            match tokio::time::timeout(TELLING, request.send()).await {
                Ok(Ok(response)) => tracing::debug!(
                    upstream = self.inner.remote.server,
                    status = response.status().as_u16(),
                    "a session was ended"
                ),
                Ok(Err(_)) | Err(_) => tracing::debug!(
                    upstream = self.inner.remote.server,
                    "a session could not be ended"
                ),
            }
        }
        Ok(())
    }
}

impl Drop for Streamable {
    fn drop(&mut self) {
        self.inner.ended.cancel();
    }
}

impl Inner {
    fn opened(&self) -> MutexGuard<'_, HashMap<RequestId, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self) -> Session {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut Session)) {
        change(&mut self.session.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Begins a request of the older era.
    fn request(
        &self,
        method: Method,
        accept: &'static str,
        session: &Session,
    ) -> reqwest::RequestBuilder {
        let mut headers = HeaderMap::new();
        if let Some(version) = &session.version {
            headers = headers::version_header(version);
        }
        if let Some(id) = &session.id {
            headers.insert(headers::SESSION, id.clone());
        }
        self.remote.request(method, &self.remote.url, accept).headers(headers)
    }

    /// Hands a message to the library; without it nobody waits for any.
    async fn hand_on(&self, message: ServerJsonRpcMessage) {
        drop(self.outgoing.send(message).await);
    }
}
