//! What becomes ours when a guard is killed, and its end.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getsid};

use super::table::{self, Entry};

/// How long orphans are killed before we give up on those that cannot be.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often they are looked for.
const PACE: Duration = Duration::from_millis(10);

/// The guards of this process that run.
///
/// Whose child a process is, is a property of the whole process, and so is this list.
static GUARDS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Makes this process the one that inherits the orphans of its descendants.
///
/// Then nothing is left when a guard is killed. From here on, a child process in another session
/// than ours counts as such an orphan after a guard has died: an embedder that starts children
/// with `setsid` on its own, outside this module, must not call this.
pub fn become_subreaper() -> io::Result<()> {
    Ok(set_child_subreaper(true)?)
}

/// Holds still which guards there are; add a new one before letting go.
pub(super) fn guards() -> MutexGuard<'static, BTreeSet<i32>> {
    GUARDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills and reaps what dead guards left to us; returns how many processes resisted.
pub(super) async fn sweep() -> usize {
    let until = Instant::now() + PATIENCE;
    loop {
        let left = sweep_once();
        if left == 0 || Instant::now() > until {
            return left;
        }
        tokio::time::sleep(PACE).await;
    }
}

fn sweep_once() -> usize {
    // While this is held no guard starts, so none is taken for an orphan.
    let guards = guards();
    let table = table::read();
    let me = std::process::id().cast_signed();
    let Ok(session) = getsid(None) else { return 0 };
    let mut left = adopted(&table, me, session.as_raw(), &guards);
    let direct = left.len();
    left.extend(table::descendants(&table, &left));
    for pid in &left {
        let _gone = kill(Pid::from_raw(*pid), Signal::SIGKILL);
    }
    for pid in &left[..direct] {
        let _running = waitpid(Pid::from_raw(*pid), Some(WaitPidFlag::WNOHANG));
    }
    left.len()
}

/// Returns our children that are neither guards nor our own.
///
/// Guards and children have sessions of their own, and a process can only leave a session for a
/// new one: no orphan is ever in ours.
fn adopted(table: &[Entry], me: i32, session: i32, guards: &BTreeSet<i32>) -> Vec<i32> {
    table
        .iter()
        .filter(|entry| entry.parent == me && entry.session != session)
        .map(|entry| entry.pid)
        .filter(|pid| !guards.contains(pid))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Entry, adopted};

    #[test]
    fn guards_and_children_of_our_session_are_no_orphans() {
        let entry = |pid, parent, session| Entry { pid, parent, session };
        let table = [
            entry(10, 1, 10),
            entry(11, 10, 10),
            entry(20, 10, 20),
            entry(21, 20, 21),
            entry(30, 10, 30),
        ];
        assert_eq!(adopted(&table, 10, 10, &BTreeSet::from([20])), [30]);
    }
}
