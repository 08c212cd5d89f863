//! Starts children.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::ChildStdin;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::program::working_directory;
use super::supervisor::{self, Start};
use super::{
    ANSWERS, Child, Config, Role, SpawnError, Spec, environment, handover, orphans, own_binary,
    resolve_program,
};
use crate::shutdown::Shutdown;

/// How long a guard may take to say how it went; much more than it ever needs.
const HANDSHAKE: Duration = Duration::from_secs(20);
/// How many guards may be about to start something at once.
///
/// Hundreds that start together only take each other's time, until the last of them has none left.
const STARTS: usize = 16;

/// Starts child processes and ends them at the shutdown.
///
/// Clones share the same shutdown. Cancelling it ends every child, within 3 s; its `drain` waits
/// until they are gone. Give it a [`Shutdown`] of its
/// own where calls in flight should be drained before their servers end.
#[derive(Clone, Debug)]
pub struct Processes {
    exe: Option<Arc<PathBuf>>,
    shutdown: Shutdown,
    starts: Arc<Semaphore>,
}

/// The right to start one child.
#[derive(Debug)]
pub struct Turn(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl Processes {
    /// Makes a starter of children.
    pub fn new(config: Config, shutdown: Shutdown) -> Self {
        // This very file, even after an update has put another one in its place.
        let own = || ANSWERS.get().map(|()| PathBuf::from("/proc/self/exe"));
        let exe = config.exe.or_else(own);
        // The guard starts in another folder.
        let exe = exe.map(|exe| Arc::new(std::path::absolute(&exe).unwrap_or(exe)));
        Self { exe, shutdown, starts: Arc::new(Semaphore::new(STARTS)) }
    }

    /// Starts a child and returns once it runs, or the reason why it does not.
    ///
    /// Dropping the future ends whatever was started.
    pub async fn spawn(&self, spec: Spec) -> Result<Child, SpawnError> {
        let turn = self.turn().await?;
        self.spawn_in(turn, spec).await
    }

    /// Waits until something may be started; nothing is, if the future is dropped.
    pub async fn turn(&self) -> Result<Turn, SpawnError> {
        let starts = Arc::clone(&self.starts);
        tokio::select! {
            turn = starts.acquire_owned() => turn.map(Turn).map_err(|_| SpawnError::ShuttingDown),
            () = self.shutdown.token().cancelled() => Err(SpawnError::ShuttingDown),
        }
    }

    /// Starts a child in its turn, which is over when it runs.
    ///
    /// Dropping the future ends whatever was started, but does not wait for it.
    pub async fn spawn_in(&self, turn: Turn, spec: Spec) -> Result<Child, SpawnError> {
        let _turn = turn;
        let exe = self.exe.as_deref().ok_or(SpawnError::NoExe)?;
        if self.shutdown.token().is_cancelled() {
            return Err(SpawnError::ShuttingDown);
        }
        if let Some(name) = environment::impossible(&spec.env) {
            return Err(SpawnError::BadEnvironment { name: name.to_owned() });
        }
        let cwd = working_directory(spec.cwd.as_deref())?;
        let program = resolve_program(&spec.program, &spec.env, Some(&cwd))?;
        let launched = launch(exe, &spec, &cwd, &program)?;
        let (mut child, start) = supervisor::supervise(&self.shutdown, &spec, launched);
        match tokio::time::timeout(HANDSHAKE, start).await {
            Err(_) => Err(SpawnError::Slow { program, seconds: HANDSHAKE.as_secs() }),
            Ok(Ok(Start::Running(pid))) => {
                child.pid = pid.cast_unsigned();
                Ok(child)
            }
            Ok(Ok(Start::NotForked(errno))) => {
                Err(SpawnError::Io { program, source: io::Error::from_raw_os_error(errno) })
            }
            Ok(Ok(Start::NotExecuted(errno))) => Err(SpawnError::not_executed(program, errno)),
            Ok(Err(_)) => Err(SpawnError::NoGuard { exe: exe.clone(), source: None }),
        }
    }
}

/// A guard that was started and has not spoken yet.
#[derive(Debug)]
pub(super) struct Launched {
    pub(super) guard: tokio::process::Child,
    pub(super) control: tokio::net::UnixStream,
    pub(super) stdin: ChildStdin,
}

fn launch(exe: &Path, spec: &Spec, cwd: &Path, program: &Path) -> Result<Launched, SpawnError> {
    let failed = |source| SpawnError::Io { program: program.into(), source };
    let (control, theirs) = UnixStream::pair().map_err(failed)?;
    control.set_nonblocking(true).map_err(failed)?;
    let (reader, writer) = io::pipe().map_err(failed)?;
    handover::send(&control, &reader).map_err(failed)?;
    let stdin = ChildStdin::from_std(OwnedFd::from(writer).into()).map_err(failed)?;
    let control = tokio::net::UnixStream::from_std(control).map_err(failed)?;

    let mut command = own_binary(exe, Role::Guard);
    command.arg(spec.leftovers.word()).arg(cwd).arg(program).args(&spec.args);
    command.env_clear().envs(environment::pack(&spec.env)).current_dir("/");
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut guards = orphans::guards();
    let guard =
        tokio::process::Command::from(command).spawn().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
                SpawnError::NoGuard { exe: exe.into(), source: Some(source) }
            }
            _ => failed(source),
        })?;
    guards.extend(guard.id().map(u32::cast_signed));
    Ok(Launched { guard, control, stdin })
}
