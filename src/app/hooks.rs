//! The hooks of a run: what an agent file declares, then what an embedder has; and how they end.

use std::sync::Arc;
use std::time::SystemTime;

use tokio::time::{Instant, timeout_at};

use crate::command::{self, Native};
use crate::config::Config;
use crate::hook::command::{CommandHook, Runner};
use crate::hook::run::Runs;
use crate::hook::{Declared, Handler, Hooks, Registration};
use crate::process::{self, Processes};
use crate::shutdown::Shutdown;

/// What a configuration says of hooks.
#[derive(Debug)]
pub(super) struct Wanted {
    declared: Vec<Declared>,
    own: Vec<Registration>,
    command: command::Config,
}

/// The hooks of a run, and what they stand on.
#[derive(Debug)]
pub(super) struct Hooked {
    pub(super) hooks: Hooks,
    pub(super) runs: Runs,
    /// What commands stand on: some hear of the end of runs, which is when all else is to end.
    pub(super) shutdown: Shutdown,
}

impl Wanted {
    /// Takes out of a configuration what concerns hooks.
    pub(super) fn of(config: &mut Config) -> Self {
        Self {
            declared: std::mem::take(&mut config.declared_hooks),
            own: std::mem::take(&mut config.hooks),
            command: std::mem::take(&mut config.command),
        }
    }
}

impl Hooked {
    /// Puts the hooks of a run together, in order.
    pub(super) fn new(wanted: Wanted, processes: process::Config, ending: &Shutdown) -> Self {
        let Wanted { declared, own, command } = wanted;
        let shutdown = Shutdown::new();
        let runner = Runner {
            native: Native::new(Processes::new(processes, shutdown.clone()), shutdown.clone()),
            environment: command.environment,
            clock: SystemTime::now,
        };
        let declared = declared.iter().filter_map(|one| registered(one, &runner));
        let registrations = declared.chain(own).collect();
        let hooks = Hooks::new(registrations, shutdown.tasks().clone());
        let runs = Runs::new(hooks.clone(), runner.clock, ending.child());
        Self { hooks, runs, shutdown }
    }

    /// Waits until hooks have heard of the end of every run, and ends what is left of them.
    pub(super) async fn end(&self, until: Instant) {
        if timeout_at(until, self.runs.finished()).await.is_err() {
            tracing::warn!("some hooks have not heard in time that their run has ended");
        }
        self.shutdown.cancel();
    }
}

fn registered(declared: &Declared, runner: &Runner) -> Option<Registration> {
    match &declared.handler {
        Handler::Command(line) => Some(declared.with(Arc::new(CommandHook {
            name: declared.name.clone(),
            line: line.clone(),
            timeout: declared.timeout,
            runner: runner.clone(),
        }))),
        // There is none of these yet.
        Handler::Python { .. } => None,
    }
}
