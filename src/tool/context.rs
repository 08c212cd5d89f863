//! Who calls, from where, and how the call can be stopped.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::tool::{ClientPort, Level, Turn};

/// Everything a body may know of its caller.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// Identifies the call; random, kept across its rounds, used in artifact names.
    pub call_id: CallId,
    /// The session that owns read state, grants and what was disclosed.
    pub session: SessionId,
    /// Who is calling, as far as the transport could tell.
    pub principal: Principal,
    /// The run the call belongs to; the session, in a server.
    pub run_id: Option<String>,
    /// The activation the call belongs to; the call, in a server.
    pub activation_id: Option<String>,
    /// The agent on whose behalf the call is made; empty without an agent file.
    pub agent_id: String,
    /// The workspace the call may touch; absolute and resolved.
    pub workspace: Arc<PathBuf>,
    /// What the client at the other end is and can do.
    pub client: Client,
    /// The way back to that client while the call runs.
    pub port: Arc<dyn ClientPort>,
    /// Cancelled when the caller gave up or we shut down.
    pub cancelled: CancellationToken,
    /// The call's place in the record of its session, where one is kept.
    pub turn: Option<Turn>,
    /// The time the call may take, by the operator's limit; none means no limit.
    pub time_limit: Option<Duration>,
}

/// The client of a call.
#[derive(Clone, Debug, Default)]
pub struct Client {
    /// The protocol era the request was made in.
    pub era: Era,
    /// Its declared capabilities, as it sent them.
    pub capabilities: Map<String, Value>,
    /// The least level of log messages it asked for.
    pub log_level: Option<Level>,
    /// The request's `_meta`, as it came.
    pub meta: Map<String, Value>,
    /// The name it gives itself.
    pub name: String,
    /// Whether no other client shares its session.
    pub alone: bool,
}

/// The experimental capability of a client that keeps long results itself.
pub const WHOLE_RESULTS: &str = "iris/whole-results";

impl Client {
    /// Returns whether it wants results whole, however long they are.
    ///
    /// Another gateway does: it cuts them for its own client, who could not read what we keep.
    pub fn keeps_results(&self) -> bool {
        let experimental = self.capabilities.get("experimental");
        experimental.is_some_and(|those| those.get(WHOLE_RESULTS).is_some())
    }
}

/// A protocol era; which one decides how a server may ask its client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Era {
    /// Up to 2025-11-25: a handshake, sessions, requests in both directions.
    #[default]
    Legacy,
    /// From 2026-07-28 on: every request stands alone.
    Modern,
}

/// Identifies one call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallId(Arc<str>);

/// Identifies one session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionId(Arc<str>);

/// Who is calling: the name of a token, or the process that holds our standard input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal(Arc<str>);

impl CallId {
    /// Wraps an id made by whoever owns the source of randomness.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl SessionId {
    /// Wraps a session id.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Principal {
    /// Names a principal.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// Returns the principal's name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
