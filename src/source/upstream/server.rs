//! One upstream server: its lists, and calls on their way to it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Operator;
use super::about::About;
use super::catalog::{self, Catalog};
use super::client::{CallError, Connection, MCP_CALL_FAILED, Unanswered};
use super::clients::{Clients, Held};
use super::config::Server;
use super::diagnostic::{Diagnostic, MCP_TOOL_INVALID, Severity, Stage};
use super::dial::Dial;
use super::env::Resolved;
use super::http::{self, Network};
use super::last_words::LAST_WORDS;
use super::line::Line;
use super::native::Natives;
use super::notices::Notices;
use super::offers::Lists;
use super::patience::Patience;
use super::relay::heed_level;
use super::wanted::Wanted;
use crate::process::{Grace, Processes};
use crate::registry::{Apart, Cause};
use crate::relay::Events;
use crate::session::Sessions;
use crate::tool::{Arguments, CallContext, Failure, Native};

/// What all servers of a run share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) processes: Processes,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) workspace: PathBuf,
    pub(super) max_message_bytes: usize,
    /// What those reached by URL have in common.
    pub(super) network: Network,
    pub(super) natives: Natives,
    /// The sessions of our clients.
    pub(super) sessions: Arc<Sessions>,
    pub(super) ended: CancellationToken,
    /// Where the tasks of connections are started.
    pub(super) tasks: TaskTracker,
    /// Where servers say what they say by themselves.
    pub(super) events: Events,
}

/// A server that is described in a file.
#[derive(Debug)]
pub(super) struct Upstream {
    dial: Dial,
    /// What all clients share; where they are kept apart, only for the lists.
    line: Arc<Line>,
    /// The clients that are kept apart, if they are.
    clients: Option<Arc<Clients>>,
}

/// A server that is ready.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) catalog: Catalog,
    pub(super) lists: Lists,
    pub(super) instructions: Option<String>,
    /// The version that is spoken.
    pub(super) protocol: Option<String>,
}

impl Upstream {
    pub(super) fn new(server: Server, operator: Operator, shared: Arc<Shared>) -> Arc<Self> {
        let line = Line::new(Notices::new(&server.name, shared.events.clone(), None));
        let clients = Clients::new(&server.name, operator.scope);
        Arc::new(Self { dial: Dial::new(server, operator, shared), line: Arc::new(line), clients })
    }

    /// Returns the server's name.
    pub(super) fn name(&self) -> &str {
        &self.dial.server.name
    }

    /// Returns whether its failure is everybody's.
    pub(super) fn is_required(&self) -> bool {
        self.dial.server.required
    }

    /// Returns whether its word that a tool changes nothing is believed.
    pub(super) fn is_trusted(&self) -> bool {
        self.dial.server.trust_annotations
    }

    /// Returns whether a result must keep to the schema that its tool promises.
    pub(super) fn is_strict(&self) -> bool {
        self.dial.operator.strict_output
    }

    /// Returns what keeps its results.
    pub(super) fn natives(&self) -> &Natives {
        &self.dial.shared.natives
    }

    /// Returns what our clients want to hear over the line that they share.
    pub(super) fn wanted(&self) -> &Arc<Wanted> {
        self.line.wanted()
    }

    /// Returns how many clients are kept apart, if they are.
    pub(super) fn apart(&self) -> Option<Arc<Apart>> {
        self.clients.as_ref().map(|clients| Arc::clone(clients.apart()))
    }

    /// Returns the line for what a client wants: its own, or that of all.
    pub(super) fn line(&self, cx: &CallContext) -> Result<Held, CallError> {
        let Some(clients) = &self.clients else { return Ok(Held::shared(&self.line)) };
        let session = self.dial.shared.sessions.get(&cx.session);
        clients.hold(&session, &self.dial.shared).map_err(|reason| self.unavailable(&reason))
    }

    /// Returns whether what its description needs is there; if not, it never will be.
    pub(super) fn is_resolved(&self) -> bool {
        self.dial.found().is_some()
    }

    /// Starts the server, unless it runs, and learns its tools, within its time to start.
    pub(super) async fn prepare(&self) -> Result<Prepared, Cause> {
        let deadline = self.dial.deadline();
        let prepared = async {
            let connection = self.line.connection(&self.dial, deadline).await?;
            if !connection.offers().is_any() {
                let reason = "the server does not say that it has tools".to_owned();
                return Err(Cause::from(reason));
            }
            let mut pages = match connection.tools().await {
                Ok(pages) => pages,
                Err(error) => {
                    let words = self.line.last_words(&self.dial).await;
                    return Err(format!("its tools cannot be listed: {error}{words}").into());
                }
            };
            let refused = self.mirror(&connection, &mut pages);
            let (name, filter) = (self.dial.server.name.clone(), self.dial.server.filter.clone());
            // Thousands of schemas take a while, in which others are to be served.
            let built = tokio::task::spawn_blocking(move || catalog::build(&name, &filter, &pages));
            let built = built.await;
            let mut catalog = built
                .map_err(|error| Cause::from(format!("its tools cannot be taken over: {error}")))?;
            catalog.diagnostics.extend(refused);
            catalog.diagnostics.extend(self.dial.skipped_lines());
            Ok((connection, catalog))
        };
        // The handshake keeps to the deadline by itself, and then knows the server's last words.
        match tokio::time::timeout_at(deadline + LAST_WORDS * 2, prepared).await {
            Ok(Ok((connection, catalog))) => {
                // They have a limit of their own: tools are there without them.
                let lists = connection.lists().await;
                let (protocol, instructions) = (connection.protocol(), connection.instructions());
                Ok(Prepared { catalog, lists, instructions, protocol })
            }
            Ok(Err(Cause { reason, detail })) => {
                // What is missing may have been meant to be set there.
                let skipped = self.dial.skipped_lines();
                let skipped = skipped.iter().map(|line| line.message.clone());
                let details: Vec<String> = detail.into_iter().chain(skipped).collect();
                let detail = (!details.is_empty()).then(|| details.join("; "));
                Err(Cause { reason: self.dial.masked(&reason), detail })
            }
            Err(_) => {
                let words = self.line.last_words(&self.dial).await;
                self.stop(Grace::default()).await;
                Err(self.dial.not_ready(&words).into())
            }
        }
    }

    /// Learns which arguments go into headers, and takes out the tools that want that wrongly.
    fn mirror(&self, connection: &Connection, pages: &mut [Value]) -> Vec<Diagnostic> {
        if !matches!(self.dial.found(), Some(Resolved::Http(_))) || !connection.is_newer() {
            return Vec::new();
        }
        let (mirrors, refused) = http::learn(pages);
        self.dial.mirrors.store(Arc::new(mirrors));
        let admitted =
            |(wire_name, _): &(String, String)| self.dial.server.filter.admits(wire_name);
        refused
            .into_iter()
            .filter(admitted)
            .map(|(wire_name, reason)| Diagnostic {
                server: self.dial.server.name.clone(),
                stage: Stage::Catalog,
                code: MCP_TOOL_INVALID,
                severity: Severity::Error,
                wire_name: Some(wire_name),
                field: Some("input_schema".to_owned()),
                message: format!("the tool is left out: {reason}"),
                place: None,
            })
            .collect()
    }

    /// Returns the connection there is.
    pub(super) async fn current(&self) -> Option<Arc<Connection>> {
        self.line.current().await
    }

    /// Calls one of its tools; a server that is gone is started again first.
    ///
    /// The call itself is sent once, whatever becomes of it; only one that the server did not look
    /// at, since it had forgotten the session, is sent again in a new one.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: &Arguments,
        cx: &CallContext,
    ) -> Result<Native, CallError> {
        let (limit, line) = (self.limit(cx), self.line(cx)?);
        let mut patience = None;
        for _ in 0..2 {
            let connection = self.reached(&line, cx).await?;
            heed_level(&line, &connection, cx).await;
            let patience = patience.get_or_insert_with(|| {
                Patience::new(Instant::now(), limit, self.dial.operator.renewal, cx.time_limit)
            });
            match connection.call(tool, arguments, patience, cx).await {
                Ok(result) => return Ok(result),
                Err(Unanswered::Ended(error)) => return Err(error),
                Err(Unanswered::Forgotten) => tracing::info!(
                    upstream = self.dial.server.name,
                    "the server has forgotten the session; a new one is begun"
                ),
            }
        }
        Err(self.unavailable("it forgets every session"))
    }

    /// Returns how long a call may take.
    pub(super) fn limit(&self, cx: &CallContext) -> Duration {
        let own = self.dial.server.tool_timeout;
        cx.time_limit.map_or(own, |limit| limit.min(own))
    }

    /// Returns the connection for a call.
    pub(super) async fn reached(
        &self,
        line: &Line,
        cx: &CallContext,
    ) -> Result<Arc<Connection>, CallError> {
        let deadline = self.dial.deadline();
        let connection = line.connection(&self.dial, deadline);
        let connected = tokio::select! {
            connected = tokio::time::timeout_at(deadline + LAST_WORDS * 2, connection) => connected,
            () = cx.cancelled.cancelled() => {
                return Err(CallError::Interrupted(crate::tool::Interrupt::Cancelled));
            }
        };
        match connected {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(cause)) => Err(self.unavailable(&cause.reason)),
            Err(_) => Err(self.unavailable("it could not be started again in time")),
        }
    }

    fn unavailable(&self, reason: &str) -> CallError {
        let message = format!(
            "the server {} is not available: {}; the call was not sent",
            self.dial.server.name,
            self.dial.masked(reason)
        );
        CallError::Failed(
            Failure::new(MCP_CALL_FAILED, message).retryable().with_detail("upstream", self.name()),
        )
    }

    /// Returns what its operator is told of it; `failure` is why it failed.
    pub(super) fn about(&self, protocol: Option<String>, failure: Option<&Cause>) -> About {
        self.dial.about(protocol, failure)
    }

    /// Ends the connection, and the process if there is one.
    pub(super) async fn stop(&self, grace: Grace) {
        self.line.stop(grace).await;
    }
}
