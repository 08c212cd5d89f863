//! Runs: each begins once, with the first call of its session, and ends with the session or with
//! us.

use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::event::Clock;
use super::{Event, Hooks, Run, RunFinished, RunStarted, StopReason};
use crate::tool::SessionId;

/// Tells hooks of runs.
#[derive(Clone, Debug)]
pub struct Runs {
    hooks: Hooks,
    clock: Clock,
    /// One for each run that is under way, until its hooks have heard of its end.
    tasks: TaskTracker,
    /// Cancelled when we end.
    ending: CancellationToken,
}

/// The first call of a session, as far as its run is told of it.
#[derive(Clone, Debug)]
pub struct First {
    /// The agent on whose behalf it is made.
    pub agent_id: String,
    /// The session.
    pub session: SessionId,
    /// The activation.
    pub activation_id: Option<String>,
    /// The workspace.
    pub workspace: Arc<PathBuf>,
}

impl Runs {
    /// Makes what tells these hooks; runs that are under way end when `ending` is cancelled.
    pub fn new(hooks: Hooks, clock: Clock, ending: CancellationToken) -> Self {
        Self { hooks, clock, tasks: TaskTracker::new(), ending }
    }

    /// Returns whether there is a hook that hears of runs.
    pub fn are_heard(&self) -> bool {
        [Event::RunStarted, Event::RunFinished].iter().any(|event| !self.hooks.is_empty(*event))
    }

    /// Begins a run that ends with `ended`; returns the token that is cancelled as soon as the
    /// hooks have heard of it.
    pub fn begin(&self, first: First, ended: CancellationToken) -> CancellationToken {
        let begun = CancellationToken::new();
        // Whatever becomes of the task, nobody waits for ever.
        let heard = begun.clone().drop_guard();
        let Self { hooks, clock, tasks, ending } = self.clone();
        let First { agent_id, session, activation_id, workspace } = first;
        tasks.spawn(async move {
            let run = Run { agent_id, session, workspace, started_at: clock() };
            let started = RunStarted { run: run.clone(), activation_id };
            tokio::select! {
                () = hooks.run_started(&started) => {}
                () = ending.cancelled() => {}
            }
            drop(heard);
            let stop_reason = tokio::select! {
                biased;
                () = ended.cancelled() => StopReason::Completed,
                () = ending.cancelled() => StopReason::Cancelled,
            };
            hooks.run_finished(&RunFinished { run, stop_reason, finished_at: clock() }).await;
        });
        begun
    }

    /// Waits until the hooks have heard of the end of every run; for when we end.
    pub async fn finished(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

#[cfg(test)]
mod tests;
