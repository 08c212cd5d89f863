//! A server's prompts, resources and completions: requests that go on to it as they came.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, CustomRequest, RequestId, RequestMetaObject, ServerResult};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::asks::{self, Pause};
use super::client::{CallError, Connection, MCP_CALL_FAILED, MCP_CONTINUATION_LIMIT, ROUNDS};
use super::line::Line;
use super::offers::Abilities;
use super::pending::Fate;
use super::server::Upstream;
use crate::relay::{Relay, RelayError, Watch, no_completions};
use crate::tool::{CallContext, Failure, Level};

/// How long a server may take for a request of our own.
const OWN: Duration = Duration::from_secs(10);
/// What of a request's `_meta` is between a client and us.
const PROTOCOL: &str = "io.modelcontextprotocol/";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const PROGRESS: &str = "progressToken";
const INTERNAL: i64 = -32_603;
const NO_METHOD: i64 = -32_601;

/// Why a request has no result.
#[derive(Debug)]
enum Unanswered {
    Error(RelayError),
    /// The server had forgotten the session.
    Forgotten,
}

/// Returns whether a server may ask for something before it answers a request (MCP 2026-07-28
/// §basic/patterns/mrtr).
fn may_ask(method: &str) -> bool {
    matches!(method, "prompts/get" | "resources/read")
}

impl Connection {
    /// Returns what the server says that it can do.
    pub(super) fn offers(&self) -> Abilities {
        let Some(info) = self.running.peer_info() else { return Abilities::default() };
        let can = &info.capabilities;
        let is_true = |flag: Option<bool>| flag == Some(true);
        Abilities {
            tools: can.tools.is_some(),
            tools_change: can.tools.as_ref().is_some_and(|tools| is_true(tools.list_changed)),
            prompts: can.prompts.is_some(),
            prompts_change: can.prompts.as_ref().is_some_and(|of| is_true(of.list_changed)),
            resources: can.resources.is_some(),
            resources_change: can.resources.as_ref().is_some_and(|of| is_true(of.list_changed)),
            subscriptions: can.resources.as_ref().is_some_and(|of| is_true(of.subscribe)),
            completions: can.completions.is_some(),
            logs: can.logging.is_some(),
        }
    }

    /// Makes a request of our own.
    pub(super) async fn bare(&self, method: &str, params: Value) -> Result<Value, RelayError> {
        let request = ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)));
        let options = PeerRequestOptions::no_options();
        let sent = self.running.send_cancellable_request(request, options).await;
        let mut handle = sent.map_err(|error| self.broken(&error.to_string()))?;
        match tokio::time::timeout(OWN, &mut handle.rx).await {
            Ok(answer) => self.read(answer, &handle.id).map_err(|error| match error {
                Unanswered::Error(error) => error,
                Unanswered::Forgotten => self.broken("it has forgotten the session"),
            }),
            Err(_) => {
                self.give_up(&handle, "the time for the request is up").await;
                Err(self.broken(&format!("it did not answer within {} s", OWN.as_secs())))
            }
        }
    }

    /// Passes a client's request on before `deadline`, once a round; what the server asks for is
    /// asked of the client.
    async fn pass(
        &self,
        (method, params): (&str, &Map<String, Value>),
        deadline: Instant,
        cx: &CallContext,
    ) -> Result<Value, Unanswered> {
        let busy = || Unanswered::Error(self.broken("it was busy; the request was not sent"));
        let place = tokio::select! {
            Ok(place) = Arc::clone(&self.calls).acquire_owned() => place,
            () = tokio::time::sleep_until(deadline) => return Err(busy()),
            () = cx.cancelled.cancelled() => return Err(Unanswered::Error(cancelled())),
        };
        let pause = Arc::new(Pause::new(Arc::clone(&self.calls), place));
        let mut params = params.clone();
        for _ in 0..=ROUNDS {
            let request = (method, params.clone());
            let result = self.pass_once(request, (deadline, &pause), cx).await?;
            let asks = match &result {
                Value::Object(asks) if may_ask(method) && asks::is_asking(asks) => asks,
                _ => return Ok(result),
            };
            let (answers, state) =
                asks::answers(asks, cx, &pause).await.map_err(|error| self.unasked(error))?;
            for (key, value) in [
                ("inputResponses", answers.map(|it| json!(it))),
                ("requestState", state.map(Value::from)),
            ] {
                params.shift_remove(key);
                params.extend(value.map(|value| (key.to_owned(), value)));
            }
        }
        let message = format!("{} wanted more than {ROUNDS} rounds for one request", self.server);
        let failure = Failure::new(MCP_CONTINUATION_LIMIT, message);
        Err(self.unasked(CallError::Failed(failure)))
    }

    async fn pass_once(
        &self,
        (method, params): (&str, Map<String, Value>),
        (deadline, pause): (Instant, &Arc<Pause>),
        cx: &CallContext,
    ) -> Result<Value, Unanswered> {
        let params = Some(Value::Object(params));
        let request = ClientRequest::CustomRequest(CustomRequest::new(method, params));
        let options = PeerRequestOptions::no_options().with_meta(self.handed_on(cx));
        let underway = &self.running.service().underway;
        let route = self.progress.begin(cx);
        let entry = may_ask(method).then(|| underway.begin(cx, pause));
        let sent = self.running.send_cancellable_request(request, options).await;
        let sent = sent.map_err(|error| Unanswered::Error(self.broken(&error.to_string())));
        let mut handle: RequestHandle<RoleClient> = sent?;
        route.sent(&handle.progress_token);
        if let Some(entry) = &entry {
            entry.sent(handle.id.clone());
        }
        let answer = tokio::select! {
            answer = &mut handle.rx => answer,
            () = pause.expired(deadline) => {
                self.give_up(&handle, "the time for the request is up").await;
                return Err(Unanswered::Error(self.broken("it did not answer in time")));
            }
            () = cx.cancelled.cancelled() => {
                self.give_up(&handle, "the client cancelled the request").await;
                return Err(Unanswered::Error(cancelled()));
            }
        };
        drop((route, entry));
        self.read(answer, &handle.id)
    }

    /// Says why a client could not be asked.
    fn unasked(&self, error: CallError) -> Unanswered {
        Unanswered::Error(match error {
            CallError::Failed(Failure { code, message, .. }) => {
                let data = json!({"code": code.as_str(), "upstream": self.server});
                RelayError { code: INTERNAL, message, data: Some(data) }
            }
            CallError::Broken(_) | CallError::Interrupted(_) => cancelled(),
        })
    }

    /// Returns what of a client's `_meta` goes on: all that is not between the client and us.
    fn handed_on(&self, cx: &CallContext) -> RequestMetaObject {
        let mut meta = self.passed_on(cx);
        for (key, value) in &cx.client.meta {
            if key != PROGRESS && !key.starts_with(PROTOCOL) {
                meta.insert(key.clone(), value.clone());
            }
        }
        self.ask_for_logs(&mut meta, cx);
        meta
    }

    /// Asks a server of the newer era for the log messages that the client of a call wants.
    pub(super) fn ask_for_logs(&self, meta: &mut RequestMetaObject, cx: &CallContext) {
        if let Some(level) = cx.client.log_level.filter(|_| self.is_newer()) {
            meta.insert(LOG_LEVEL.to_owned(), level.as_str().into());
        }
    }

    fn read<E>(
        &self,
        answer: Result<Result<ServerResult, ServiceError>, E>,
        id: &RequestId,
    ) -> Result<Value, Unanswered> {
        let failed = |reason: &str| Err(Unanswered::Error(self.broken(reason)));
        match (answer, self.pending.fate(id)) {
            (Ok(Ok(ServerResult::CustomResult(result))), _) if result.0.is_object() => Ok(result.0),
            (_, Some(Fate::Forgotten)) => Err(Unanswered::Forgotten),
            (_, Some(fate)) => failed(fate.text()),
            (Ok(Err(ServiceError::McpError(error))), None) => Err(Unanswered::Error(RelayError {
                code: i64::from(error.code.0),
                message: error.message.into_owned(),
                data: error.data,
            })),
            (Ok(Ok(_)), None) => failed("its answer cannot be read"),
            (Ok(Err(error)), None) => failed(&error.to_string()),
            (Err(_), None) => failed("the connection ended"),
        }
    }

    fn broken(&self, reason: &str) -> RelayError {
        unavailable(&self.server, &format!("{}: {reason}", self.server))
    }
}

fn unavailable(server: &str, message: &str) -> RelayError {
    let data = json!({"code": MCP_CALL_FAILED.as_str(), "upstream": server});
    RelayError { code: INTERNAL, message: message.to_owned(), data: Some(data) }
}

/// Nobody reads it.
fn cancelled() -> RelayError {
    RelayError { code: INTERNAL, message: "the request was cancelled".to_owned(), data: None }
}

impl Upstream {
    async fn connected(
        &self,
        line: &Line,
        cx: &CallContext,
    ) -> Result<Arc<Connection>, RelayError> {
        let reached = self.reached(line, cx).await;
        let connection = reached.map_err(|error| self.unreached(error))?;
        heed_level(line, &connection, cx).await;
        Ok(connection)
    }

    fn unreached(&self, error: CallError) -> RelayError {
        match error {
            CallError::Failed(Failure { message, .. }) => unavailable(self.name(), &message),
            CallError::Broken(_) | CallError::Interrupted(_) => cancelled(),
        }
    }

    /// Tells the server the least level that any client wants; where clients are kept apart, each
    /// line is told its own client's with the next request.
    async fn set_level(&self, params: &Map<String, Value>) {
        let level = params.get("level").and_then(Value::as_str).and_then(Level::parse);
        let Some(level) = level.filter(|_| self.apart().is_none()) else { return };
        self.wanted().set_level(level);
        if let Some(connection) = self.current().await
            && !connection.is_newer()
            && !connection.is_closed()
        {
            connection.tell(self.wanted()).await;
        }
    }
}

/// Sees to it that a server of the older era says what the client of a call wants to hear.
pub(super) async fn heed_level(line: &Line, connection: &Connection, cx: &CallContext) {
    if let Some(level) = cx.client.log_level.filter(|_| !connection.is_newer())
        && line.wanted().lower_level(level)
    {
        connection.tell(line.wanted()).await;
    }
}

#[async_trait]
impl Relay for Upstream {
    async fn request(
        &self,
        method: &str,
        params: Map<String, Value>,
        cx: &CallContext,
    ) -> Result<Value, RelayError> {
        if method == "logging/setLevel" {
            self.set_level(&params).await;
            return Ok(json!({}));
        }
        let line = self.line(cx).map_err(|error| self.unreached(error))?;
        let limit = self.limit(cx);
        let mut deadline = None;
        for _ in 0..2 {
            let connection = self.connected(&line, cx).await?;
            if method == "completion/complete" && !connection.offers().completions {
                return Ok(no_completions());
            }
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + limit);
            match connection.pass((method, &params), deadline, cx).await {
                Ok(result) => return Ok(result),
                Err(Unanswered::Error(error)) => return Err(error),
                Err(Unanswered::Forgotten) => {}
            }
        }
        Err(unavailable(self.name(), "the server forgets every session"))
    }

    async fn watch(&self, uri: &str, cx: &CallContext) -> Result<Watch, RelayError> {
        let line = self.line(cx).map_err(|error| self.unreached(error))?;
        let connection = self.connected(&line, cx).await?;
        if !connection.offers().subscriptions {
            let message = format!("{} does not tell of changes of resources", self.name());
            return Err(RelayError { code: NO_METHOD, message, data: Some(json!({"uri": uri})) });
        }
        // Wanted before it is told, so that nobody takes it back in between.
        let watch = line.wanted().watch(uri);
        if connection.is_newer() {
            // One that does not agree will not tell; what is wanted stays wanted.
            drop(tokio::time::timeout(OWN, line.wanted().is_heard(uri)).await);
        } else {
            connection.follow(uri).await?;
        }
        // A line over which something is heard is in use.
        Ok(Watch::new(move || drop((watch, line))))
    }
}
