//! One connection to an upstream server: its requests, their time limits and what comes back.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientConfig,
    ClientRequest, CustomRequest, CustomResult, DiscoverRequest, DiscoverRequestParams,
    ErrorCode as RpcCode, Implementation, ListToolsRequest, PaginatedRequestParams,
    ProtocolVersion, RequestMetaObject, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, NotificationContext, PeerRequestOptions,
    RequestContext, RequestHandle, RunningService, ServiceError,
    serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::Transport;
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::asks::{self, Answers, Pause, Underway};
use super::notices::Notices;
use super::patience::Patience;
use super::pending::{Fate, Pending};
use super::progress::{Progress, Reporting};
use super::wanted::Told;
use crate::tool::context::WHOLE_RESULTS;
use crate::tool::{Arguments, CallContext, ErrorCode, Failure, Interrupt, Native};

/// The server answered a call with a protocol error, or could not be sent it.
pub const MCP_CALL_FAILED: ErrorCode = ErrorCode::new("MCP_CALL_FAILED");
/// The server asked for something that nobody here can give.
pub const MCP_INTERACTION_UNSUPPORTED: ErrorCode = ErrorCode::new("MCP_INTERACTION_UNSUPPORTED");
/// The server wanted to go on for ever.
pub const MCP_CONTINUATION_LIMIT: ErrorCode = ErrorCode::new("MCP_CONTINUATION_LIMIT");

/// What a client may be able to be asked.
const ASKABLE: [&str; 3] = ["elicitation", "roots", "sampling"];
/// The `_meta` key of what a client can be asked.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The code of a server that needs to ask what the client cannot answer (MCP 2026-07-28 §basic).
pub(super) const MISSING_CAPABILITY: i32 = -32021;

/// The most rounds that a call may take without an answer.
pub(super) const ROUNDS: usize = 8;
/// The most pages of a list that are read.
const PAGES: usize = 1_000;
/// How long a server may take to read that a call is cancelled.
const TELLING: Duration = Duration::from_millis(500);

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
    pub(super) server: String,
    pub(super) running: RunningService<RoleClient, Handler>,
    pub(super) progress: Arc<Progress>,
    pub(super) pending: Arc<Pending>,
    /// Bounds the calls that are under way at once.
    pub(super) calls: Arc<Semaphore>,
    /// What the server was told of what is wanted, in the older era.
    pub(super) told: tokio::sync::Mutex<Told>,
    notices: Arc<Notices>,
}

/// How a call to a server ends without a result.
#[derive(Debug)]
pub(super) enum CallError {
    /// The server certainly did not carry it out, or said itself that it failed.
    Failed(Failure),
    /// It gave no usable answer and is not at it any more; nobody knows how far it came.
    Broken(String),
    /// A control condition.
    Interrupted(Interrupt),
}

/// Why a call has no result.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// It ended.
    Ended(CallError),
    /// The server forgot the session and did nothing, so it may be made again on a new connection.
    Forgotten,
}

/// What we are to a server.
#[derive(Clone, Debug, Default)]
pub(super) struct Handler {
    changed: Arc<Notify>,
    /// The calls that it may ask about.
    pub(super) underway: Arc<Underway>,
}

impl From<CallError> for Unanswered {
    fn from(error: CallError) -> Self {
        Self::Ended(error)
    }
}

// === impl Connection ===

impl Connection {
    /// Shakes hands with a server over a transport.
    pub(super) async fn open<T>(
        notices: &Arc<Notices>,
        (transport, pending): (T, Arc<Pending>),
        protocol: Protocol,
        max_concurrency: usize,
        ended: CancellationToken,
    ) -> Result<Self, String>
    where
        T: Transport<RoleClient> + 'static,
        T::Error: std::error::Error + Send + Sync + 'static,
    {
        let progress = Arc::new(Progress::default());
        let transport = Reporting {
            transport,
            progress: Arc::clone(&progress),
            pending: Arc::clone(&pending),
            notices: Arc::clone(notices),
        };
        let modern = vec![ProtocolVersion::V_2026_07_28];
        let lifecycle = match protocol {
            Protocol::Auto => ClientLifecycleMode::Auto {
                preferred_versions: modern,
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            },
            Protocol::Modern => ClientLifecycleMode::Discover { preferred_versions: modern },
            Protocol::Legacy => ClientLifecycleMode::Initialize,
        };
        let handler = Handler::default();
        let running = serve_client_with_lifecycle_and_ct(handler, transport, lifecycle, ended);
        let running = Box::pin(running).await;
        let running =
            running.map_err(|error| pending.reason().unwrap_or_else(|| unopened(&error)))?;
        let calls = Arc::new(Semaphore::new(max_concurrency));
        let (server, told) = (notices.server.clone(), tokio::sync::Mutex::default());
        let notices = Arc::clone(notices);
        let connection = Self { server, running, progress, pending, calls, told, notices };
        connection.notices.set_newer(connection.is_newer());
        Ok(connection)
    }

    /// Returns the version that was agreed upon.
    pub(super) fn protocol(&self) -> Option<String> {
        self.running.peer_info().map(|info| info.protocol_version.to_string())
    }

    /// Returns whether that is of the newer era.
    pub(super) fn is_newer(&self) -> bool {
        self.running.peer_info().is_some_and(|info| !info.protocol_version.has_initialize())
    }

    /// Returns what the server says about how to use it.
    pub(super) fn instructions(&self) -> Option<String> {
        self.running.peer_info().and_then(|info| info.instructions.clone())
    }

    /// Returns whether the connection has ended, or should not be used any more.
    pub(super) fn is_closed(&self) -> bool {
        self.pending.left().is_cancelled()
            || self.running.is_closed()
            || self.running.peer().is_transport_closed()
    }

    /// Waits until that is so.
    pub(super) async fn left(&self) {
        self.pending.left().cancelled().await;
    }

    /// Waits until the server says that one of its lists has changed.
    pub(super) async fn changed(&self) {
        tokio::select! {
            () = self.running.service().changed.notified() => {}
            () = self.notices.changed.notified() => {}
        }
    }

    /// Says that the lists are to be read anew.
    pub(super) fn say_changed(&self) {
        self.notices.changed.notify_one();
    }

    /// Ends the connection and waits until the server was told.
    pub(super) async fn close(&self) {
        self.running.cancellation_token().cancel();
        self.pending.finished().cancelled().await;
    }

    /// Lists every tool: the results of `tools/list`, page by page, as they came.
    ///
    /// A list that comes back to a page it had, or never ends, is cut there and the fact returned.
    pub(super) async fn list_tools(&self) -> Result<(Vec<Value>, Option<String>), String> {
        let mut pages = Vec::new();
        let mut seen: Vec<String> = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES {
            let mut params = PaginatedRequestParams::default();
            params.cursor = cursor;
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let page = self.page(request).await?;
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

    async fn page(&self, request: ClientRequest) -> Result<Value, String> {
        let options = PeerRequestOptions::no_options();
        let sent = self.running.send_cancellable_request(request, options).await;
        let handle = sent.map_err(|error| error.to_string())?;
        let id = handle.id.clone();
        let told = |error: ServiceError| match self.pending.fate(&id) {
            Some(fate) => fate.text().to_owned(),
            None => error.to_string(),
        };
        match handle.rx.await {
            Ok(Ok(ServerResult::CustomResult(page))) => Ok(page.0),
            Ok(Ok(_)) => Err(told(ServiceError::UnexpectedResponse)),
            Ok(Err(error)) => Err(told(error)),
            Err(_) => Err("the connection ended".to_owned()),
        }
    }

    /// Calls a tool by the name its server gives it, once, while there is patience.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: &Arguments,
        patience: &mut Patience,
        cx: &CallContext,
    ) -> Result<Native, Unanswered> {
        let place = tokio::select! {
            Ok(place) = Arc::clone(&self.calls).acquire_owned() => place,
            () = tokio::time::sleep_until(patience.due) => {
                let seconds = patience.time.as_secs_f64();
                let message = format!("{} was busy for {seconds} s; the call was not sent", self.server);
                return Err(CallError::Failed(Failure::new(MCP_CALL_FAILED, message).retryable()).into());
            }
            () = cx.cancelled.cancelled() => return Err(CallError::Interrupted(Interrupt::Cancelled).into()),
        };
        let pause = Arc::new(Pause::new(Arc::clone(&self.calls), place));
        self.rounds(tool, arguments, (patience, &pause), cx).await
    }

    /// Goes through the rounds of one call; what the server asks for is asked of the client.
    async fn rounds(
        &self,
        tool: &str,
        arguments: &Arguments,
        (patience, pause): (&mut Patience, &Arc<Pause>),
        cx: &CallContext,
    ) -> Result<Native, Unanswered> {
        let mut answers = Answers::default();
        for _ in 0..=ROUNDS {
            let mut params =
                CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
            (params.input_responses, params.request_state) = answers;
            let result = self.round(params, (patience, pause), cx).await?;
            if !asks::is_asking(result.members()) {
                return Ok(result);
            }
            answers = asks::answers(result.members(), cx, pause).await?;
        }
        let message = format!("{} wanted more than {ROUNDS} rounds for one call", self.server);
        Err(CallError::Failed(Failure::new(MCP_CONTINUATION_LIMIT, message)).into())
    }

    async fn round(
        &self,
        params: CallToolRequestParams,
        (patience, pause): (&mut Patience, &Arc<Pause>),
        cx: &CallContext,
    ) -> Result<Native, Unanswered> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let mut meta = self.passed_on(cx);
        self.ask_for_logs(&mut meta, cx);
        let options = PeerRequestOptions::no_options().with_meta(meta);
        let underway = &self.running.service().underway;
        let (route, entry) = (self.progress.begin(cx), underway.begin(cx, pause));
        let sent = self.running.send_cancellable_request(request, options).await;
        let mut handle = sent.map_err(|error| self.not_sent(&error.to_string()))?;
        route.sent(&handle.progress_token);
        entry.sent(handle.id.clone());
        let answer = loop {
            tokio::select! {
                answer = &mut handle.rx => break answer,
                () = route.reported(), if patience.is_renewed() => patience.renew(Instant::now()),
                () = pause.expired(patience.due) => {
                    self.give_up(&handle, "the time for the call is up").await;
                    return Err(CallError::Interrupted(Interrupt::OutcomeUnknown {
                        target: self.server.clone(),
                        reason: "it did not answer in time".to_owned(),
                    })
                    .into());
                }
                () = cx.cancelled.cancelled() => {
                    self.give_up(&handle, "the client cancelled the call").await;
                    return Err(CallError::Interrupted(Interrupt::Cancelled).into());
                }
            }
        };
        drop((route, entry));
        match (answer, self.pending.fate(&handle.id)) {
            (Ok(Ok(ServerResult::CustomResult(result))), _) => self.result_of(result.0),
            (_, Some(Fate::Forgotten)) => Err(Unanswered::Forgotten),
            (_, Some(Fate::NotRun(why))) => Err(self.refused(&why).into()),
            (_, Some(Fate::Unknown(why))) => Err(CallError::Broken(why).into()),
            (Ok(Ok(_)), None) => Err(CallError::Broken("its answer cannot be read".into()).into()),
            (Ok(Err(error)), None) => Err(self.failed(error).into()),
            (Err(_), None) => Err(CallError::Broken("the connection ended".into()).into()),
        }
    }

    /// Reads a result, which came as the text that it is.
    fn result_of(&self, result: Value) -> Result<Native, Unanswered> {
        let text = match result {
            Value::String(text) if text.starts_with('{') => text,
            _ => {
                let message = format!("{} answered with something that is no result", self.server);
                return Err(CallError::Failed(Failure::new(MCP_CALL_FAILED, message)).into());
            }
        };
        Native::parse(text).map_err(|error| {
            tracing::warn!(upstream = self.server, %error, "the server's answer cannot be read");
            CallError::Broken("its answer cannot be read".into()).into()
        })
    }

    /// What of a client's request goes on with ours: its trace and, to a server that is told so
    /// with every request, what the client can be asked.
    pub(super) fn passed_on(&self, cx: &CallContext) -> RequestMetaObject {
        let mut meta = RequestMetaObject::new();
        for key in ["traceparent", "tracestate", "baggage"] {
            if let Some(value) = cx.client.meta.get(key) {
                meta.insert(key.to_owned(), value.clone());
            }
        }
        if self.is_newer() {
            let of = |key: &str| Some((key.to_owned(), cx.client.capabilities.get(key)?.clone()));
            let mut can: Map<String, Value> = ASKABLE.iter().filter_map(|key| of(key)).collect();
            can.insert("experimental".to_owned(), json!({WHOLE_RESULTS: {}}));
            meta.insert(CAPABILITIES.to_owned(), Value::Object(can));
        }
        meta
    }

    /// Tells the server that nobody waits any more; one that does not read is left alone.
    pub(super) async fn give_up(&self, handle: &RequestHandle<RoleClient>, reason: &str) {
        let id = Some(handle.id.clone());
        let param = CancelledNotificationParam::new(id, Some(reason.to_owned()));
        match tokio::time::timeout(TELLING, handle.peer.notify_cancelled(param)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(%error, "the server could not be told of a cancelled call");
            }
            Err(_) => tracing::warn!("the server does not read what it is sent"),
        }
        self.pending.forget(&handle.id);
    }

    fn refused(&self, why: &str) -> CallError {
        let message = format!("{} did not carry out the call: {why}", self.server);
        CallError::Failed(Failure::new(MCP_CALL_FAILED, message).retryable())
    }

    fn not_sent(&self, error: &str) -> CallError {
        let message =
            format!("{} is not there any more ({error}); the call was not sent", self.server);
        CallError::Failed(Failure::new(MCP_CALL_FAILED, message).retryable())
    }

    /// Sorts the errors of a call that was sent by whether the tool may have run.
    fn failed(&self, error: ServiceError) -> CallError {
        match error {
            ServiceError::McpError(error) => {
                let ErrorData { code, message, data } = error;
                let text = format!("{} refused the call: {message} ({})", self.server, code.0);
                // These say that the request itself was wrong, so the tool cannot have run.
                let is_refusal = (-32700..=-32600).contains(&code.0) && code.0 != -32603;
                // So does this one: the client lacks what the tool must ask of it.
                if !is_refusal && code.0 != MISSING_CAPABILITY {
                    let code = code.0;
                    return CallError::Broken(format!(
                        "it answered with the error {code} {message}"
                    ));
                }
                let failure = Failure::new(MCP_CALL_FAILED, text).with_detail("code", code.0);
                let failure = failure.with_detail("message", message);
                CallError::Failed(failure.with_detail("data", data.unwrap_or_default()))
            }
            ServiceError::Cancelled { .. } => CallError::Interrupted(Interrupt::Cancelled),
            other => CallError::Broken(other.to_string()),
        }
    }
}

/// Says why a handshake failed.
fn unopened(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_)
        | ClientInitializeError::TransportError { .. } => "the connection was closed".to_owned(),
        ClientInitializeError::JsonRpcError(error) => error.message.to_string(),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => unopened(fallback),
        error => error.to_string(),
    }
}

// === impl Handler ===

/// Makes the question for the era of a server.
pub(super) fn era_question() -> DiscoverRequest {
    let about = Handler::default().get_info();
    let version = ProtocolVersion::V_2026_07_28;
    let mut question = DiscoverRequest::new(DiscoverRequestParams {});
    question.extensions.insert(RequestMetaObject::with_client_context(
        version,
        about.client_info,
        about.capabilities,
    ));
    question
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        // Whatever a server asks goes to the client whose call it is about, which may decline.
        let implementation = Implementation::new("iris-mcp", env!("CARGO_PKG_VERSION"));
        let mut can = rmcp::model::ClientCapabilities::default();
        can.elicitation = serde_json::from_value(json!({"form": {}, "url": {}})).ok();
        can.sampling = serde_json::from_value(json!({})).ok();
        can.roots = serde_json::from_value(json!({})).ok();
        can.experimental = serde_json::from_value(json!({WHOLE_RESULTS: {}})).ok();
        // What `initialize` names; a server that takes a newer one there would be of neither era.
        ClientConfig::new(can, implementation).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        if !asks::ASKED.contains(&method.as_str()) {
            return Err(ErrorData::new(RpcCode::METHOD_NOT_FOUND, method, None));
        }
        let params = match params {
            Some(Value::Object(params)) => params,
            _ => Map::new(),
        };
        let origin = context.extensions.get::<asks::Origin>();
        tokio::select! {
            answer = self.underway.ask(&method, params, origin) => answer,
            () = context.ct.cancelled() => Err(ErrorData::internal_error("the question was withdrawn", None)),
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}
