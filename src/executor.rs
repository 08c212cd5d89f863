//! The one way a call takes: every stage, in order, on one screen.
//!
//! [`Executor::prepare`] checks and authorizes without any effect; only what it hands out as
//! [`Permitted`] can be given to [`Executor::execute`]. The order of the stages is the security
//! argument of this program: arguments are checked before anybody sees them, permission comes
//! before hooks, hooks before the body, and whatever the body came to is finished the same way.

pub mod batch;
pub mod body;
pub mod breaker;
pub mod call;
pub mod finish;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures_util::{FutureExt as _, StreamExt as _, stream};
use tokio_util::task::TaskTracker;

use self::batch::Shape;
use self::body::Body;
use self::breaker::Breaker;
pub use self::call::{Ask, Permitted, Prepared, Requested};
use self::call::{Checked, Granted, Names};
use crate::activity::{Activity, CANCELLED, INPUT_REQUIRED, Started};
use crate::artifact::ArtifactStore;
use crate::hook::{Event, Finished, Hooks};
use crate::middleware::{Chain, Middleware};
use crate::permission::fingerprint::{Parts, fingerprint};
use crate::permission::{
    Approval, Approver, Decision, Effect, PERMISSION_ERROR, Policy, Request, USER_REJECTED,
};
use crate::tool::{Call, CallContext, ErrorCode, Failure, Interrupt, Route, ToolResult};

/// A question for a person, asked where no person is.
pub const HITL_REQUIRED: ErrorCode = ErrorCode::new("HITL_REQUIRED");
/// The tool failed too often and is left alone for a while.
pub const CIRCUIT_OPEN: ErrorCode = ErrorCode::new("CIRCUIT_OPEN");
/// The body has a bug.
pub const INTERNAL_ERROR: ErrorCode = ErrorCode::new("INTERNAL_ERROR");

/// How many calls of one batch run at once.
pub const WINDOW: usize = 8;

/// Runs calls; one for the whole program.
#[derive(Debug)]
pub struct Executor {
    policy: Policy,
    hooks: Hooks,
    middleware: Arc<[Arc<dyn Middleware>]>,
    /// None unless the operator wants one.
    breaker: Option<Arc<Mutex<Breaker>>>,
    activity: Arc<Activity>,
    /// None where results stay as long as they are.
    artifacts: Option<Arc<ArtifactStore>>,
    /// Owns every body that was started.
    tasks: TaskTracker,
}

/// What an executor is made of.
#[derive(Debug, Default)]
pub struct Config {
    /// Who may do what.
    pub policy: Policy,
    /// The user's hooks.
    pub hooks: Hooks,
    /// The wrappers, outermost first.
    pub middleware: Vec<Arc<dyn Middleware>>,
    /// When to leave a failing tool alone; none means never.
    pub breaker: Option<breaker::Config>,
    /// Where records go.
    pub activity: Arc<Activity>,
    /// Where long results are kept; without it they stay as long as they are.
    pub artifacts: Option<Arc<ArtifactStore>>,
    /// Owns every body that is started.
    pub tasks: TaskTracker,
}

impl Executor {
    /// Puts an executor together.
    pub fn new(config: Config) -> Self {
        let Config { policy, hooks, middleware, breaker, activity, artifacts, tasks } = config;
        let breaker = breaker.map(|config| Arc::new(Mutex::new(Breaker::new(config))));
        Self { policy, hooks, middleware: middleware.into(), breaker, activity, artifacts, tasks }
    }

    /// Returns where records of calls go.
    pub fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// Prepares a call and runs it.
    ///
    /// An approval that can only come later is a refusal here; see [`prepare`](Self::prepare).
    pub async fn call(
        &self,
        asked: Requested,
        cx: &CallContext,
        approver: &dyn Approver,
    ) -> Result<ToolResult, Interrupt> {
        match self.prepare(asked, cx, approver).await? {
            Prepared::Ready(permitted) => self.execute(permitted, cx).await,
            Prepared::Refused(result) => Ok(result),
            Prepared::Ask(ask) => {
                Ok(self.give_up(&ask, cx, "nobody can be asked in the middle of this call"))
            }
        }
    }

    /// Runs the calls of a batch, each with its own context; results are in the order of calls.
    ///
    /// All calls are prepared first. Adjacent calls that read and may overlap run together, at
    /// most [`WINDOW`] at once; any other runs alone.
    pub async fn execute_many(
        &self,
        calls: Vec<(Requested, CallContext)>,
        approver: &dyn Approver,
    ) -> Vec<Result<ToolResult, Interrupt>> {
        let mut prepared = Vec::with_capacity(calls.len());
        for (asked, cx) in calls {
            let outcome = self.prepare(asked, &cx, approver).await;
            prepared.push(Some((outcome, cx)));
        }
        let shapes: Vec<Shape> =
            prepared.iter().flatten().map(|(outcome, _)| shape(outcome)).collect();
        let mut results = Vec::with_capacity(prepared.len());
        for group in batch::plan(&shapes) {
            let group: Vec<_> =
                group.into_iter().filter_map(|index| prepared[index].take()).collect();
            let running = stream::iter(group).map(|(outcome, cx)| async move {
                match outcome? {
                    Prepared::Ready(permitted) => self.execute(permitted, &cx).await,
                    Prepared::Refused(result) => Ok(result),
                    Prepared::Ask(ask) => {
                        Ok(self.give_up(&ask, &cx, "nobody can be asked in the middle of a batch"))
                    }
                }
            });
            results.extend(running.buffered(WINDOW).collect::<Vec<_>>().await);
        }
        results
    }

    /// Checks and authorizes a call; nothing has run when it returns.
    pub async fn prepare(
        &self,
        asked: Requested,
        cx: &CallContext,
        approver: &dyn Approver,
    ) -> Result<Prepared, Interrupt> {
        let started = self.activity.start(asked.tool.definition().name.as_str(), cx);
        let checked = match self.validate(asked, started, cx).await? {
            Ok(checked) => checked,
            Err(refused) => return Ok(Prepared::Refused(refused)),
        };
        self.authorize(checked, cx, approver).await
    }

    /// Runs a permitted call through every remaining stage.
    pub async fn execute(
        &self,
        call: Permitted,
        cx: &CallContext,
    ) -> Result<ToolResult, Interrupt> {
        let call = Arc::new(call);
        // The body has a share in the call, and may live longer than whoever waits here.
        let _watch = call.started().watch();
        let result = self.stages(&call, cx).await;
        let outcome = match &result {
            Ok(result) => result.error.as_ref().map_or("OK", |failure| failure.code.as_str()),
            Err(Interrupt::Cancelled) => CANCELLED,
            Err(Interrupt::OutcomeUnknown { .. }) => "TOOL_OUTCOME_UNKNOWN",
            Err(Interrupt::CleanupFailed { .. }) => "CLEANUP_FAILED",
        };
        call.started().end(outcome);
        result
    }

    async fn stages(
        &self,
        call: &Arc<Permitted>,
        cx: &CallContext,
    ) -> Result<ToolResult, Interrupt> {
        if let Err(refusal) = self.pass_breaker(call) {
            return Ok(finish::refused(refusal, call.checked(), cx));
        }
        not_cancelled(cx)?;
        let frozen = freeze(call.checked(), cx);
        let asked = tokio::select! {
            asked = self.hooks.before(&frozen) => asked?,
            () = cx.cancelled.cancelled() => return Err(Interrupt::Cancelled),
        };
        let result = match asked {
            Some(refusal) => refusal.into(),
            None => self.run(call, frozen, cx).await?,
        };
        let result = finish::finish(result, call.checked(), cx);
        Ok(match &self.artifacts {
            Some(artifacts) if !cx.client.keeps_results() => {
                finish::fit(result, call.checked(), cx, artifacts).await
            }
            _ => result,
        })
    }

    /// Runs the wrappers and the body, then shows what came out to the after-hooks.
    async fn run(
        &self,
        call: &Arc<Permitted>,
        frozen: Call,
        cx: &CallContext,
    ) -> Result<ToolResult, Interrupt> {
        let body =
            Body::new(Arc::clone(call), cx.clone(), self.breaker.clone(), self.tasks.clone());
        let seen = body.seen();
        let middleware = Arc::clone(&self.middleware);
        let (body, cancelled) = (Box::new(body), cx.cancelled.clone());
        let chain = Chain::new(middleware, frozen.clone(), body, self.tasks.clone(), cancelled);
        let mut result = chain.run().await?;
        // Only real after-hooks may speak here.
        result.hook_feedback.clear();
        let Some(body_failed) = seen.failed() else {
            return Ok(result);
        };
        if !self.hooks.is_empty(Event::After) && !cx.cancelled.is_cancelled() {
            let finished = Finished { call: frozen, result: result.clone(), body_failed };
            // What has been done is told all the same when nobody waits for comments any more.
            result.hook_feedback = tokio::select! {
                feedback = self.hooks.after(&finished) => feedback,
                () = cx.cancelled.cancelled() => Vec::new(),
            };
        }
        Ok(result)
    }

    // === the stages, in order ===

    async fn validate(
        &self,
        asked: Requested,
        started: Started,
        cx: &CallContext,
    ) -> Result<Result<Checked, ToolResult>, Interrupt> {
        let Requested { tool, name, wire, arguments } = asked;
        let validation = AssertUnwindSafe(tool.validate(arguments, cx)).catch_unwind();
        let valid = tokio::select! {
            valid = validation => valid,
            () = cx.cancelled.cancelled() => return Err(cancelled(&started)),
        };
        let refusal = match valid {
            Ok(Ok(valid)) => {
                return Ok(Ok(Checked::new(tool, Names { name, wire }, valid, started)));
            }
            Ok(Err(refusal)) => refusal,
            Err(_) => body::panicked(&tool),
        };
        started.end(refusal.code.as_str());
        Ok(Err(finish::truncated(refusal, &tool, &name, cx)))
    }

    async fn authorize(
        &self,
        mut checked: Checked,
        cx: &CallContext,
        approver: &dyn Approver,
    ) -> Result<Prepared, Interrupt> {
        let tool = Arc::clone(checked.tool());
        let known = (tool.definition(), checked.wire());
        let decision = self.policy.decide(known, checked.valid().traits, tool.auto_allow());
        checked.decide(&decision, None);
        let human = tool.route() == Route::Human;
        let refusal = match decision.effect {
            Effect::Allow if human => {
                Failure::new(HITL_REQUIRED, "a question for a person needs a runtime that asks it")
            }
            Effect::Allow => return Ok(Prepared::Ready(Permitted::new(checked, &decision, None))),
            Effect::RequireHuman if human => Failure::new(
                PERMISSION_ERROR,
                "a tool that asks a person cannot also need a person's approval",
            ),
            Effect::RequireHuman => return self.ask(checked, decision, cx, approver).await,
            Effect::Deny => refusal_of(&decision, &checked, decision.reason.to_string()),
        };
        Ok(Prepared::Refused(refuse(refusal, &checked, cx)))
    }

    async fn ask(
        &self,
        checked: Checked,
        decision: Decision,
        cx: &CallContext,
        approver: &dyn Approver,
    ) -> Result<Prepared, Interrupt> {
        let request = request_of(&checked, &decision, cx);
        let grants = approver.grants();
        if grants.use_once(&request) || grants.covers(&request) {
            return Ok(Prepared::Ready(Permitted::new(
                checked,
                &decision,
                Some(Granted("a grant")),
            )));
        }
        let approval = tokio::select! {
            approval = approver.approve(&request) => approval,
            () = cx.cancelled.cancelled() => return Err(cancelled(checked.started())),
        };
        let refusal = match approval {
            Approval::Granted(by) => {
                return Ok(Prepared::Ready(Permitted::new(checked, &decision, Some(Granted(by)))));
            }
            Approval::Later => return Ok(Prepared::Ask(Ask::new(checked, decision, request))),
            Approval::Rejected => Failure::new(USER_REJECTED, "the user rejected the call"),
            Approval::Unavailable(hint) => {
                let message = format!("{}: {hint}", decision.reason);
                refusal_of(&decision, &checked, message)
            }
        };
        Ok(Prepared::Refused(refuse(refusal, &checked, cx)))
    }

    /// Refuses a call whose approval was asked for and will not come.
    pub fn give_up(&self, ask: &Ask, cx: &CallContext, why: &str) -> ToolResult {
        let (checked, decision) = (ask.checked(), ask.decision());
        let refusal = refusal_of(decision, checked, format!("{}: {why}", decision.reason));
        refuse(refusal, checked, cx)
    }

    /// Ends a call that is to be made again with a person's answer, and says what to ask.
    pub fn put_off(&self, ask: &Ask) -> Request {
        ask.checked().started().end(INPUT_REQUIRED);
        ask.request().clone()
    }

    fn pass_breaker(&self, call: &Permitted) -> Result<(), Failure> {
        let Some(breaker) = &self.breaker else {
            return Ok(());
        };
        let tool = call.checked().tool().definition().name.as_str();
        let mut breaker = breaker.lock().unwrap_or_else(PoisonError::into_inner);
        breaker.before_call(tool, Instant::now()).map_err(|open| {
            Failure::new(
                CIRCUIT_OPEN,
                "the tool failed too often and is left alone for a while; try again later",
            )
            .retryable()
            .with_detail("tool_name", tool)
            .with_detail("code", CIRCUIT_OPEN.as_str())
            .with_detail("last_error_code", open.last.as_str())
        })
    }
}

fn shape(outcome: &Result<Prepared, Interrupt>) -> Shape {
    match outcome {
        Ok(Prepared::Ready(permitted)) => {
            let traits = permitted.checked().valid().traits;
            let runs = !permitted.was_granted();
            Shape { runs, read_only: traits.read_only, parallel: traits.parallel }
        }
        Ok(Prepared::Refused(_) | Prepared::Ask(_)) | Err(_) => {
            Shape { runs: false, read_only: false, parallel: false }
        }
    }
}

fn not_cancelled(cx: &CallContext) -> Result<(), Interrupt> {
    if cx.cancelled.is_cancelled() { Err(Interrupt::Cancelled) } else { Ok(()) }
}

fn cancelled(started: &Started) -> Interrupt {
    started.end(CANCELLED);
    Interrupt::Cancelled
}

fn refuse(refusal: Failure, checked: &Checked, cx: &CallContext) -> ToolResult {
    checked.started().end(refusal.code.as_str());
    finish::refused(refusal, checked, cx)
}

fn refusal_of(decision: &Decision, checked: &Checked, message: String) -> Failure {
    decision.refusal(checked.name(), &checked.valid().arguments, message)
}

fn request_of(checked: &Checked, decision: &Decision, cx: &CallContext) -> Request {
    let tool = checked.tool().definition().name.as_str();
    let arguments = &checked.valid().arguments;
    let fingerprint = fingerprint(Parts {
        arguments,
        run_id: cx.run_id.as_deref().unwrap_or_default(),
        session_id: cx.session.as_str(),
        tool_call_id: cx.call_id.as_str(),
        tool_name: tool,
        workspace_root: &cx.workspace,
    });
    Request {
        call_id: cx.call_id.clone(),
        tool: tool.to_owned(),
        handle: Arc::clone(checked.tool()),
        arguments: arguments.clone(),
        principal: cx.principal.clone(),
        session: cx.session.clone(),
        wire: checked.wire().to_owned(),
        rule: decision.rule,
        reason: decision.reason.to_string(),
        fingerprint,
    }
}

/// Makes the copy of a call that hooks and wrappers see.
fn freeze(checked: &Checked, cx: &CallContext) -> Call {
    let definition = checked.tool().definition();
    let is_alias = definition.aliases.iter().any(|alias| alias == checked.name());
    let canonical = definition.name.as_str();
    Call {
        id: cx.call_id.clone(),
        tool_name: checked.name().to_owned(),
        canonical: canonical.to_owned(),
        told_as: if is_alias { checked.name() } else { canonical }.to_owned(),
        arguments: checked.valid().arguments.clone(),
        agent_id: cx.agent_id.clone(),
        session: cx.session.clone(),
        run_id: cx.run_id.clone(),
        activation_id: cx.activation_id.clone(),
        workspace: Arc::clone(&cx.workspace),
    }
}

#[cfg(test)]
mod tests;
