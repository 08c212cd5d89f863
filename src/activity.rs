//! One record a call, written once, by whoever ends it.

use std::time::{Duration, Instant};

use crate::tool::CallContext;

/// Where records of calls go.
///
/// Arguments and results never do: they may hold secrets.
#[derive(Debug, Default)]
pub struct Activity(());

/// A call that has begun; ending it makes its record.
#[derive(Debug)]
pub struct Started {
    call_id: String,
    tool: String,
    principal: String,
    session: String,
    began: Instant,
}

/// How a call was decided upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// `allow`, `require_human`, `deny`, or `none` when it did not come to that.
    pub effect: &'static str,
    /// The rule that decided.
    pub rule: &'static str,
    /// Who answered for a person, if one had to.
    pub by: Option<&'static str>,
}

impl Decided {
    /// The call ended before anything was decided.
    pub const NOT: Self = Self { effect: "none", rule: "", by: None };
}

impl Activity {
    /// Notes that a call has begun.
    pub fn start(&self, tool: &str, cx: &CallContext) -> Started {
        Started {
            call_id: cx.call_id.as_str().to_owned(),
            tool: tool.to_owned(),
            principal: cx.principal.as_str().to_owned(),
            session: cx.session.as_str().to_owned(),
            began: Instant::now(),
        }
    }

    /// Writes the record of a call that has ended; `outcome` is `OK` or a code.
    pub fn end(&self, started: &Started, decided: Decided, outcome: &str) {
        let Started { call_id, tool, principal, session, began } = started;
        tracing::info!(
            call.id = call_id,
            tool.name = tool,
            principal,
            session.id = session,
            decision = decided.effect,
            rule = decided.rule,
            approved_by = decided.by,
            outcome,
            duration_ms = milliseconds(began.elapsed()),
            "call"
        );
    }
}

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
