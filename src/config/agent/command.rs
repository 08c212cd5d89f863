//! `command`: where the tools and hooks that run commands would run them.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text::{Positive, Text};
use crate::config::settings::Expected;
use crate::document::{Document, DocumentError};

/// Where commands run.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("dependentSchemas" = {
    "docker": {"properties": {"mode": {"const": "docker"}}, "required": ["mode"]}
}))]
pub(super) struct Command {
    /// On this machine, or in a container.
    mode: Mode,
    /// How long a command may take, in seconds.
    timeout_seconds: Positive,
    /// The container; only with `mode: docker`.
    docker: Option<Docker>,
}

/// Where commands run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    /// On this machine.
    Native,
    /// In a container.
    Docker,
}

/// A container.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Docker {
    /// Its image.
    image: Text,
    /// The socket or pipe of the engine: `unix:///PATH` or `npipe:////./pipe/NAME`.
    endpoint: Option<Endpoint>,
    /// What it can reach.
    network: Network,
    /// How many processors it may use.
    cpus: Positive,
    /// How much memory it may use, in MiB.
    memory_mb: NonZeroU64,
    /// How many processes it may have.
    pids_limit: NonZeroU64,
    /// Variables of its environment.
    environment: BTreeMap<String, String>,
}

/// What a container can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Network {
    /// Nothing.
    None,
    /// What the engine's bridge reaches.
    Bridge,
}

/// The address of an engine on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(extend("pattern" = r"^(unix:///|npipe:////\./pipe/)[^?#]+$"))]
struct Endpoint(String);

impl Command {
    pub(super) fn check(&self, document: &Document) -> Result<(), DocumentError> {
        let said = document.root.get("command").and_then(|command| command.entry("docker"));
        if self.is_native() && said.is_some() {
            let message = "without `mode: docker` there is no container";
            let hint = "set `command.mode: docker`, or remove this".to_owned();
            return Err(document.error_in("command.docker", message).with_hint(hint));
        }
        Ok(())
    }

    pub(super) fn is_native(&self) -> bool {
        self.mode == Mode::Native
    }
}

impl Default for Command {
    fn default() -> Self {
        Self { mode: Mode::Native, timeout_seconds: Positive::of(120.0), docker: None }
    }
}

impl Default for Docker {
    fn default() -> Self {
        let count = |number| NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN);
        Self {
            image: Text::of("iris-command:local"),
            endpoint: None,
            network: Network::None,
            cpus: Positive::of(2.0),
            memory_mb: count(1024),
            pids_limit: count(128),
            environment: BTreeMap::new(),
        }
    }
}

impl TryFrom<String> for Endpoint {
    type Error = Expected;

    fn try_from(text: String) -> Result<Self, Expected> {
        let path =
            ["unix:///", "npipe:////./pipe/"].iter().find_map(|start| text.strip_prefix(start));
        match path {
            Some(path) if !path.is_empty() && !path.contains(['?', '#']) => Ok(Self(text)),
            _ => Err(Expected("a local engine, `unix:///PATH` or `npipe:////./pipe/NAME`")),
        }
    }
}
