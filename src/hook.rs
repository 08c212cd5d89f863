//! The user's hooks: they may veto a call before it runs and comment on it afterwards, and hear of
//! runs, which begin with the first call of a session and end with it.
//!
//! A hook before a call fails closed: one that crashes, times out or answers nonsense stops the
//! call. No other hook changes what happens; its failures are logged.

pub mod command;
pub mod event;
pub mod run;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::tool::{Call, ErrorCode, Failure, Interrupt, SessionId, ToolResult};

/// A hook said no.
pub const HOOK_REJECTED: ErrorCode = ErrorCode::new("HOOK_REJECTED");
/// A hook failed, which stops the call.
pub const HOOK_ERROR: ErrorCode = ErrorCode::new("HOOK_ERROR");

/// How long a hook may take unless said otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Something that looks at calls before or after they run, or hears of runs.
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

    /// Hears that a run begins; the first call of its session waits for this.
    async fn run_started(&self, _started: &RunStarted) -> Result<(), HookError> {
        Ok(())
    }

    /// Hears that a run has ended.
    async fn run_finished(&self, _finished: &RunFinished) -> Result<(), HookError> {
        Ok(())
    }

    /// Waits until it can be asked, which does not count in its time.
    async fn ready(&self) {}

    /// Says how long it may take beside its time: to be started, and to end in order what it started.
    fn spends_besides(&self) -> Duration {
        Duration::ZERO
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

/// A run: in a server, all that one session does.
#[derive(Clone, Debug)]
pub struct Run {
    /// The agent on whose behalf it is; empty without an agent file.
    pub agent_id: String,
    /// The session.
    pub session: SessionId,
    /// Its workspace.
    pub workspace: Arc<PathBuf>,
    /// When its first call came.
    pub started_at: SystemTime,
}

/// A run that begins.
#[derive(Clone, Debug)]
pub struct RunStarted {
    /// The run.
    pub run: Run,
    /// The activation that it begins with; in a server, the first call.
    pub activation_id: Option<String>,
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct RunFinished {
    /// The run.
    pub run: Run,
    /// Why.
    pub stop_reason: StopReason,
    /// When.
    pub finished_at: SystemTime,
}

/// Why a run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Its session has.
    Completed,
    /// We have.
    Cancelled,
}

impl Run {
    /// Returns its id.
    pub fn id(&self) -> &str {
        self.session.as_str()
    }
}

impl StopReason {
    /// Returns the word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
        }
    }
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
    /// `run.started`.
    RunStarted,
    /// `run.finished`.
    RunFinished,
    /// `tool.before`.
    Before,
    /// `tool.after`.
    After,
}

impl Event {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::RunStarted => "run.started",
            Self::RunFinished => "run.finished",
            Self::Before => "tool.before",
            Self::After => "tool.after",
        }
    }
}

/// A hook as an agent file declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    /// Its name, for messages.
    pub name: String,
    /// The moment.
    pub event: Event,
    /// The names that it is for; none given means all.
    pub tools: Option<BTreeSet<String>>,
    /// How long it may take.
    pub timeout: Duration,
    /// What is run.
    pub handler: Handler,
}

/// What a declared hook runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Handler {
    /// A command line.
    Command(String),
    /// What the next factory of Python's makes.
    Python,
}

impl Declared {
    /// Makes the registration of what was made of it.
    pub fn with(&self, hook: Arc<dyn Hook>) -> Registration {
        let Self { name, event, tools, timeout, .. } = self.clone();
        Registration { event, name, tools, timeout, hook }
    }
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
    registrations: Arc<[Registration]>,
    tasks: TaskTracker,
}

impl Hooks {
    /// Makes the list; the order is kept.
    pub fn new(registrations: Vec<Registration>, tasks: TaskTracker) -> Self {
        Self { registrations: registrations.into(), tasks }
    }

    /// Returns the tools that hooks are for, each with the name of its hook.
    pub fn filters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.registrations.iter().flat_map(|registration| {
            let tools = registration.tools.iter().flatten();
            tools.map(|tool| (registration.name.as_str(), tool.as_str()))
        })
    }

    /// Returns the hooks, in order: each one's name, and its event in brackets.
    pub fn told(&self) -> Vec<String> {
        let told = |one: &Registration| format!("{} ({})", one.name, one.event.name());
        self.registrations.iter().map(told).collect()
    }

    /// Returns whether no hook is for this moment.
    pub fn is_empty(&self, event: Event) -> bool {
        self.at(event).next().is_none()
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
            let hook = registration.name.as_str();
            tracing::warn!(
                hook,
                error = problem,
                "a hook before a call failed, and so did the call"
            );
            let message = format!("the hook {hook} failed: {problem}");
            return Ok(Some(Failure::new(HOOK_ERROR, message)));
        }
        Ok(None)
    }

    /// Shows a finished call to the hooks and returns what they have to say, in order.
    ///
    /// Whatever becomes of them, what the call came to stands.
    pub async fn after(&self, finished: &Finished) -> Vec<String> {
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
                Err(error) => {
                    // As a text in quotes: it may have lines.
                    let error = error.to_string();
                    tracing::warn!(hook = registration.name, error, "a hook after a call failed");
                }
            }
        }
        feedback
    }

    /// Tells the hooks that a run begins, one after the other.
    pub async fn run_started(&self, started: &RunStarted) {
        for registration in self.at(Event::RunStarted) {
            let (hook, copy) = (Arc::clone(&registration.hook), started.clone());
            let heard = async move { hook.run_started(&copy).await };
            noted(registration, self.limited(registration, heard).await);
        }
    }

    /// Tells the hooks that a run has ended, one after the other.
    pub async fn run_finished(&self, finished: &RunFinished) {
        for registration in self.at(Event::RunFinished) {
            let (hook, copy) = (Arc::clone(&registration.hook), finished.clone());
            let heard = async move { hook.run_finished(&copy).await };
            noted(registration, self.limited(registration, heard).await);
        }
    }

    fn at(&self, event: Event) -> impl Iterator<Item = &Registration> {
        self.registrations.iter().filter(move |registration| registration.event == event)
    }

    /// Finds the hooks for a call, by the name that was called and by the canonical one: whichever
    /// spelling a client chooses, it gets past none.
    fn matching<'a>(
        &'a self,
        event: Event,
        call: &'a Call,
    ) -> impl Iterator<Item = &'a Registration> {
        self.at(event).filter(move |registration| {
            let is_named = |tools: &BTreeSet<String>| {
                [&call.tool_name, &call.canonical].iter().any(|name| tools.contains(*name))
            };
            registration.tools.as_ref().is_none_or(is_named)
        })
    }

    /// Runs a hook on a task of its own, so that neither its panic nor its slowness is ours.
    ///
    /// When nobody waits for it any more, it is ended.
    async fn limited<T: Send + 'static>(
        &self,
        registration: &Registration,
        answer: impl Future<Output = Result<T, HookError>> + Send + 'static,
    ) -> Result<T, HookError> {
        registration.hook.ready().await;
        let task = AbortOnDropHandle::new(self.tasks.spawn(answer));
        let limit = registration.timeout.saturating_add(registration.hook.spends_besides());
        match tokio::time::timeout(limit, task).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                // What it panicked with may hold anything, and is for the operator.
                tracing::error!(hook = registration.name, %error, "a hook panicked");
                Err(HookError::Failed("it panicked; the log says how".to_owned()))
            }
            Err(_) => {
                let seconds = registration.timeout.as_secs_f64();
                Err(HookError::Failed(format!("it took longer than {seconds} s")))
            }
        }
    }
}

/// Logs the failure of a hook that nothing depends on.
fn noted(registration: &Registration, heard: Result<(), HookError>) {
    if let Err(error) = heard {
        let (hook, event) = (registration.name.as_str(), registration.event.name());
        let error = error.to_string();
        tracing::warn!(hook, event, error, "a hook failed");
    }
}
