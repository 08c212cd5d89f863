//! The user's hooks: they may veto a call before it runs and comment on it afterwards.
//!
//! A hook before a call fails closed: one that crashes, times out or answers nonsense stops the
//! call. A hook after a call never changes its outcome; its failures are logged.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::task::TaskTracker;

use crate::tool::{Call, ErrorCode, Failure, Interrupt, ToolResult};

/// A hook said no.
pub const HOOK_REJECTED: ErrorCode = ErrorCode::new("HOOK_REJECTED");
/// A hook failed, which stops the call.
pub const HOOK_ERROR: ErrorCode = ErrorCode::new("HOOK_ERROR");

/// How long a hook may take unless said otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Something that looks at calls before or after they run.
///
/// ```
/// use iris_mcp::hook::{Hook, HookError, Verdict};
/// use iris_mcp::tool::Call;
///
/// #[derive(Debug)]
/// struct Freeze;
///
/// #[async_trait::async_trait]
/// impl Hook for Freeze {
///     async fn before(&self, _call: &Call) -> Result<Verdict, HookError> {
///         Ok(Verdict::Deny { reason: "no writes on Friday".to_owned() })
///     }
/// }
/// ```
#[async_trait]
pub trait Hook: Send + Sync + std::fmt::Debug {
    /// Decides whether a permitted call may run.
    async fn before(&self, _call: &Call) -> Result<Verdict, HookError> {
        Ok(Verdict::Continue)
    }

    /// Looks at a call that ran; what it returns is added to what the model reads.
    async fn after(&self, _finished: &Finished) -> Result<Option<String>, HookError> {
        Ok(None)
    }
}

/// What a hook says before a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing against it.
    Continue,
    /// It must not run.
    Deny {
        /// Why; must not be blank.
        reason: String,
    },
}

/// A call that ran, with its result.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The call.
    pub call: Call,
    /// The result as the wrappers left it.
    pub result: ToolResult,
    /// Whether the body itself failed, whatever the wrappers made of it.
    pub body_failed: bool,
}

/// Why a hook has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// It failed.
    #[error("{0}")]
    Failed(String),
    /// A control condition, which is no failure of the hook.
    #[error(transparent)]
    Interrupted(#[from] Interrupt),
}

/// The moment a hook is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// `tool.before`.
    Before,
    /// `tool.after`.
    After,
}

/// A hook and when it applies.
#[derive(Clone, Debug)]
pub struct Registration {
    /// The moment.
    pub event: Event,
    /// Its name, for messages.
    pub name: String,
    /// The names that it is for, canonical or as used in calls; none given means all.
    pub tools: Option<BTreeSet<String>>,
    /// How long it may take.
    pub timeout: Duration,
    /// The hook.
    pub hook: Arc<dyn Hook>,
}

/// All hooks in order.
#[derive(Clone, Debug, Default)]
pub struct Hooks {
    registrations: Vec<Registration>,
    tasks: TaskTracker,
}

impl Hooks {
    /// Makes the list; the order is kept.
    pub fn new(registrations: Vec<Registration>, tasks: TaskTracker) -> Self {
        Self { registrations, tasks }
    }

    /// Returns whether no hook is for this moment.
    pub fn is_empty(&self, event: Event) -> bool {
        !self.registrations.iter().any(|registration| registration.event == event)
    }

    /// Asks the hooks before a call, one after the other; the first that says no ends it.
    ///
    /// `Ok(Some(_))` is the refusal.
    pub async fn before(&self, call: &Call) -> Result<Option<Failure>, Interrupt> {
        for registration in self.matching(Event::Before, call) {
            let hook = Arc::clone(&registration.hook);
            let copy = call.clone();
            let verdict = self.limited(registration, async move { hook.before(&copy).await }).await;
            let problem = match verdict {
                Ok(Verdict::Continue) => continue,
                Ok(Verdict::Deny { reason }) if !reason.trim().is_empty() => {
                    return Ok(Some(Failure::new(HOOK_REJECTED, reason)));
                }
                Ok(Verdict::Deny { .. }) => "it refused without a reason".to_owned(),
                Err(HookError::Interrupted(interrupt)) => return Err(interrupt),
                Err(HookError::Failed(message)) => message,
            };
            let message = format!("the hook {} failed: {problem}", registration.name);
            return Ok(Some(Failure::new(HOOK_ERROR, message)));
        }
        Ok(None)
    }

    /// Shows a finished call to the hooks and returns what they have to say, in order.
    pub async fn after(&self, finished: &Finished) -> Result<Vec<String>, Interrupt> {
        let mut feedback = Vec::new();
        for registration in self.matching(Event::After, &finished.call) {
            let hook = Arc::clone(&registration.hook);
            let copy = finished.clone();
            let answer = self.limited(registration, async move { hook.after(&copy).await }).await;
            match answer {
                Ok(None) => {}
                Ok(Some(text)) if !text.trim().is_empty() => feedback.push(text),
                Ok(Some(_)) => {
                    tracing::warn!(hook = registration.name, "a hook gave blank feedback");
                }
                Err(HookError::Interrupted(interrupt)) => return Err(interrupt),
                Err(HookError::Failed(error)) => {
                    tracing::warn!(hook = registration.name, error, "a hook after a call failed");
                }
            }
        }
        Ok(feedback)
    }

    /// Finds the hooks for a call, by the name that was called and by the canonical one: whichever
    /// spelling a client chooses, it gets past none.
    fn matching<'a>(
        &'a self,
        event: Event,
        call: &'a Call,
    ) -> impl Iterator<Item = &'a Registration> {
        self.registrations.iter().filter(move |registration| {
            let is_named = |tools: &BTreeSet<String>| {
                [&call.tool_name, &call.canonical].iter().any(|name| tools.contains(*name))
            };
            registration.event == event && registration.tools.as_ref().is_none_or(is_named)
        })
    }

    /// Runs a hook on a task of its own, so that neither its panic nor its slowness is ours.
    async fn limited<T: Send + 'static>(
        &self,
        registration: &Registration,
        answer: impl Future<Output = Result<T, HookError>> + Send + 'static,
    ) -> Result<T, HookError> {
        let task = self.tasks.spawn(answer);
        let abort = task.abort_handle();
        match tokio::time::timeout(registration.timeout, task).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => Err(HookError::Failed(format!("it panicked: {error}"))),
            Err(_) => {
                abort.abort();
                let seconds = registration.timeout.as_secs_f64();
                Err(HookError::Failed(format!("it took longer than {seconds} s")))
            }
        }
    }
}
