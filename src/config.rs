//! All settings of one run, put together from where they are written.
//!
//! A setting is looked for in the flags, then in `IRIS_MCP_*`, then in the file of `--config`,
//! and is its default otherwise. Each module's own configuration is a field here; only this
//! module and the composition root see them all.

pub mod agent;
pub mod artifacts;
pub mod command;
pub mod discovery;
pub mod environment;
pub mod log;
mod mistaken;
pub mod operator;
pub mod places;
pub mod python;
pub mod schema;
pub mod settings;

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use self::agent::Agent;
pub use self::log::telemetry;
use self::mistaken::Kind;
use self::places::Places;
use self::settings::{Approval, Globs, Settings};
use crate::document::{DocumentError, path};
use crate::executor::breaker;
use crate::exposure::{self, Defer};
use crate::hook;
use crate::middleware::Middleware;
use crate::permission;
use crate::server::http::auth::{Tokens, TokensError};
use crate::server::{self, ApprovalMode};
use crate::source::python as python_tools;
use crate::source::skill;
use crate::source::upstream::native::Keep;
use crate::source::upstream::{self, config as mcp};
use crate::tool::{BadPattern, Presence, Tool};
use crate::{activity, artifact, command as commands};

/// The longest message, unless said otherwise.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;
/// How long a person may take to answer, unless said otherwise.
const APPROVAL_TIMEOUT: Duration = Duration::from_mins(5);
/// How many calls run at once, unless said otherwise.
const CONCURRENT_CALLS: usize = 256;
/// How many sessions of the older era there are over HTTP, unless somebody says otherwise.
const MAX_SESSIONS: NonZeroUsize = NonZeroUsize::new(2_000).expect("not zero");

/// How long a session of the newer era lasts without a request, unless said otherwise.
const SESSION_IDLE: Duration = Duration::from_mins(30);

/// The built-in tools that are served when no file says what to serve.
const DEFAULT_BUILTINS: [&str; 3] = ["file.read", "file.list", "file.grep"];

/// Everything that a run is made of.
#[derive(Debug)]
pub struct Config {
    /// The folder that file tools work in.
    pub workspace: PathBuf,
    /// The keys of the built-in tools, in order.
    pub builtin: Vec<String>,
    /// The Python tools, and what runs them.
    pub python: python_tools::Config,
    /// Where skills are, unless they are off.
    pub skills: Option<skill::Config>,
    /// The upstream servers.
    pub upstream: upstream::Config,
    /// What is kept in files, and where.
    pub artifacts: artifact::Config,
    /// When clients can read again what was called and what came of it; nothing means never.
    pub context: Option<Presence>,
    /// What is allowed without asking.
    pub permission: permission::Config,
    /// Which tools there are for clients, and which of them they have to search for.
    pub exposure: exposure::Config,
    /// When to leave a failing tool alone.
    pub breaker: Option<breaker::Config>,
    /// Where calls are recorded.
    pub activity: activity::Config,
    /// After how long without a request a session of the newer era ends.
    pub session_idle: Duration,
    /// How clients are served.
    pub server: server::Config,
    /// Where clients are served over HTTP.
    pub http: Option<server::http::Config>,
    /// Whether the client at our standard streams is served.
    pub stdio: bool,
    /// What becomes of a run whose required upstream fails.
    pub on_failure: OnFailure,
    /// The keys of the agent file that a tool server has no use for.
    pub not_used: Vec<String>,
    /// An embedder's own tools, listed after the built-in ones.
    pub tools: Vec<Arc<dyn Tool>>,
    /// What commands are run with.
    pub command: commands::Config,
    /// The hooks of the agent file, in order.
    pub declared_hooks: Vec<hook::Declared>,
    /// An embedder's own hooks, run after those of the agent file.
    pub hooks: Vec<hook::Registration>,
    /// An embedder's wrappers around the bodies of calls, the outermost first.
    pub middleware: Vec<Arc<dyn Middleware>>,
    /// Where settings are written that may turn out not to be usable.
    pub places: Places,
    /// What the agent file turns on and this version does not have; a run does not start with it.
    pub not_built: Vec<DocumentError>,
}

/// What becomes of a run whose required upstream fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// It ends.
    Stop,
    /// The rest is served.
    Serve,
}

/// The world a configuration is read in.
#[derive(Clone, Debug)]
pub struct Host {
    /// The environment.
    pub environment: BTreeMap<String, String>,
    /// The current folder.
    pub directory: PathBuf,
    /// Our own binary, for upstreams that are us.
    pub exe: Option<PathBuf>,
}

impl Host {
    /// Says whether a folder holds so much that somebody should have named it: `/`, or the home.
    pub fn is_too_much(&self, folder: &Path) -> bool {
        let home = self.environment.get("HOME");
        let home = home.and_then(|home| Path::new(home).canonicalize().ok());
        folder.parent().is_none() || home.as_deref() == Some(folder)
    }
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file is not what it should be.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// An agent file is not what it should be, for each of these reasons.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Agent(Vec<DocumentError>),
    /// An MCP file is not what it should be.
    #[error(transparent)]
    Mcp(#[from] mcp::LoadError),
    /// A variable of the environment is not what it should be.
    #[error(transparent)]
    Environment(#[from] environment::EnvironmentError),
    /// The token file cannot be used.
    #[error("{}: {error}", file.display())]
    Tokens {
        /// The file.
        file: PathBuf,
        /// Why.
        error: TokensError,
    },
    /// A setting cannot be used.
    #[error("{}{message}", place.map(|place| format!("{place}: ")).unwrap_or_default())]
    Setting {
        /// The flag or the variable that gives it, if one does.
        place: Option<&'static str>,
        /// Why.
        message: String,
    },
    /// The current folder would be served without anybody having said so.
    #[error(
        "the current folder is {}, and all of it would be served; give --workspace to say which folder you mean, or --mcp or --agent for other tools",
        .0.display()
    )]
    UnsaidWorkspace(PathBuf),
    /// A glob over names of tools is none.
    #[error("{place}: {error}")]
    Glob {
        /// Where it is written.
        place: String,
        /// What is wrong with it.
        error: BadPattern,
    },
}

impl ConfigError {
    /// Returns the message for a terminal: a mistake in a file with its line and a caret.
    pub fn render(&self) -> String {
        match self {
            Self::Document(error) => error.render(),
            Self::Agent(errors) => {
                errors.iter().map(DocumentError::render).collect::<Vec<_>>().join("\nerror: ")
            }
            Self::Mcp(mcp::LoadError::Document(error)) => error.render(),
            error => error.to_string(),
        }
    }
}

/// Completes what the flags leave open by the environment and the file of `--config`.
pub fn complete(flags: Settings, host: &Host) -> Result<Settings, ConfigError> {
    let variables = environment::read(&host.environment, &host.directory)?;
    let below = match flags.config.as_ref().or(variables.config.as_ref()) {
        Some(path) => Some(
            settings::open(path).map_err(|error| Kind::Settings.mistaken(path).unwrap_or(error))?,
        ),
        None => None,
    };
    let (below, document) = below.unzip();
    let below = below.unwrap_or_default();
    let places = Places::of(&flags, &variables, document.map(|document| (&below, document)));
    Ok(Settings { places, ..flags.over(variables).over(below) })
}

impl Config {
    /// Says whether calls that need a person count as answered by the client.
    pub fn leaves_asking(&self) -> bool {
        self.server.approval == ApprovalMode::Client
    }

    /// Says whether calls that need a person are refused without anybody being asked.
    pub fn asks_nobody(&self) -> bool {
        self.server.approval == ApprovalMode::Deny
    }

    /// Reads the files that the settings name and puts everything together.
    pub fn build(settings: Settings, host: &Host) -> Result<Self, ConfigError> {
        let agent = agent_file(&settings)?;
        let mcp_files = settings.mcp.clone().unwrap_or_default();
        let workspace = workspace(&settings, agent.as_ref(), host)?;
        let on_failure = match (&agent, settings.keep_going) {
            (_, Some(false)) | (Some(_), None) => OnFailure::Stop,
            (_, Some(true)) | (None, None) => OnFailure::Serve,
        };
        let mut files = agent.as_ref().and_then(Agent::mcp).into_iter().collect::<Vec<_>>();
        files.extend(mcp_files.iter().map(|file| (file.clone(), mcp::Overrides::new())));
        let upstream = upstreams(&settings, files, &workspace, host, on_failure)
            .map_err(|error| bad_servers(agent.as_ref(), (&settings, &mcp_files), error))?;
        let upstream =
            upstream::Config { keep: settings.artifacts.keep(agent.is_some()), ..upstream };
        let artifacts = artifacts(&settings, agent.as_ref(), &workspace, host);
        let defer = settings.discovery.defer(agent.as_ref().map(Agent::defers));
        let context = recorded(settings.context.or(agent.as_ref().map(Agent::context)), defer);
        let http = http(&settings)?;
        let only_mcp = agent.is_none() && !mcp_files.is_empty();
        let approval = approval(settings.approval.mode, only_mcp);
        let mut permission = agent.as_ref().map(Agent::permissions).unwrap_or_default();
        permission.rules = rules(&settings.approval)?;
        let server = server::Config {
            approval,
            agent_id: agent.as_ref().and_then(Agent::name).unwrap_or_default().to_owned(),
            context,
            ..serving(&settings, workspace.clone())
        };
        Ok(Self {
            skills: Agent::skills(agent.as_ref(), &workspace)?,
            workspace,
            python: settings.python.config(agent.as_ref(), host, server.max_message_bytes),
            builtin: builtin(agent.as_ref(), &mcp_files),
            upstream,
            artifacts,
            context,
            permission,
            exposure: exposure::Config {
                view: settings.view.view()?,
                naming: settings.naming(),
                defer,
                disclosure: settings.discovery.disclosure.unwrap_or_default(),
            },
            breaker: settings.breaker.map(settings::Breaker::config),
            activity: activity::Config { file: settings.activity.file.clone() },
            session_idle: session_idle(&settings),
            server,
            stdio: settings.stdio.unwrap_or(http.is_none()),
            http,
            on_failure,
            not_used: agent.as_ref().map(|agent| agent.not_used.clone()).unwrap_or_default(),
            places: settings.places,
            tools: Vec::new(),
            command: settings.command.config(host),
            declared_hooks: agent.as_ref().map(Agent::hooks).unwrap_or_default(),
            hooks: Vec::new(),
            middleware: Vec::new(),
            not_built: agent.map(|agent| agent.not_built).unwrap_or_default(),
        })
    }
}

/// Says of a mistake in MCP files where it begins.
fn bad_servers(
    agent: Option<&Agent>,
    (settings, files): (&Settings, &[PathBuf]),
    error: mcp::LoadError,
) -> ConfigError {
    if let Some(error) = files.iter().find_map(|file| Kind::Mcp.mistaken(file)) {
        return error.into();
    }
    if let mcp::LoadError::Document(error) = &error
        && error.position().is_none()
        && let Some(number) = files.iter().position(|file| error.file() == file)
        && !settings.places.is_flag("mcp")
    {
        return settings.places.error(&path::index("mcp", number), error);
    }
    Agent::bad_servers(agent, error)
}

/// Says which built-in tools there are.
fn builtin(agent: Option<&Agent>, mcp_files: &[PathBuf]) -> Vec<String> {
    match agent {
        Some(agent) => agent.builtin(),
        None if mcp_files.is_empty() => DEFAULT_BUILTINS.map(str::to_owned).into(),
        None => Vec::new(),
    }
}

fn agent_file(settings: &Settings) -> Result<Option<Agent>, ConfigError> {
    let agent = settings.agent.as_deref().map(Agent::read).transpose();
    agent.map_err(|errors| bad_agent(settings, errors))
}

/// Says of an agent file that is not there who named it, unless a flag did.
fn bad_agent(settings: &Settings, errors: Vec<DocumentError>) -> ConfigError {
    match errors.as_slice() {
        [error]
            if error.position().is_none()
                && settings.agent.as_deref() == Some(error.file())
                && !settings.places.is_flag("agent") =>
        {
            settings.places.error("agent", error)
        }
        _ => ConfigError::Agent(errors),
    }
}

/// Says when clients can read again what was called; where nobody says it, with deferred tools.
fn recorded(said: Option<bool>, defer: Defer) -> Option<Presence> {
    match (said, defer) {
        (Some(true), _) => Some(Presence::Always),
        (Some(false), _) | (None, Defer::Never) => None,
        (None, Defer::Always | Defer::Auto { .. }) => Some(Presence::WhileDeferring),
    }
}

/// Reads the rules about single tools.
fn rules(said: &settings::ApprovalSettings) -> Result<permission::Rules, ConfigError> {
    Ok(permission::Rules::new(
        Globs::rules(said.permit.as_ref(), "--permit")?,
        Globs::rules(said.ask.as_ref(), "--ask")?,
        Globs::rules(said.forbid.as_ref(), permission::FORBID)?,
    ))
}

/// Says how long a session of the newer era lasts without a request.
fn session_idle(settings: &Settings) -> Duration {
    settings.limits.session_idle_seconds.map_or(SESSION_IDLE, settings::Seconds::duration)
}

/// Says how clients are served, as far as that does not depend on the files.
fn serving(settings: &Settings, workspace: PathBuf) -> server::Config {
    let limits = settings.limits;
    let patience = settings.approval.timeout_seconds;
    server::Config {
        approval: ApprovalMode::Ask,
        approval_timeout: patience.map_or(APPROVAL_TIMEOUT, settings::Seconds::duration),
        concurrent_calls: limits.concurrent_calls.map_or(CONCURRENT_CALLS, NonZeroUsize::get),
        max_message_bytes: limits.max_message_bytes.map_or(MAX_MESSAGE_BYTES, NonZeroUsize::get),
        max_sessions: limits.max_sessions.unwrap_or(MAX_SESSIONS),
        tool_timeout: limits.tool_timeout_seconds.map(settings::Seconds::duration),
        agent_id: String::new(),
        workspace: Arc::new(workspace),
        context: None,
    }
}

/// What is wrong with a workspace that is a file.
const NO_FOLDER: &str = "it is no folder; name the folder that the file tools are to work in";

/// Finds the folder of the file tools; absolute and resolved where it exists.
fn workspace(
    settings: &Settings,
    agent: Option<&Agent>,
    host: &Host,
) -> Result<PathBuf, ConfigError> {
    let resolve = |folder: &Path| {
        let folder = host.directory.join(folder);
        match folder.canonicalize() {
            Ok(resolved) if resolved.is_dir() => Ok(resolved),
            Ok(_) => Err((folder, io::Error::new(io::ErrorKind::NotADirectory, NO_FOLDER))),
            Err(error) => Err((folder, error)),
        }
    };
    let unusable = |(folder, error): (PathBuf, io::Error)| {
        let message = format!("the workspace {} cannot be used: {error}", folder.display());
        settings.places.error("workspace", message)
    };
    match (&settings.workspace, agent) {
        (Some(folder), _) => return resolve(folder).map_err(unusable),
        (None, Some(agent)) => {
            let folder = resolve(&agent.workspace());
            return folder.map_err(|(folder, error)| agent.bad_workspace(&folder, &error).into());
        }
        (None, None) => {}
    }
    let folder = resolve(Path::new(".")).map_err(unusable)?;
    // Upstreams alone have no file tools; the folder is only where they start.
    if host.is_too_much(&folder) && settings.mcp.as_ref().is_none_or(Vec::is_empty) {
        return Err(ConfigError::UnsaidWorkspace(folder));
    }
    Ok(folder)
}

/// Says who answers; where the operator wants tools asked for, that is not left to the client
/// unless he says that, too.
fn approval(said: Option<Approval>, only_mcp: bool) -> ApprovalMode {
    match said {
        None if only_mcp => ApprovalMode::ClientUnlessAsked,
        None | Some(Approval::Ask) => ApprovalMode::Ask,
        Some(Approval::Client) => ApprovalMode::Client,
        Some(Approval::Deny) => ApprovalMode::Deny,
    }
}

fn artifacts(
    settings: &Settings,
    agent: Option<&Agent>,
    workspace: &Path,
    host: &Host,
) -> artifact::Config {
    let is_said = settings.workspace.is_some() || agent.is_some() || !host.is_too_much(workspace);
    settings.artifacts.config(workspace, is_said, host)
}

fn http(settings: &Settings) -> Result<Option<server::http::Config>, ConfigError> {
    let Some(address) = settings.http else {
        return Ok(None);
    };
    let tokens = match &settings.token_file {
        Some(file) => {
            let text = std::fs::read_to_string(file).map_err(|error| {
                let message = format!("the token file {} cannot be read: {error}", file.display());
                settings.places.error("token_file", message)
            })?;
            let tokens = Tokens::parse(&text);
            Some(tokens.map_err(|error| ConfigError::Tokens { file: file.clone(), error })?)
        }
        None => None,
    };
    Ok(Some(server::http::Config { address, tokens }))
}

fn upstreams(
    settings: &Settings,
    files: Vec<(PathBuf, mcp::Overrides)>,
    workspace: &Path,
    host: &Host,
    on_failure: OnFailure,
) -> Result<upstream::Config, mcp::LoadError> {
    let (files, overrides): (Vec<_>, Vec<_>) = files.into_iter().unzip();
    let overrides: mcp::Overrides = overrides.into_iter().flatten().collect();
    let on_error = match on_failure {
        OnFailure::Stop => mcp::OnError::Fail,
        OnFailure::Serve => mcp::OnError::Skip,
    };
    let mut loaded = if files.is_empty() {
        mcp::Loaded::default()
    } else {
        mcp::load(&files, &overrides, on_error)?
    };
    for server in &mut loaded.servers {
        // The agent file's word comes before the operator's, and his before the MCP file's.
        let said = overrides.get(&server.name).cloned().unwrap_or_default();
        let operator = settings.upstream.get(&server.name).cloned().unwrap_or_default();
        server.required = said.required.or(operator.required).unwrap_or(server.required);
        server.trust_annotations =
            said.trust_annotations.or(operator.trust_annotations).unwrap_or(false);
    }
    let operator =
        settings.upstream.iter().map(|(name, theirs)| (name.clone(), theirs.operator())).collect();
    let mut environment = host.environment.clone();
    if let Some(exe) = &host.exe {
        environment.insert("IRIS_MCP_EXE".to_owned(), exe.display().to_string());
    }
    let max_message_bytes =
        settings.limits.max_message_bytes.map_or(MAX_MESSAGE_BYTES, NonZeroUsize::get);
    Ok(upstream::Config {
        loaded,
        operator,
        environment,
        workspace: workspace.to_path_buf(),
        max_message_bytes,
        keep: Keep::default(),
    })
}
