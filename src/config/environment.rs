//! The settings that the environment has: `IRIS_MCP_*`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::artifacts::ArtifactSettings;
use super::discovery::DiscoverySettings;
use super::log::Log;
use super::settings::{
    self, ActivitySettings, ApprovalSettings, Breaker, Expected, Glob, Globs, Limits, Settings,
};
use crate::document::hint;
use crate::tool::BadPattern;

/// What every variable of ours begins with.
const PREFIX: &str = "IRIS_MCP_";

/// What a number of things is.
const COUNT: &str = "a whole number above 0";
/// What a time limit is.
const SECONDS: &str = "a number of seconds above 0";

/// The variables there are; `IRIS_MCP_EXE` is set by us, for expressions.
pub const VARIABLES: [&str; 37] = [
    "IRIS_MCP_ACTIVITY_LOG",
    "IRIS_MCP_AGENT",
    "IRIS_MCP_APPROVAL",
    "IRIS_MCP_APPROVAL_TIMEOUT_SECONDS",
    "IRIS_MCP_ARTIFACTS_DIR",
    "IRIS_MCP_ARTIFACTS_MAX_AGE",
    "IRIS_MCP_ARTIFACTS_MAX_BYTES",
    "IRIS_MCP_ARTIFACTS_MCP_NATIVE",
    "IRIS_MCP_ASK",
    "IRIS_MCP_BREAKER_COOLDOWN_SECONDS",
    "IRIS_MCP_BREAKER_FAILURE_THRESHOLD",
    "IRIS_MCP_CONCURRENT_CALLS",
    "IRIS_MCP_CONFIG",
    "IRIS_MCP_CONTEXT",
    "IRIS_MCP_DEFER",
    "IRIS_MCP_DISCLOSURE",
    "IRIS_MCP_DISCOVERY_BUDGET_TOKENS",
    "IRIS_MCP_EXE",
    "IRIS_MCP_FORBID",
    "IRIS_MCP_HTTP",
    "IRIS_MCP_KEEP_GOING",
    "IRIS_MCP_LOG",
    "IRIS_MCP_LOG_FILE",
    "IRIS_MCP_LOG_FORMAT",
    "IRIS_MCP_MAX_MESSAGE_BYTES",
    "IRIS_MCP_MAX_NAME",
    "IRIS_MCP_MAX_SESSIONS",
    "IRIS_MCP_MCP",
    "IRIS_MCP_NAMES",
    "IRIS_MCP_PERMIT",
    "IRIS_MCP_STDIO",
    "IRIS_MCP_PYTHON_INTERPRETER",
    "IRIS_MCP_SESSION_IDLE_SECONDS",
    "IRIS_MCP_TOKEN_FILE",
    "IRIS_MCP_TOOL_TIMEOUT_SECONDS",
    "IRIS_MCP_VIEW_DENY",
    "IRIS_MCP_WORKSPACE",
];

/// A variable that cannot be used. Its value is not shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// The value is not one for this setting.
    #[error("{variable}: {expected}")]
    Value {
        /// The variable.
        variable: &'static str,
        /// What it should be.
        expected: Expected,
    },
    /// One of its globs is none; globs are no secrets.
    #[error("{variable}: {error}")]
    Glob {
        /// The variable.
        variable: &'static str,
        /// What is wrong.
        error: BadPattern,
    },
    /// There is no such setting.
    #[error("{variable}: there is no such setting{}", hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default())]
    Unknown {
        /// The variable.
        variable: String,
        /// The nearest one there is.
        hint: Option<String>,
    },
}

/// Reads the settings of an environment; relative paths start from `directory`.
///
/// An empty variable counts as not set.
pub fn read(
    environment: &BTreeMap<String, String>,
    directory: &Path,
) -> Result<Settings, EnvironmentError> {
    for variable in environment.keys().filter(|variable| variable.starts_with(PREFIX)) {
        if !VARIABLES.contains(&variable.as_str()) {
            let hint = hint::nearest(variable, VARIABLES)
                .map(|nearest| format!("did you mean {nearest}?"));
            return Err(EnvironmentError::Unknown { variable: variable.clone(), hint });
        }
    }
    let of = |variable: &'static str| environment.get(variable).filter(|value| !value.is_empty());
    let path = |variable| of(variable).map(PathBuf::from);
    let breaker = Breaker {
        failure_threshold: parsed(of, "IRIS_MCP_BREAKER_FAILURE_THRESHOLD", COUNT)?,
        cooldown_seconds: parsed(of, "IRIS_MCP_BREAKER_COOLDOWN_SECONDS", "a number of seconds")?,
    };
    let mut settings = Settings {
        config: path("IRIS_MCP_CONFIG").map(|path| directory.join(path)),
        agent: path("IRIS_MCP_AGENT"),
        mcp: of("IRIS_MCP_MCP").map(|paths| names(paths).map(PathBuf::from).collect()),
        workspace: path("IRIS_MCP_WORKSPACE"),
        stdio: switch(of, "IRIS_MCP_STDIO")?,
        http: address(of, "IRIS_MCP_HTTP")?,
        token_file: path("IRIS_MCP_TOKEN_FILE"),
        keep_going: switch(of, "IRIS_MCP_KEEP_GOING")?,
        approval: ApprovalSettings {
            mode: parsed(of, "IRIS_MCP_APPROVAL", "`ask`, `client` or `deny`")?,
            timeout_seconds: parsed(of, "IRIS_MCP_APPROVAL_TIMEOUT_SECONDS", SECONDS)?,
            permit: globs(of, "IRIS_MCP_PERMIT")?,
            ask: globs(of, "IRIS_MCP_ASK")?,
            forbid: globs(of, "IRIS_MCP_FORBID")?,
        },
        artifacts: artifacts(of)?,
        context: switch(of, "IRIS_MCP_CONTEXT")?,
        discovery: discovery(of)?,
        names: parsed(of, "IRIS_MCP_NAMES", "`iris`, `plain` or `bare`")?,
        max_name: parsed(of, "IRIS_MCP_MAX_NAME", "a whole number from 16 to 128")?,
        limits: Limits {
            tool_timeout_seconds: parsed(of, "IRIS_MCP_TOOL_TIMEOUT_SECONDS", SECONDS)?,
            max_message_bytes: parsed(of, "IRIS_MCP_MAX_MESSAGE_BYTES", COUNT)?,
            concurrent_calls: parsed(of, "IRIS_MCP_CONCURRENT_CALLS", COUNT)?,
            session_idle_seconds: parsed(of, "IRIS_MCP_SESSION_IDLE_SECONDS", SECONDS)?,
            max_sessions: parsed(of, "IRIS_MCP_MAX_SESSIONS", COUNT)?,
        },
        breaker: (breaker != Breaker::default()).then_some(breaker),
        log: Log {
            file: path("IRIS_MCP_LOG_FILE"),
            format: parsed(of, "IRIS_MCP_LOG_FORMAT", "`text` or `json`")?,
            filter: of("IRIS_MCP_LOG").cloned(),
        },
        activity: ActivitySettings { file: path("IRIS_MCP_ACTIVITY_LOG") },
        ..Settings::default()
    };
    settings.python.interpreter = path("IRIS_MCP_PYTHON_INTERPRETER");
    settings.view.deny = globs(of, "IRIS_MCP_VIEW_DENY")?;
    settings.rebase(directory);
    Ok(settings)
}

fn artifacts<'a>(
    of: impl Fn(&'static str) -> Option<&'a String> + Copy,
) -> Result<ArtifactSettings, EnvironmentError> {
    const AGE: &str = "a time above 0, such as `12h` or `30days`";
    Ok(ArtifactSettings {
        dir: of("IRIS_MCP_ARTIFACTS_DIR").map(PathBuf::from),
        mcp_native: parsed(of, "IRIS_MCP_ARTIFACTS_MCP_NATIVE", "`always` or `rich`")?,
        max_bytes: parsed(of, "IRIS_MCP_ARTIFACTS_MAX_BYTES", "a number of bytes above 0")?,
        max_age: parsed(of, "IRIS_MCP_ARTIFACTS_MAX_AGE", AGE)?,
    })
}

fn discovery<'a>(
    of: impl Fn(&'static str) -> Option<&'a String> + Copy,
) -> Result<DiscoverySettings, EnvironmentError> {
    Ok(DiscoverySettings {
        defer: parsed(of, "IRIS_MCP_DEFER", "`auto`, `always` or `never`")?,
        disclosure: parsed(of, "IRIS_MCP_DISCLOSURE", "`both`, `meta` or `session`")?,
        budget_tokens: parsed(of, "IRIS_MCP_DISCOVERY_BUDGET_TOKENS", COUNT)?,
    })
}

/// Takes a list apart; what is between two commas may be nothing, and then is nothing.
fn names(list: &str) -> impl Iterator<Item = String> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned)
}

fn globs<'a>(
    of: impl Fn(&'static str) -> Option<&'a String>,
    variable: &'static str,
) -> Result<Option<Globs>, EnvironmentError> {
    let Some(list) = of(variable) else { return Ok(None) };
    let globs = names(list).map(Glob::try_from).collect::<Result<_, _>>();
    let globs = globs.map_err(|error| EnvironmentError::Glob { variable, error })?;
    Ok(Some(Globs::new(globs, Some(variable.to_owned()))))
}

fn parsed<'a, T: FromStr>(
    of: impl Fn(&'static str) -> Option<&'a String>,
    variable: &'static str,
    expected: &'static str,
) -> Result<Option<T>, EnvironmentError> {
    let Some(value) = of(variable) else {
        return Ok(None);
    };
    let value = value
        .parse()
        .map_err(|_| EnvironmentError::Value { variable, expected: Expected(expected) })?;
    Ok(Some(value))
}

fn address<'a>(
    of: impl Fn(&'static str) -> Option<&'a String>,
    variable: &'static str,
) -> Result<Option<SocketAddr>, EnvironmentError> {
    let address = of(variable).map(|text| settings::address(text)).transpose();
    address.map_err(|expected| EnvironmentError::Value { variable, expected })
}

fn switch<'a>(
    of: impl Fn(&'static str) -> Option<&'a String>,
    variable: &'static str,
) -> Result<Option<bool>, EnvironmentError> {
    let value = of(variable).map(|text| settings::switch(text)).transpose();
    value.map_err(|expected| EnvironmentError::Value { variable, expected })
}

#[cfg(test)]
mod tests;
