//! What a server says by itself, on its way to whom it concerns.

use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{
    CustomNotification, JsonRpcMessage, ProgressToken, ServerJsonRpcMessage, ServerNotification,
};
use serde::Deserialize as _;
use serde_json::{Map, Value};
use tokio::sync::Notify;

use super::progress::Progress;
use crate::relay::{Event, Events};
use crate::tool::{Level, SessionId};

/// A log message.
const MESSAGE: &str = "notifications/message";
/// The news that a resource has changed.
const UPDATED: &str = "notifications/resources/updated";
/// The `_meta` key that names the stream a notification came on.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Where the notifications of one server go, on whichever connection of a line they come.
#[derive(Debug)]
pub(super) struct Notices {
    /// What messages call the server.
    pub(super) server: String,
    events: Events,
    /// The only session that anything concerns, if its connections are one client's own.
    only: Option<SessionId>,
    /// Notified when something besides the tools is to be listed anew.
    pub(super) changed: Notify,
    /// Whether the server is of the newer era, in which logs belong to requests.
    newer: AtomicBool,
}

/// Marks a notification that came on the stream of a request, by the token of its progress.
#[derive(Clone, Debug)]
pub(super) struct Of(pub(super) ProgressToken);

impl Notices {
    pub(super) fn new(server: &str, events: Events, only: Option<SessionId>) -> Self {
        Self {
            server: server.to_owned(),
            events,
            only,
            changed: Notify::new(),
            newer: AtomicBool::new(false),
        }
    }

    /// Says which era the server is of.
    pub(super) fn set_newer(&self, newer: bool) {
        self.newer.store(newer, Ordering::Relaxed);
    }

    /// Takes a notification that does not concern the library.
    pub(super) fn take(
        &self,
        notification: ServerNotification,
        progress: &Progress,
    ) -> Option<ServerNotification> {
        match notification {
            ServerNotification::PromptListChangedNotification(_)
            | ServerNotification::ResourceListChangedNotification(_) => self.changed.notify_one(),
            ServerNotification::CustomNotification(CustomNotification {
                method,
                params: Some(Value::Object(params)),
                extensions,
            }) if [MESSAGE, UPDATED].contains(&method.as_str()) => {
                if method == MESSAGE {
                    self.log(params, extensions.get::<Of>(), progress);
                } else {
                    self.updated(params);
                }
            }
            other => return Some(other),
        }
        None
    }

    /// Hands a log message to the calls it may belong to; what a server of the older era says of
    /// no call is for all who want to hear it.
    fn log(&self, mut params: Map<String, Value>, of: Option<&Of>, progress: &Progress) {
        let level = params.get("level").and_then(Value::as_str).and_then(Level::parse);
        // One that is none is shown rather than lost.
        let level = level.unwrap_or(Level::Warning);
        let logger = match params.get("logger").and_then(Value::as_str) {
            Some(logger) => format!("{}/{logger}", self.server),
            None => self.server.clone(),
        };
        params.insert("logger".to_owned(), logger.into());
        let (known, told) = progress.log(&params, level, of);
        if !known && !self.newer.load(Ordering::Relaxed) {
            let only = self.only.clone();
            self.events.tell(Event::Log { level, params, told, only });
        }
    }

    fn updated(&self, mut params: Map<String, Value>) {
        let Some(uri) = params.get("uri").and_then(Value::as_str).map(str::to_owned) else {
            return;
        };
        if let Some(Value::Object(meta)) = params.get_mut("_meta") {
            meta.shift_remove(SUBSCRIPTION);
            if meta.is_empty() {
                params.shift_remove("_meta");
            }
        }
        let (source, only) = (self.server.clone(), self.only.clone());
        self.events.tell(Event::Updated { source, uri, params, only });
    }
}

/// Reads a notification that the library's types would cut.
pub(super) fn raw(value: &mut Value) -> Option<ServerJsonRpcMessage> {
    let method = value.get("method").and_then(Value::as_str)?;
    if ![MESSAGE, UPDATED].contains(&method) || value.get("id").is_some() {
        return None;
    }
    let method = method.to_owned();
    let notification = CustomNotification::new(method, value.get_mut("params").map(Value::take));
    let notification = ServerNotification::CustomNotification(notification);
    Some(JsonRpcMessage::notification(notification))
}

/// Notes the request on whose stream a log message came.
pub(super) fn mark(message: &mut ServerJsonRpcMessage, request: &Value) {
    let JsonRpcMessage::Notification(notification) = message else { return };
    if let ServerNotification::CustomNotification(notification) = &mut notification.notification
        && let Some(token) = request.pointer("/params/_meta/progressToken")
        && let Ok(token) = ProgressToken::deserialize(token)
    {
        notification.extensions.insert(Of(token));
    }
}
