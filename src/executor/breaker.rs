//! The circuit breaker: a pure state machine per tool, fed with instants.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::tool::ErrorCode;

/// When a breaker opens and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How many failures in a row open it; at least 1.
    pub failure_threshold: u32,
    /// How long it stays open before one call may try.
    pub cooldown: Duration,
}

/// Counts failures in a row, by canonical tool name.
#[derive(Debug)]
pub struct Breaker {
    config: Config,
    states: HashMap<String, State>,
}

#[derive(Debug)]
struct State {
    failures: u32,
    opened_at: Option<Instant>,
    last: ErrorCode,
}

/// The breaker is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The code of the last failure.
    pub last: ErrorCode,
}

impl Default for Config {
    fn default() -> Self {
        Self { failure_threshold: 3, cooldown: Duration::from_secs(30) }
    }
}

impl Breaker {
    /// Makes a closed breaker; a threshold of 0 counts as 1.
    pub fn new(config: Config) -> Self {
        let failure_threshold = config.failure_threshold.max(1);
        Self { config: Config { failure_threshold, ..config }, states: HashMap::new() }
    }

    /// Says whether a call may run now.
    ///
    /// After the cooldown calls may try again; the count survives, so one failure re-opens.
    pub fn before_call(&mut self, tool: &str, now: Instant) -> Result<(), Open> {
        let Some(state) = self.states.get_mut(tool) else {
            return Ok(());
        };
        match state.opened_at {
            Some(opened_at) if now.duration_since(opened_at) < self.config.cooldown => {
                Err(Open { last: state.last.clone() })
            }
            _ => {
                state.opened_at = None;
                Ok(())
            }
        }
    }

    /// Takes note of what a body came to; a success forgets everything.
    pub fn after_result(&mut self, tool: &str, failure: Option<&ErrorCode>, now: Instant) {
        let Some(code) = failure else {
            self.states.remove(tool);
            return;
        };
        let state = self.states.entry(tool.to_owned()).or_insert_with(|| State {
            failures: 0,
            opened_at: None,
            last: code.clone(),
        });
        state.failures = state.failures.saturating_add(1);
        state.last = code.clone();
        if state.failures >= self.config.failure_threshold {
            state.opened_at = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: ErrorCode = ErrorCode::new("E1");

    fn breaker(failure_threshold: u32) -> Breaker {
        Breaker::new(Config { failure_threshold, cooldown: Duration::from_secs(30) })
    }

    #[test]
    fn ex_4_7_a_failing_probe_reopens_at_once() {
        let mut breaker = breaker(2);
        let start = Instant::now();
        let later = start + Duration::from_secs(30);
        breaker.after_result("t", Some(&CODE), start);
        assert_eq!(breaker.before_call("t", start), Ok(()));
        breaker.after_result("t", Some(&CODE), start);
        assert_eq!(breaker.before_call("t", start), Err(Open { last: CODE }));
        assert_eq!(breaker.before_call("other", start), Ok(()));
        assert_eq!(breaker.before_call("t", later), Ok(()));
        breaker.after_result("t", Some(&CODE), later);
        assert_eq!(breaker.before_call("t", later), Err(Open { last: CODE }));
    }

    #[test]
    fn one_success_forgets_everything() {
        let mut breaker = breaker(2);
        let now = Instant::now();
        breaker.after_result("t", Some(&CODE), now);
        breaker.after_result("t", None, now);
        breaker.after_result("t", Some(&CODE), now);
        assert_eq!(breaker.before_call("t", now), Ok(()));
    }

    #[test]
    fn a_threshold_of_zero_is_one_and_no_cooldown_always_probes() {
        let mut breaker = Breaker::new(Config { failure_threshold: 0, cooldown: Duration::ZERO });
        let now = Instant::now();
        breaker.after_result("t", Some(&CODE), now);
        assert_eq!(breaker.before_call("t", now), Ok(()));
    }
}
