//! Keeps an interpreter running: starts it, starts it anew, and hands it out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::wire::{Ask, Described, Hello};
use super::worker::{Answer, Worker};
use super::{Config, STARTUP, WORKER_LOST, interpreter};
use crate::process::{Child, Exit, Grace, Processes, Spec, base_environment};
use crate::registry::Cause;
use crate::shutdown::Shutdown;
use crate::tool::Failure;

const WORKER: &str = include_str!("worker.py");
const BOOTSTRAP: &str = include_str!("bootstrap.py");
const MODULES: [(&str, &str); 4] = [
    ("iris", include_str!("iris/__init__.py")),
    ("iris.exceptions", include_str!("iris/exceptions.py")),
    ("iris.message", include_str!("iris/message.py")),
    ("iris.tools", include_str!("iris/tools.py")),
];

/// How long a call waits for the next interpreter.
const PATIENCE: Duration = Duration::from_secs(10);
/// The first pause before an interpreter that has ended is started anew, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// After how long an interpreter counts as one that works.
const STEADY: Duration = Duration::from_secs(30);

/// Keeps an interpreter running.
#[derive(Debug)]
pub(super) struct Host {
    config: Config,
    processes: Processes,
    tasks: TaskTracker,
    ended: CancellationToken,
    current: watch::Sender<Option<Arc<Worker>>>,
    gone: CancellationToken,
}

/// A running interpreter, its process, and what it has loaded.
struct Started {
    worker: Arc<Worker>,
    child: Child,
    described: Described,
}

impl Host {
    pub(super) fn new(config: Config, processes: Processes, shutdown: &Shutdown) -> Arc<Self> {
        Arc::new(Self {
            config,
            processes,
            tasks: shutdown.tasks().clone(),
            ended: shutdown.child(),
            current: watch::Sender::new(None),
            gone: CancellationToken::new(),
        })
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// Keeps an interpreter running until the end; `tell` gets what each has loaded.
    pub(super) async fn keep(
        self: Arc<Self>,
        mut tell: impl FnMut(Result<Described, Cause>) + Send + 'static,
    ) {
        let mut pause = FIRST_PAUSE;
        while !self.ended.is_cancelled() {
            let began = Instant::now();
            match self.start().await {
                Ok(Started { worker, mut child, described }) => {
                    tracing::info!(
                        python = described.python,
                        iris = described.iris,
                        tools = described.tools.len(),
                        "the Python tools are loaded"
                    );
                    tell(Ok(described));
                    self.current.send_replace(Some(Arc::clone(&worker)));
                    tokio::select! {
                        () = worker.ended().cancelled() => {}
                        () = worker.condemned().cancelled() => {}
                        () = self.ended.cancelled() => {}
                    }
                    self.current.send_replace(None);
                    let is_over = worker.ended().is_cancelled();
                    let exit =
                        child.stop(if is_over { Grace::default() } else { Grace::NONE }).await;
                    if !self.ended.is_cancelled() {
                        tracing::warn!(
                            ?exit,
                            "the Python interpreter has ended and is started anew"
                        );
                    }
                }
                Err(cause) => tell(Err(cause)),
            }
            pause =
                if began.elapsed() > STEADY { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.ended.cancelled() => {}
            }
        }
        self.gone.cancel();
    }

    async fn start(&self) -> Result<Started, Cause> {
        let Config { functions, registrars, path, max_message_bytes: limit, .. } = &self.config;
        let program = interpreter::of(&self.config);
        let mut env = base_environment(&self.config.environment, &self.config.inherit_env);
        env.insert("PYTHONUNBUFFERED".to_owned(), "1".to_owned());
        let spec = Spec {
            name: super::SOURCE.to_owned(),
            program,
            args: vec!["-c".into(), BOOTSTRAP.into()],
            cwd: Some(self.config.folder.clone()),
            env,
            ..Spec::default()
        };
        let spawned = self.processes.spawn(spec).await;
        let mut child = spawned.map_err(|error| {
            let cause = Cause::from(format!("the interpreter cannot be started: {error}"));
            cause.with_detail(error.searched().map(|path| format!("PATH is {path}")))
        })?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("its standard streams are not there".to_owned().into());
        };
        let worker = Worker::new(stdin, &self.tasks);
        let (sender, loaded) = oneshot::channel();
        drop(self.tasks.spawn(Arc::clone(&worker).read(stdout, *limit, sender)));
        let modules = BTreeMap::from(MODULES);
        let hello = Hello { source: WORKER, modules, path, functions, registrars, limit: *limit };
        worker.write(&hello).await;
        match tokio::time::timeout(STARTUP, loaded).await {
            Ok(Ok(described)) => Ok(Started { worker, child, described }),
            Ok(Err(_)) => {
                let exit = child.wait().await;
                Err(ended_early(exit, &child.last_stderr()))
            }
            Err(_) => {
                child.stop(Grace::NONE).await;
                let seconds = STARTUP.as_secs();
                Err(Cause::from(format!("the tools were not loaded within {seconds} s")))
            }
        }
    }

    /// Asks the interpreter; whoever drops the future gives the request up.
    pub(super) async fn ask(&self, ask: Ask<'_>) -> Result<Answer, Failure> {
        let mut current = self.current.subscribe();
        let running = current.wait_for(Option::is_some);
        let worker = match tokio::time::timeout(PATIENCE, running).await {
            Ok(Ok(worker)) => worker.clone(),
            Ok(Err(_)) | Err(_) => None,
        };
        let asked = match worker {
            Some(worker) => worker.ask(ask, &self.tasks).await,
            None => None,
        };
        match asked {
            Some(asked) => Ok(asked.answer().await),
            None => Err(lost()),
        }
    }

    /// Waits until nothing is left of the interpreter.
    pub(super) async fn stop(&self) {
        self.gone.cancelled().await;
    }
}

/// Says why an interpreter has ended before it had loaded the tools, its last words below.
fn ended_early(exit: Exit, words: &[String]) -> Cause {
    let Some((last, before)) = words.split_last() else {
        return Cause::from(format!("the interpreter ended while it was loading: {exit}"));
    };
    let mut lines = vec![format!("the interpreter ended while it was loading: {last}")];
    lines.extend_from_slice(before);
    Cause::from(lines.join("\n"))
}

/// Makes the failure of a call that nothing of has run.
pub(super) fn lost() -> Failure {
    let message = "the Python interpreter ended before it had begun the call; it can be made again";
    Failure::new(WORKER_LOST, message).retryable()
}
