//! How many legacy sessions there are at most, and which one goes when another wants its place.
//!
//! Anybody who may connect can open sessions without end, and one that is never closed stays for
//! hours. A new one is not refused for those: what nobody ever used goes first, then what is idle
//! longest. So a flood ends its own sessions, and an honest client that lost one to a full house
//! is told so in the way the protocol has for it, and begins another.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The sessions there are.
#[derive(Debug)]
pub(super) struct Seats {
    most: NonZeroUsize,
    taken: Mutex<HashMap<String, Seat>>,
}

#[derive(Clone, Copy, Debug)]
struct Seat {
    /// When it was used last.
    since: Instant,
    /// Whether it was used for anything but the handshake.
    used: bool,
    /// How many requests and streams of it are under way.
    busy: usize,
}

/// Keeps a session from being ended for another one while something of it is under way.
#[derive(Debug)]
pub(super) struct Busy {
    seats: Arc<Seats>,
    session: String,
}

impl Seats {
    pub(super) fn new(most: NonZeroUsize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// Returns the session that has to end before there can be another; none if there is room.
    ///
    /// `Err` says that all of them have something under way.
    pub(super) fn outgoing(&self) -> Result<Option<String>, Full> {
        let mut taken = self.taken();
        let first = self.first(&taken)?;
        if let Some(first) = &first {
            taken.remove(first);
        }
        Ok(first)
    }

    /// Says why there can be no more sessions, if there can be none.
    pub(super) fn full(&self) -> Option<Full> {
        self.first(&self.taken()).err()
    }

    fn first(&self, taken: &HashMap<String, Seat>) -> Result<Option<String>, Full> {
        if taken.len() < self.most.get() {
            return Ok(None);
        }
        let idle = taken.iter().filter(|(_, seat)| seat.busy == 0);
        let first = idle.min_by_key(|(_, seat)| (seat.used, seat.since));
        first.map(|(session, _)| Some(session.clone())).ok_or(Full(self.most))
    }

    /// Notes a session that has begun.
    pub(super) fn take(&self, session: &str) {
        let seat = Seat { since: Instant::now(), used: false, busy: 0 };
        self.taken().insert(session.to_owned(), seat);
    }

    /// Notes one that has ended.
    pub(super) fn leave(&self, session: &str) {
        self.taken().remove(session);
    }

    /// Notes that something of a session is under way, until what is returned is dropped.
    pub(super) fn busy(self: &Arc<Self>, session: &str) -> Busy {
        if let Some(seat) = self.taken().get_mut(session) {
            (seat.used, seat.busy) = (true, seat.busy + 1);
        }
        Busy { seats: Arc::clone(self), session: session.to_owned() }
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<String, Seat>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Busy {
    /// Notes that it is still being used.
    pub(super) fn touch(&self) {
        if let Some(seat) = self.seats.taken().get_mut(&self.session) {
            seat.since = Instant::now();
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(seat) = self.seats.taken().get_mut(&self.session) {
            (seat.since, seat.busy) = (Instant::now(), seat.busy.saturating_sub(1));
        }
    }
}

/// Why there can be no more sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} sessions are all in use (limits.max_sessions); try again later")]
pub(super) struct Full(NonZeroUsize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_used_goes_before_what_is_idle_and_what_is_busy_stays() {
        let seats = Seats::new(NonZeroUsize::new(3).unwrap());
        for session in ["honest", "busy", "flood"] {
            assert_eq!(seats.outgoing(), Ok(None));
            seats.take(session);
        }
        drop(seats.busy("honest"));
        let busy = seats.busy("busy");
        assert_eq!(seats.outgoing(), Ok(Some("flood".to_owned())));
        seats.take("more");
        assert_eq!(seats.outgoing(), Ok(Some("more".to_owned())));
        seats.take("young");
        drop(seats.busy("young"));
        assert_eq!(seats.outgoing(), Ok(Some("honest".to_owned())));
        seats.take("last");
        let all = [seats.busy("young"), seats.busy("last")];
        let full = seats.outgoing().unwrap_err();
        assert!(full.to_string().starts_with("3 sessions are all in use"), "{full}");
        drop((busy, all));
        assert_eq!(seats.outgoing(), Ok(Some("busy".to_owned())));
        seats.leave("young");
        assert_eq!(seats.outgoing(), Ok(None));
    }
}
