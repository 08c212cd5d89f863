//! Which file a command means, and why it cannot be started.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};
use thiserror::Error;

/// Where a program is looked for when the child's environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Where the words of a command line belong.
const CURE: &str = "the rest goes to `args`";
const OF_VARIABLES: &str = ", and each variable to `env`";

/// Why a child was not started.
#[derive(Debug, Error)]
pub enum SpawnError {
    /// Nobody told us where our own binary is.
    #[error(
        "children start through our own binary, and it is not known: call \
         `process::guard_if_asked()` first thing in `main`, or set `process::Config::exe`"
    )]
    NoExe,
    /// It was not started in time.
    #[error("`{}` was not started within {seconds} s; the machine has too much else to do", program.display())]
    Slow {
        /// The program.
        program: PathBuf,
        /// How long it had.
        seconds: u64,
    },
    /// What was given as our own binary does not act as one.
    #[error(
        "`{}` did not act as a guard: `process::Config::exe` (IRIS_MCP_EXE) must name iris-mcp, \
         or a program that calls `process::guard_if_asked()` first thing in `main`", exe.display()
    )]
    NoGuard {
        /// The path that was tried.
        exe: PathBuf,
        /// The error of starting it, if it could not even be started.
        #[source]
        source: Option<io::Error>,
    },
    /// The working directory is missing, or is none.
    #[error("the working directory `{}` cannot be used", cwd.display())]
    BadCwd {
        /// The directory.
        cwd: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A variable has a name or a value that no environment can hold.
    #[error("the environment variable {name:?} has a name or a value that cannot be passed on")]
    BadEnvironment {
        /// The name; the value may be a secret.
        name: String,
    },
    /// There is no such program.
    #[error("{}", not_found(program, path.as_deref()))]
    NotFound {
        /// The program, as it was asked for.
        program: PathBuf,
        /// The `PATH` that was searched; none if the program was named with its folder.
        path: Option<String>,
    },
    /// There is no such program, but one that the first word of it names.
    #[error(
        "the command has {} in it: `{}` alone is the `command`, {CURE}{}",
        if *assigns { "variables" } else { "arguments" },
        program.display(),
        if *assigns { OF_VARIABLES } else { "" },
    )]
    CommandLine {
        /// The first word that is no `NAME=value`. The others may be secrets.
        program: PathBuf,
        /// Whether variables are set before it.
        assigns: bool,
    },
    /// The file is there, but may not be executed.
    #[error("`{}` is not an executable file", program.display())]
    NotExecutable {
        /// The file.
        program: PathBuf,
    },
    /// The file is a script or a program whose interpreter is missing.
    #[error("the interpreter that `{}` names (its `#!` line, or its loader) does not exist", program.display())]
    NoInterpreter {
        /// The file.
        program: PathBuf,
    },
    /// The kernel does not know what to do with the file.
    #[error("`{}` is neither a program for this machine nor a script with a `#!` line", program.display())]
    WrongFormat {
        /// The file.
        program: PathBuf,
    },
    /// We are about to end.
    #[error("nothing is started any more: we are shutting down")]
    ShuttingDown,
    /// The system refused.
    #[error("`{}` could not be started", program.display())]
    Io {
        /// The program.
        program: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl SpawnError {
    /// Says what an `exec` of `program` failed with.
    pub(super) fn not_executed(program: PathBuf, errno: i32) -> Self {
        match Errno::from_raw(errno) {
            Errno::EACCES => Self::NotExecutable { program },
            // The file itself was seen a moment ago.
            Errno::ENOENT => Self::NoInterpreter { program },
            Errno::ENOEXEC => Self::WrongFormat { program },
            other => Self::Io { program, source: other.into() },
        }
    }

    /// Returns the `PATH` in which the program was not found.
    ///
    /// It is long and says much of the machine, so the message doesn't have it.
    pub fn searched(&self) -> Option<&str> {
        match self {
            Self::NotFound { path, .. } => path.as_deref(),
            _ => None,
        }
    }
}

fn not_found(program: &Path, path: Option<&str>) -> String {
    let text = program.to_string_lossy();
    let what = if path.is_some() { "was not found in PATH" } else { "does not exist" };
    let shown = command_shown(&text);
    if !text.trim().contains(char::is_whitespace) {
        return format!("`{shown}` {what}");
    }
    let variables = if is_assignment(shown.as_str()) { OF_VARIABLES } else { "" };
    format!("`{shown}` {what}; the program alone is the `command`, {CURE}{variables}")
}

/// Returns a command without what may be a secret in it: a value that is set before the program,
/// and all that comes after the program.
pub fn command_shown(command: &str) -> String {
    let mut shown = Vec::new();
    let mut words = command.split_whitespace();
    for word in words.by_ref() {
        if !is_assignment(word) {
            shown.push(word.to_owned());
            break;
        }
        shown.push(format!("{}=***", word.split('=').next().unwrap_or_default()));
    }
    if words.next().is_some() {
        shown.push("…".to_owned());
    }
    shown.join(" ")
}

/// Says whether a word sets a variable, as before a shell's command.
fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// Finds the file that a child would execute, as `execvp` does, but with the *child's* `PATH`.
///
/// A name without a slash is looked for in the `PATH` of `env`; another one, and every relative
/// entry of `PATH`, is relative to `cwd`, the child's working directory (ours, if there is none).
pub fn resolve_program(
    program: &OsStr,
    env: &BTreeMap<String, String>,
    cwd: Option<&Path>,
) -> Result<PathBuf, SpawnError> {
    let cwd = working_directory(cwd)?;
    let error = match find(program, env, &cwd) {
        Err(error @ SpawnError::NotFound { .. }) => error,
        found => return found,
    };
    // A shell's command line is no program, but may begin with one.
    let line = program.to_string_lossy();
    let assigns = line.split_whitespace().next().is_some_and(is_assignment);
    let first = line.split_whitespace().find(|word| !is_assignment(word));
    match first.filter(|first| *first != line).map(OsStr::new) {
        Some(first) if find(first, env, &cwd).is_ok() => {
            Err(SpawnError::CommandLine { program: first.into(), assigns })
        }
        _ => Err(error),
    }
}

fn find(
    program: &OsStr,
    env: &BTreeMap<String, String>,
    cwd: &Path,
) -> Result<PathBuf, SpawnError> {
    if program.as_bytes().contains(&b'/') {
        let program = cwd.join(program);
        return match executable(&program) {
            Ok(true) => Ok(program),
            Ok(false) => Err(SpawnError::NotExecutable { program }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(SpawnError::NotFound { program, path: None })
            }
            Err(source) => Err(SpawnError::Io { program, source }),
        };
    }
    let path = env.get("PATH").map_or(DEFAULT_PATH, String::as_str);
    let mut unusable = None;
    for folder in std::env::split_paths(path).filter(|_| !program.is_empty()) {
        let file = cwd.join(folder).join(program);
        match executable(&file) {
            Ok(true) => return Ok(file),
            Ok(false) if !file.is_dir() => unusable = unusable.or(Some(file)),
            Ok(false) | Err(_) => {}
        }
    }
    Err(match unusable {
        Some(program) => SpawnError::NotExecutable { program },
        None => SpawnError::NotFound { program: program.into(), path: Some(path.to_owned()) },
    })
}

/// Returns the absolute working directory of a child, having seen that it can be entered.
pub(super) fn working_directory(cwd: Option<&Path>) -> Result<PathBuf, SpawnError> {
    let bad = |source| SpawnError::BadCwd { cwd: cwd.unwrap_or(Path::new(".")).into(), source };
    let absolute = std::path::absolute(cwd.unwrap_or(Path::new("."))).map_err(bad)?;
    if !absolute.metadata().map_err(bad)?.is_dir() {
        return Err(bad(io::ErrorKind::NotADirectory.into()));
    }
    access(&absolute, AccessFlags::X_OK).map_err(|errno| bad(errno.into()))?;
    Ok(absolute)
}

/// Reports whether an existing file may be executed.
fn executable(file: &Path) -> io::Result<bool> {
    Ok(file.metadata()?.is_file() && access(file, AccessFlags::X_OK).is_ok())
}

#[cfg(test)]
mod tests;
