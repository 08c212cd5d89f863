//! What the operator says of single upstream servers.

use std::num::NonZeroUsize;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::settings::Seconds;
use crate::source::upstream::Operator;
use crate::source::upstream::client::Protocol;
use crate::source::upstream::clients::Scope;
use crate::source::upstream::patience::Renewal;

/// How many clients may have a connection of their own, unless said otherwise.
const MAX_CLIENTS: usize = 16;
/// After how long without use such a connection is ended, unless said otherwise.
const CLIENT_IDLE: Duration = Duration::from_mins(30);

/// The settings under `upstream.NAME`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UpstreamSettings {
    /// Which protocol era to speak.
    pub protocol: Option<ProtocolName>,
    /// Whether its word that a tool changes nothing is believed.
    pub trust_annotations: Option<bool>,
    /// How many calls may be under way at once.
    pub max_concurrency: Option<NonZeroUsize>,
    /// Whether its failure is everybody's.
    pub required: Option<bool>,
    /// Variables of our environment that it also gets.
    pub inherit_env: Option<Vec<String>>,
    /// Whether a result that breaks its own output schema is an error.
    pub strict_output: Option<bool>,
    /// Whether the time for a call begins anew with each report of its progress.
    pub reset_on_progress: Option<bool>,
    /// How long a call may take with all its progress, in seconds.
    pub max_timeout_sec: Option<Seconds>,
    /// Who shares the connections to it.
    pub scope: Option<ScopeName>,
    /// How many clients may have a connection of their own.
    pub max_clients: Option<NonZeroUsize>,
    /// After how long without use such a connection is ended.
    pub client_idle_seconds: Option<Seconds>,
}

/// Who shares the connections to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScopeName {
    /// All clients.
    Shared,
    /// Nobody: each client has its own.
    PerClient,
}

/// The name of a protocol era.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProtocolName {
    /// The modern one, if the server speaks it.
    Auto,
    /// 2026-07-28.
    Modern,
    /// 2025-11-25 and before.
    Legacy,
}

impl UpstreamSettings {
    pub(super) fn over(self, below: Self) -> Self {
        Self {
            protocol: self.protocol.or(below.protocol),
            trust_annotations: self.trust_annotations.or(below.trust_annotations),
            max_concurrency: self.max_concurrency.or(below.max_concurrency),
            required: self.required.or(below.required),
            inherit_env: self.inherit_env.or(below.inherit_env),
            strict_output: self.strict_output.or(below.strict_output),
            reset_on_progress: self.reset_on_progress.or(below.reset_on_progress),
            max_timeout_sec: self.max_timeout_sec.or(below.max_timeout_sec),
            scope: self.scope.or(below.scope),
            max_clients: self.max_clients.or(below.max_clients),
            client_idle_seconds: self.client_idle_seconds.or(below.client_idle_seconds),
        }
    }

    pub(super) fn operator(&self) -> Operator {
        let default = Operator::default();
        let protocol = match self.protocol {
            None | Some(ProtocolName::Auto) => Protocol::Auto,
            Some(ProtocolName::Modern) => Protocol::Modern,
            Some(ProtocolName::Legacy) => Protocol::Legacy,
        };
        let scope = match self.scope {
            None | Some(ScopeName::Shared) => Scope::Shared,
            Some(ScopeName::PerClient) => Scope::PerClient {
                most: self.max_clients.map_or(MAX_CLIENTS, NonZeroUsize::get),
                idle: self.client_idle_seconds.map_or(CLIENT_IDLE, Seconds::duration),
            },
        };
        let renewal = match self.reset_on_progress {
            Some(true) => {
                Renewal::WithProgress { most: self.max_timeout_sec.map(Seconds::duration) }
            }
            None | Some(false) => Renewal::Never,
        };
        Operator {
            protocol,
            max_concurrency: self
                .max_concurrency
                .map_or(default.max_concurrency, NonZeroUsize::get),
            inherit_env: self.inherit_env.clone().unwrap_or_default(),
            strict_output: self.strict_output.unwrap_or(default.strict_output),
            scope,
            renewal,
        }
    }
}
