//! One upstream server: its process, the connection to it, and starting both again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Operator;
use super::catalog::{self, Catalog};
use super::client::{CallError, Connection, MCP_CALL_FAILED, Protocol, unopened};
use super::config::Server;
use super::env::{Host, Resolved, resolve};
use super::native::Natives;
use super::wire::Wire;
use crate::process::{Child, Grace, Processes, Spec, base_environment};
use crate::tool::{Arguments, CallContext, Failure};

/// How long a server that failed to answer is given to say why.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What all servers of a run share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) processes: Processes,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) workspace: PathBuf,
    pub(super) max_message_bytes: usize,
    pub(super) natives: Natives,
    pub(super) ended: CancellationToken,
}

/// A server that is described in a file.
#[derive(Debug)]
pub(super) struct Upstream {
    server: Server,
    operator: Operator,
    shared: Arc<Shared>,
    /// What its description came to, once; a restart uses it again.
    resolved: OnceLock<Resolved>,
    /// Whether it did not survive the question whether it is of the newer era.
    is_older: AtomicBool,
    /// The connection there is; the lock also lets only one start it again.
    link: Mutex<Option<Link>>,
}

/// A running process and the connection to it.
#[derive(Debug)]
struct Link {
    connection: Arc<Connection>,
    child: Child,
}

/// Why a server that was started cannot be spoken to.
#[derive(Debug)]
struct Unconnected {
    reason: String,
    /// Whether it ended by itself.
    ended: bool,
}

/// A server that is ready.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) catalog: Catalog,
    pub(super) instructions: Option<String>,
}

impl From<String> for Unconnected {
    fn from(reason: String) -> Self {
        Self { reason, ended: false }
    }
}

impl Upstream {
    pub(super) fn new(server: Server, operator: Operator, shared: Arc<Shared>) -> Arc<Self> {
        Arc::new(Self {
            server,
            operator,
            shared,
            resolved: OnceLock::new(),
            is_older: AtomicBool::new(false),
            link: Mutex::default(),
        })
    }

    /// Returns the server's name.
    pub(super) fn name(&self) -> &str {
        &self.server.name
    }

    /// Returns whether its failure is everybody's.
    pub(super) fn is_required(&self) -> bool {
        self.server.required
    }

    /// Returns whether its word that a tool changes nothing is believed.
    pub(super) fn is_trusted(&self) -> bool {
        self.server.trust_annotations
    }

    /// Returns whether a result must keep to the schema that its tool promises.
    pub(super) fn is_strict(&self) -> bool {
        self.operator.strict_output
    }

    /// Returns what keeps its results.
    pub(super) fn natives(&self) -> &Natives {
        &self.shared.natives
    }

    /// Starts the server and learns its tools, within its time to start.
    pub(super) async fn prepare(&self) -> Result<Prepared, String> {
        let deadline = self.deadline();
        let prepared = async {
            let connection = self.connection(deadline).await?;
            if !connection.has_tools() {
                return Err("the server does not say that it has tools".to_owned());
            }
            let (pages, cut) = match connection.list_tools().await {
                Ok(listed) => listed,
                Err(error) => {
                    return Err(format!(
                        "its tools cannot be listed: {error}{}",
                        self.last_words().await
                    ));
                }
            };
            if let Some(cut) = cut {
                tracing::warn!(upstream = self.server.name, "{cut}");
            }
            let catalog = catalog::build(&self.server.name, &self.server.filter, &pages);
            tracing::info!(
                upstream = self.server.name,
                protocol = connection.protocol(),
                tools = catalog.tools.len(),
                "an upstream server is ready"
            );
            Ok(Prepared { catalog, instructions: connection.instructions() })
        };
        // The handshake keeps to the deadline by itself, and then knows the server's last words.
        match tokio::time::timeout_at(deadline + LAST_WORDS * 2, prepared).await {
            Ok(prepared) => prepared,
            Err(_) => {
                let words = self.last_words().await;
                self.stop(Grace::default()).await;
                Err(self.not_ready(&words))
            }
        }
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.server.startup_timeout
    }

    fn not_ready(&self, words: &str) -> String {
        let seconds = self.server.startup_timeout.as_secs_f64();
        format!("it was not ready within {seconds} s (startup_timeout_sec){words}")
    }

    /// Calls one of its tools; a server that is gone is started again first.
    ///
    /// The call itself is sent once, whatever becomes of it.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: &Arguments,
        cx: &CallContext,
    ) -> Result<Map<String, Value>, CallError> {
        let limit = cx
            .time_limit
            .map_or(self.server.tool_timeout, |limit| limit.min(self.server.tool_timeout));
        let deadline = self.deadline();
        let connection = self.connection(deadline);
        let connected = tokio::select! {
            connected = tokio::time::timeout_at(deadline + LAST_WORDS * 2, connection) => connected,
            () = cx.cancelled.cancelled() => {
                return Err(CallError::Interrupted(crate::tool::Interrupt::Cancelled));
            }
        };
        let connection = match connected {
            Ok(Ok(connection)) => connection,
            Ok(Err(reason)) => return Err(self.unavailable(&reason)),
            Err(_) => return Err(self.unavailable("it could not be started again in time")),
        };
        connection.call(tool, arguments, limit, cx).await
    }

    fn unavailable(&self, reason: &str) -> CallError {
        let message = format!(
            "the server {} is not available: {reason}; the call was not sent",
            self.server.name
        );
        CallError::Failed(
            Failure::new(MCP_CALL_FAILED, message).retryable().with_detail("upstream", self.name()),
        )
    }

    /// Returns the connection, making it if there is none any more.
    async fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, String> {
        let mut link = self.link.lock().await;
        if let Some(link) = link.as_ref().filter(|link| !link.connection.is_closed()) {
            return Ok(Arc::clone(&link.connection));
        }
        if let Some(gone) = link.take() {
            tracing::warn!(
                upstream = self.server.name,
                "an upstream server is gone and is started again"
            );
            // Ends what the old process left behind, in the background.
            drop(gone);
        }
        let (connection, child) = self.connect(deadline).await?;
        let connection = Arc::new(connection);
        *link = Some(Link { connection: Arc::clone(&connection), child });
        Ok(connection)
    }

    /// Starts the process and shakes hands.
    ///
    /// Some servers of the older era end at any request but `initialize`; such a one is started
    /// again and only asked that.
    async fn connect(&self, deadline: Instant) -> Result<(Connection, Child), String> {
        let asked = self.operator.protocol;
        if asked == Protocol::Auto && !self.is_older.load(Ordering::Relaxed) {
            match self.connect_as(Protocol::Auto, deadline).await {
                Err(Unconnected { reason: _, ended: true }) => {}
                connected => return connected.map_err(|error| error.reason),
            }
            let connected = self.connect_as(Protocol::Legacy, deadline).await;
            self.is_older.store(connected.is_ok(), Ordering::Relaxed);
            return connected.map_err(|error| error.reason);
        }
        let protocol = if asked == Protocol::Auto { Protocol::Legacy } else { asked };
        self.connect_as(protocol, deadline).await.map_err(|error| error.reason)
    }

    async fn connect_as(
        &self,
        protocol: Protocol,
        deadline: Instant,
    ) -> Result<(Connection, Child), Unconnected> {
        let mut child = self.start().await?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("its standard streams are not there".to_owned().into());
        };
        let wire =
            Wire::new(self.server.name.clone(), stdout, stdin, self.shared.max_message_bytes);
        let ended = self.shared.ended.child_token();
        let limit = self.operator.max_concurrency;
        let opened = Connection::open(&self.server.name, wire, protocol, limit, ended);
        // Kept until the end: a server whose streams are closed has other last words.
        let mut opened = std::pin::pin!(opened);
        match tokio::time::timeout_at(deadline, &mut opened).await {
            Ok(Ok(connection)) => Ok((connection, child)),
            Ok(Err(error)) => {
                let (ended, words) = farewell(&child).await;
                let reason = format!("the handshake failed: {}{words}", unopened(&error));
                Err(Unconnected { reason, ended })
            }
            Err(_) => Err(self.not_ready(&farewell(&child).await.1).into()),
        }
    }

    async fn start(&self) -> Result<Child, String> {
        let resolved = self.resolved()?;
        let (command, args, cwd, env) = match resolved {
            Resolved::Stdio { command, args, cwd, env, .. } => (command, args, cwd, env),
            Resolved::Http(_) | Resolved::Sse(_) => {
                return Err("servers reached by URL are not available in this version; only those with a command are".to_owned());
            }
        };
        let mut environment =
            base_environment(&self.shared.environment, &self.operator.inherit_env);
        environment
            .extend(env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())));
        let spec = Spec {
            name: self.server.name.clone(),
            program: command.into(),
            args: args.iter().map(Into::into).collect(),
            cwd: Some(cwd.clone()),
            env: environment,
            ..Spec::default()
        };
        self.shared.processes.spawn(spec).await.map_err(|error| chain(&error))
    }

    fn resolved(&self) -> Result<&Resolved, String> {
        if let Some(resolved) = self.resolved.get() {
            return Ok(resolved);
        }
        let host = Host {
            variables: &self.shared.environment,
            workspace: &self.shared.workspace,
            read: &|path| std::fs::read(path),
        };
        let resolved = resolve(&self.server, host).map_err(|error| error.to_string())?;
        Ok(self.resolved.get_or_init(|| resolved))
    }

    async fn last_words(&self) -> String {
        match &*self.link.lock().await {
            Some(link) => farewell(&link.child).await.1,
            None => String::new(),
        }
    }

    /// Ends the process, if there is one.
    pub(super) async fn stop(&self, grace: Grace) {
        let link = self.link.lock().await.take();
        if let Some(Link { connection, mut child }) = link {
            drop(connection);
            child.stop(grace).await;
        }
    }
}

/// Says whether a server ended and how, and what it wrote last.
async fn farewell(child: &Child) -> (bool, String) {
    let exit = tokio::time::timeout(LAST_WORDS, child.wait()).await.ok();
    let ended = exit.is_some();
    let mut words = exit.map(|exit| format!("; it ended: {exit}")).unwrap_or_default();
    let lines = child.last_stderr();
    if let Some(start) = lines.len().checked_sub(5).or(Some(0)).filter(|_| !lines.is_empty()) {
        words.push_str("; its last words: ");
        words.push_str(&lines[start..].join(" | "));
    }
    (ended, words)
}

/// Writes an error with everything behind it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
