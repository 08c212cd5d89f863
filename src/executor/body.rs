//! The innermost part of the chain: the tool's own code, kept from harming anything else.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio_util::task::TaskTracker;

use super::INTERNAL_ERROR;
use super::breaker::Breaker;
use super::call::Permitted;
use crate::middleware::{Innermost, Outcome};
use crate::tool::result::TOOL_TIMEOUT;
use crate::tool::{CallContext, Failure, Interrupt, TimeoutOwner, Tool, ToolResult};

/// How long a cancelled body may take to come to an end by itself.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// A body about to run once.
pub(super) struct Body {
    call: Arc<Permitted>,
    cx: CallContext,
    breaker: Option<Arc<Mutex<Breaker>>>,
    tasks: TaskTracker,
    seen: Seen,
}

/// Whether a body ran, and whether it failed; filled in when it ends.
#[derive(Clone, Default)]
pub(super) struct Seen(Arc<OnceLock<bool>>);

impl Body {
    pub(super) fn new(
        call: Arc<Permitted>,
        cx: CallContext,
        breaker: Option<Arc<Mutex<Breaker>>>,
        tasks: TaskTracker,
    ) -> Self {
        Self { call, cx, breaker, tasks, seen: Seen::default() }
    }

    pub(super) fn seen(&self) -> Seen {
        self.seen.clone()
    }

    /// Runs the tool on a task of its own, so that a panic or an endless loop stays there.
    async fn guarded(&self) -> Outcome {
        let tool = self.call.checked().tool();
        let cancelled = self.cx.cancelled.child_token();
        let cx = CallContext { cancelled: cancelled.clone(), ..self.cx.clone() };
        let call = Arc::clone(&self.call);
        let mut task = self
            .tasks
            .spawn(async move { call.checked().tool().run(call.checked().valid(), &cx).await });
        let limit = match self.call.checked().valid().traits.timeout_owner {
            TimeoutOwner::Runtime => self.cx.time_limit,
            TimeoutOwner::Tool => None,
        };
        tokio::select! {
            ended = &mut task => ended.unwrap_or_else(|_| Ok(panicked(tool).into())),
            () = expired(limit) => {
                cancelled.cancel();
                task.abort();
                let seconds = limit.unwrap_or_default().as_secs_f64();
                Ok(Failure::new(TOOL_TIMEOUT, format!("the tool took longer than {seconds} s")).retryable().into())
            }
            () = cancelled.cancelled() => {
                // A body that is changing something gets the time to leave it whole.
                if let Ok(Ok(Err(interrupt))) = tokio::time::timeout(CANCEL_GRACE, &mut task).await {
                    return Err(interrupt);
                }
                task.abort();
                Err(Interrupt::Cancelled)
            }
        }
    }

    fn tell_breaker(&self, result: &ToolResult) {
        let Some(breaker) = &self.breaker else {
            return;
        };
        let tool = self.call.checked().tool().definition().name.as_str();
        let failure = result.error.as_ref().map(|failure| &failure.code);
        breaker.lock().unwrap_or_else(PoisonError::into_inner).after_result(
            tool,
            failure,
            Instant::now(),
        );
    }
}

#[async_trait]
impl Innermost for Body {
    async fn run(&self) -> Outcome {
        if self.cx.cancelled.is_cancelled() {
            return Err(Interrupt::Cancelled);
        }
        let result = self.guarded().await?;
        self.tell_breaker(&result);
        // Set by the only run there is.
        _ = self.seen.0.set(result.is_error());
        Ok(result)
    }
}

impl Seen {
    /// Returns whether the body failed; nothing if it did not run to an end.
    pub(super) fn failed(&self) -> Option<bool> {
        self.0.get().copied()
    }
}

/// Makes the failure of a tool that panicked; what it said is in the log only.
pub(super) fn panicked(tool: &Arc<dyn Tool>) -> Failure {
    let name = tool.definition().name.as_str();
    tracing::error!(tool.name = name, "a tool panicked");
    Failure::new(
        INTERNAL_ERROR,
        format!("the tool {name} has a bug and did not finish; the log has the details"),
    )
}

async fn expired(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}
