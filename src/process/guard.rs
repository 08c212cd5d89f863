//! The guard: the process between the gateway and a child, that outlives neither.
//!
//! It is single-threaded, allocates little and copies nothing: the child's three streams are
//! pipes straight to the gateway. It sits in `poll` until its socket to the gateway or a
//! `SIGCHLD` wakes it.

use std::env::ArgsOs;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::{set_child_subreaper, set_name};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{close, dup2_stderr, dup2_stdin, dup2_stdout, setsid};
// nix makes an error of a child that a real-time signal ended.
use rustix::process::{Pid, WaitOptions, wait};

use super::wire::{Order, Report};
use super::{Leftovers, Role, handover, own_binary, table};

/// How long descendants get between `SIGTERM` and `SIGKILL` when no one orders anything.
const GRACE: Duration = Duration::from_secs(1);
/// How often the last descendants are looked for, at first and at most.
const PACE: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(500));
/// The exit code of a guard that could not do its work.
const FAILED: u8 = 125;

/// Guards the program that `args` names until it and all its descendants are gone.
pub(super) fn run(args: ArgsOs) -> ExitCode {
    let Ok(mut guard) = Guard::start(args) else { return ExitCode::from(FAILED) };
    match guard.watch() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(FAILED),
    }
}

struct Guard {
    /// The gateway; none once it is gone.
    gateway: Option<UnixStream>,
    signals: SignalFd,
    /// The trampoline; none once it is the program, or has failed.
    trampoline: Option<UnixStream>,
    child: Pid,
    leftovers: Leftovers,
    phase: Phase,
}

#[derive(Clone, Copy)]
enum Phase {
    /// The child runs, or what it left behind may.
    Watching,
    /// Every descendant was asked to end; they are killed at that moment, if there is one.
    Terminating(Option<Instant>),
    /// Descendants are killed until none is left, at this pace.
    Killing(Duration),
}

impl Guard {
    fn start(mut args: ArgsOs) -> io::Result<Self> {
        close_strays()?;
        // A terminal's Ctrl-C reaches its own session only: the gateway alone gives orders.
        setsid()?;
        set_child_subreaper(true)?;
        set_name(c"iris-mcp-guard")?;
        let signals = catch_signals()?;
        let mut gateway = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let stdin = handover::receive(&gateway)?;
        let leftovers = args.next().and_then(|word| Leftovers::parse(&word));
        let (Some(leftovers), Some(cwd)) = (leftovers, args.next()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let (ours, theirs) = UnixStream::pair()?;
        handover::send(&ours, stdin)?;
        let child = match start_trampoline(&cwd, args, theirs) {
            Ok(pid) => pid,
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(Errno::EIO as i32);
                gateway.write_all(&Report::NotForked(errno).encode())?;
                return Err(error);
            }
        };
        release_streams()?;
        gateway.set_nonblocking(true)?;
        ours.set_nonblocking(true)?;
        let phase = Phase::Watching;
        Ok(Self {
            gateway: Some(gateway),
            signals,
            trampoline: Some(ours),
            child,
            leftovers,
            phase,
        })
    }

    /// Returns when no descendant is left.
    fn watch(&mut self) -> io::Result<()> {
        while self.reap()? == Family::Alive {
            if let Phase::Terminating(Some(until)) = self.phase
                && until <= Instant::now()
            {
                self.phase = Phase::Killing(PACE.0);
            }
            if let Phase::Killing(pace) = self.phase {
                signal_all(Signal::SIGKILL);
                self.phase = Phase::Killing((pace * 2).min(PACE.1));
            }
            self.wait()?;
        }
        Ok(())
    }

    /// Waits for whatever comes first, and takes note of it.
    fn wait(&mut self) -> io::Result<()> {
        let timeout = match self.phase {
            Phase::Watching | Phase::Terminating(None) => PollTimeout::NONE,
            Phase::Terminating(Some(until)) => {
                let left = until.saturating_duration_since(Instant::now());
                PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
            }
            Phase::Killing(pace) => PollTimeout::try_from(pace).unwrap_or(PollTimeout::MAX),
        };
        let sockets = [self.gateway.as_ref(), self.trampoline.as_ref()];
        let mut files = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        for socket in sockets.into_iter().flatten() {
            files.push(PollFd::new(socket.as_fd(), PollFlags::POLLIN));
        }
        match poll(&mut files, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        // Who was it? All are asked; nothing here blocks.
        while let Ok(Some(_)) = self.signals.read_signal() {}
        self.hear_trampoline();
        self.hear_gateway();
        Ok(())
    }

    /// Takes the gateway's order, or its end for one.
    fn hear_gateway(&mut self) {
        let Some(gateway) = &mut self.gateway else { return };
        let mut byte = [0];
        let order = match gateway.read(&mut byte) {
            Err(error) if is_nothing_yet(&error) => return,
            Ok(0) | Err(_) => {
                self.gateway = None;
                return self.end_family(Some(Instant::now() + GRACE));
            }
            Ok(_) => Order::decode(byte[0]),
        };
        match order {
            Some(Order::Terminate) => self.end_family(None),
            Some(Order::Kill) => self.phase = Phase::Killing(PACE.0),
            None => {}
        }
    }

    /// Asks every descendant to end, once; kills them at `until`, if that is sooner than planned.
    fn end_family(&mut self, until: Option<Instant>) {
        self.phase = match self.phase {
            Phase::Watching => {
                signal_all(Signal::SIGTERM);
                // A stopped process hears nothing but this.
                signal_all(Signal::SIGCONT);
                Phase::Terminating(until)
            }
            Phase::Terminating(None) => Phase::Terminating(until),
            Phase::Terminating(Some(planned)) => {
                Phase::Terminating(Some(until.map_or(planned, |until| until.min(planned))))
            }
            Phase::Killing(pace) => Phase::Killing(pace),
        };
    }

    /// Learns how `exec` went: an errno, or an end without a word.
    fn hear_trampoline(&mut self) {
        let Some(trampoline) = &mut self.trampoline else { return };
        let mut errno = [0; 4];
        let report = match trampoline.read_exact(&mut errno) {
            Err(error) if is_nothing_yet(&error) => return,
            Err(_) => Report::Started(self.child.as_raw_nonzero().get()),
            Ok(()) => Report::NotExecuted(i32::from_le_bytes(errno)),
        };
        self.trampoline = None;
        self.tell(report);
    }

    /// Reaps all who have ended, the child and those who lost their parents to us.
    fn reap(&mut self) -> io::Result<Family> {
        loop {
            let (pid, status) = match wait(WaitOptions::NOHANG) {
                Ok(Some(ended)) => ended,
                Ok(None) => return Ok(Family::Alive),
                Err(rustix::io::Errno::CHILD) => return Ok(Family::Gone),
                Err(rustix::io::Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            };
            if pid != self.child {
                continue;
            }
            let report = match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => Report::Exited(code),
                (None, Some(signal)) => Report::Signalled(signal),
                (None, None) => continue,
            };
            // It is dead, so whatever it had to say of `exec` is there.
            self.hear_trampoline();
            self.tell(report);
            if self.leftovers == Leftovers::End {
                self.end_family(Some(Instant::now() + GRACE));
            }
        }
    }

    fn tell(&mut self, report: Report) {
        if let Some(gateway) = &mut self.gateway {
            // Whether the gateway still listens is learnt by reading.
            let _unheard = gateway.write_all(&report.encode());
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Alive,
    Gone,
}

fn is_nothing_yet(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Closes what our launcher's launcher left open: std opens nothing that a program inherits.
fn close_strays() -> io::Result<()> {
    let names: Vec<OsString> = fs::read_dir("/proc/self/fd")?
        .map(|entry| Ok(entry?.file_name()))
        .collect::<io::Result<_>>()?;
    for number in names.iter().filter_map(|name| name.to_str()?.parse::<i32>().ok()) {
        if number > 2 {
            // The folder we have just read is among them and closed already.
            let _closed = close(number);
        }
    }
    Ok(())
}

/// Turns `SIGCHLD`, and the signals that would end us, into something to poll.
///
/// The trampoline inherits that they are blocked, and undoes it.
fn catch_signals() -> io::Result<SignalFd> {
    // Were it ignored, which is inherited, the kernel would reap in our place.
    signal_hook::flag::register(Signal::SIGCHLD as i32, Arc::default())?;
    let mut signals = SigSet::empty();
    for signal in
        [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT]
    {
        signals.add(signal);
    }
    signals.thread_block()?;
    Ok(SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?)
}

fn start_trampoline(cwd: &OsString, program: ArgsOs, socket: UnixStream) -> io::Result<Pid> {
    // The very file we run, even if an update has put another one in its place.
    let mut command = own_binary("/proc/self/exe".as_ref(), Role::Trampoline);
    command.arg(std::process::id().to_string()).args(program).current_dir(cwd);
    command.stdin(Stdio::from(std::os::fd::OwnedFd::from(socket)));
    // Dropped at the end, so that no copy of the trampoline's socket stays here.
    Ok(Pid::from_child(&command.spawn()?))
}

/// Lets go of the child's streams, so that they end when it ends.
fn release_streams() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    Ok(())
}

fn signal_all(signal: Signal) {
    let me = std::process::id().cast_signed();
    for pid in table::descendants(&table::read(), &[me]) {
        // Gone already, or another user's: what can be done is tried again by the caller.
        let _refused = kill(nix::unistd::Pid::from_raw(pid), signal);
    }
}
