//! The only place where a child process starts, and what makes sure that none is left behind.
//!
//! ```text
//! gateway ──spawn──▶ guard ──spawn──▶ trampoline ──exec──▶ the child
//!    ▲  └─── socket ──┘                                      │
//!    └────────── stdin, stdout, stderr: pipes ───────────────┘
//! ```
//!
//! Guard and trampoline are our own binary, asked for by a hidden first argument that
//! [`guard_if_asked`] answers. The [guard] is a *child subreaper*: whoever below it loses
//! its parent becomes its child, however often it forks or opens a session of its own. So it can
//! end the whole family, and it does so when the gateway orders it, when the child has ended, and
//! when its socket closes because the gateway is gone, for whatever reason.
//!
//! | what happens | what ends the family |
//! |---|---|
//! | [`Child::stop`], or the handle is dropped | standard input is closed → [`Grace::stdin`] → `SIGTERM` to all → [`Grace::term`] → `SIGKILL` to all until none is left |
//! | the shutdown is cancelled | the same, with 1 s and 1 s |
//! | the child ends by itself | the guard, with what it left behind: `SIGTERM` → 1 s → `SIGKILL` ([`Leftovers`]) |
//! | the gateway is killed, crashes or returns from `main` | the guard: `SIGTERM` → 1 s → `SIGKILL` |
//! | the guard is killed | its parent-death signal kills the child; the gateway, a subreaper too ([`become_subreaper`]), adopts the rest and kills it |
//! | both are killed at once | the parent-death signal kills the child; **what the child itself has put into the background may survive** |
//!
//! Guard and child have a session each and no terminal. So a Ctrl-C in a terminal reaches the
//! gateway only, which then ends its children in order; a child that signals its own process
//! group does not hit the guard; and the guard ignores `SIGTERM`, `SIGINT`, `SIGHUP` and
//! `SIGQUIT`, which a service manager sends to everybody.
//!
//! A child inherits three streams and nothing else: all our descriptors close on `exec`, and the
//! guard closes those that were left open to us. Its environment is exactly
//! [`Spec::env`]; [`base_environment`] makes a sparing one.
//!
//! Limits: the parent-death signal does not survive the `exec` of a set-user-ID program, and
//! nobody can kill a process of another user.

mod child;
mod environment;
mod guard;
mod handover;
mod orphans;
mod program;
mod spawn;
mod stderr;
mod supervisor;
mod table;
mod trampoline;
mod wire;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::OnceLock;
use std::time::Duration;

pub use self::child::Child;
pub use self::environment::base_environment;
pub use self::orphans::become_subreaper;
pub use self::program::{SpawnError, command_shown, resolve_program};
pub use self::spawn::{Processes, Turn};
pub use self::wire::Exit;

/// How children are started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Our own binary, or another one whose `main` begins with [`guard_if_asked`].
    ///
    /// Not needed where this process has called [`guard_if_asked`] itself.
    pub exe: Option<PathBuf>,
}

/// What to start, and how.
#[derive(Clone, Debug, Default)]
pub struct Spec {
    /// What messages and logs call the child.
    pub name: String,
    /// The program: a name for the child's `PATH`, or a path relative to its `cwd`.
    pub program: OsString,
    /// Its arguments, without the program itself.
    pub args: Vec<OsString>,
    /// Its working directory; ours, if there is none.
    pub cwd: Option<PathBuf>,
    /// Its complete environment; nothing is added.
    pub env: BTreeMap<String, String>,
    /// Where its standard error goes.
    pub stderr: Stderr,
    /// What becomes of the processes that it leaves running.
    pub leftovers: Leftovers,
}

/// Where a child's standard error goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stderr {
    /// To the log at `debug`, line by line; the last lines are kept ([`Child::last_stderr`]).
    #[default]
    Logged,
    /// To [`Child::stderr`], untouched.
    Piped,
}

/// What becomes of the processes that a child leaves running when it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leftovers {
    /// They are ended right away.
    #[default]
    End,
    /// They go on until the [`Child`] is stopped or dropped, or until the shutdown.
    Keep,
}

impl Leftovers {
    fn word(self) -> &'static str {
        match self {
            Self::End => "end",
            Self::Keep => "keep",
        }
    }

    fn parse(word: &OsStr) -> Option<Self> {
        [Self::End, Self::Keep].into_iter().find(|one| word == one.word())
    }
}

/// How much time a family of processes gets to end by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grace {
    /// From the end of standard input to `SIGTERM`.
    pub stdin: Duration,
    /// From `SIGTERM` to `SIGKILL`.
    pub term: Duration,
}

impl Grace {
    /// No time at all: `SIGKILL` at once.
    pub const NONE: Self = Self { stdin: Duration::ZERO, term: Duration::ZERO };
}

impl Default for Grace {
    fn default() -> Self {
        Self { stdin: Duration::from_secs(2), term: Duration::from_secs(1) }
    }
}

/// Set by [`guard_if_asked`]: whoever starts our own file again will be answered.
///
/// A fact about this process's `main`, and the only way to know it without being told.
static ANSWERS: OnceLock<()> = OnceLock::new();

/// Acts as guard or trampoline if this process was started as one.
///
/// Call it first thing in `main`, before arguments are read, a runtime or a thread is started,
/// and return the exit code if there is one:
///
/// ```no_run
/// # use std::process::ExitCode;
/// fn main() -> ExitCode {
///     if let Some(code) = iris_mcp::process::guard_if_asked() {
///         return code;
///     }
///     // the program proper
///     ExitCode::SUCCESS
/// }
/// ```
pub fn guard_if_asked() -> Option<ExitCode> {
    let mut args = std::env::args_os();
    let role = args.nth(1).and_then(|word| Role::parse(&word));
    match role {
        Some(Role::Guard) => Some(guard::run(args)),
        Some(Role::Trampoline) => Some(trampoline::run(args)),
        None => {
            ANSWERS.get_or_init(|| ());
            None
        }
    }
}

/// What our own binary can be started as, beside the program proper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Guard,
    Trampoline,
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Self::Guard => "__guard",
            Self::Trampoline => "__trampoline",
        }
    }

    fn parse(word: &OsStr) -> Option<Self> {
        [Self::Guard, Self::Trampoline].into_iter().find(|role| word == role.word())
    }
}

/// Prepares to start our own binary in a role.
#[expect(clippy::disallowed_methods, reason = "this is where children start")]
fn own_binary(exe: &Path, role: Role) -> Command {
    use std::os::unix::process::CommandExt as _;
    let mut command = Command::new(exe);
    command.arg0("iris-mcp").arg(role.word());
    command
}
