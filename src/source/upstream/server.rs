//! One upstream server: the way to it, the connection, and making both again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Operator;
use super::about::About;
use super::catalog::{self, Catalog};
use super::client::{CallError, Connection, MCP_CALL_FAILED, Protocol, Unanswered};
use super::config::Server;
use super::diagnostic::{Diagnostic, MCP_TOOL_INVALID, Severity, Stage};
use super::env::{Endpoint, Host, Resolved, resolve};
use super::http::{self, Older, Remote, Streamable};
use super::last_words::{LAST_WORDS, LastWords, chain};
use super::native::Natives;
use super::notices::Notices;
use super::offers::Lists;
use super::pending::Pending;
use super::secret::Secret;
use super::wanted::Wanted;
use super::wire::Wire;
use crate::process::{Child, Grace, Processes, Spec, base_environment, resolve_program};
use crate::relay::Events;
use crate::tool::{Arguments, CallContext, Failure};

/// How long a server that is reached by URL may take to end a session.
const FAREWELL: Duration = Duration::from_secs(2);

/// What all servers of a run share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) processes: Processes,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) workspace: PathBuf,
    pub(super) max_message_bytes: usize,
    pub(super) natives: Natives,
    pub(super) ended: CancellationToken,
    /// Where the tasks of connections are started.
    pub(super) tasks: TaskTracker,
    /// Where servers say what they say by themselves.
    pub(super) events: Events,
}

/// A server that is described in a file.
#[derive(Debug)]
pub(super) struct Upstream {
    server: Server,
    operator: Operator,
    shared: Arc<Shared>,
    /// What its description came to, once; a restart uses it again.
    resolved: OnceLock<Resolved>,
    /// The era it was found to be of.
    era: std::sync::Mutex<Option<Protocol>>,
    last_words: LastWords,
    /// The connection there is; the lock also lets only one start it again.
    link: Mutex<Option<Link>>,
    notices: Arc<Notices>,
    wanted: Arc<Wanted>,
}

/// A connection, and the process at its other end if it is ours.
#[derive(Debug)]
struct Link {
    connection: Arc<Connection>,
    child: Option<Child>,
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
    pub(super) lists: Lists,
    pub(super) instructions: Option<String>,
    /// The version that is spoken.
    pub(super) protocol: Option<String>,
}

impl From<String> for Unconnected {
    fn from(reason: String) -> Self {
        Self { reason, ended: false }
    }
}

impl Upstream {
    pub(super) fn new(server: Server, operator: Operator, shared: Arc<Shared>) -> Arc<Self> {
        let notices = Arc::new(Notices::new(&server.name, shared.events.clone()));
        Arc::new(Self {
            server,
            operator,
            shared,
            resolved: OnceLock::new(),
            era: std::sync::Mutex::default(),
            last_words: LastWords::default(),
            link: Mutex::default(),
            notices,
            wanted: Arc::default(),
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

    /// Returns what our clients want to hear from it.
    pub(super) fn wanted(&self) -> &Arc<Wanted> {
        &self.wanted
    }

    /// Returns whether what its description needs is there; if not, it never will be.
    pub(super) fn is_resolved(&self) -> bool {
        self.resolved.get().is_some()
    }

    /// Starts the server, unless it runs, and learns its tools, within its time to start.
    pub(super) async fn prepare(&self) -> Result<Prepared, String> {
        let deadline = self.deadline();
        let prepared = async {
            let connection = self.connection(deadline).await?;
            if !connection.offers().is_any() {
                return Err("the server does not say that it has tools".to_owned());
            }
            let mut pages = match connection.tools().await {
                Ok(pages) => pages,
                Err(error) => {
                    let words = self.last_words().await;
                    return Err(format!("its tools cannot be listed: {error}{words}"));
                }
            };
            let refused = self.mirror(&connection, &mut pages);
            let mut catalog = catalog::build(&self.server.name, &self.server.filter, &pages);
            catalog.diagnostics.extend(refused);
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
            Ok(Err(reason)) => Err(reason),
            Err(_) => {
                let words = self.last_words().await;
                self.stop(Grace::default()).await;
                Err(self.not_ready(&words))
            }
        }
    }

    /// Learns which arguments go into headers, and takes out the tools that want that wrongly.
    fn mirror(&self, connection: &Connection, pages: &mut [Value]) -> Vec<Diagnostic> {
        if !matches!(self.resolved.get(), Some(Resolved::Http(_))) || !connection.is_newer() {
            return Vec::new();
        }
        let (mirrors, refused) = http::learn(pages);
        connection.mirror(mirrors);
        let admitted = |(wire_name, _): &(String, String)| self.server.filter.admits(wire_name);
        refused
            .into_iter()
            .filter(admitted)
            .map(|(wire_name, reason)| Diagnostic {
                server: self.server.name.clone(),
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
        let link = self.link.lock().await;
        link.as_ref().map(|link| Arc::clone(&link.connection))
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
    /// The call itself is sent once, whatever becomes of it; only one that the server did not look
    /// at, since it had forgotten the session, is sent again in a new one.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: &Arguments,
        cx: &CallContext,
    ) -> Result<Map<String, Value>, CallError> {
        let limit = self.limit(cx);
        let mut deadline = None;
        for _ in 0..2 {
            let connection = self.reached(cx).await?;
            self.heed_level(&connection, cx).await;
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + limit);
            match connection.call(tool, arguments, (deadline, limit), cx).await {
                Ok(result) => return Ok(result),
                Err(Unanswered::Ended(error)) => return Err(error),
                Err(Unanswered::Forgotten) => tracing::info!(
                    upstream = self.server.name,
                    "the server has forgotten the session; a new one is begun"
                ),
            }
        }
        Err(self.unavailable("it forgets every session"))
    }

    /// Returns how long a call may take.
    pub(super) fn limit(&self, cx: &CallContext) -> Duration {
        let own = self.server.tool_timeout;
        cx.time_limit.map_or(own, |limit| limit.min(own))
    }

    /// Returns the connection for a call.
    pub(super) async fn reached(&self, cx: &CallContext) -> Result<Arc<Connection>, CallError> {
        let deadline = self.deadline();
        let connection = self.connection(deadline);
        let connected = tokio::select! {
            connected = tokio::time::timeout_at(deadline + LAST_WORDS * 2, connection) => connected,
            () = cx.cancelled.cancelled() => {
                return Err(CallError::Interrupted(crate::tool::Interrupt::Cancelled));
            }
        };
        match connected {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(reason)) => Err(self.unavailable(&reason)),
            Err(_) => Err(self.unavailable("it could not be started again in time")),
        }
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
                "the connection to an upstream server has ended and is made again"
            );
            // Ends what the old process left behind, in the background.
            drop(gone);
        }
        let (connection, child) = self.connect(deadline).await?;
        let connection = Arc::new(connection);
        *link = Some(Link { connection: Arc::clone(&connection), child });
        Ok(connection)
    }

    /// Connects in the era that was asked for, or that the server was found to be of.
    async fn connect(&self, deadline: Instant) -> Result<(Connection, Option<Child>), String> {
        let asked = self.operator.protocol;
        let known = *self.era.lock().unwrap_or_else(PoisonError::into_inner);
        let connected = match (asked, known) {
            (Protocol::Auto, None) => self.probe(deadline).await,
            (Protocol::Auto, Some(known)) => self.connect_as(known, deadline).await,
            _ => self.connect_as(asked, deadline).await,
        };
        // One that cannot be spoken to as before is asked again next time.
        let newer = connected.as_ref().ok().map(|(connection, _)| connection.is_newer());
        let found = newer.map(|newer| if newer { Protocol::Modern } else { Protocol::Legacy });
        *self.era.lock().unwrap_or_else(PoisonError::into_inner) = found;
        connected.map_err(|error| error.reason)
    }

    /// Connects to a server of an unknown era.
    ///
    /// Some servers of the older era end at any request but `initialize`; such a one is started
    /// again and only asked that.
    async fn probe(&self, deadline: Instant) -> Result<(Connection, Option<Child>), Unconnected> {
        match self.connect_as(Protocol::Auto, deadline).await {
            Err(Unconnected { reason: _, ended: true }) => {
                self.connect_as(Protocol::Legacy, deadline).await
            }
            connected => connected,
        }
    }

    async fn connect_as(
        &self,
        protocol: Protocol,
        deadline: Instant,
    ) -> Result<(Connection, Option<Child>), Unconnected> {
        match self.resolved()? {
            Resolved::Stdio { .. } => {
                let (connection, child) = self.connect_child(protocol, deadline).await?;
                Ok((connection, Some(child)))
            }
            Resolved::Http(endpoint) => {
                let opened = self.connect_remote(endpoint, false, protocol);
                Ok((self.in_time(deadline, opened).await?, None))
            }
            Resolved::Sse(endpoint) => {
                // Servers with this transport are of the older era, unless somebody knows better.
                let protocol = if protocol == Protocol::Auto { Protocol::Legacy } else { protocol };
                let opened = self.connect_remote(endpoint, true, protocol);
                Ok((self.in_time(deadline, opened).await?, None))
            }
        }
    }

    async fn in_time<T>(
        &self,
        deadline: Instant,
        opened: impl Future<Output = Result<T, String>>,
    ) -> Result<T, String> {
        match tokio::time::timeout_at(deadline, opened).await {
            Ok(opened) => opened,
            Err(_) => Err(self.not_ready("")),
        }
    }

    async fn connect_remote(
        &self,
        endpoint: &Endpoint,
        is_sse: bool,
        protocol: Protocol,
    ) -> Result<Connection, String> {
        let name = &self.server.name;
        let remote = Remote::new(name, endpoint, self.shared.max_message_bytes)?;
        let (pending, ended) = (Arc::<Pending>::default(), self.shared.ended.child_token());
        let (limit, shared) = (self.operator.max_concurrency, Arc::clone(&pending));
        if is_sse {
            let transport = Older::open(remote, shared, ended.child_token()).await?;
            Connection::open(&self.notices, (transport, pending), protocol, limit, ended).await
        } else {
            let tasks = self.shared.tasks.clone();
            let transport = Streamable::new(remote, shared, tasks, ended.child_token());
            Connection::open(&self.notices, (transport, pending), protocol, limit, ended).await
        }
    }

    async fn connect_child(
        &self,
        protocol: Protocol,
        deadline: Instant,
    ) -> Result<(Connection, Child), Unconnected> {
        let mut child = self.start().await?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("its standard streams are not there".to_owned().into());
        };
        let (pending, bytes) = (Arc::<Pending>::default(), self.shared.max_message_bytes);
        let name = &self.server.name;
        let wire = Wire::new(name.clone(), (stdout, stdin), Arc::clone(&pending), bytes);
        let ended = self.shared.ended.child_token();
        let limit = self.operator.max_concurrency;
        let opened = Connection::open(&self.notices, (wire, pending), protocol, limit, ended);
        // Kept until the end: a server whose streams are closed has other last words.
        let mut opened = std::pin::pin!(opened);
        match tokio::time::timeout_at(deadline, &mut opened).await {
            Ok(Ok(connection)) => Ok((connection, child)),
            Ok(Err(error)) => {
                let (ended, words) = self.last_words.hear(&child).await;
                let reason = format!("the handshake failed: {error}{words}");
                Err(Unconnected { reason, ended })
            }
            Err(_) => Err(self.not_ready(&self.last_words.hear(&child).await.1).into()),
        }
    }

    async fn start(&self) -> Result<Child, String> {
        let resolved = self.resolved()?;
        let Resolved::Stdio { command, args, cwd, env, .. } = resolved else {
            return Err("it is no command".to_owned());
        };
        let spec = Spec {
            name: self.server.name.clone(),
            program: command.into(),
            args: args.iter().map(Into::into).collect(),
            cwd: Some(cwd.clone()),
            env: self.environment(env),
            ..Spec::default()
        };
        self.shared.processes.spawn(spec).await.map_err(|error| chain(&error))
    }

    fn environment(&self, env: &BTreeMap<String, Secret>) -> BTreeMap<String, String> {
        let mut environment =
            base_environment(&self.shared.environment, &self.operator.inherit_env);
        environment
            .extend(env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())));
        environment
    }

    /// Returns what its operator is told of it; `failure` is why it failed.
    pub(super) fn about(&self, protocol: Option<String>, failure: Option<&str>) -> About {
        let resolved = self.resolved.get();
        let program = match resolved {
            Some(Resolved::Stdio { command, cwd, env, .. }) => {
                resolve_program(command.as_ref(), &self.environment(env), Some(cwd)).ok()
            }
            _ => None,
        };
        let newer = *self.era.lock().unwrap_or_else(PoisonError::into_inner);
        let protocol = protocol.map(|version| (newer == Some(Protocol::Modern), version));
        let failure = failure.map(|reason| self.last_words.apart(reason));
        About::new(&self.server, resolved, program, protocol, failure)
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
            Some(Link { child: Some(child), .. }) => self.last_words.hear(child).await.1,
            _ => String::new(),
        }
    }

    /// Ends the connection, and the process if there is one.
    pub(super) async fn stop(&self, grace: Grace) {
        let link = self.link.lock().await.take();
        match link {
            Some(Link { connection, child: Some(mut child) }) => {
                drop(connection);
                child.stop(grace).await;
            }
            Some(Link { connection, child: None }) => {
                // One that takes longer learns of it when it looks for us.
                drop(tokio::time::timeout(FAREWELL, connection.close()).await);
            }
            None => {}
        }
    }
}
