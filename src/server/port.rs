//! The client's side of a running call: questions, progress and log messages.
//!
//! The library ties what is sent to a client to the task that handles the client's request, so
//! the pipeline speaks through a channel and the handler's task does the sending.

use std::collections::BTreeMap;
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
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::ask::can_show_form;
use super::caller::random_id;
use crate::tool::{AskError, Client, ClientPort, Era, Interrupt};

/// How many unsent messages of one call are kept; beyond it progress and logs are dropped.
const BACKLOG: usize = 256;

/// How often a watcher of a legacy client looks whether the client is still there.
pub(super) const PEER_CHECK: Duration = Duration::from_secs(30);

/// The pipeline's end.
#[derive(Debug)]
pub(super) struct Port {
    requests: mpsc::Sender<Message>,
    capabilities: Map<String, Value>,
    logs: bool,
}

/// What a pipeline wants sent.
#[derive(Debug)]
pub(super) enum Message {
    Ask {
        /// What the question is called, if whoever asks has a name for it.
        key: Option<String>,
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
        let port = Self { requests, capabilities: client.capabilities.clone(), logs };
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
        self.question(None, method, params).await
    }

    async fn ask_as(
        &self,
        key: &str,
        method: &str,
        params: Map<String, Value>,
    ) -> Result<Value, AskError> {
        self.question(Some(key.to_owned()), method, params).await
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

impl Port {
    async fn question(
        &self,
        key: Option<String>,
        method: &str,
        params: Map<String, Value>,
    ) -> Result<Value, AskError> {
        let capability = match method {
            "elicitation/create" => "elicitation",
            "sampling/createMessage" => "sampling",
            "roots/list" => "roots",
            _ => return Err(AskError::Unsupported { method: method.to_owned() }),
        };
        let Some(declared) = self.capabilities.get(capability) else {
            return Err(AskError::Unsupported { method: method.to_owned() });
        };
        // A client that only has forms says nothing of addresses (MCP 2025-11-25 §client/elicitation).
        let able = match capability {
            "elicitation" if is_address(&params) => declared.get("url").is_some(),
            "elicitation" => can_show_form(&self.capabilities),
            _ => true,
        };
        if !able {
            return Err(AskError::Unsupported { method: method.to_owned() });
        }
        let (answer, answered) = oneshot::channel();
        let message = Message::Ask { key, method: method.to_owned(), params, answer };
        self.requests.send(message).await.map_err(|_| AskError::Gone)?;
        answered.await.unwrap_or(Err(AskError::Gone))
    }
}

/// A pipeline under way, and our end of its port; dropping it cancels the pipeline.
#[derive(Debug)]
pub(super) struct Running<T> {
    requests: mpsc::Receiver<Message>,
    pipeline: JoinHandle<Result<T, Interrupt>>,
    cancelled: CancellationToken,
    _cancels: DropGuard,
    /// What the client was asked by the end of a request and has not answered yet, by key.
    open: BTreeMap<String, Question>,
    /// How often it was asked so.
    asked: usize,
}

#[derive(Debug)]
struct Question {
    method: String,
    params: Map<String, Value>,
    answer: oneshot::Sender<Result<Value, AskError>>,
}

/// What serving a pipeline comes to.
#[derive(Debug)]
pub(super) enum Served<T> {
    /// It has ended.
    Ended(Result<T, Interrupt>),
    /// It goes on when the client has answered.
    Asks(Running<T>),
}

impl<T> Running<T> {
    /// Makes a pipeline's client side; `cancelled` is the token that ends it.
    pub(super) fn new(
        requests: mpsc::Receiver<Message>,
        pipeline: JoinHandle<Result<T, Interrupt>>,
        cancelled: CancellationToken,
    ) -> Self {
        let guard = cancelled.clone().drop_guard();
        Self { requests, pipeline, cancelled, _cancels: guard, open: BTreeMap::new(), asked: 0 }
    }

    /// Hands on what the client has answered; what it did not answer is asked again.
    pub(super) fn answer(&mut self, mut answers: BTreeMap<String, Value>) {
        let open = std::mem::take(&mut self.open);
        for (key, question) in open {
            match answers.remove(&key) {
                // Whoever asked may have gone in the meantime.
                Some(answer) => drop(question.answer.send(Ok(answer))),
                None => drop(self.open.insert(key, question)),
            }
        }
    }

    /// Returns what the client is asked, as the answer to its request has it.
    pub(super) fn questions(&self) -> Map<String, Value> {
        let question = |Question { method, params, answer: _ }: &Question| json!({"method": method, "params": params});
        self.open.iter().map(|(key, open)| (key.clone(), question(open))).collect()
    }

    /// Cancels the pipeline and waits until it has ended.
    pub(super) async fn end(mut self) {
        self.cancelled.cancel();
        self.open.clear();
        // How it ends is nobody's business any more.
        drop((&mut self.pipeline).await);
    }

    /// Notes a question; the client hears of it by the end of its request, by the name it has if
    /// no other question has it.
    fn ask(&mut self, key: Option<String>, question: Question) {
        self.asked += 1;
        let key = key.filter(|key| !self.open.contains_key(key));
        self.open.insert(key.unwrap_or_else(|| format!("ask-{}", self.asked)), question);
    }

    /// Returns whether anybody waits for an answer of the client's.
    fn asks(&mut self) -> bool {
        self.open.retain(|_, question| !question.answer.is_closed());
        !self.open.is_empty()
    }
}

/// Sends what a pipeline wants sent until it ends, or asks something that its client can only be
/// asked by the end of the request.
///
/// Everything it said is on its way before its result is.
pub(super) async fn serve<T>(
    mut running: Running<T>,
    era: Era,
    context: &RequestContext<RoleServer>,
) -> Served<T> {
    // Questions wait for a person; nothing else of the call waits for them.
    let mut asked = FuturesUnordered::new();
    let mut gone = false;
    let ended = loop {
        tokio::select! {
            biased;
            Some(message) = running.requests.recv() => match message {
                Message::Ask { method, params, answer, .. } if era == Era::Legacy => {
                    asked.push(Box::pin(ask(method, params, answer, context)));
                }
                Message::Ask { key, method, params, answer } => {
                    running.ask(key, Question { method, params, answer });
                }
                // Boxed: it is large and seldom.
                message => Box::pin(send(message, context)).await,
            },
            () = context.ct.cancelled(), if !gone => {
                gone = true;
                running.cancelled.cancel();
            }
            Some(()) = asked.next(), if !asked.is_empty() => {}
            // What is asked at once is asked together: all that is waiting was taken above.
            () = tokio::task::yield_now(), if !gone && running.asks() => return Served::Asks(running),
            ended = &mut running.pipeline => break ended,
        }
    };
    while let Ok(message) = running.requests.try_recv() {
        Box::pin(send(message, context)).await;
    }
    // Nobody waits for these any more, so each is withdrawn now.
    while asked.next().await.is_some() {}
    Served::Ended(match ended {
        Ok(outcome) => outcome,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(Interrupt::Cancelled),
    })
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
    mut params: Map<String, Value>,
    mut answer: oneshot::Sender<Result<Value, AskError>>,
    context: &RequestContext<RoleServer>,
) {
    // Only the older era has this, and there it must be (MCP 2025-11-25 §client/elicitation).
    if method == "elicitation/create" && is_address(&params) {
        params.entry("elicitationId").or_insert_with(|| random_id().into());
    }
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

/// Returns whether an elicitation is for an address to be opened.
fn is_address(params: &Map<String, Value>) -> bool {
    params.get("mode").and_then(Value::as_str) == Some("url")
}

async fn abandoned<T>(answer: &mut oneshot::Sender<T>, context: &RequestContext<RoleServer>) {
    tokio::select! {
        () = answer.closed() => {}
        () = context.ct.cancelled() => {}
    }
}
