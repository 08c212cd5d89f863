//! How long to wait before something that failed is tried again.

use std::time::Duration;

use tokio::time::Instant;

/// The first wait.
const FIRST: Duration = Duration::from_secs(1);
/// The longest wait.
pub(super) const LONGEST: Duration = Duration::from_mins(1);

/// Waits that double, from one second or another one to one minute, each made longer by chance.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    first: Duration,
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::from(FIRST)
    }
}

impl From<Duration> for Backoff {
    fn from(first: Duration) -> Self {
        let first = first.min(LONGEST);
        Self { first, next: first }
    }
}

impl Backoff {
    /// Returns the next wait.
    pub(super) fn wait(&mut self) -> Duration {
        self.wait_by(rand::random())
    }

    /// Returns the next wait after something that went well from `began` on: if it lasted for
    /// longer than the longest wait, it is the first one.
    pub(super) fn after(&mut self, began: Instant) -> Duration {
        if began.elapsed() > LONGEST {
            self.next = self.first;
        }
        self.wait()
    }

    /// Returns the wait, and up to a quarter more by `chance` from 0 to 1.
    fn wait_by(&mut self, chance: f64) -> Duration {
        let wait = self.next;
        self.next = (wait * 2).min(LONGEST);
        wait.mul_f64(1.0 + chance / 4.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute_and_vary() {
        let mut backoff = Backoff::default();
        let waits: Vec<u64> = (0..8).map(|_| backoff.wait_by(0.0).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff.wait_by(1.0).as_secs(), 75);
        let mut backoff = Backoff::from(Duration::from_hours(1));
        assert_eq!(backoff.wait_by(0.0).as_secs(), 60);
    }
}
