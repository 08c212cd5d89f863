//! A hook that is a command: it reads the event on standard input, and answers on standard output.
//!
//! The answer is one JSON object, complete. `{}` says nothing, which must be said: a command that
//! prints nothing has failed, as has one that ends with another exit code than 0.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::event::{Clock, Told};
use super::{Event, Finished, Hook, HookError, RunFinished, RunStarted, StopReason, Verdict};
use crate::command::{Environment, Native, Outcome, Payload, Request, Status};
use crate::tool::printed::spaced;
use crate::tool::{Call, Interrupt};

/// How many characters of an answer that is none are told.
const SHOWN_CHARS: usize = 200;
/// How many lines of what a command printed on standard error are logged, the last ones.
const LOGGED_LINES: usize = 50;
/// How many characters of such a line are logged.
const LOGGED_CHARS: usize = 2_000;

/// What every command of an agent's hooks is run with.
#[derive(Clone, Debug)]
pub struct Runner {
    /// What runs it.
    pub native: Native,
    /// Its complete environment.
    pub environment: Environment,
    /// Where the time comes from.
    pub clock: Clock,
}

/// A hook that is a command.
#[derive(Debug)]
pub struct CommandHook {
    /// Its name, for the log.
    pub name: String,
    /// The command, for a shell.
    pub line: String,
    /// How long it may take.
    pub timeout: Duration,
    /// What runs it.
    pub runner: Runner,
}

#[async_trait]
impl Hook for CommandHook {
    async fn before(&self, call: &Call) -> Result<Verdict, HookError> {
        let told = Told::before(call, (self.runner.clock)());
        let mut answer = self.asked(Event::Before, spaced(&told), &call.workspace).await?;
        Ok(match text_alone(&mut answer, Event::Before, "deny_reason")? {
            Some(reason) => Verdict::Deny { reason },
            None => Verdict::Continue,
        })
    }

    async fn after(&self, finished: &Finished) -> Result<Option<String>, HookError> {
        let told = Told::after(finished, (self.runner.clock)());
        let workspace = &finished.call.workspace;
        let mut answer = self.asked(Event::After, spaced(&told), workspace).await?;
        text_alone(&mut answer, Event::After, "feedback")
    }

    async fn run_started(&self, started: &RunStarted) -> Result<(), HookError> {
        let told = Told::started(started, (self.runner.clock)());
        let workspace = &started.run.workspace;
        nothing(&self.asked(Event::RunStarted, spaced(&told), workspace).await?, Event::RunStarted)
    }

    async fn run_finished(&self, finished: &RunFinished) -> Result<(), HookError> {
        if finished.stop_reason != StopReason::Completed {
            return Ok(());
        }
        let told = Told::finished(finished, (self.runner.clock)());
        let (event, workspace) = (Event::RunFinished, &finished.run.workspace);
        nothing(&self.asked(event, spaced(&told), workspace).await?, event)
    }

    /// The command's own limit ends it in order; ours is for what that cannot end.
    fn spends_besides(&self) -> Duration {
        Native::BESIDE_LIMIT
    }
}

impl CommandHook {
    /// Runs the command on an event and returns the object that it printed.
    async fn asked(
        &self,
        event: Event,
        told: String,
        workspace: &Path,
    ) -> Result<Map<String, Value>, HookError> {
        let request = Request {
            name: format!("hook {}", self.name),
            payload: Payload::Shell(self.line.clone()),
            cwd: workspace.to_path_buf(),
            environment: self.runner.environment.clone(),
            limit: self.timeout,
            stdin: told.into(),
            // Whoever waits no more drops the future, which stops it as well.
            cancelled: CancellationToken::new(),
        };
        // That nobody knows how it ended says nothing of the call.
        let outcome = self.runner.native.run(request).await;
        let outcome = outcome.map_err(|error| HookError::Failed(error.to_string()))?;
        let answer = answer_of(&outcome, self.timeout);
        self.log(event, &outcome, answer.is_err());
        answer
    }

    /// Logs what the command printed on standard error.
    fn log(&self, event: Event, outcome: &Outcome, failed: bool) {
        let (hook, event) = (self.name.as_str(), event.name());
        let text = outcome.stderr.text();
        let lines: Vec<&str> = text.lines().collect();
        for line in &lines[lines.len().saturating_sub(LOGGED_LINES)..] {
            let line = beginning(line, LOGGED_CHARS);
            if failed {
                tracing::warn!(hook, event, "{line}");
            } else {
                tracing::debug!(hook, event, "{line}");
            }
        }
    }
}

/// Returns the object that a command has printed, or what is wrong with how it ended.
fn answer_of(outcome: &Outcome, limit: Duration) -> Result<Map<String, Value>, HookError> {
    let failed = |message: String| Err(HookError::Failed(message));
    match (outcome.status, outcome.exit_code) {
        (Status::TimedOut, _) => {
            return failed(format!("it took longer than {} s", limit.as_secs_f64()));
        }
        (Status::Cancelled, _) => return Err(Interrupt::Cancelled.into()),
        (Status::Exited, Some(0)) => {}
        (Status::Exited, Some(code @ ..0)) => {
            return failed(format!("its command was ended by signal {}", -code));
        }
        (Status::Exited, code) => {
            let code = code.unwrap_or_default();
            return failed(format!("its command ended with exit code {code}"));
        }
    }
    let (Some(stdout), []) = (outcome.stdout.whole(), outcome.truncation.as_slice()) else {
        let why: Vec<&str> = outcome.truncation.iter().map(|reason| reason.name()).collect();
        let why = why.join(", ");
        return failed(format!("what its command printed could not be kept whole ({why})"));
    };
    object_in(&stdout).map_err(|found| {
        HookError::Failed(format!(
            "its command must print one JSON object on standard output, and printed {found}"
        ))
    })
}

/// Reads exactly one object, or says what there is instead.
fn object_in(stdout: &[u8]) -> Result<Map<String, Value>, String> {
    let Ok(text) = std::str::from_utf8(stdout) else {
        return Err(format!("{} bytes that are not UTF-8", stdout.len()));
    };
    if text.trim().is_empty() {
        return Err("nothing; `{}` says that there is nothing to say".to_owned());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) | Err(_) => Err(shown(text)),
    }
}

/// Takes the one text out of an answer that may hold it, and nothing else.
fn text_alone(
    answer: &mut Map<String, Value>,
    event: Event,
    key: &str,
) -> Result<Option<String>, HookError> {
    match (answer.len(), answer.get_mut(key)) {
        (0, _) => Ok(None),
        (1, Some(Value::String(text))) if !text.trim().is_empty() => Ok(Some(std::mem::take(text))),
        _ => {
            let form = format!("`{{}}` or `{{\"{key}\": \"…\"}}` with a text that is not blank");
            Err(wrong_fields(event, &form, answer))
        }
    }
}

/// Accepts an answer that says nothing.
fn nothing(answer: &Map<String, Value>, event: Event) -> Result<(), HookError> {
    if answer.is_empty() { Ok(()) } else { Err(wrong_fields(event, "only `{}`", answer)) }
}

fn wrong_fields(event: Event, form: &str, answer: &Map<String, Value>) -> HookError {
    let printed = shown(&spaced(answer));
    HookError::Failed(format!(
        "for `{}` its command may print {form}, and printed {printed}",
        event.name()
    ))
}

/// Quotes the beginning of what came.
fn shown(text: &str) -> String {
    let text = text.trim();
    let part = beginning(text, SHOWN_CHARS);
    let rest = if part.len() < text.len() { "…" } else { "" };
    format!("`{part}{rest}`")
}

fn beginning(text: &str, chars: usize) -> &str {
    let end = text.char_indices().nth(chars).map_or(text.len(), |(end, _)| end);
    &text[..end]
}

#[cfg(test)]
mod tests;
