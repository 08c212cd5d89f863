//! Finds what is left of a test's processes.

use std::fmt;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long the most stubborn family may live after its host.
const DEADLINE: Duration = Duration::from_secs(3);

/// A text in the environment of every process of a test, and in no other.
#[derive(Debug)]
pub(crate) struct Mark(String);

impl From<&str> for Mark {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Mark {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let random = fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap();
        Self(format!("mark-{}-{number}-{}", std::process::id(), random.trim()))
    }

    /// Returns the processes that carry the mark.
    pub(crate) fn bearers(&self) -> Vec<i32> {
        processes()
            .filter(|pid| {
                let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environ.windows(self.0.len()).any(|piece| piece == self.0.as_bytes())
            })
            .collect()
    }

    /// Returns how many of those that carry the mark ignore `SIGTERM`.
    pub(crate) fn deaf(&self) -> usize {
        self.bearers().into_iter().filter(|pid| is_deaf(*pid)).count()
    }

    /// Fails if anything carries the mark.
    #[track_caller]
    pub(crate) fn has_vanished(&self) {
        let bearers = self.bearers();
        assert!(bearers.is_empty(), "left: {bearers:?}");
    }

    /// Waits until nothing carries the mark.
    #[track_caller]
    pub(crate) fn vanishes(&self) {
        eventually("nothing is left", || self.bearers().is_empty());
    }

    /// Kills whatever carries the mark.
    pub(crate) fn kill(&self) {
        eventually("all are killed", || {
            let bearers = self.bearers();
            for pid in &bearers {
                let _gone = kill(Pid::from_raw(*pid), Signal::SIGKILL);
            }
            bearers.is_empty()
        });
    }
}

/// Returns every process id there is.
fn processes() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
}

/// Reports whether a process ignores `SIGTERM`.
pub(crate) fn is_deaf(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or(0) & (1 << (Signal::SIGTERM as i32 - 1)) != 0
}

/// Returns the parent of a process.
pub(crate) fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Returns the children of a process, zombies included.
pub(crate) fn children(of: Pid) -> Vec<i32> {
    processes().filter(|pid| parent(*pid) == Some(of.as_raw())).collect()
}

/// Waits until `condition` holds, and fails if it does not within three seconds.
#[track_caller]
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < until, "not within {DEADLINE:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
