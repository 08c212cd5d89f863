//! A call on its way: as it is shown to extensions, and as it is once validated.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use crate::tool::{Arguments, CallId, SessionId};

/// A call as hooks and middleware see it: frozen, with its own copy of the arguments.
#[derive(Clone, Debug)]
pub struct Call {
    /// Identifies the call; the same through all its rounds.
    pub id: CallId,
    /// The name the caller used, which may be an alias.
    pub tool_name: String,
    /// The tool's own name.
    pub canonical: String,
    /// The name that hooks and middleware are told: an alias it was called by, else its own.
    pub told_as: String,
    /// The arguments after validation.
    pub arguments: Arguments,
    /// The agent on whose behalf the call is made; empty without an agent file.
    pub agent_id: String,
    /// The session the call belongs to.
    pub session: SessionId,
    /// The run it belongs to; in a server, the session.
    pub run_id: Option<String>,
    /// The activation it belongs to; in a server, the call.
    pub activation_id: Option<String>,
    /// The workspace of the call.
    pub workspace: Arc<PathBuf>,
}

/// Arguments that passed [`Tool::validate`](crate::tool::Tool::validate).
#[derive(Clone)]
pub struct Valid {
    /// The arguments as permission, hooks, middleware and the body see them.
    pub arguments: Arguments,
    /// What this call does, for permission and scheduling.
    pub traits: CallTraits,
    payload: Option<Arc<dyn Any + Send + Sync>>,
}

/// What one call does, which may depend on its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTraits {
    /// It changes nothing.
    pub read_only: bool,
    /// It may destroy something.
    pub destructive: bool,
    /// It may overlap with others in a batch.
    pub parallel: bool,
    /// Who ends it when its time is up.
    pub timeout_owner: TimeoutOwner,
}

/// Who enforces a call's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutOwner {
    /// The executor drops the body when the time is up.
    Runtime,
    /// The body ends itself, since it owns a process or a remote call.
    Tool,
}

impl Valid {
    /// Makes validated arguments without a typed value.
    pub fn new(arguments: Arguments, traits: CallTraits) -> Self {
        Self { arguments, traits, payload: None }
    }

    /// Adds the typed value the body wants instead of JSON.
    #[must_use]
    pub fn with_payload<T: Any + Send + Sync>(mut self, payload: T) -> Self {
        self.payload = Some(Arc::new(payload));
        self
    }

    /// Returns the typed value, if it is a `T`.
    pub fn payload<T: Any>(&self) -> Option<&T> {
        self.payload.as_ref()?.downcast_ref()
    }
}

impl std::fmt::Debug for Valid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Valid").field("traits", &self.traits).finish_non_exhaustive()
    }
}
