//! How one server is reached: what its description comes to, and a connection made of that.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use rmcp::RoleClient;
use tokio::time::Instant;

use super::Operator;
use super::about::About;
use super::client::{self, Connection, Protocol};
use super::config::{Server, Transport};
use super::diagnostic::{Diagnostic, MCP_CONFIG_INVALID, Severity, Stage};
use super::env::{Endpoint, Host, ResolveError, Resolved, resolve};
use super::era::{Asked, Heard};
use super::http::{Mirrors, Older, Remote, Streamable};
use super::last_words::{LastWords, Stray, chain};
use super::line::Link;
use super::notices::Notices;
use super::pending::Pending;
use super::secret::{Secret, in_arguments, masked};
use super::server::Shared;
use super::tilde;
use super::wire::Wire;
use crate::process::{Child, SpawnError, Spec, base_environment, resolve_program};
use crate::registry::Cause;

/// A server as it is described in a file, and what was found out about it.
#[derive(Debug)]
pub(super) struct Dial {
    pub(super) server: Server,
    pub(super) operator: Operator,
    pub(super) shared: Arc<Shared>,
    /// What its description came to, once; a restart uses it again.
    resolved: OnceLock<Resolved>,
    /// The era it was found to be of.
    era: std::sync::Mutex<Option<Protocol>>,
    last_words: LastWords,
    /// Which arguments go into headers as well.
    pub(super) mirrors: Arc<ArcSwap<Mirrors>>,
}

/// Why a server that was started cannot be spoken to.
#[derive(Debug)]
struct Unconnected {
    cause: Cause,
    /// Whether it ended by itself.
    ended: bool,
}

impl<T: Into<Cause>> From<T> for Unconnected {
    fn from(cause: T) -> Self {
        Self { cause: cause.into(), ended: false }
    }
}

impl Dial {
    pub(super) fn new(server: Server, operator: Operator, shared: Arc<Shared>) -> Self {
        Self {
            server,
            operator,
            shared,
            resolved: OnceLock::new(),
            era: std::sync::Mutex::default(),
            last_words: LastWords::default(),
            mirrors: Arc::default(),
        }
    }

    /// Returns what its description came to, if it came to anything yet.
    pub(super) fn found(&self) -> Option<&Resolved> {
        self.resolved.get()
    }

    /// Says of each line of its dotenv file that means nothing.
    pub(super) fn skipped_lines(&self) -> Vec<Diagnostic> {
        let Some(Resolved::Stdio { skipped_lines, .. }) = self.resolved.get() else {
            return Vec::new();
        };
        let diagnostic = |place: &String| Diagnostic {
            server: self.server.name.clone(),
            stage: Stage::Config,
            code: MCP_CONFIG_INVALID,
            severity: Severity::Warning,
            wire_name: None,
            field: Some("envFile".to_owned()),
            message: format!(
                "{place}: the line sets nothing; write `NAME=value`, with its quotes closed"
            ),
            place: Some(place.clone()),
        };
        skipped_lines.iter().map(diagnostic).collect()
    }

    /// Returns until when it has to be ready that is started now.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.server.startup_timeout
    }

    /// Says that it was not.
    pub(super) fn not_ready(&self, words: &str) -> String {
        let seconds = self.server.startup_timeout.as_secs_f64();
        format!("it was not ready within {seconds} s (startup_timeout_sec){words}")
    }

    /// Hears what a process said last.
    pub(super) async fn last_words(&self, child: &Child, stray: &Stray) -> String {
        self.hear(child, stray).await.1
    }

    /// Waits a moment; says whether a process ended and how, and what it wrote last.
    async fn hear(&self, child: &Child, stray: &Stray) -> (bool, String) {
        let (exit, words) = self.last_words.hear(child, stray, |line| self.masked(line)).await;
        let Some(exit) = exit else { return (false, words) };
        let tilde = if exit.success() { String::new() } else { self.tilde() };
        (true, format!("; it ended: {exit}{tilde}{words}"))
    }

    /// Says which of its fields have a `~`, if any.
    fn tilde(&self) -> String {
        match &self.server.transport {
            Transport::Stdio(stdio) => tilde::remark(stdio).unwrap_or_default(),
            Transport::Http(_) | Transport::Sse(_) => String::new(),
        }
    }

    /// Returns a text of the server's without the secrets that it was given.
    pub(super) fn masked(&self, text: &str) -> String {
        match self.resolved.get() {
            Some(Resolved::Stdio { args, env, .. }) => {
                masked(text, in_arguments(args).iter().chain(env.values()))
            }
            Some(Resolved::Http(endpoint) | Resolved::Sse(endpoint)) => {
                masked(text, endpoint.secrets().iter())
            }
            None => text.to_owned(),
        }
    }

    /// Connects in the era that was asked for, or that the server was found to be of.
    pub(super) async fn connect(
        &self,
        notices: &Arc<Notices>,
        deadline: Instant,
    ) -> Result<Link, Cause> {
        let asked = self.operator.protocol;
        let known = *self.era.lock().unwrap_or_else(PoisonError::into_inner);
        let connected = match (asked, known) {
            (Protocol::Auto, None) => self.probe(notices, deadline).await,
            (Protocol::Auto, Some(known)) => self.connect_as(notices, known, deadline).await,
            _ => self.connect_as(notices, asked, deadline).await,
        };
        // One that cannot be spoken to as before is asked again next time.
        let newer = connected.as_ref().ok().map(|link| link.connection.is_newer());
        let found = newer.map(|newer| if newer { Protocol::Modern } else { Protocol::Legacy });
        *self.era.lock().unwrap_or_else(PoisonError::into_inner) = found;
        connected.map_err(|error| error.cause)
    }

    /// Connects to a server of an unknown era.
    ///
    /// Some servers of the older era end at any request but `initialize`; such a one is started
    /// again and only asked that.
    async fn probe(&self, notices: &Arc<Notices>, deadline: Instant) -> Result<Link, Unconnected> {
        match self.connect_as(notices, Protocol::Auto, deadline).await {
            Err(Unconnected { cause: _, ended: true }) => {
                self.connect_as(notices, Protocol::Legacy, deadline).await
            }
            connected => connected,
        }
    }

    async fn connect_as(
        &self,
        notices: &Arc<Notices>,
        protocol: Protocol,
        deadline: Instant,
    ) -> Result<Link, Unconnected> {
        let (endpoint, is_sse) = match self.resolved()? {
            Resolved::Stdio { .. } => {
                return self.connect_child(notices, protocol, deadline).await;
            }
            Resolved::Http(endpoint) => (endpoint, false),
            Resolved::Sse(endpoint) => (endpoint, true),
        };
        // Servers with the old transport are of the older era, unless somebody knows better.
        let guessed = is_sse && protocol == Protocol::Auto;
        let protocol = if guessed { Protocol::Legacy } else { protocol };
        let opened = self.connect_remote(notices, (endpoint, is_sse), protocol);
        let connection = self.in_time(deadline, opened).await?;
        Ok(Link { connection: Arc::new(connection), child: None, stray: Stray::default() })
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
        notices: &Arc<Notices>,
        (endpoint, is_sse): (&Endpoint, bool),
        protocol: Protocol,
    ) -> Result<Connection, String> {
        let name = &self.server.name;
        let remote = Remote::new(name, endpoint, &self.shared.network)?;
        let ended = self.shared.ended.child_token();
        let pending = Arc::new(Pending::new(Arc::clone(&self.mirrors)));
        let (limit, shared) = (self.operator.max_concurrency, Arc::clone(&pending));
        if is_sse {
            let transport = Older::open(remote, shared, ended.child_token()).await?;
            Connection::open(notices, (transport, pending), protocol, limit, ended).await
        } else {
            let tasks = self.shared.tasks.clone();
            let transport = Streamable::new(remote, shared, tasks, ended.child_token());
            Connection::open(notices, (transport, pending), protocol, limit, ended).await
        }
    }

    async fn connect_child(
        &self,
        notices: &Arc<Notices>,
        protocol: Protocol,
        deadline: Instant,
    ) -> Result<Link, Unconnected> {
        let mut child = self.start().await?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("its standard streams are not there".to_owned().into());
        };
        let (pending, bytes) = (Arc::<Pending>::default(), self.shared.max_message_bytes);
        let name = &self.server.name;
        let wire = Wire::new(name.clone(), (stdout, stdin), Arc::clone(&pending), bytes);
        let stray = wire.stray();
        let ended = self.shared.ended.child_token();
        let limit = self.operator.max_concurrency;
        let opened = async {
            let mut wire = Asked::unasked(wire);
            let protocol = match protocol {
                Protocol::Auto => self.era(&mut wire).await,
                said => said,
            };
            Connection::open(notices, (wire, pending), protocol, limit, ended).await
        };
        // Kept until the end: a server whose streams are closed has other last words.
        let mut opened = std::pin::pin!(opened);
        match tokio::time::timeout_at(deadline, &mut opened).await {
            Ok(Ok(connection)) => {
                Ok(Link { connection: Arc::new(connection), child: Some(child), stray })
            }
            Ok(Err(error)) => {
                let (ended, words) = self.hear(&child, &stray).await;
                let cause = format!("the handshake failed: {error}{words}").into();
                Err(Unconnected { cause, ended })
            }
            Err(_) => Err(self.not_ready(&self.hear(&child, &stray).await.1).into()),
        }
    }

    /// Asks a server which era it is of; one that says nothing for most of its time to start is
    /// spoken to as an older one for the rest of it.
    async fn era<T: rmcp::transport::Transport<RoleClient>>(
        &self,
        wire: &mut Asked<T>,
    ) -> Protocol {
        let patience = self.server.startup_timeout * 2 / 3;
        match wire.ask(client::era_question(), patience).await {
            Heard::Something => Protocol::Auto,
            Heard::Nothing => Protocol::Legacy,
        }
    }

    async fn start(&self) -> Result<Child, Cause> {
        let resolved = self.resolved()?;
        let Resolved::Stdio { command, args, cwd, env, .. } = resolved else {
            return Err("it is no command".to_owned().into());
        };
        let spec = Spec {
            name: self.server.name.clone(),
            program: command.into(),
            args: args.iter().map(Into::into).collect(),
            cwd: Some(cwd.clone()),
            env: self.environment(env),
            ..Spec::default()
        };
        let spawned = self.shared.processes.spawn(spec).await;
        spawned.map_err(|error| {
            let cause = Cause::from(format!("{}{}", chain(&error), self.tilde()));
            // Of several files, it should be known which.
            let field = if matches!(error, SpawnError::BadCwd { .. }) { "cwd" } else { "command" };
            let place = self.server.place_of(field);
            let searched = error.searched().map(|path| format!("; PATH is {path}"));
            cause.with_detail(format!("{place}{}", searched.unwrap_or_default()))
        })
    }

    fn environment(&self, env: &BTreeMap<String, Secret>) -> BTreeMap<String, String> {
        let mut environment =
            base_environment(&self.shared.environment, &self.operator.inherit_env);
        environment
            .extend(env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())));
        environment
    }

    /// Returns what its operator is told of it; `failure` is why it failed.
    pub(super) fn about(&self, protocol: Option<String>, failure: Option<&Cause>) -> About {
        let resolved = self.resolved.get();
        let program = match resolved {
            Some(Resolved::Stdio { command, cwd, env, .. }) => {
                resolve_program(command.as_ref(), &self.environment(env), Some(cwd)).ok()
            }
            _ => None,
        };
        let proxy = match resolved {
            Some(Resolved::Http(endpoint) | Resolved::Sse(endpoint)) => {
                self.shared.network.proxy_of(&endpoint.url)
            }
            _ => None,
        };
        let newer = *self.era.lock().unwrap_or_else(PoisonError::into_inner);
        let protocol = protocol.map(|version| (newer == Some(Protocol::Modern), version));
        let failure = failure.map(|cause| {
            let (words, reason) = self.last_words.apart(&cause.reason);
            (words, Cause { reason, detail: cause.detail.clone() }.to_string())
        });
        About::new((&self.server, self.operator.scope), (program, proxy), protocol, failure)
    }

    fn resolved(&self) -> Result<&Resolved, Cause> {
        if let Some(resolved) = self.resolved.get() {
            return Ok(resolved);
        }
        let host = Host {
            variables: &self.shared.environment,
            workspace: &self.shared.workspace,
            read: &|path| std::fs::read(path),
        };
        let resolved = resolve(&self.server, host).map_err(ResolveError::into_cause)?;
        if let Resolved::Stdio { skipped_lines, .. } = &resolved {
            for line in skipped_lines {
                tracing::warn!(server = self.server.name, %line, "the line sets nothing");
            }
        }
        Ok(self.resolved.get_or_init(|| resolved))
    }
}
