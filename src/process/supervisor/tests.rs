//! Tests of the ladder.

use std::time::Duration;

use tokio::time::Instant;

use super::{GUARD_PATIENCE, Grace, Ladder, Rung};

const GRACE: Grace = Grace { stdin: Duration::from_secs(20), term: Duration::from_secs(10) };

#[test]
fn each_rung_has_its_time() {
    let now = Instant::now();
    let mut ladder = Ladder::default();
    assert!(!ladder.begun());
    ladder.begin(GRACE, now);
    assert_eq!(ladder.until, Some(now + GRACE.stdin));
    assert_eq!(ladder.climb(now), Rung::Terminate);
    assert_eq!(ladder.until, Some(now + GRACE.term));
    assert_eq!(ladder.climb(now), Rung::Kill);
    assert_eq!(ladder.until, Some(now + GUARD_PATIENCE));
    assert_eq!(ladder.climb(now), Rung::KillGuard);
    assert_eq!(ladder.until, None);
}

#[test]
fn no_grace_kills_at_once() {
    let now = Instant::now();
    let mut ladder = Ladder::default();
    ladder.begin(Grace::NONE, now);
    assert_eq!(ladder.until, Some(now));
    assert_eq!(ladder.climb(now), Rung::Kill);
}

#[test]
fn a_second_stop_hurries_and_never_delays() {
    let now = Instant::now();
    let mut ladder = Ladder::default();
    ladder.begin(GRACE, now);
    ladder.begin(Grace { stdin: Duration::from_secs(100), ..GRACE }, now);
    assert_eq!(ladder.until, Some(now + GRACE.stdin));
    ladder.climb(now);
    let soon = now + Duration::from_secs(1);
    ladder.begin(Grace::NONE, soon);
    assert_eq!(ladder.until, Some(soon));
    assert_eq!(ladder.climb(soon), Rung::Kill);
}
