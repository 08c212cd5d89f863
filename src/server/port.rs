//! The client's side of a running call: questions, progress and log messages.
//!
//! The library ties what is sent to a client to the task that handles the client's request, so
//! the pipeline speaks through a channel and the handler's task does the sending.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use rmcp::RoleServer;
use rmcp::model::{
    CancelledNotificationParam, CustomNotification, CustomRequest, ProgressNotificationParam,
    ServerNotification, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext, ServiceError};
use serde::Deserialize as _;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::tool::{AskError, Client, ClientPort, Era, Interrupt};

/// How many unsent messages of one call are kept; beyond it progress and logs are dropped.
const BACKLOG: usize = 256;

/// How often a watcher of a legacy client looks whether the client is still there.
pub(super) const PEER_CHECK: Duration = Duration::from_secs(30);

/// The pipeline's end.
#[derive(Debug)]
pub(super) struct Port {
    requests: mpsc::Sender<Message>,
    era: Era,
    capabilities: Map<String, Value>,
    logs: bool,
}

/// What a pipeline wants sent.
#[derive(Debug)]
pub(super) enum Message {
    Ask {
        method: String,
        params: Map<String, Value>,
        answer: oneshot::Sender<Result<Value, AskError>>,
    },
    Progress(Map<String, Value>),
    Log(Map<String, Value>),
}

impl Port {
    /// Makes both ends of a port to a client.
    pub(super) fn new(client: &Client) -> (Self, mpsc::Receiver<Message>) {
        let (requests, receiver) = mpsc::channel(BACKLOG);
        let logs = client.log_level.is_some();
        let port =
            Self { requests, era: client.era, capabilities: client.capabilities.clone(), logs };
        (port, receiver)
    }

    fn post(&self, message: Message) {
        if let Err(error) = self.requests.try_send(message) {
            tracing::debug!(%error, "a message of a running call was dropped");
        }
    }
}

#[async_trait]
impl ClientPort for Port {
    async fn ask(&self, method: &str, params: Map<String, Value>) -> Result<Value, AskError> {
        let capability = match method {
            "elicitation/create" => "elicitation",
            "sampling/createMessage" => "sampling",
            "roots/list" => "roots",
            _ => return Err(AskError::Unsupported { method: method.to_owned() }),
        };
        let declared = self.capabilities.contains_key(capability);
        // In the modern era nothing may be asked in the middle of a call (MCP 2026-07-28 §basic/patterns/mrtr).
        if !declared || self.era == Era::Modern {
            return Err(AskError::Unsupported { method: method.to_owned() });
        }
        let (answer, answered) = oneshot::channel();
        let message = Message::Ask { method: method.to_owned(), params, answer };
        self.requests.send(message).await.map_err(|_| AskError::Gone)?;
        answered.await.unwrap_or(Err(AskError::Gone))
    }

    fn progress(&self, params: Map<String, Value>) {
        self.post(Message::Progress(params));
    }

    fn log(&self, params: Map<String, Value>) {
        if self.logs {
            self.post(Message::Log(params));
        }
    }
}

/// Sends what a pipeline wants sent until it ends, and returns what it came to.
///
/// Everything it said is on its way before its result is.
pub(super) async fn serve<T>(
    mut requests: mpsc::Receiver<Message>,
    mut pipeline: JoinHandle<Result<T, Interrupt>>,
    context: &RequestContext<RoleServer>,
) -> Result<T, Interrupt> {
    // Questions wait for a person; nothing else of the call waits for them.
    let mut asked = FuturesUnordered::new();
    let ended = loop {
        tokio::select! {
            biased;
            Some(message) = requests.recv() => match message {
                Message::Ask { method, params, answer } => asked.push(Box::pin(ask(method, params, answer, context))),
                // Boxed: it is large and seldom.
                message => Box::pin(send(message, context)).await,
            },
            Some(()) = asked.next(), if !asked.is_empty() => {}
            ended = &mut pipeline => break ended,
        }
    };
    while let Ok(message) = requests.try_recv() {
        Box::pin(send(message, context)).await;
    }
    // Nobody waits for these any more, so each is withdrawn now.
    while asked.next().await.is_some() {}
    match ended {
        Ok(outcome) => outcome,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(Interrupt::Cancelled),
    }
}

async fn send(message: Message, context: &RequestContext<RoleServer>) {
    let sent = match message {
        // Whoever asked has gone: a pipeline waits for its questions.
        Message::Ask { .. } => return,
        Message::Progress(mut params) => {
            let Some(token) = context.meta.get("progressToken") else {
                return;
            };
            params.insert("progressToken".to_owned(), token.clone());
            report(params, context).await
        }
        Message::Log(params) => notify("notifications/message", params, context).await,
    };
    if let Err(error) = sent {
        tracing::debug!(%error, "a notification did not reach its client");
    }
}

/// Sends a report of progress.
///
/// As the library's own kind of message where it can be one: only of that does it know which
/// request's stream it belongs to.
async fn report(
    params: Map<String, Value>,
    context: &RequestContext<RoleServer>,
) -> Result<(), ServiceError> {
    let params = Value::Object(params);
    match ProgressNotificationParam::deserialize(&params) {
        Ok(typed) => context.peer.notify_progress(typed).await,
        Err(_) => {
            let notification = CustomNotification::new("notifications/progress", Some(params));
            let notification = ServerNotification::CustomNotification(notification);
            context.peer.send_notification(notification).await
        }
    }
}

async fn notify(
    method: &str,
    params: Map<String, Value>,
    context: &RequestContext<RoleServer>,
) -> Result<(), ServiceError> {
    let notification = CustomNotification::new(method, Some(Value::Object(params)));
    context.peer.send_notification(ServerNotification::CustomNotification(notification)).await
}

/// Asks the client, until it answers or nobody wants to know any more; then the question is
/// withdrawn.
async fn ask(
    method: String,
    params: Map<String, Value>,
    mut answer: oneshot::Sender<Result<Value, AskError>>,
    context: &RequestContext<RoleServer>,
) {
    let request =
        ServerRequest::CustomRequest(CustomRequest::new(method, Some(Value::Object(params))));
    let options = PeerRequestOptions::no_options();
    let Ok(mut handle) = context.peer.send_cancellable_request(request, options).await else {
        drop(answer.send(Err(AskError::Gone)));
        return;
    };
    let answered = tokio::select! {
        answered = &mut handle.rx => answered,
        () = abandoned(&mut answer, context) => {
            let reason = Some("nobody waits for the answer any more".to_owned());
            let withdrawn = CancelledNotificationParam::new(Some(handle.id.clone()), reason);
            if let Err(error) = handle.peer.notify_cancelled(withdrawn).await {
                tracing::debug!(%error, "a question could not be withdrawn");
            }
            return;
        }
    };
    let result = match answered {
        Ok(Ok(result)) => serde_json::to_value(result).map_err(|_| AskError::Gone),
        Ok(Err(ServiceError::McpError(error))) => Err(AskError::Refused {
            code: i64::from(error.code.0),
            message: error.message.into_owned(),
        }),
        Ok(Err(_)) | Err(_) => Err(AskError::Gone),
    };
    // Whoever asked may have gone in the meantime.
    drop(answer.send(result));
}

async fn abandoned<T>(answer: &mut oneshot::Sender<T>, context: &RequestContext<RoleServer>) {
    tokio::select! {
        () = answer.closed() => {}
        () = context.ct.cancelled() => {}
    }
}
