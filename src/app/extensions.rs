//! What is put around the calls of a run: hooks and middleware, those of an agent file before an
//! embedder's, with the interpreter that some of them are in; and how they end.

use std::sync::Arc;
use std::time::SystemTime;

use tokio::time::{Instant, timeout_at};

use crate::command::{self, Native};
use crate::config::Config;
use crate::hook::command::{CommandHook, Runner};
use crate::hook::run::Runs;
use crate::hook::{Declared, Handler, Hooks, Registration};
use crate::middleware::Middleware;
use crate::process::{self, Processes};
use crate::registry::Registry;
use crate::shutdown::Shutdown;
use crate::source::python::{self, Python, Shelf};

/// What a configuration says of them.
#[derive(Debug)]
pub(super) struct Wanted {
    declared: Vec<Declared>,
    own: Vec<Registration>,
    middleware: Vec<Arc<dyn Middleware>>,
    command: command::Config,
    python: python::Config,
}

/// The hooks and the middleware of a run, and what they stand on.
#[derive(Debug)]
pub(super) struct Extensions {
    pub(super) hooks: Hooks,
    pub(super) runs: Runs,
    pub(super) middleware: Vec<Arc<dyn Middleware>>,
    python: Option<Python>,
    /// What commands and the interpreter stand on: some hear of the end of runs, which is when all else is to end.
    pub(super) shutdown: Shutdown,
}

impl Wanted {
    /// Takes out of a configuration what concerns them.
    pub(super) fn of(config: &mut Config) -> Self {
        Self {
            declared: std::mem::take(&mut config.declared_hooks),
            own: std::mem::take(&mut config.hooks),
            middleware: std::mem::take(&mut config.middleware),
            command: std::mem::take(&mut config.command),
            python: std::mem::take(&mut config.python),
        }
    }
}

impl Extensions {
    /// Puts them together, in order; the interpreter publishes its tools.
    pub(super) fn new(
        wanted: Wanted,
        processes: process::Config,
        registry: &Arc<Registry>,
        shelf: Shelf,
        ending: &Shutdown,
    ) -> Self {
        let Wanted { declared, own, middleware, command, python } = wanted;
        let shutdown = Shutdown::new();
        let processes = Processes::new(processes, shutdown.clone());
        let python = Python::start(python, shelf, registry, processes.clone(), &shutdown);
        let runner = Runner {
            native: Native::new(processes, shutdown.clone()),
            environment: command.environment,
            clock: SystemTime::now,
        };
        let mut numbers = 0..;
        let declared = declared.iter().filter_map(|declared| match &declared.handler {
            Handler::Command(line) => Some(command_hook(declared, line, &runner)),
            Handler::Python => {
                let number = numbers.next()?;
                python.as_ref().map(|python| declared.with(python.hook(number)))
            }
        });
        let hooks = Hooks::new(declared.chain(own).collect(), shutdown.tasks().clone());
        let runs = Runs::new(hooks.clone(), runner.clock, ending.child());
        let middleware = python.iter().flat_map(Python::middleware).chain(middleware).collect();
        Self { hooks, runs, middleware, python, shutdown }
    }

    /// Waits until hooks have heard of the end of every run, and ends what is left of them.
    pub(super) async fn end(self, until: Instant) {
        if timeout_at(until, self.runs.finished()).await.is_err() {
            tracing::warn!("some hooks have not heard in time that their run has ended");
        }
        self.shutdown.cancel();
        // Not before, since some of them are in Python.
        if let Some(python) = self.python {
            python.stop().await;
        }
    }
}

fn command_hook(declared: &Declared, line: &str, runner: &Runner) -> Registration {
    declared.with(Arc::new(CommandHook {
        name: declared.name.clone(),
        line: line.to_owned(),
        timeout: declared.timeout,
        runner: runner.clone(),
    }))
}
