//! The way from a running call back to its client.

use async_trait::async_trait;
use serde_json::{Map, Value};

/// What a running call can say to, or ask of, the client that made it.
///
/// Everything is raw JSON, so that nothing an upstream says is lost on the way through.
#[async_trait]
pub trait ClientPort: Send + Sync + std::fmt::Debug {
    /// Sends a request to the client and waits for its result.
    async fn ask(&self, method: &str, params: Map<String, Value>) -> Result<Value, AskError>;

    /// Like [`ask`](Self::ask), with the name that whoever asks gives the question.
    async fn ask_as(
        &self,
        _key: &str,
        method: &str,
        params: Map<String, Value>,
    ) -> Result<Value, AskError> {
        self.ask(method, params).await
    }

    /// Reports progress, if the client asked for it; `params` carries no progress token.
    ///
    /// Dropped silently when the client did not ask or the call is over.
    fn progress(&self, params: Map<String, Value>);

    /// Sends a log message (`level`, `logger`, `data`), if the client's level lets it through.
    fn log(&self, params: Map<String, Value>);
}

/// Why a client could not be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The client did not declare that it can answer this.
    #[error("the client cannot answer {method}")]
    Unsupported {
        /// The request's method.
        method: String,
    },
    /// The client answered with a JSON-RPC error.
    #[error("the client refused: {message} ({code})")]
    Refused {
        /// The JSON-RPC code.
        code: i64,
        /// The client's message.
        message: String,
    },
    /// The client went away, or the call was cancelled.
    #[error("the client is gone")]
    Gone,
}

/// A port with nobody behind it: questions fail, reports vanish.
#[derive(Clone, Copy, Debug, Default)]
pub struct Closed;

#[async_trait]
impl ClientPort for Closed {
    async fn ask(&self, method: &str, _params: Map<String, Value>) -> Result<Value, AskError> {
        Err(AskError::Unsupported { method: method.to_owned() })
    }

    fn progress(&self, _params: Map<String, Value>) {}

    fn log(&self, _params: Map<String, Value>) {}
}
