//! The last step before a program: what it inherits is set here, then this process becomes it.
//!
//! All of it could happen between `fork` and `exec`, but not without `unsafe`.

use std::convert::Infallible;
use std::env::{ArgsOs, vars_os};
use std::ffi::{CString, OsString};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{dup2_stdin, execve, getppid, setsid};

use super::{environment, handover};

/// The exit code of a trampoline that could not become the program.
const NOT_EXECUTED: u8 = 127;

/// Becomes the program that `args` names: the guard's process id, the file, its arguments.
///
/// Our standard input is a socket to the guard. It brings the program's standard input, and if
/// `exec` fails, takes the errno back; if it succeeds, the socket closes without a word.
pub(super) fn run(args: ArgsOs) -> ExitCode {
    let Ok(guard) = io::stdin().as_fd().try_clone_to_owned() else {
        return ExitCode::from(NOT_EXECUTED);
    };
    let mut guard = UnixStream::from(guard);
    let Err(errno) = become_program(&guard, args);
    // If even this fails, the guard sees an exit code and no errno.
    let _unheard = guard.write_all(&(errno as i32).to_le_bytes());
    ExitCode::from(NOT_EXECUTED)
}

fn become_program(guard: &UnixStream, mut words: ArgsOs) -> Result<Infallible, Errno> {
    let parent: i32 =
        words.next().and_then(|pid| pid.to_str()?.parse().ok()).ok_or(Errno::EINVAL)?;
    let stdin = handover::receive(guard).map_err(errno)?;
    dup2_stdin(&stdin)?;
    // A program that kills its own process group must not hit the guard.
    setsid()?;
    set_pdeathsig(Signal::SIGKILL)?;
    if getppid().as_raw() != parent {
        // The guard was gone before we asked to die with it.
        return Err(Errno::ESRCH);
    }
    // The guard has blocked some.
    SigSet::empty().thread_set_mask()?;
    // The Rust runtime ignores SIGPIPE, whoever started the gateway may ignore SIGCHLD, and
    // programs expect to inherit neither. `exec` gives a signal with a handler its default
    // again; there is no other way without `unsafe`.
    for signal in [Signal::SIGPIPE, Signal::SIGCHLD] {
        signal_hook::flag::register(signal as i32, Arc::default()).map_err(errno)?;
    }
    let argv: Vec<CString> = words.map(text).collect::<Result<_, _>>()?;
    let file = argv.first().ok_or(Errno::EINVAL)?;
    let env: Vec<CString> = environment::unpack(vars_os()).collect();
    // Not std's `exec`: it is `execvp`, which feeds a file of unknown format to `sh`.
    execve(file, &argv, &env)
}

fn text(arg: OsString) -> Result<CString, Errno> {
    CString::new(arg.into_vec()).map_err(|_| Errno::EINVAL)
}

fn errno(error: io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(Errno::EIO as i32))
}
