//! A bench for calls: tools, hooks and wrappers that do as told and write down that they did.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use super::super::{Config, Executor, Requested, breaker};
use crate::activity::{self, Activity};
use crate::artifact::{self, ArtifactStore, Quota};
use crate::hook::{Event, Finished, Hook, HookError, Hooks, Registration, Verdict};
use crate::middleware::{Middleware, MiddlewareError, Next};
use crate::permission::{self, Approval, Approver, Grants, NoGrants, Policy, Request};
use crate::tool::result::VALIDATION_ERROR;
use crate::tool::{
    Arguments, AutoAllow, Call, CallContext, CallId, CallTraits, Capabilities, ErrorCode, Failure,
    InputSchema, Interrupt, Native, Retention, Route, SessionId, Tool, ToolDefinition, ToolName,
    ToolResult, Valid, fixture,
};
use crate::workspace::Workspace;

/// What happened, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, step: &str) {
        self.0.lock().unwrap().push(step.to_owned());
    }

    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

pub(super) fn cx() -> CallContext {
    fixture::context()
}

pub(super) fn call() -> Call {
    Call {
        id: CallId::new("call-1"),
        tool_name: "t".into(),
        canonical: "t".into(),
        told_as: "t".into(),
        arguments: Arguments::new(),
        agent_id: String::new(),
        session: SessionId::new("session-1"),
        run_id: None,
        activation_id: None,
        workspace: Arc::new("/ws".into()),
    }
}

/// A tool that does as told.
#[derive(Clone, Debug)]
pub(super) struct Fixture {
    definition: ToolDefinition,
    log: Log,
    route: Route,
    auto: Option<AutoAllow>,
    traits: Option<CallTraits>,
    refusal: Option<String>,
    check_panics: bool,
    body: Doing,
    answer: ToolResult,
    meeting: Option<(Arc<AtomicUsize>, usize)>,
}

#[derive(Clone, Copy, Debug)]
enum Doing {
    Answer,
    Panic,
    Lose,
    Sleep(Duration),
}

pub(super) fn tool(name: &str, log: &Log) -> Fixture {
    let name = ToolName::parse(name).unwrap();
    let mut definition = ToolDefinition::new(name, "does as told", InputSchema::object()).unwrap();
    definition.retention = Retention::Observation;
    Fixture {
        definition,
        log: log.clone(),
        route: Route::Ordinary,
        auto: None,
        traits: None,
        refusal: None,
        check_panics: false,
        body: Doing::Answer,
        answer: ToolResult::text("done"),
        meeting: None,
    }
}

impl Fixture {
    pub(super) fn with(mut self, capabilities: impl Into<Capabilities>) -> Self {
        self.definition.capabilities = capabilities.into();
        self
    }

    pub(super) fn human(self) -> Self {
        Self { route: Route::Human, ..self }
    }

    pub(super) fn searching(self) -> Self {
        Self { auto: Some(AutoAllow::tool_search()), ..self }
    }

    pub(super) fn traits(self, traits: CallTraits) -> Self {
        Self { traits: Some(traits), ..self }
    }

    pub(super) fn refusing(self) -> Self {
        self.refusing_with("no")
    }

    pub(super) fn refusing_with(self, message: &str) -> Self {
        Self { refusal: Some(message.to_owned()), ..self }
    }

    pub(super) fn limited_to(mut self, max_result_chars: usize) -> Self {
        self.definition.max_result_chars = max_result_chars;
        self
    }

    pub(super) fn failing(mut self) -> Self {
        self.answer.error = Some(Failure::new(ErrorCode::new("E1"), "failed"));
        self
    }

    pub(super) fn answering(self, text: &str) -> Self {
        Self { answer: ToolResult::text(text), ..self }
    }

    /// Answers with what an upstream sent, and lists itself with these fields.
    pub(super) fn relaying(mut self, text: &str, native: Value, listed: Value) -> Self {
        self.definition.native = Some(Arc::new(listed.as_object().unwrap().clone()));
        let native = Some(Arc::new(Native::parse(native.to_string()).unwrap()));
        self.answer = ToolResult { native, ..ToolResult::text(text) };
        self
    }

    pub(super) fn claiming(mut self, metadata: Value) -> Self {
        self.answer.metadata = metadata.as_object().unwrap().clone();
        self
    }

    pub(super) fn with_feedback(mut self, text: &str) -> Self {
        self.answer.hook_feedback.push(text.to_owned());
        self
    }

    pub(super) fn panicking(self) -> Self {
        Self { body: Doing::Panic, ..self }
    }

    pub(super) fn panicking_early(self) -> Self {
        Self { check_panics: true, ..self }
    }

    pub(super) fn unknown(self) -> Self {
        Self { body: Doing::Lose, ..self }
    }

    pub(super) fn sleeping(self, time: Duration) -> Self {
        Self { body: Doing::Sleep(time), ..self }
    }

    /// Ends only when `count` bodies have been here.
    pub(super) fn waiting_for(self, meeting: &Arc<AtomicUsize>, count: usize) -> Self {
        Self { meeting: Some((Arc::clone(meeting), count)), ..self }
    }
}

#[async_trait]
impl Tool for Fixture {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn route(&self) -> Route {
        self.route
    }

    fn auto_allow(&self) -> Option<AutoAllow> {
        self.auto
    }

    async fn validate(&self, raw: Arguments, _cx: &CallContext) -> Result<Valid, Failure> {
        self.log.add("validate");
        assert!(!self.check_panics, "told to");
        match &self.refusal {
            Some(message) => Err(Failure::new(VALIDATION_ERROR, message.clone())),
            None => Ok(Valid::new(raw, self.traits.unwrap_or_else(|| self.definition.traits()))),
        }
    }

    async fn run(&self, _call: &Valid, _cx: &CallContext) -> Result<ToolResult, Interrupt> {
        self.log.add("body");
        if let Some((meeting, count)) = &self.meeting {
            meeting.fetch_add(1, Ordering::SeqCst);
            while meeting.load(Ordering::SeqCst) < *count {
                tokio::task::yield_now().await;
            }
        }
        match self.body {
            Doing::Answer => Ok(self.answer.clone()),
            Doing::Panic => panic!("told to"),
            Doing::Lose => {
                Err(Interrupt::OutcomeUnknown { target: "x".into(), reason: "told to".into() })
            }
            Doing::Sleep(time) => {
                tokio::time::sleep(time).await;
                Ok(self.answer.clone())
            }
        }
    }
}

/// A hook that does as told.
#[expect(clippy::struct_excessive_bools, reason = "each is one thing it can be told")]
#[derive(Clone, Debug, Default)]
pub(super) struct Note {
    pub(super) log: Option<Log>,
    pub(super) name: String,
    pub(super) verdict: Option<&'static str>,
    pub(super) feedback: Option<&'static str>,
    pub(super) status: bool,
    pub(super) fails: bool,
    pub(super) hangs: bool,
    pub(super) panics: bool,
}

impl Note {
    async fn act(&self) -> Result<(), HookError> {
        if let Some(log) = &self.log {
            log.add(&self.name);
        }
        assert!(!self.panics, "told to");
        if self.hangs {
            std::future::pending::<()>().await;
        }
        if self.fails { Err(HookError::Failed("broken".into())) } else { Ok(()) }
    }
}

#[async_trait]
impl Hook for Note {
    async fn before(&self, _call: &Call) -> Result<Verdict, HookError> {
        self.act().await?;
        Ok(match self.verdict {
            Some(reason) => Verdict::Deny { reason: reason.to_owned() },
            None => Verdict::Continue,
        })
    }

    async fn after(&self, finished: &Finished) -> Result<Option<String>, HookError> {
        self.act().await?;
        if self.status {
            return Ok(Some(format!("body failed: {}", finished.body_failed)));
        }
        Ok(self.feedback.map(str::to_owned))
    }
}

/// What a wrapper is told to do.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wrap {
    Pass,
    Short(&'static str),
    Replace(&'static str),
    FailFirst,
    FailLate,
    /// Start the rest and return before it ends.
    Outrun(&'static str),
    /// Keep the rest without running it.
    Stash,
    Panic,
}

#[derive(Debug)]
struct Wrapper {
    log: Log,
    name: String,
    wrap: Wrap,
}

#[async_trait]
impl Middleware for Wrapper {
    async fn wrap(&self, _call: &Call, next: Next) -> Result<ToolResult, MiddlewareError> {
        self.log.add(&format!("{}-pre", self.name));
        let result = match self.wrap {
            Wrap::Pass => next.run().await?,
            Wrap::Short(text) => ToolResult::text(text),
            Wrap::Replace(text) => {
                next.run().await?;
                ToolResult::text(text)
            }
            Wrap::FailFirst => return Err(MiddlewareError::Failed("broken".into())),
            Wrap::FailLate => {
                next.run().await?;
                return Err(MiddlewareError::Failed("broken".into()));
            }
            Wrap::Outrun(text) => {
                // Polled once and dropped: the rest has started and this wrapper is done.
                tokio::select! {
                    biased;
                    _ = next.run() => {}
                    () = std::future::ready(()) => {}
                }
                ToolResult::text(text)
            }
            Wrap::Stash => ToolResult::text("nothing"),
            Wrap::Panic => panic!("told to"),
        };
        self.log.add(&format!("{}-post", self.name));
        Ok(result)
    }
}

/// A wrapper that keeps the rest of the chain to run it too late.
#[derive(Debug, Default)]
pub(super) struct Stash(Mutex<Option<Next>>);

pub(super) fn stash() -> Arc<Stash> {
    Arc::new(Stash::default())
}

impl Stash {
    pub(super) async fn run_late(&self) -> Result<ToolResult, Interrupt> {
        let next = self.0.lock().unwrap().take().unwrap();
        next.run().await
    }
}

#[async_trait]
impl Middleware for Stash {
    async fn wrap(&self, _call: &Call, next: Next) -> Result<ToolResult, MiddlewareError> {
        *self.0.lock().unwrap() = Some(next);
        Ok(ToolResult::text("nothing"))
    }
}

/// An approver that answers as told.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    Yes,
    No,
    Nobody,
    Later,
    /// Not in this life.
    Never,
}

#[async_trait]
impl Approver for Answer {
    fn grants(&self) -> &dyn Grants {
        &NoGrants
    }

    async fn approve(&self, _request: &Request) -> Approval {
        match self {
            Self::Yes => Approval::Granted("tester"),
            Self::No => Approval::Rejected,
            Self::Nobody => Approval::Unavailable("nobody is there".into()),
            Self::Later => Approval::Later,
            Self::Never => std::future::pending().await,
        }
    }
}

/// Grants one call, by id.
#[derive(Clone, Copy, Debug)]
pub(super) struct Approvals(&'static str);

pub(super) fn approvals(call_id: &'static str) -> Approvals {
    Approvals(call_id)
}

impl Grants for Approvals {
    fn covers(&self, _request: &Request) -> bool {
        false
    }

    fn use_once(&self, request: &Request) -> bool {
        request.call_id.as_str() == self.0
    }
}

#[async_trait]
impl Approver for Approvals {
    fn grants(&self) -> &dyn Grants {
        self
    }

    async fn approve(&self, _request: &Request) -> Approval {
        Approval::Unavailable("nobody is there".into())
    }
}

/// Everything a call needs.
pub(super) struct Bench {
    log: Log,
    permissions: permission::Config,
    hooks: Vec<Registration>,
    middleware: Vec<Arc<dyn Middleware>>,
    breaker: Option<breaker::Config>,
    artifacts: Option<Arc<ArtifactStore>>,
    approver: Box<dyn Approver>,
    activity: Arc<Activity>,
    executor: std::sync::OnceLock<Executor>,
}

impl Bench {
    pub(super) fn new(log: &Log) -> Self {
        Self {
            log: log.clone(),
            permissions: permission::Config::default(),
            hooks: Vec::new(),
            middleware: Vec::new(),
            breaker: None,
            artifacts: None,
            approver: Box::new(Answer::Nobody),
            activity: Arc::default(),
            executor: std::sync::OnceLock::new(),
        }
    }

    pub(super) fn permissions(self, permissions: permission::Config) -> Self {
        Self { permissions, ..self }
    }

    /// Keeps long results below a folder, no more than so many bytes.
    pub(super) fn keeping(self, root: &Path, max_bytes: u64) -> Self {
        let quota = Quota { max_bytes, max_age: Duration::from_mins(1) };
        let config = artifact::Config { folder: None, fallback: None, quota };
        let workspace = Arc::new(Workspace::open(root).unwrap());
        Self { artifacts: Some(Arc::new(ArtifactStore::new(config, workspace))), ..self }
    }

    pub(super) fn approver(self, approver: impl Approver + 'static) -> Self {
        Self { approver: Box::new(approver), ..self }
    }

    /// Writes records to this file.
    pub(super) fn recording(self, file: &Path) -> Self {
        let config = activity::Config { file: Some(file.to_owned()) };
        Self { activity: Arc::new(Activity::open(&config).unwrap()), ..self }
    }

    pub(super) fn breaker(self, failure_threshold: u32) -> Self {
        Self {
            breaker: Some(breaker::Config { failure_threshold, ..breaker::Config::default() }),
            ..self
        }
    }

    pub(super) fn hook(mut self, name: &str, event: Event, note: Note) -> Self {
        let note = Note { log: Some(self.log.clone()), name: name.to_owned(), ..note };
        self.hooks.push(Registration {
            event,
            name: name.to_owned(),
            tools: None,
            timeout: Duration::from_millis(50),
            hook: Arc::new(note),
        });
        self
    }

    /// Lets the last hook be for calls by this name alone.
    pub(super) fn only(mut self, name: &str) -> Self {
        if let Some(hook) = self.hooks.last_mut() {
            hook.tools = Some([name.to_owned()].into());
        }
        self
    }

    pub(super) fn wrap(mut self, name: &str, wrap: Wrap) -> Self {
        self.middleware.push(Arc::new(Wrapper {
            log: self.log.clone(),
            name: name.to_owned(),
            wrap,
        }));
        self
    }

    pub(super) fn wrap_with(mut self, middleware: Arc<dyn Middleware>) -> Self {
        self.middleware.push(middleware);
        self
    }

    pub(super) fn executor(&self) -> &Executor {
        self.executor.get_or_init(|| {
            let tasks = TaskTracker::new();
            Executor::new(Config {
                policy: Policy::new(self.permissions.clone()),
                hooks: Hooks::new(self.hooks.clone(), tasks.clone()),
                middleware: self.middleware.clone(),
                breaker: self.breaker,
                artifacts: self.artifacts.clone(),
                activity: Arc::clone(&self.activity),
                tasks,
            })
        })
    }

    pub(super) fn requested(tool: Fixture) -> Requested {
        let name = tool.definition.name.to_string();
        Requested { tool: Arc::new(tool), wire: name.clone(), name, arguments: Arguments::new() }
    }

    pub(super) async fn call(&self, tool: Fixture) -> Result<ToolResult, Interrupt> {
        self.call_in(tool, cx()).await
    }

    pub(super) async fn call_as(&self, name: &str, tool: Fixture) -> Result<ToolResult, Interrupt> {
        let asked = Requested { name: name.to_owned(), ..Self::requested(tool) };
        self.executor().call(asked, &cx(), &*self.approver).await
    }

    pub(super) async fn call_in(
        &self,
        tool: Fixture,
        cx: CallContext,
    ) -> Result<ToolResult, Interrupt> {
        self.executor().call(Self::requested(tool), &cx, &*self.approver).await
    }
}
