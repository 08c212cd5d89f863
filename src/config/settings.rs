//! The server's own settings, as they can be written in each of their places.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::ConfigError;
use super::artifacts::ArtifactSettings;
use super::command::CommandSettings;
use super::discovery::DiscoverySettings;
use super::log::Log;
use super::operator::UpstreamSettings;
use super::places::Places;
use super::python::PythonSettings;
use crate::document::{Document, DocumentError, Format};
use crate::executor::breaker;
use crate::exposure::names::{MaxName, Naming, Style};
use crate::permission::Written;
use crate::registry::view::View;
use crate::tool::{BadPattern, Patterns};

/// What one place says; what it leaves open is looked for in the next.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(
    title = "iris-mcp settings",
    description = "Relative paths start from this file's folder."
)]
pub struct Settings {
    /// The file with more settings; a flag or a variable only.
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Where what is said here is written, once all of it is put together.
    #[serde(skip)]
    pub places: Places,
    /// The agent file.
    pub agent: Option<PathBuf>,
    /// The MCP files.
    pub mcp: Option<Vec<PathBuf>>,
    /// The folder of the file tools.
    pub workspace: Option<PathBuf>,
    /// Whether to serve the client at our standard streams.
    pub stdio: Option<bool>,
    /// Where to serve clients over HTTP.
    #[serde(deserialize_with = "http")]
    #[schemars(with = "Option<String>")]
    pub http: Option<SocketAddr>,
    /// The file with the tokens of HTTP clients.
    pub token_file: Option<PathBuf>,
    /// Whether the rest is served when a required upstream fails.
    pub keep_going: Option<bool>,
    /// Who answers when a call needs a person.
    pub approval: ApprovalSettings,
    /// What is kept in files.
    pub artifacts: ArtifactSettings,
    /// Whether clients can read again what was called and what came of it.
    pub context: Option<bool>,
    /// What has to be searched for.
    pub discovery: DiscoverySettings,
    /// What clients call the tools of upstreams.
    #[schemars(schema_with = "super::schema::style")]
    pub names: Option<Style>,
    /// How long the name of a tool may be for clients.
    #[schemars(schema_with = "super::schema::max_name")]
    pub max_name: Option<MaxName>,
    /// Limits.
    pub limits: Limits,
    /// When to leave a failing tool alone; without it, never.
    pub breaker: Option<Breaker>,
    /// Which tools there are for clients.
    pub view: ViewSettings,
    /// What runs Python tools.
    pub python: PythonSettings,
    /// What runs commands.
    pub command: CommandSettings,
    /// What is logged, and where.
    pub log: Log,
    /// Where calls are recorded.
    pub activity: ActivitySettings,
    /// What the operator says of single upstreams.
    pub upstream: BTreeMap<String, UpstreamSettings>,
}

/// The settings under `approval`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApprovalSettings {
    /// Who answers.
    pub mode: Option<Approval>,
    /// How long a person may take, in seconds.
    pub timeout_seconds: Option<Seconds>,
    /// Tools that need nobody's approval.
    pub permit: Option<Globs>,
    /// Tools that always need a person's approval.
    pub ask: Option<Globs>,
    /// Tools that are always refused.
    pub forbid: Option<Globs>,
}

/// Globs over the names of tools, and where they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(from = "Vec<Glob>")]
#[schemars(with = "Vec<String>")]
pub struct Globs {
    globs: Vec<Glob>,
    place: Option<String>,
}

/// Who answers when a call needs a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Approval {
    /// The person at the client is asked.
    Ask,
    /// The client asks by itself.
    Client,
    /// Nobody is asked.
    Deny,
}

/// The settings under `limits`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// How long a call may take, in seconds.
    pub tool_timeout_seconds: Option<Seconds>,
    /// The longest message, in bytes.
    pub max_message_bytes: Option<NonZeroUsize>,
    /// How many calls run at once.
    pub concurrent_calls: Option<NonZeroUsize>,
    /// After how long without a request a session of the newer era ends, in seconds.
    pub session_idle_seconds: Option<Seconds>,
    /// How many sessions of the older era there are over HTTP.
    pub max_sessions: Option<NonZeroUsize>,
}

/// The settings under `breaker`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Breaker {
    /// How many failures in a row open it.
    pub failure_threshold: Option<NonZeroU32>,
    /// How long it stays open, in seconds.
    pub cooldown_seconds: Option<f64>,
}

/// The settings under `view`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ViewSettings {
    /// The groups to keep.
    pub include_groups: Option<BTreeSet<String>>,
    /// Tools to keep in any case.
    pub allow: Option<Globs>,
    /// Tools to drop.
    pub deny: Option<Globs>,
}

/// The settings under `activity`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ActivitySettings {
    /// The file that a record of each call is appended to; none without one.
    pub file: Option<PathBuf>,
}

/// A time in seconds, above 0.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "f64")]
#[schemars(extend("exclusiveMinimum" = 0))]
pub struct Seconds(Duration);

/// A glob over the names and capabilities of tools.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub struct Glob(String);

/// Why a text or a number is not the value of a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {0}")]
pub struct Expected(pub &'static str);

/// Reads a number of things, of which there must be one.
pub fn count(text: &str) -> Result<NonZeroUsize, Expected> {
    text.parse().map_err(|_| Expected("a whole number above 0"))
}

/// Reads where to listen.
pub fn address(text: &str) -> Result<SocketAddr, Expected> {
    // The name is no address, but always means one; what it means is not asked of a network.
    let numbers = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let numbers = numbers.as_deref().unwrap_or(text);
    numbers.parse().map_err(|_| Expected("an address and a port, such as 127.0.0.1:8808"))
}

/// Reads a switch, as a flag and as a variable.
pub fn switch(text: &str) -> Result<bool, Expected> {
    match text {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(Expected("`on` or `off`")),
    }
}

fn http<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    address(&text).map(Some).map_err(D::Error::custom)
}

/// Reads a settings file; relative paths in it start from its folder.
pub fn read(path: &Path) -> Result<Settings, DocumentError> {
    open(path).map(|(settings, _)| settings)
}

/// Reads a settings file, and keeps it for what turns out wrong later.
pub(super) fn open(path: &Path) -> Result<(Settings, Document), DocumentError> {
    let document = Document::open(path, Format::Toml)?;
    let mut settings: Settings = document.decode()?;
    let file =
        path.file_name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy());
    settings.approval.stand_in(&file);
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    settings.rebase(folder);
    Ok((settings, document))
}

impl Settings {
    /// Lets every relative path start from `folder`.
    pub(crate) fn rebase(&mut self, folder: &Path) {
        // An empty path would be the folder itself, which nobody means.
        self.artifacts.dir.take_if(|dir| dir.as_os_str().is_empty());
        self.python.rebase(folder);
        let single = [
            &mut self.agent,
            &mut self.workspace,
            &mut self.token_file,
            &mut self.artifacts.dir,
            &mut self.log.file,
            &mut self.activity.file,
        ];
        let paths = single.into_iter().flatten().chain(self.mcp.iter_mut().flatten());
        for path in paths {
            *path = folder.join(&path);
        }
    }

    /// Completes what this place leaves open by what the next one says.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        let mut upstream = below.upstream;
        for (name, theirs) in self.upstream {
            let below = upstream.remove(&name).unwrap_or_default();
            upstream.insert(name, theirs.over(below));
        }
        Self {
            config: self.config.or(below.config),
            places: self.places,
            agent: self.agent.or(below.agent),
            mcp: self.mcp.or(below.mcp),
            workspace: self.workspace.or(below.workspace),
            stdio: self.stdio.or(below.stdio),
            http: self.http.or(below.http),
            token_file: self.token_file.or(below.token_file),
            keep_going: self.keep_going.or(below.keep_going),
            approval: self.approval.over(below.approval),
            artifacts: self.artifacts.over(below.artifacts),
            context: self.context.or(below.context),
            discovery: self.discovery.over(below.discovery),
            names: self.names.or(below.names),
            max_name: self.max_name.or(below.max_name),
            limits: self.limits.over(below.limits),
            breaker: match (self.breaker, below.breaker) {
                (Some(ours), Some(below)) => Some(ours.over(below)),
                (ours, below) => ours.or(below),
            },
            view: ViewSettings {
                include_groups: self.view.include_groups.or(below.view.include_groups),
                allow: self.view.allow.or(below.view.allow),
                deny: self.view.deny.or(below.view.deny),
            },
            python: self.python.over(below.python),
            command: self.command.over(below.command),
            log: self.log.over(below.log),
            activity: ActivitySettings { file: self.activity.file.or(below.activity.file) },
            upstream,
        }
    }

    pub(super) fn naming(&self) -> Naming {
        Naming { style: self.names.unwrap_or_default(), max: self.max_name.unwrap_or_default() }
    }
}

impl ApprovalSettings {
    /// Notes in which file rules are written.
    fn stand_in(&mut self, file: &str) {
        let rules =
            [("permit", &mut self.permit), ("ask", &mut self.ask), ("forbid", &mut self.forbid)];
        for (key, globs) in rules {
            if let Some(globs) = globs {
                globs.place = Some(format!("approval.{key} in {file}"));
            }
        }
    }

    fn over(self, below: Self) -> Self {
        Self {
            mode: self.mode.or(below.mode),
            timeout_seconds: self.timeout_seconds.or(below.timeout_seconds),
            permit: self.permit.or(below.permit),
            ask: self.ask.or(below.ask),
            forbid: self.forbid.or(below.forbid),
        }
    }
}

impl Limits {
    fn over(self, below: Self) -> Self {
        Self {
            tool_timeout_seconds: self.tool_timeout_seconds.or(below.tool_timeout_seconds),
            max_message_bytes: self.max_message_bytes.or(below.max_message_bytes),
            concurrent_calls: self.concurrent_calls.or(below.concurrent_calls),
            session_idle_seconds: self.session_idle_seconds.or(below.session_idle_seconds),
            max_sessions: self.max_sessions.or(below.max_sessions),
        }
    }
}

impl Breaker {
    fn over(self, below: Self) -> Self {
        Self {
            failure_threshold: self.failure_threshold.or(below.failure_threshold),
            cooldown_seconds: self.cooldown_seconds.or(below.cooldown_seconds),
        }
    }

    pub(super) fn config(self) -> breaker::Config {
        let default = breaker::Config::default();
        // Below zero, and what is no time at all, means no cooldown.
        let cooldown = self
            .cooldown_seconds
            .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default());
        breaker::Config {
            failure_threshold: self
                .failure_threshold
                .map_or(default.failure_threshold, NonZeroU32::get),
            cooldown: cooldown.unwrap_or(default.cooldown),
        }
    }
}

impl ViewSettings {
    pub(super) fn view(&self) -> Result<View, ConfigError> {
        Ok(View {
            include_groups: self.include_groups.clone(),
            allow: patterns("view.allow", self.allow.as_ref())?,
            deny: patterns("view.deny", self.deny.as_ref())?,
        })
    }
}

impl Globs {
    /// Makes globs that are written at a place, or given by a flag.
    pub fn new(globs: Vec<Glob>, place: Option<String>) -> Self {
        Self { globs, place }
    }

    /// Compiles them as rules of one kind; `flag` is what gives such rules.
    pub(super) fn rules(globs: Option<&Self>, flag: &'static str) -> Result<Written, ConfigError> {
        let Self { globs, place } = globs.cloned().unwrap_or_default();
        let named = place.clone().unwrap_or_else(|| flag.to_owned());
        Written::new(&globs, place).map_err(|error| ConfigError::Glob { place: named, error })
    }
}

impl From<Vec<Glob>> for Globs {
    fn from(globs: Vec<Glob>) -> Self {
        Self { globs, place: None }
    }
}

fn patterns(key: &str, globs: Option<&Globs>) -> Result<Patterns, ConfigError> {
    let Some(Globs { globs, place }) = globs else { return Ok(Patterns::default()) };
    Patterns::new(globs).map_err(|error| {
        let place = place.clone().unwrap_or_else(|| key.to_owned());
        ConfigError::Glob { place, error }
    })
}

impl Seconds {
    pub(super) fn duration(self) -> Duration {
        self.0
    }
}

impl TryFrom<f64> for Seconds {
    type Error = Expected;

    fn try_from(seconds: f64) -> Result<Self, Self::Error> {
        match Duration::try_from_secs_f64(seconds) {
            Ok(duration) if !duration.is_zero() => Ok(Self(duration)),
            _ => Err(Expected("a number of seconds above 0")),
        }
    }
}

impl FromStr for Seconds {
    type Err = Expected;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let seconds: f64 = text.parse().map_err(|_| Expected("a number of seconds above 0"))?;
        Self::try_from(seconds)
    }
}

impl TryFrom<String> for Glob {
    type Error = BadPattern;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Patterns::new([&text]).map(|_| Self(text))
    }
}

impl FromStr for Glob {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::try_from(text.to_owned())
    }
}

impl AsRef<str> for Glob {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Approval {
    type Err = Expected;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "ask" => Ok(Self::Ask),
            "client" => Ok(Self::Client),
            "deny" => Ok(Self::Deny),
            _ => Err(Expected("`ask`, `client` or `deny`")),
        }
    }
}

#[cfg(test)]
mod tests;
