//! What ends a call without a result.

/// A control condition: it always wins over any result and is never swallowed on the way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Interrupt {
    /// The caller gave up, or we are shutting down; nobody waits for an answer.
    #[error("the call was cancelled")]
    Cancelled,
    /// The body was started and nobody can say whether it finished.
    #[error("the outcome is unknown: {reason}")]
    OutcomeUnknown {
        /// What the call was sent to: an upstream server, a worker, a command.
        target: String,
        /// Why the outcome cannot be known.
        reason: String,
    },
    /// The body finished but what it started could not be cleaned up.
    #[error("cleaning up failed: {reason}")]
    CleanupFailed {
        /// What could not be cleaned up, and why.
        reason: String,
    },
}
