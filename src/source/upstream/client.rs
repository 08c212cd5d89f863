//! One connection to an upstream server: its requests, their time limits and what comes back.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientConfig,
    ClientRequest, Implementation, JsonRpcMessage, ListToolsRequest, PaginatedRequestParams,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, RequestMetaObject,
    ServerNotification, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, PeerRequestOptions, RequestHandle, RunningService,
    RxJsonRpcMessage, ServiceError, TxJsonRpcMessage, serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::Transport;
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::tool::{Arguments, CallContext, ErrorCode, Failure, Interrupt};

/// The server answered a call with a protocol error, or could not be sent it.
pub const MCP_CALL_FAILED: ErrorCode = ErrorCode::new("MCP_CALL_FAILED");
/// The server asked for something that nobody here can give.
pub const MCP_INTERACTION_UNSUPPORTED: ErrorCode = ErrorCode::new("MCP_INTERACTION_UNSUPPORTED");
/// The server wanted to go on for ever.
pub const MCP_CONTINUATION_LIMIT: ErrorCode = ErrorCode::new("MCP_CONTINUATION_LIMIT");

/// The most rounds that a call may take without an answer.
const ROUNDS: usize = 8;
/// The most pages of a list that are read.
const PAGES: usize = 1_000;
/// How long a server may take to read that a call is cancelled.
const TELLING: Duration = Duration::from_millis(500);
/// How many reports of progress are kept for calls that are not known yet.
const EARLY: usize = 64;

/// Which protocol era to speak with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// The modern one if the server speaks it.
    #[default]
    Auto,
    /// 2026-07-28.
    Modern,
    /// 2025-11-25 and before.
    Legacy,
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Connection {
    server: String,
    running: RunningService<RoleClient, Handler>,
    progress: Arc<Progress>,
    /// Bounds the calls that are under way at once.
    calls: Arc<Semaphore>,
}

/// How a call to a server ends without a result.
#[derive(Debug)]
pub(super) enum CallError {
    /// The server certainly did not carry it out, or said itself that it failed.
    Failed(Failure),
    /// A control condition.
    Interrupted(Interrupt),
}

/// What we are to a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handler;

/// A transport whose reports of progress are delivered as they come.
///
/// The library hands each notification to a task of its own, so that an answer could overtake
/// the reports before it; then nobody would wait for them any more.
struct Reporting<T> {
    transport: T,
    progress: Arc<Progress>,
}

/// Who gets reports of progress.
#[derive(Debug, Default)]
struct Progress(Mutex<Routes>);

#[derive(Debug, Default)]
struct Routes {
    ports: HashMap<ProgressToken, Arc<dyn crate::tool::ClientPort>>,
    /// Reports that came before their call was noted; the oldest go first.
    early: VecDeque<ProgressNotificationParam>,
}

// === impl Connection ===

impl Connection {
    /// Shakes hands with a server over a transport.
    pub(super) async fn open<T>(
        server: &str,
        transport: T,
        protocol: Protocol,
        max_concurrency: usize,
        ended: CancellationToken,
    ) -> Result<Self, ClientInitializeError>
    where
        T: Transport<RoleClient> + 'static,
        T::Error: std::error::Error + Send + Sync + 'static,
    {
        let progress = Arc::new(Progress::default());
        let transport = Reporting { transport, progress: Arc::clone(&progress) };
        let modern = vec![ProtocolVersion::V_2026_07_28];
        let lifecycle = match protocol {
            Protocol::Auto => ClientLifecycleMode::Auto {
                preferred_versions: modern,
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            },
            Protocol::Modern => ClientLifecycleMode::Discover { preferred_versions: modern },
            Protocol::Legacy => ClientLifecycleMode::Initialize,
        };
        let running =
            Box::pin(serve_client_with_lifecycle_and_ct(Handler, transport, lifecycle, ended))
                .await?;
        let calls = Arc::new(Semaphore::new(max_concurrency));
        Ok(Self { server: server.to_owned(), running, progress, calls })
    }

    /// Returns the version that was agreed upon.
    pub(super) fn protocol(&self) -> Option<String> {
        self.running.peer_info().map(|info| info.protocol_version.to_string())
    }

    /// Returns what the server says about how to use it.
    pub(super) fn instructions(&self) -> Option<String> {
        self.running.peer_info().and_then(|info| info.instructions.clone())
    }

    /// Returns whether the server says that it has tools.
    pub(super) fn has_tools(&self) -> bool {
        self.running.peer_info().is_some_and(|info| info.capabilities.tools.is_some())
    }

    /// Returns whether the connection has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.running.is_closed() || self.running.peer().is_transport_closed()
    }

    /// Lists every tool: the results of `tools/list`, page by page, as they came.
    ///
    /// A list that comes back to a page it had, or never ends, is cut there and the fact returned.
    pub(super) async fn list_tools(&self) -> Result<(Vec<Value>, Option<String>), ServiceError> {
        let mut pages = Vec::new();
        let mut seen: Vec<String> = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES {
            let mut params = PaginatedRequestParams::default();
            params.cursor = cursor;
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let page = match self.running.send_request(request).await? {
                ServerResult::CustomResult(page) => page.0,
                _ => return Err(ServiceError::UnexpectedResponse),
            };
            let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            pages.push(page);
            let Some(next) = next else {
                return Ok((pages, None));
            };
            if seen.contains(&next) {
                return Ok((
                    pages,
                    Some(
                        "the list of tools comes back to a page it had; it was cut there"
                            .to_owned(),
                    ),
                ));
            }
            seen.push(next.clone());
            cursor = Some(next);
        }
        Ok((
            pages,
            Some(format!("the list of tools has more than {PAGES} pages; it was cut there")),
        ))
    }

    /// Calls a tool by the name its server gives it, once, within `limit`.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: &Arguments,
        limit: Duration,
        cx: &CallContext,
    ) -> Result<Map<String, Value>, CallError> {
        let deadline = Instant::now() + limit;
        let slot = tokio::select! {
            slot = self.calls.acquire() => slot,
            () = tokio::time::sleep_until(deadline) => {
                let message = format!("{} was busy for {} s; the call was not sent", self.server, limit.as_secs_f64());
                return Err(CallError::Failed(Failure::new(MCP_CALL_FAILED, message).retryable()));
            }
            () = cx.cancelled.cancelled() => return Err(CallError::Interrupted(Interrupt::Cancelled)),
        };
        let result = self.rounds(tool, arguments, deadline, cx).await;
        drop(slot);
        result
    }

    /// Goes through the rounds of one call; what the server asks for is declined.
    async fn rounds(
        &self,
        tool: &str,
        arguments: &Arguments,
        deadline: Instant,
        cx: &CallContext,
    ) -> Result<Map<String, Value>, CallError> {
        let mut declined = Declined::default();
        for _ in 0..=ROUNDS {
            let mut params =
                CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
            (params.input_responses, params.request_state) = declined;
            let result = self.round(params, deadline, cx).await?;
            if result.get("resultType").and_then(Value::as_str) != Some("input_required") {
                return Ok(result);
            }
            declined = decline(&result)?;
        }
        let message = format!("{} wanted more than {ROUNDS} rounds for one call", self.server);
        Err(CallError::Failed(Failure::new(MCP_CONTINUATION_LIMIT, message)))
    }

    async fn round(
        &self,
        params: CallToolRequestParams,
        deadline: Instant,
        cx: &CallContext,
    ) -> Result<Map<String, Value>, CallError> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::no_options().with_meta(passed_on(cx));
        let sent = self.running.send_cancellable_request(request, options).await;
        let mut handle = sent.map_err(|error| self.not_sent(&error))?;
        let route = self.progress.route(&handle.progress_token, cx);
        let answer = tokio::select! {
            answer = &mut handle.rx => answer,
            () = tokio::time::sleep_until(deadline) => {
                give_up(&handle, "the time for the call is up").await;
                return Err(self.unknown("it did not answer in time"));
            }
            () = cx.cancelled.cancelled() => {
                give_up(&handle, "the client cancelled the call").await;
                return Err(CallError::Interrupted(Interrupt::Cancelled));
            }
        };
        drop(route);
        match answer {
            Ok(Ok(ServerResult::CustomResult(result))) => match result.0 {
                Value::Object(result) => Ok(result),
                _ => Err(CallError::Failed(Failure::new(
                    MCP_CALL_FAILED,
                    format!("{} answered with something that is no result", self.server),
                ))),
            },
            Ok(Ok(_)) => Err(self.unknown("its answer cannot be read")),
            Ok(Err(error)) => Err(self.failed(error)),
            Err(_) => Err(self.unknown("the connection ended")),
        }
    }

    fn not_sent(&self, error: &ServiceError) -> CallError {
        let message =
            format!("{} is not there any more ({error}); the call was not sent", self.server);
        CallError::Failed(Failure::new(MCP_CALL_FAILED, message).retryable())
    }

    fn unknown(&self, reason: &str) -> CallError {
        CallError::Interrupted(Interrupt::OutcomeUnknown {
            target: self.server.clone(),
            reason: reason.to_owned(),
        })
    }

    /// Sorts the errors of a call that was sent by whether the tool may have run.
    fn failed(&self, error: ServiceError) -> CallError {
        match error {
            ServiceError::McpError(error) => {
                let ErrorData { code, message, data } = error;
                let text = format!("{} refused the call: {message} ({})", self.server, code.0);
                // These say that the request itself was wrong, so the tool cannot have run.
                if !(-32700..=-32600).contains(&code.0) || code.0 == -32603 {
                    return self
                        .unknown(&format!("it answered with the error {} {message}", code.0));
                }
                let failure = Failure::new(MCP_CALL_FAILED, text).with_detail("code", code.0);
                CallError::Failed(failure.with_detail("data", data.unwrap_or_default()))
            }
            ServiceError::Cancelled { .. } => CallError::Interrupted(Interrupt::Cancelled),
            other => self.unknown(&other.to_string()),
        }
    }
}

/// What of a client's request goes on with ours: its trace, and nothing else.
fn passed_on(cx: &CallContext) -> RequestMetaObject {
    let mut meta = RequestMetaObject::new();
    for key in ["traceparent", "tracestate", "baggage"] {
        if let Some(value) = cx.client.meta.get(key) {
            meta.insert(key.to_owned(), value.clone());
        }
    }
    meta
}

/// Says why a handshake failed.
pub(super) fn unopened(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_)
        | ClientInitializeError::TransportError { .. } => "the connection was closed".to_owned(),
        error => error.to_string(),
    }
}

/// Tells the server that nobody waits for an answer any more; one that does not read is left alone.
async fn give_up(handle: &RequestHandle<RoleClient>, reason: &str) {
    let param = CancelledNotificationParam::new(Some(handle.id.clone()), Some(reason.to_owned()));
    match tokio::time::timeout(TELLING, handle.peer.notify_cancelled(param)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::debug!(%error, "the server could not be told of a cancelled call");
        }
        Err(_) => tracing::warn!("the server does not read what it is sent"),
    }
}

type Declined = (Option<std::collections::BTreeMap<String, Value>>, Option<String>);

/// Declines everything a server asks in the middle of a call (MCP 2026-07-28 §basic/patterns/mrtr).
fn decline(result: &Map<String, Value>) -> Result<Declined, CallError> {
    let state = result.get("requestState").and_then(Value::as_str).map(str::to_owned);
    let Some(Value::Object(requests)) = result.get("inputRequests") else {
        return Ok((None, state));
    };
    let mut responses = std::collections::BTreeMap::new();
    for (key, request) in requests {
        match request.get("method").and_then(Value::as_str) {
            Some("elicitation/create") => {
                responses.insert(key.clone(), json!({"action": "decline"}))
            }
            method => {
                let message = format!(
                    "the server asked for {}, which nobody here can give",
                    method.unwrap_or("nothing known")
                );
                return Err(CallError::Failed(Failure::new(MCP_INTERACTION_UNSUPPORTED, message)));
            }
        };
    }
    Ok((Some(responses), state))
}

// === impl Progress ===

/// Ends the routing of one call's progress when it is dropped.
struct Route<'a> {
    progress: &'a Progress,
    token: ProgressToken,
}

impl Progress {
    fn route(&self, token: &ProgressToken, cx: &CallContext) -> Route<'_> {
        let mut routes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let early = std::mem::take(&mut routes.early);
        for report in early {
            if report.progress_token == *token {
                cx.port.progress(report_of(report));
            } else {
                routes.early.push_back(report);
            }
        }
        routes.ports.insert(token.clone(), Arc::clone(&cx.port));
        Route { progress: self, token: token.clone() }
    }

    fn deliver(&self, report: ProgressNotificationParam) {
        let mut routes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(port) = routes.ports.get(&report.progress_token) {
            port.progress(report_of(report));
            return;
        }
        if routes.early.len() == EARLY {
            routes.early.pop_front();
        }
        routes.early.push_back(report);
    }
}

impl Drop for Route<'_> {
    fn drop(&mut self) {
        let mut routes = self.progress.0.lock().unwrap_or_else(PoisonError::into_inner);
        routes.ports.remove(&self.token);
    }
}

fn report_of(report: ProgressNotificationParam) -> Map<String, Value> {
    match serde_json::to_value(report) {
        Ok(Value::Object(mut params)) => {
            params.shift_remove("progressToken");
            params
        }
        _ => Map::new(),
    }
}

// === impl Handler ===

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        // No capability: whatever a server asks of us is declined.
        let implementation = Implementation::new("iris-mcp", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(rmcp::model::ClientCapabilities::default(), implementation)
    }
}

// === impl Reporting ===

impl<T: Transport<RoleClient>> Transport<RoleClient> for Reporting<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.transport.receive().await?;
            match message {
                JsonRpcMessage::Notification(notification) => match notification.notification {
                    ServerNotification::ProgressNotification(report) => {
                        self.progress.deliver(report.params);
                    }
                    _ => return Some(JsonRpcMessage::Notification(notification)),
                },
                message => return Some(message),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}
