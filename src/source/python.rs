//! An agent's Python tools, hooks and middleware: what its user wrote, run by an interpreter of its own.
//!
//! ```text
//! PythonTool ──▶ Host ──▶ Worker ══ line of JSON ══ worker.py ──▶ the user's functions
//! ```
//!
//! One interpreter runs all of them. It can be blocked, crash or exit in the middle of any call: then
//! the calls that it had begun have an unknown outcome, those that it had not are safe to make
//! again, and the [host](host::Host) starts the next one. What is read and written goes over
//! descriptors that user code does not know (see `worker.py`).

mod extension;
mod host;
mod interpreter;
mod package;
mod shelf;
mod tool;
mod wire;
mod worker;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use self::extension::{PythonHook, PythonMiddleware};
use self::host::Host;
pub use self::package::PACKAGE;
pub use self::shelf::Shelf;
use self::tool::PythonTool;
pub use self::wire::Factory;
use self::wire::{About, Described};
use crate::hook::Hook;
use crate::middleware::Middleware;
use crate::process::Processes;
use crate::registry::diagnostic::{Severity, Stage};
use crate::registry::{Cause, Diagnostic, NameConflict, Publication, Publisher, Registry, State};
use crate::shutdown::Shutdown;
use crate::tool::{ErrorCode, Tool};

/// The name of the source.
pub const SOURCE: &str = "python";

/// A Python tool cannot be loaded or published.
pub const PYTHON_TOOL_INVALID: ErrorCode = ErrorCode::new("PYTHON_TOOL_INVALID");
/// The interpreter ended before it had begun the call.
pub const WORKER_LOST: ErrorCode = ErrorCode::new("WORKER_LOST");

/// How long an interpreter may take to load all tools.
const STARTUP: Duration = Duration::from_secs(30);

/// What the operator and the agent file say of Python tools.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Functions, as `module:function`.
    pub functions: Vec<String>,
    /// Functions that register tools, as `module:function`.
    pub registrars: Vec<String>,
    /// The hooks that are in Python, in order.
    pub hooks: Vec<Factory>,
    /// What is wrapped around the bodies of tools, outermost first.
    pub middleware: Vec<Factory>,
    /// Where all of it is written, by its path in the agent file.
    pub places: BTreeMap<String, String>,
    /// The interpreter; looked for where nobody says it.
    pub interpreter: Option<PathBuf>,
    /// Where modules are looked for first, in this order.
    pub path: Vec<PathBuf>,
    /// The folder of the agent file, where a `.venv` may be.
    pub folder: PathBuf,
    /// Variables of our environment that tools also get.
    pub inherit_env: Vec<String>,
    /// Our environment.
    pub environment: BTreeMap<String, String>,
    /// The longest message of either side, in bytes.
    pub max_message_bytes: usize,
}

/// The Python tools of a run.
#[derive(Clone, Debug)]
pub struct Python {
    host: Arc<Host>,
}

impl Config {
    /// Returns whether there is nothing to load.
    pub fn is_empty(&self) -> bool {
        let Self { functions, registrars, hooks, middleware, .. } = self;
        functions.is_empty() && registrars.is_empty() && hooks.is_empty() && middleware.is_empty()
    }
}

impl Python {
    /// Starts the interpreter and publishes what it has, now and whenever it was started anew.
    ///
    /// Nothing is started where there is nothing to load.
    pub fn start(
        config: Config,
        shelf: Shelf,
        registry: &Arc<Registry>,
        processes: Processes,
        shutdown: &Shutdown,
    ) -> Option<Self> {
        if config.is_empty() {
            return None;
        }
        let publisher = registry.publisher(SOURCE);
        let host = Host::new(config, processes, shutdown);
        let loaded = Arc::clone(&host);
        let mut was_ready = false;
        let tell = move |described: Result<Described, Cause>| match described {
            Err(cause) if was_ready => {
                // The tools are there again soon, or a call says what is wrong.
                tracing::error!(%cause, "the Python tools cannot be loaded again");
            }
            described => was_ready |= publish(&publisher, (&loaded, &shelf), described),
        };
        drop(shutdown.spawn("python", Arc::clone(&host).keep(tell)));
        Some(Self { host })
    }

    /// Returns the hook of this number of those in Python.
    pub fn hook(&self, number: usize) -> Arc<dyn Hook> {
        Arc::new(PythonHook { host: Arc::clone(&self.host), number, clock: SystemTime::now })
    }

    /// Returns what is wrapped around the bodies of tools, outermost first.
    pub fn middleware(&self) -> Vec<Arc<dyn Middleware>> {
        let wrapped = |number| -> Arc<dyn Middleware> {
            Arc::new(PythonMiddleware { host: Arc::clone(&self.host), number })
        };
        (0..self.host.config().middleware.len()).map(wrapped).collect()
    }

    /// Ends the interpreter, and returns when nothing is left of it.
    pub async fn stop(self) {
        self.host.stop().await;
    }
}

/// Publishes what was loaded, or why it was not; true if all of it is there.
fn publish(
    publisher: &Publisher,
    stands_on: (&Arc<Host>, &Shelf),
    described: Result<Described, Cause>,
) -> bool {
    let mut loaded = match described {
        Ok(described) => Loaded::of(stands_on, described),
        Err(cause) => {
            tracing::error!(%cause, "the Python tools cannot be loaded");
            let failed = Publication { state: State::Failed(cause), ..Publication::default() };
            // Nothing in it can be in conflict.
            drop(publisher.publish(failed));
            return false;
        }
    };
    loop {
        let publication = loaded.publication();
        let is_ready = publication.state == State::Ready;
        match publisher.publish(publication) {
            Ok(()) => return is_ready,
            Err(NameConflict { name }) if loaded.leave_out(&name) => {}
            Err(conflict) => {
                tracing::error!(%conflict, "the Python tools cannot be published");
                return false;
            }
        }
    }
}

/// What there is of the tools.
struct Loaded {
    /// Each with its place in the agent file.
    tools: Vec<(Arc<dyn Tool>, Option<String>)>,
    diagnostics: Vec<Diagnostic>,
}

impl Loaded {
    fn of((host, shelf): (&Arc<Host>, &Shelf), described: Described) -> Self {
        let mut loaded = Self { tools: Vec::new(), diagnostics: Vec::new() };
        let place = |place: &str| host.config().places.get(place).cloned();
        for problem in &described.problems {
            loaded.report(problem.function(), &problem.to_string(), place(&problem.place));
        }
        for about in described.tools {
            let text = |key: &str| about[key].as_str().unwrap_or_default().to_owned();
            let (name, place) = (text("name"), place(&text("place")));
            let tool = serde_json::from_value::<About>(about).map_err(|error| error.to_string());
            let tool =
                tool.and_then(|about| PythonTool::new(about, Arc::clone(host), shelf.clone()));
            match tool {
                Ok(tool) => loaded.tools.push((Arc::new(tool), place)),
                Err(problem) => loaded.report(&name, &problem, place),
            }
        }
        loaded
    }

    /// Leaves the tools out that want a name which another source has; false if there are none.
    fn leave_out(&mut self, name: &str) -> bool {
        let wants = |(tool, _): &mut (Arc<dyn Tool>, _)| {
            let definition = tool.definition();
            definition.name.as_str() == name || definition.aliases.iter().any(|alias| alias == name)
        };
        let left_out: Vec<_> = self.tools.extract_if(.., wants).collect();
        let is_any = !left_out.is_empty();
        for (tool, place) in left_out {
            let tool = tool.definition().name.as_str();
            let message = format!(
                "it is left out: another tool has the name `{name}`; rename the Python one"
            );
            self.report(tool, &message, place);
        }
        is_any
    }

    fn report(&mut self, tool: &str, message: &str, place: Option<String>) {
        let diagnostic = Diagnostic {
            server: SOURCE.to_owned(),
            stage: Stage::Catalog,
            code: PYTHON_TOOL_INVALID,
            severity: Severity::Error,
            wire_name: Some(tool.to_owned()),
            field: None,
            message: message.to_owned(),
            place,
        };
        tracing::error!("{diagnostic}");
        self.diagnostics.push(diagnostic);
    }

    fn publication(&self) -> Publication {
        // An agent is not what its file says when one of its tools is not there.
        let state = match self.diagnostics.first() {
            Some(first) => {
                let tool = first.wire_name.as_deref().unwrap_or_default();
                let cause = Cause::from(format!("{tool}: {}", first.message));
                State::Failed(cause.with_detail(first.place.clone()))
            }
            None => State::Ready,
        };
        let tools = self.tools.iter().map(|(tool, _)| Arc::clone(tool)).collect();
        let diagnostics = self.diagnostics.clone();
        Publication { state, tools, diagnostics, ..Publication::default() }
    }
}
