//! How long a call may take, and what prolongs it.

use std::time::Duration;

use tokio::time::Instant;

/// Whether reports of progress prolong a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Renewal {
    /// They don't.
    #[default]
    Never,
    /// Its time begins anew with each; with all of them it may take so long at most.
    WithProgress {
        /// Nothing means for as long as there is progress.
        most: Option<Duration>,
    },
}

/// Until when one call is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// How long it may take without a sign of life.
    pub(super) time: Duration,
    /// When that is up.
    pub(super) due: Instant,
    /// Whether progress prolongs it.
    renewed: bool,
    /// The latest that can be, however much progress there is.
    latest: Option<Instant>,
}

impl Patience {
    /// Begins to wait; `whole` limits a call however much progress it makes.
    pub(super) fn new(
        now: Instant,
        time: Duration,
        renewal: Renewal,
        whole: Option<Duration>,
    ) -> Self {
        let (renewed, most) = match renewal {
            Renewal::Never => (false, None),
            Renewal::WithProgress { most } => (true, most),
        };
        let latest = [most, whole].into_iter().flatten().min().map(|least| now + least);
        Self { time, due: now + time, renewed, latest }
    }

    /// Says whether progress prolongs it.
    pub(super) fn is_renewed(self) -> bool {
        self.renewed
    }

    /// Hears of progress.
    pub(super) fn renew(&mut self, now: Instant) {
        if self.renewed {
            let due = now + self.time;
            self.due = self.due.max(self.latest.map_or(due, |latest| due.min(latest)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[track_caller]
    fn check(renewal: Renewal, whole: Option<Duration>, expected: u64) {
        let now = Instant::now();
        let mut patience = Patience::new(now, s(10), renewal, whole);
        for at in [4, 9, 15] {
            patience.renew(now + s(at));
        }
        assert_eq!(patience.due - now, s(expected), "{renewal:?} {whole:?}");
    }

    #[test]
    fn progress_prolongs_a_call_where_it_is_said_to_and_up_to_a_limit() {
        let with = |most| Renewal::WithProgress { most };
        check(Renewal::Never, None, 10);
        check(Renewal::Never, Some(s(30)), 10);
        check(with(None), None, 25);
        check(with(Some(s(20))), None, 20);
        check(with(Some(s(60))), None, 25);
        check(with(Some(s(60))), Some(s(12)), 12);
        // A limit below the time of one sign of life takes nothing away from that.
        check(with(Some(s(5))), None, 10);
    }
}
