//! What a source offers besides tools: prompts, resources, completions, logging.
//!
//! All of it is raw JSON on the way through, because a typed copy would drop what it does not
//! know. A source hands its relay to the registry with its publication.

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::tool::CallContext;

/// Passes requests other than tool calls on to where they can be answered.
#[async_trait]
pub trait Relay: Send + Sync + std::fmt::Debug {
    /// Returns everything of one kind that is offered here, in the source's order.
    async fn list(
        &self,
        kind: Kind,
        cx: &CallContext,
    ) -> Result<Vec<Map<String, Value>>, RelayError>;

    /// Sends one request on and returns its result as it came.
    async fn request(
        &self,
        method: &str,
        params: Map<String, Value>,
        cx: &CallContext,
    ) -> Result<Value, RelayError>;
}

/// What can be listed besides tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `prompts/list`.
    Prompts,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    ResourceTemplates,
}

/// A JSON-RPC error to hand back.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RelayError {
    /// The JSON-RPC code.
    pub code: i64,
    /// The message for people.
    pub message: String,
    /// Facts for programs.
    pub data: Option<Value>,
}
