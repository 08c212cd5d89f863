//! What a tool is: its definition, its arguments, its result, and the context it runs in.
//!
//! Everything else in the crate speaks this vocabulary. A [`Tool`] is anything with a
//! [`ToolDefinition`] and a body; where it came from (a built-in, an upstream server, later a
//! Python function) is data in the definition and never control flow. A body returns a
//! [`ToolResult`], successful or not; only what is no result at all is an [`Interrupt`].

pub mod call;
pub mod coded;
pub mod context;
pub mod definition;
#[cfg(test)]
pub(crate) mod fixture;
pub mod interrupt;
pub mod level;
pub mod native;
pub mod patterns;
pub mod port;
pub mod printed;
pub mod result;
pub mod schema;
pub mod suffix;
pub mod turn;
pub mod typed;

use async_trait::async_trait;
use serde_json::{Map, Value};

pub use self::call::{Call, CallTraits, TimeoutOwner, Valid};
pub use self::context::{CallContext, CallId, Client, Era, Principal, SessionId};
pub use self::definition::{
    Capabilities, Capability, DefinitionError, Origin, Presence, PreviewMode, Retention,
    ToolDefinition, ToolName,
};
pub use self::interrupt::Interrupt;
pub use self::level::Level;
pub use self::native::Native;
pub use self::patterns::{BadPattern, Patterns};
pub use self::port::{AskError, ClientPort, Closed};
pub use self::result::{Artifact, Block, ErrorCode, Failure, Hold, Image, ImageFile, ToolResult};
pub use self::schema::{InputSchema, SchemaError};
pub use self::turn::Turn;
pub use self::typed::{ToolError, Typed, TypedTool};

/// The arguments of a call: a JSON object whose key order is kept.
pub type Arguments = Map<String, Value>;

/// A callable tool, however it is implemented.
///
/// The executor calls [`validate`](Tool::validate) first and [`run`](Tool::run) only with what
/// came out of it, after permission was given.
#[async_trait]
pub trait Tool: Send + Sync + std::fmt::Debug {
    /// Returns what clients and policies may know of the tool.
    fn definition(&self) -> &ToolDefinition;

    /// Returns which way a call takes through the executor.
    fn route(&self) -> Route {
        Route::Ordinary
    }

    /// Returns the mark of the built-ins that are allowed by what they are, not by capability.
    fn auto_allow(&self) -> Option<AutoAllow> {
        None
    }

    /// Checks raw arguments, coerces them and fills in defaults.
    ///
    /// What it returns is what permission, hooks, middleware and the body see. It may be remote.
    async fn validate(&self, raw: Arguments, cx: &CallContext) -> Result<Valid, Failure>;

    /// Runs the body.
    ///
    /// An ordinary failure is a [`ToolResult`] with an error. An [`Interrupt`] ends the call
    /// without one and is never turned into a result by a middleware.
    async fn run(&self, call: &Valid, cx: &CallContext) -> Result<ToolResult, Interrupt>;
}

/// Which way a call takes: the whole pipeline, or one of the two shorter ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Validation, permission, hooks, middleware, breaker, body, artifacts.
    Ordinary,
    /// A question for a person; only a runtime with a person behind it can answer.
    Human,
    /// A sub-agent; permission and finishing apply, hooks and middleware do not.
    Child,
}

/// Marks a tool that policy allows for what it is (web, search, sub-agent, memory search).
///
/// Only this crate makes one, so no tool from outside can claim it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoAllow {
    discloses: bool,
}

impl AutoAllow {
    /// Marks an ordinary auto-allowed built-in.
    #[cfg_attr(not(test), expect(dead_code, reason = "none of the built-ins there are needs it"))]
    pub(crate) const fn new() -> Self {
        Self { discloses: false }
    }

    /// Marks the genuine tool search, whose result may disclose other tools.
    pub(crate) const fn tool_search() -> Self {
        Self { discloses: true }
    }

    /// Returns whether results of the tool may disclose other tools.
    pub fn discloses(self) -> bool {
        self.discloses
    }
}
