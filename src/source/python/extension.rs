//! Hooks and middleware that factories in Python make, as ours.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::host::Host;
use super::wire::{Ask, Called, Said};
use super::worker::Answer;
use crate::hook::event::{Clock, Dump, Told};
use crate::hook::{Finished, Hook, HookError, RunFinished, RunStarted, Verdict};
use crate::middleware::{Middleware, MiddlewareError, Next};
use crate::tool::{Block, Call, Failure, ToolResult};

/// The hook of this number in the agent file.
#[derive(Debug)]
pub(super) struct PythonHook {
    pub(super) host: Arc<Host>,
    pub(super) number: usize,
    pub(super) clock: Clock,
}

/// The middleware of this number in the agent file.
#[derive(Debug)]
pub(super) struct PythonMiddleware {
    pub(super) host: Arc<Host>,
    pub(super) number: usize,
}

// === impl PythonHook ===

#[async_trait]
impl Hook for PythonHook {
    async fn ready(&self) {
        self.host.first_settled().await;
    }

    async fn before(&self, call: &Call) -> Result<Verdict, HookError> {
        let reason = self.said(Told::before(call, (self.clock)()), "deny_reason").await?;
        Ok(reason.map_or(Verdict::Continue, |reason| Verdict::Deny { reason }))
    }

    async fn after(&self, finished: &Finished) -> Result<Option<String>, HookError> {
        self.said(Told::after(finished, (self.clock)()), "feedback").await
    }

    async fn run_started(&self, started: &RunStarted) -> Result<(), HookError> {
        self.said(Told::started(started, (self.clock)()), "").await.map(drop)
    }

    async fn run_finished(&self, finished: &RunFinished) -> Result<(), HookError> {
        self.said(Told::finished(finished, (self.clock)()), "").await.map(drop)
    }
}

impl PythonHook {
    /// Tells it of an event and returns what it says under a key.
    async fn said(&self, told: Told<'_>, key: &str) -> Result<Option<String>, HookError> {
        // It may have waited behind what had to be ended.
        let answer = self.host.ask_again(|| Ask::Hook { hook: self.number, event: &told }).await;
        let answer = answer.map_err(|failure| HookError::Failed(failure.message))?;
        match said(answer).map_err(HookError::Failed)?.verdict {
            Some(mut verdict) => match verdict.remove(key) {
                Some(Value::String(text)) => Ok(Some(text)),
                _ => Ok(None),
            },
            None => Err(HookError::Failed(UNKNOWN.to_owned())),
        }
    }
}

// === impl PythonMiddleware ===

#[async_trait]
impl Middleware for PythonMiddleware {
    async fn wrap(&self, call: &Call, next: Next) -> Result<ToolResult, MiddlewareError> {
        let wrapped = self.around(call, next).await;
        if let Err(MiddlewareError::Failed(error)) = &wrapped {
            let factory = self.host.config().middleware.get(self.number);
            let middleware = factory.map_or("", |factory| factory.factory.as_str());
            tracing::warn!(middleware, error, "a middleware failed");
        }
        wrapped
    }
}

impl PythonMiddleware {
    async fn around(&self, call: &Call, next: Next) -> Result<ToolResult, MiddlewareError> {
        let start = || async {
            let ask = Ask::Wrap { middleware: self.number, call: Called::of(call) };
            let asked = self.host.begin(ask).await;
            asked.map_err(|failure| MiddlewareError::Failed(failure.message))
        };
        let mut asked = start().await?;
        let mut first = asked.next().await;
        if let Err(Answer::Lost { begun: false }) = first {
            asked = start().await?;
            first = asked.next().await;
        }
        if let Err(answer) = first {
            return made(said(answer).map_err(MiddlewareError::Failed)?);
        }
        let rest = next.run();
        tokio::pin!(rest);
        tokio::select! {
            came_to = &mut rest => {
                let came_to = came_to?;
                asked.resume(resumed(call, &came_to)).await;
                let said = said(asked.answer().await).map_err(MiddlewareError::Failed)?;
                if said.kept { Ok(noted(came_to, said)) } else { made(said) }
            }
            // It returns without having seen what the rest comes to, which counts all the same.
            answer = asked.answer() => {
                said(answer).map_err(MiddlewareError::Failed)?;
                Ok(rest.await?)
            }
        }
    }
}

/// Puts what a middleware noted beside a result that stands.
fn noted(mut result: ToolResult, said: Said) -> ToolResult {
    result.metadata = said.metadata.unwrap_or(result.metadata);
    result.stats = said.stats.unwrap_or(result.stats);
    result
}

/// Tells a middleware what the rest of its chain came to.
fn resumed(call: &Call, result: &ToolResult) -> Ask<'static> {
    let mut told = serde_json::to_value(Dump::of(call, result)).unwrap_or_default();
    let blocks = told["content"].as_array_mut().into_iter().flatten();
    for (told, block) in blocks.zip(&result.content) {
        if let Block::Image(image) = block {
            // It may become part of a new result.
            told["data"] = image.data.as_ref().into();
        }
    }
    Ask::Resume { result: told, raised: was_raised(result) }
}

/// Returns whether a result is what Iris has as an exception, which middleware can catch.
fn was_raised(result: &ToolResult) -> bool {
    let ToolResult { content, error, data, artifact, native, .. } = result;
    let is_bare = content.is_empty() && data.is_empty() && artifact.is_none() && native.is_none();
    error.is_some() && is_bare
}

fn made(said: Said) -> Result<ToolResult, MiddlewareError> {
    let unknown = || MiddlewareError::Failed(UNKNOWN.to_owned());
    said.result.map(|result| (*result).into()).ok_or_else(unknown)
}

/// Takes an answer apart; what it failed of is the error.
fn said(answer: Answer) -> Result<Said, String> {
    match answer {
        Answer::Said(mut said) => match said.failure.take() {
            Some(failed) => Err(Failure::from(*failed).message),
            None => Ok(*said),
        },
        Answer::Lost { .. } => Err("the Python interpreter ended in the middle of it".to_owned()),
    }
}

const UNKNOWN: &str = "the Python interpreter gave an answer that nobody knows";
