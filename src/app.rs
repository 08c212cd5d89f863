//! The composition root: every part of a run, made in order and ended in the opposite one.

pub mod check;
mod error;
mod extensions;
pub mod report;
mod sources;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::OptionFuture;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::extensions::{Extensions, Wanted};
use self::report::Report;
use self::sources::{Plans, Sources};
use crate::activity::{Activity, Who};
use crate::artifact::{self, ArtifactStore, StoreError};
use crate::config::{Config, OnFailure};
use crate::discovery::{Candidates, Local};
use crate::executor::{self, Executor, Requested};
use crate::exposure::names::Names;
use crate::exposure::{Exposure, Resolved};
use crate::permission::{Approver, Idle, Policy, Rules};
use crate::process::{self, Processes};
use crate::registry::view::View;
use crate::registry::{NameConflict, Publication, Registry, State};
use crate::server::{self, Gateway, Parts, http, project, stdio};
use crate::session::Sessions;
use crate::shutdown::{Drained, Shutdown};
use crate::source::builtin;
use crate::source::skill::{self, Skills};
use crate::tool::{Arguments, CallContext, Era, Interrupt, Presence, SessionId, Tool, ToolResult};
use crate::workspace::Workspace;

pub use self::error::StartError;
pub use crate::registry::Catalogue;
pub use crate::source::python::PACKAGE as PYTHON_PACKAGE;

/// How long a run may take to end before what is left of it is left behind.
const GRACE: Duration = Duration::from_secs(10);
/// How much of that hooks may take to hear of the end of their runs.
const LAST_HOOKS: Duration = Duration::from_secs(7);

/// A run: what is served and everything it stands on.
#[derive(Debug)]
pub struct App {
    gateway: Gateway,
    registry: Arc<Registry>,
    extensions: Extensions,
    sources: Sources,
    http: Option<http::Bound>,
    stdio: bool,
    on_failure: OnFailure,
    rules: Rules,
}

impl App {
    /// Makes every part of a run; upstream servers are started and not waited for.
    pub async fn start(config: Config, processes: process::Config) -> Result<Self, StartError> {
        let places = config.places.clone();
        Self::begin(config, processes).await.map_err(|error| error.placed(&places))
    }

    async fn begin(config: Config, processes: process::Config) -> Result<Self, StartError> {
        let mut config = built(config)?;
        let wanted = Wanted::of(&mut config);
        let Config {
            workspace,
            builtin,
            skills,
            upstream,
            artifacts,
            context,
            permission,
            exposure,
            breaker,
            activity,
            session_idle,
            server,
            http,
            stdio,
            on_failure,
            tools: theirs,
            ..
        } = config;
        // First of all: nothing is served that cannot be recorded.
        let activity = Arc::new(Activity::open(&activity)?);
        let shutdown = Shutdown::new();
        let sessions = sessions_until_idle(session_idle, &shutdown);
        let registry = Registry::new();
        let workspace = Arc::new(Workspace::open(&workspace)?);
        let artifacts = kept_tidy(artifacts, &workspace, &shutdown)?;
        let parts = builtin::Parts {
            workspace,
            sessions: Arc::clone(&sessions),
            artifacts: Arc::clone(&artifacts),
        };
        let exposure = Exposure::new(Arc::clone(&registry), exposure, Arc::new(Local));
        let context = visible_context_tools(&parts, exposure.view(), context);
        let server = recording(server, &context);
        let made = made(&builtin, &parts)?;
        publish_own(&registry, [made, theirs, context, exposure.tools()].concat())?;
        let http = OptionFuture::from(http.map(http::bind)).await.transpose()?;
        let extensions = Extensions::new(wanted, processes.clone(), &registry, &shutdown);
        let processes = Processes::new(processes, shutdown.clone());
        let (rules, policy) = (permission.rules.clone(), Policy::new(permission));
        let skills = skills.map(|skills| (skills, sources::ways(exposure.view(), &policy)));
        let plans = Plans { skills, upstream };
        let sources = Sources::start(plans, &parts, &registry, processes, &shutdown);
        let executor = Executor::new(executor::Config {
            policy,
            hooks: extensions.hooks.clone(),
            middleware: extensions.middleware.clone(),
            breaker,
            activity,
            artifacts: Some(Arc::clone(&artifacts)),
            tasks: shutdown.tasks().clone(),
        });
        let runs = extensions.runs.clone();
        let parts = Parts { exposure, executor, sessions, artifacts, runs, shutdown };
        let gateway = Gateway::new(server, parts);
        Ok(Self { gateway, registry, extensions, sources, http, stdio, on_failure, rules })
    }

    /// Returns the hooks, in order: each one's name, and its event in brackets.
    pub fn hooks(&self) -> Vec<String> {
        self.extensions.hooks.told()
    }

    /// Returns the URL of the HTTP endpoint, if there is one.
    pub fn endpoint(&self) -> Option<String> {
        self.http.as_ref().map(http::Bound::endpoint)
    }

    /// Returns the gateway, for those who serve it over streams of their own.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Returns what is to be said of each source, when none is starting any more.
    pub fn reports(&self) -> impl Future<Output = Vec<Report>> + Send + use<> {
        let registry = Arc::clone(&self.registry);
        async move { report::of(&*registry.settled().await) }
    }

    /// Returns the tools that a client sees before it has searched for any.
    pub fn visible(&self, catalogue: &Catalogue) -> Vec<Arc<dyn Tool>> {
        let session = self.gateway.parts().sessions.get(&SessionId::new("nobody"));
        self.gateway.parts().exposure.listed(catalogue, &session, Era::Modern)
    }

    /// Returns what each client's list is made from.
    pub fn exposure(&self) -> &Exposure {
        &self.gateway.parts().exposure
    }

    /// Returns the tools that fit each query, best first, of all that there are.
    pub fn found(
        &self,
        catalogue: &Catalogue,
        queries: &[String],
        limit: usize,
    ) -> Vec<Vec<Arc<dyn Tool>>> {
        let among = Candidates::new(self.exposure().all(catalogue));
        let best = |query: &String| among.best(query, None, limit).into_iter().cloned().collect();
        queries.iter().map(best).collect()
    }

    /// Waits until no source is starting any more; `tell` gets the names of those that are, each
    /// time they change.
    pub fn watched<F: FnMut(&[&str])>(
        &self,
        mut tell: F,
    ) -> impl Future<Output = Arc<Catalogue>> + use<F> {
        let registry = Arc::clone(&self.registry);
        async move {
            let mut changed = registry.changed();
            loop {
                changed.mark_unchanged();
                let catalogue = registry.snapshot();
                let starting = catalogue.sources().iter();
                let starting = starting.filter(|source| source.state == State::Starting);
                let starting: Vec<&str> = starting.map(|source| source.source.as_str()).collect();
                tell(&starting);
                if starting.is_empty() || changed.changed().await.is_err() {
                    return catalogue;
                }
            }
        }
    }

    /// Returns what clients call the tools.
    pub fn names(&self, catalogue: &Catalogue) -> Arc<Names> {
        self.gateway.parts().exposure.names(catalogue)
    }

    /// Returns the skills that there are now.
    pub fn skills(&self) -> Vec<skill::About> {
        self.sources.skills.as_ref().map(Skills::about).unwrap_or_default()
    }

    /// Returns the operator's rules that concern no tool.
    pub fn idle_rules(&self, catalogue: &Catalogue) -> Vec<Idle> {
        idle_rules(&self.rules, self.exposure(), catalogue)
    }

    /// Waits until every source is ready or has failed.
    ///
    /// A required upstream that failed is an error where the run is to end with it.
    pub async fn settled(&self) -> Result<Arc<Catalogue>, StartError> {
        with_required(self.registry.settled().await, &self.sources, self.on_failure)
    }

    /// Serves until the client is gone, a signal comes, or a required upstream fails.
    pub async fn serve(mut self, ended: impl Future<Output = String>) -> Result<(), StartError> {
        let (http, gateway) = (self.http.take(), &self.gateway);
        let shutdown = &gateway.parts().shutdown;
        let over_http = |bound: http::Bound| shutdown.spawn("http", bound.serve(gateway.clone()));
        let mut over_http = http.map(over_http);
        let mut over_stdio =
            self.stdio.then(|| shutdown.spawn("stdio", stdio::serve(gateway.clone())));
        drop(shutdown.spawn("rules", self.warn_of_idle_rules()));
        let mut ended = std::pin::pin!(ended);
        let mut failed = std::pin::pin!(self.failed());
        let result = loop {
            tokio::select! {
                result = finished(&mut over_http) => break result,
                result = finished(&mut over_stdio) => {
                    over_stdio = None;
                    // With HTTP beside it, the end of our standard input ends nothing else.
                    if over_http.is_none() || result.is_err() {
                        break result;
                    }
                }
                error = &mut failed => break Err(error),
                signal = &mut ended => {
                    tracing::info!(signal, "ending");
                    break Ok(());
                }
            }
        };
        self.end().await;
        result
    }

    /// Logs the operator's rules that concern no tool, once it is known what tools there are.
    fn warn_of_idle_rules(&self) -> impl Future<Output = ()> + use<> {
        let (registry, rules) = (Arc::clone(&self.registry), self.rules.clone());
        let exposure = Arc::clone(&self.gateway.parts().exposure);
        let ended = self.gateway.parts().shutdown.child();
        async move {
            tokio::select! {
                catalogue = registry.settled() => {
                    for idle in idle_rules(&rules, &exposure, &catalogue) {
                        tracing::warn!("{idle}");
                    }
                }
                () = ended.cancelled() => {}
            }
        }
    }

    /// Waits for a required upstream to fail while any source is starting; others are not waited
    /// for then.
    fn failed(&self) -> impl Future<Output = StartError> + use<> {
        let (registry, sources, on_failure) =
            (Arc::clone(&self.registry), self.sources.clone(), self.on_failure);
        async move {
            let is_known = |catalogue: &Catalogue| {
                catalogue.is_settled() || sources.required_failure(catalogue).is_some()
            };
            match with_required(registry.until(is_known).await, &sources, on_failure) {
                Err(error) => error,
                Ok(_) => std::future::pending().await,
            }
        }
    }

    /// Ends the run: no new work, then every task, then every child.
    pub async fn end(self) {
        let now = Instant::now();
        let until = now + GRACE;
        let Self { gateway, extensions, sources, .. } = self;
        let shutdown = &gateway.parts().shutdown;
        shutdown.cancel();
        let beside = extensions.shutdown.clone();
        let extensions = extensions.end(now + LAST_HOOKS);
        let stopped = async { tokio::join!(sources.stop(), extensions) };
        // Out of time, they are among the tasks that are left.
        drop(tokio::time::timeout_at(until, stopped).await);
        for rest in [&beside, shutdown] {
            let time = until.saturating_duration_since(Instant::now());
            if let Drained::Left(tasks) = rest.drain(time).await {
                tracing::warn!(tasks, "some tasks did not end in time");
            }
        }
    }

    /// Calls a tool by name, through the whole pipeline.
    pub async fn call(
        &self,
        name: &str,
        arguments: Arguments,
        cx: &CallContext,
        approver: &dyn Approver,
    ) -> Result<ToolResult, Interrupt> {
        let parts = self.gateway.parts();
        let Parts { exposure, executor, sessions, .. } = parts;
        let catalogue = self.registry.settled().await;
        let session = sessions.get(&cx.session);
        // Whoever composes the program need not search for what there is.
        if let Some(tool) = exposure.find(&catalogue, name) {
            session.reveal(tool.definition().name.as_str());
        }
        let resolved = exposure.resolve(&catalogue, &session, name, arguments);
        let Resolved { tool, name, wire, arguments } = match resolved {
            Ok(resolved) => resolved,
            Err(unresolved) => {
                let failure = unresolved.into_failure(name);
                let who = Who {
                    principal: cx.principal.clone(),
                    session: cx.session.clone(),
                    client: cx.client.name.clone(),
                };
                executor.activity().turn_away(name, cx.call_id.clone(), who, failure.code.as_str());
                return Ok(failure.into());
            }
        };
        let asked = Requested { tool, name, wire, arguments };
        parts.begin_run(&session, cx).await;
        let result = executor.call(asked, cx, approver).await?;
        exposure.disclose(&session, &result);
        Ok(result)
    }

    /// Ends a session in which calls were made with [`call`](Self::call).
    pub fn end_session(&self, session: &SessionId) {
        self.gateway.parts().sessions.end(session);
    }

    /// Returns a result as a client of the newer era gets it, for those who print it.
    pub fn wire(result: ToolResult) -> serde_json::Value {
        project::whole(result)
    }

    /// Says that artifacts cannot be kept, if they cannot, and where that was tried; blocks.
    pub fn unkept(&self) -> Option<String> {
        self.gateway.parts().artifacts.probe().err().map(|error| error.to_string())
    }
}

/// Records no calls where nobody could read them again: what is not recorded is not referred to.
fn recording(server: server::Config, context_tools: &[Arc<dyn Tool>]) -> server::Config {
    let context = server.context.filter(|_| !context_tools.is_empty());
    server::Config { context, ..server }
}

fn idle_rules(rules: &Rules, exposure: &Exposure, catalogue: &Catalogue) -> Vec<Idle> {
    let names = exposure.names(catalogue);
    let definitions = catalogue.tools().iter().map(|tool| tool.definition());
    rules.idle(definitions.map(|definition| (definition, names.wire(definition))))
}

fn made(
    keys: &[String],
    parts: &builtin::Parts,
) -> Result<Vec<Arc<dyn Tool>>, builtin::BuiltinError> {
    keys.iter().map(|key| builtin::make(key, parts)).collect()
}

fn sessions_until_idle(idle: Duration, shutdown: &Shutdown) -> Arc<Sessions> {
    let sessions = Arc::new(Sessions::until(shutdown.child()));
    let ending = end_idle(Arc::clone(&sessions), idle, shutdown.child());
    drop(shutdown.spawn("sessions", ending));
    sessions
}

/// Ends the sessions of the newer era that nobody uses any more, now and then.
async fn end_idle(sessions: Arc<Sessions>, idle: Duration, ended: CancellationToken) {
    let every = (idle / 8).clamp(Duration::from_millis(50), Duration::from_mins(1));
    loop {
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = ended.cancelled() => return,
        }
        for session in sessions.end_idle(idle) {
            tracing::debug!(session = session.as_str(), "a session was not used and has ended");
        }
    }
}

/// Sees that artifacts can be kept, and removes old ones now and then.
fn kept_tidy(
    config: artifact::Config,
    workspace: &Arc<Workspace>,
    shutdown: &Shutdown,
) -> Result<Arc<ArtifactStore>, StoreError> {
    let store = Arc::new(ArtifactStore::new(config, Arc::clone(workspace)));
    store.check()?;
    let (artifacts, ended) = (Arc::clone(&store), shutdown.child());
    drop(shutdown.spawn("sweep", async move {
        loop {
            let artifacts = Arc::clone(&artifacts);
            let every = artifacts.sweeps_every();
            let swept = tokio::task::spawn_blocking(move || artifacts.sweep());
            if let Err(error) = swept.await {
                tracing::error!(%error, "looking for old artifacts went wrong");
            }
            tokio::select! {
                () = tokio::time::sleep(every) => {}
                () = ended.cancelled() => return,
            }
        }
    }));
    Ok(store)
}

fn publish_own(registry: &Arc<Registry>, tools: Vec<Arc<dyn Tool>>) -> Result<(), NameConflict> {
    if tools.is_empty() {
        return Ok(());
    }
    let publication = Publication { state: State::Ready, tools, ..Publication::default() };
    registry.publisher("built-in").publish(publication)
}

/// Makes the context tools, unless the view hides one of them.
fn visible_context_tools(
    parts: &builtin::Parts,
    view: &View,
    presence: Option<Presence>,
) -> Vec<Arc<dyn Tool>> {
    let Some(presence) = presence else { return Vec::new() };
    let tools = builtin::context_tools(parts, presence);
    let are_visible = tools.iter().all(|tool| view.is_available(tool.definition()));
    if are_visible { tools.into() } else { Vec::new() }
}

/// Refuses a catalogue without a required upstream where the run is to end with that.
fn with_required(
    catalogue: Arc<Catalogue>,
    sources: &Sources,
    on_failure: OnFailure,
) -> Result<Arc<Catalogue>, StartError> {
    if on_failure == OnFailure::Stop
        && let Some(error) = sources.required_failure(&catalogue)
    {
        return Err(error);
    }
    Ok(catalogue)
}

/// Refuses what this version would leave out.
fn built(config: Config) -> Result<Config, StartError> {
    if config.not_built.is_empty() {
        Ok(config)
    } else {
        Err(StartError::NotBuilt(config.not_built))
    }
}

/// Waits for a task to end, if there is one.
async fn finished(task: &mut Option<JoinHandle<io::Result<()>>>) -> Result<(), StartError> {
    match task {
        Some(task) => match task.await {
            Ok(result) => result.map_err(StartError::Serve),
            Err(error) => Err(StartError::Serve(io::Error::other(error))),
        },
        None => std::future::pending().await,
    }
}
