//! An embedder's wrapper around the body of a call.
//!
//! A [`Middleware`] gets the call and the [`Next`] part of the chain. [`Next::run`] consumes it,
//! so the rest runs at most once:
//!
//! ```compile_fail,E0382
//! # use iris_mcp::middleware::{MiddlewareError, Next};
//! # use iris_mcp::tool::ToolResult;
//! async fn twice(next: Next) -> Result<ToolResult, MiddlewareError> {
//!     next.run().await?;
//!     Ok(next.run().await?)
//! }
//! ```
//!
//! What has been started is never lost: a wrapper that returns early, or fails late, does not
//! replace what the rest of the chain came to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::tool::result::EXECUTION_ERROR;
use crate::tool::{Call, ErrorCode, Failure, Interrupt, ToolResult};

/// A wrapper failed before the body was started.
pub const MIDDLEWARE_ERROR: ErrorCode = ErrorCode::new("MIDDLEWARE_ERROR");

/// How long the wrappers of a cancelled call may take to come to an end by themselves.
///
/// More than a body, whose end they wait for.
const CANCEL_GRACE: Duration = Duration::from_secs(6);

/// Wraps the body of every ordinary call; the first registered is the outermost.
///
/// ```
/// use iris_mcp::middleware::{Middleware, MiddlewareError, Next};
/// use iris_mcp::tool::{Call, ToolResult};
///
/// #[derive(Debug)]
/// struct Stamp;
///
/// #[async_trait::async_trait]
/// impl Middleware for Stamp {
///     async fn wrap(&self, call: &Call, next: Next) -> Result<ToolResult, MiddlewareError> {
///         let mut result = next.run().await?;
///         result.metadata.insert("stamped".to_owned(), call.tool_name.clone().into());
///         Ok(result)
///     }
/// }
/// ```
#[async_trait]
pub trait Middleware: Send + Sync + std::fmt::Debug {
    /// Runs around the rest of the chain, or instead of it.
    ///
    /// A result made anew is what the client gets; one passed on stays the upstream's own.
    async fn wrap(&self, call: &Call, next: Next) -> Result<ToolResult, MiddlewareError>;
}

/// Why a wrapper has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MiddlewareError {
    /// The wrapper itself failed.
    #[error("{0}")]
    Failed(String),
    /// The rest of the chain was interrupted; hand it on.
    #[error(transparent)]
    Interrupted(#[from] Interrupt),
}

/// The innermost part of a chain.
#[async_trait]
pub trait Innermost: Send + Sync {
    /// Runs it; called at most once.
    async fn run(&self) -> Result<ToolResult, Interrupt>;
}

/// What a chain, or a part of it, comes to.
pub type Outcome = Result<ToolResult, Interrupt>;

/// The rest of a chain, not yet run.
pub struct Next {
    chain: Arc<Chain>,
    index: usize,
    frame: Arc<Frame>,
}

/// One call's chain.
pub struct Chain {
    middleware: Arc<[Arc<dyn Middleware>]>,
    call: Call,
    innermost: Box<dyn Innermost>,
    /// Cancelled when the caller has given up.
    cancelled: CancellationToken,
    /// Owns what was started, so that a wrapper cannot stop it by dropping its future.
    tasks: TaskTracker,
}

/// What one wrapper's downstream has come to; shared by its task, the wrapper and the engine.
#[derive(Default)]
struct Frame {
    state: Mutex<FrameState>,
    /// Whether the wrapper was handed what its downstream came to.
    delivered: AtomicBool,
}

#[derive(Default)]
enum FrameState {
    /// The wrapper runs and has not started the rest.
    #[default]
    Open,
    /// The rest was started; the receiver sees what it comes to.
    Started(watch::Receiver<Option<Outcome>>),
    /// The wrapper returned without starting the rest, which must not run any more.
    Closed,
}

// === impl Next ===

impl Next {
    /// Runs the rest of the chain.
    ///
    /// It goes on even when the returned future is dropped.
    pub async fn run(self) -> Outcome {
        let Self { chain, index, frame } = self;
        let (done, mut outcome) = watch::channel(None);
        if !frame.start(&outcome) {
            let message = "the rest of a chain can only be run while its wrapper runs";
            return Ok(Failure::new(EXECUTION_ERROR, message).into());
        }
        let tasks = chain.tasks.clone();
        tasks.spawn(async move {
            let result = chain.run_from(index).await;
            done.send_replace(Some(result));
        });
        let result = received(&mut outcome).await;
        frame.delivered.store(true, Ordering::Release);
        result
    }
}

impl std::fmt::Debug for Next {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Next").field("index", &self.index).finish_non_exhaustive()
    }
}

// === impl Chain ===

impl Chain {
    /// Puts a chain together.
    pub fn new(
        middleware: Arc<[Arc<dyn Middleware>]>,
        call: Call,
        innermost: Box<dyn Innermost>,
        tasks: TaskTracker,
        cancelled: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self { middleware, call, innermost, cancelled, tasks })
    }

    /// Runs the chain from the outermost wrapper on.
    pub async fn run(self: Arc<Self>) -> Outcome {
        self.run_from(0).await
    }

    fn run_from(
        self: Arc<Self>,
        index: usize,
    ) -> std::pin::Pin<Box<dyn Future<Output = Outcome> + Send>> {
        Box::pin(async move {
            let Some(middleware) = self.middleware.get(index).cloned() else {
                return self.innermost.run().await;
            };
            let frame = Arc::new(Frame::default());
            let next =
                Next { chain: Arc::clone(&self), index: index + 1, frame: Arc::clone(&frame) };
            let mut task = {
                let chain = Arc::clone(&self);
                let middleware = Arc::clone(&middleware);
                self.tasks.spawn(async move { middleware.wrap(&chain.call, next).await })
            };
            let wrapped = tokio::select! {
                wrapped = &mut task => wrapped,
                () = given_up(&self.cancelled) => {
                    task.abort();
                    return Err(Interrupt::Cancelled);
                }
            };
            let wrapped = wrapped.unwrap_or_else(|error| {
                // Neither what it panicked with nor what it holds is for clients.
                tracing::error!(?middleware, %error, "a middleware panicked");
                Err(MiddlewareError::Failed("a middleware panicked; the log says how".to_owned()))
            });
            settle(wrapped, frame.downstream().await)
        })
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chain").field("middleware", &self.middleware).finish_non_exhaustive()
    }
}

// === impl Frame ===

/// What a wrapper's downstream came to.
enum Downstream {
    NotStarted,
    /// The wrapper saw this before it returned.
    Delivered(Outcome),
    /// The wrapper returned without having seen this.
    Outlived(Outcome),
}

impl Frame {
    /// Notes that the rest was started; false if it is too late for that.
    fn start(&self, outcome: &watch::Receiver<Option<Outcome>>) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match *state {
            FrameState::Open => {
                *state = FrameState::Started(outcome.clone());
                true
            }
            FrameState::Started(_) | FrameState::Closed => false,
        }
    }

    /// Waits for the downstream, if it was started; afterwards it cannot be.
    async fn downstream(&self) -> Downstream {
        let mut outcome = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            match &*state {
                FrameState::Started(outcome) => outcome.clone(),
                FrameState::Open | FrameState::Closed => {
                    *state = FrameState::Closed;
                    return Downstream::NotStarted;
                }
            }
        };
        let outcome = received(&mut outcome).await;
        if self.delivered.load(Ordering::Acquire) {
            Downstream::Delivered(outcome)
        } else {
            Downstream::Outlived(outcome)
        }
    }
}

/// Waits until a wrapper has had its time after the caller gave up.
async fn given_up(cancelled: &CancellationToken) {
    cancelled.cancelled().await;
    tokio::time::sleep(CANCEL_GRACE).await;
}

async fn received(outcome: &mut watch::Receiver<Option<Outcome>>) -> Outcome {
    match outcome.wait_for(Option::is_some).await {
        Ok(outcome) => outcome.clone().unwrap_or(Err(Interrupt::Cancelled)),
        // The sender is dropped unsent only when its task was dropped with the runtime, or panicked.
        Err(_) => Err(Interrupt::Cancelled),
    }
}

/// Decides between what a wrapper says and what its downstream came to.
fn settle(wrapped: Result<ToolResult, MiddlewareError>, downstream: Downstream) -> Outcome {
    match (wrapped, downstream) {
        // Control conditions always win.
        (_, Downstream::Delivered(Err(interrupt)) | Downstream::Outlived(Err(interrupt)))
        | (Err(MiddlewareError::Interrupted(interrupt)), _) => Err(interrupt),
        (Ok(result), Downstream::NotStarted | Downstream::Delivered(Ok(_))) => Ok(result),
        (Ok(_), Downstream::Outlived(Ok(kept))) => Ok(kept),
        (Err(MiddlewareError::Failed(message)), Downstream::NotStarted) => {
            Ok(Failure::new(MIDDLEWARE_ERROR, message).into())
        }
        (
            Err(MiddlewareError::Failed(message)),
            Downstream::Delivered(Ok(kept)) | Downstream::Outlived(Ok(kept)),
        ) => {
            tracing::warn!(
                error = message,
                "a middleware failed after the body had a result; the result is kept"
            );
            Ok(kept)
        }
    }
}
