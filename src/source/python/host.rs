//! Keeps an interpreter running: starts it, starts it anew, and hands it out.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::wire::{Ask, Described, Hello};
use super::worker::{Answer, Asked, Worker};
use super::{Config, STARTUP, WORKER_LOST, interpreter, package};
use crate::process::{Child, Exit, Grace, Processes, Spec, base_environment};
use crate::registry::Cause;
use crate::shutdown::Shutdown;
use crate::tool::Failure;

const WORKER: &str = include_str!("worker.py");
const BOOTSTRAP: &str = include_str!("bootstrap.py");
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
    current: watch::Sender<Current>,
    gone: CancellationToken,
}

/// The interpreter that is asked now.
#[derive(Clone, Debug)]
enum Current {
    /// The first one is on its way.
    Starting,
    Running(Arc<Worker>),
    /// The last one has ended, and the next is on its way.
    Between,
    /// The last one could not be started, or did not load.
    Failed(String),
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
            current: watch::Sender::new(Current::Starting),
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
                    self.current.send_replace(Current::Running(Arc::clone(&worker)));
                    tokio::select! {
                        () = worker.ended().cancelled() => {}
                        () = worker.condemned().cancelled() => {}
                        () = self.ended.cancelled() => {}
                    }
                    self.current.send_replace(Current::Between);
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
                Err(cause) => {
                    self.current.send_replace(Current::Failed(cause.brief()));
                    tell(Err(cause));
                }
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
        let Config { functions, registrars, hooks, middleware, path, .. } = &self.config;
        let limit = self.config.max_message_bytes;
        let program = interpreter::of(&self.config);
        let name = program.to_string_lossy().into_owned();
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
        drop(self.tasks.spawn(Arc::clone(&worker).read(stdout, limit, sender)));
        let modules = package::modules();
        let source = WORKER;
        let hello =
            Hello { source, modules, path, functions, registrars, hooks, middleware, limit };
        worker.write(&hello).await;
        let loaded = tokio::select! {
            loaded = tokio::time::timeout(STARTUP, loaded) => loaded,
            why = worker.lost() => {
                child.stop(Grace::NONE).await;
                return Err(Cause::from(format!("what {name} has loaded cannot be told: {why}")));
            }
        };
        match loaded {
            Ok(Ok(described)) => Ok(Started { worker, child, described }),
            Ok(Err(_)) => {
                let exit = child.wait().await;
                Err(ended_early(&name, &worker.loading(), exit, &child.last_stderr()))
            }
            Err(_) => {
                child.stop(Grace::NONE).await;
                let seconds = STARTUP.as_secs();
                let what = worker.loading();
                Err(Cause::from(format!(
                    "not everything was loaded within {seconds} s; {name} was loading {what}"
                )))
            }
        }
    }

    /// Asks the interpreter; whoever drops the future gives the request up.
    pub(super) async fn ask(&self, ask: Ask<'_>) -> Result<Answer, Failure> {
        let mut asked = self.begin(ask).await?;
        Ok(asked.answer().await)
    }

    /// Asks the interpreter, and the next one where nothing had begun when it ended.
    pub(super) async fn ask_again<'a>(&self, ask: impl Fn() -> Ask<'a>) -> Result<Answer, Failure> {
        match self.ask(ask()).await {
            Ok(Answer::Lost { begun: false }) => self.ask(ask()).await,
            answer => answer,
        }
    }

    /// Asks the interpreter and does not wait for the answer.
    pub(super) async fn begin(&self, ask: Ask<'_>) -> Result<Asked, Failure> {
        self.first_settled().await;
        let mut current = self.current.subscribe();
        let next = current.wait_for(|now| !matches!(now, Current::Between));
        let now = match tokio::time::timeout(PATIENCE, next).await {
            Ok(Ok(now)) => now.clone(),
            Ok(Err(_)) | Err(_) => Current::Between,
        };
        let asked = match now {
            Current::Running(worker) => worker.ask(ask, &self.tasks).await,
            Current::Starting | Current::Between => None,
            Current::Failed(cause) => return Err(not_there(&cause)),
        };
        asked.ok_or_else(lost)
    }

    /// Waits until the first interpreter has loaded everything, or could not.
    pub(super) async fn first_settled(&self) {
        let mut current = self.current.subscribe();
        tokio::select! {
            // The sender is ours.
            _ = current.wait_for(|now| !matches!(now, Current::Starting)) => {}
            () = self.ended.cancelled() => {}
        }
    }

    /// Waits until nothing is left of the interpreter.
    pub(super) async fn stop(&self) {
        self.gone.cancelled().await;
    }
}

/// Says why an interpreter has ended before it had loaded everything, its last words below.
fn ended_early(name: &str, loading: &str, exit: Exit, words: &[String]) -> Cause {
    let during =
        if loading.is_empty() { "starting".to_owned() } else { format!("loading {loading}") };
    let ended = format!("{name} ended while it was {during}");
    let Some((last, before)) = words.split_last() else {
        return Cause::from(format!("{ended}: {exit}"));
    };
    let mut lines = vec![format!("{ended}: {last}")];
    lines.extend_from_slice(before);
    Cause::from(lines.join("\n"))
}

/// Makes the failure of a call that came while nothing could be loaded.
fn not_there(cause: &str) -> Failure {
    Failure::new(WORKER_LOST, format!("the Python interpreter is not there: {cause}")).retryable()
}

/// Makes the failure of a call that nothing of has run.
pub(super) fn lost() -> Failure {
    let message = "the Python interpreter ended before it had begun the call; it can be made again";
    Failure::new(WORKER_LOST, message).retryable()
}
