//! One record a call, written once, by whoever ends it.
//!
//! It goes to the log, and to a file of its own where the operator wants one. What is in it is
//! for audits: who called what, how it was decided, and what came of it.

mod journal;
mod record;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use self::journal::Journal;
use self::record::Record;
use crate::tool::{CallContext, CallId, Principal, SessionId};

pub use self::journal::JournalError;

/// The outcome of a call that nobody waits for any more.
pub const CANCELLED: &str = "CANCELLED";
/// The outcome of a call that is to be made again, with a person's answer.
pub const INPUT_REQUIRED: &str = "INPUT_REQUIRED";
/// The outcome of a call that a fault of ours ended.
const INTERNAL_ERROR: &str = "INTERNAL_ERROR";

/// Where records go besides the log.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The file they are appended to; none without one.
    pub file: Option<PathBuf>,
}

/// Where records of calls go.
///
/// Arguments and results never do: they may hold secrets.
#[derive(Debug, Default)]
pub struct Activity {
    journal: Option<Journal>,
}

/// Who makes a call.
#[derive(Clone, Debug)]
pub struct Who {
    /// Who is calling.
    pub principal: Principal,
    /// The session it belongs to.
    pub session: SessionId,
    /// The name that the client gives itself.
    pub client: String,
}

/// A call that has begun; ending it makes its record.
///
/// One that is dropped was cancelled, or broken off by a panic, and its record says so.
#[derive(Debug)]
pub struct Started {
    activity: Arc<Activity>,
    call_id: CallId,
    tool: String,
    who: Who,
    decided: Decided,
    began: Instant,
    ended: AtomicBool,
}

/// Makes the record of a call that was not ended when this is dropped.
#[derive(Debug)]
pub struct Watch<'a>(&'a Started);

/// How a call was decided upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// `allow`, `require_human`, `deny`, or `none` when it did not come to that.
    pub effect: &'static str,
    /// The rule that decided.
    pub rule: Option<&'static str>,
    /// Who answered for a person, if one had to.
    pub by: Option<&'static str>,
}

impl Decided {
    /// The call ended before anything was decided.
    pub const NOT: Self = Self { effect: "none", rule: None, by: None };
}

impl Activity {
    /// Opens the file, if there is to be one.
    pub fn open(config: &Config) -> Result<Self, JournalError> {
        let journal = config.file.as_deref().map(Journal::open).transpose()?;
        Ok(Self { journal })
    }

    /// Notes that a call has begun.
    pub fn start(self: &Arc<Self>, tool: &str, cx: &CallContext) -> Started {
        let who = Who {
            principal: cx.principal.clone(),
            session: cx.session.clone(),
            client: cx.client.name.clone(),
        };
        self.begin(tool, cx.call_id.clone(), who)
    }

    /// Writes the record of a call that found no tool, or came with a state that does not hold.
    pub fn turn_away(self: &Arc<Self>, name: &str, call_id: CallId, who: Who, outcome: &str) {
        self.begin(name, call_id, who).end(outcome);
    }

    fn begin(self: &Arc<Self>, tool: &str, call_id: CallId, who: Who) -> Started {
        Started {
            activity: Arc::clone(self),
            call_id,
            tool: record::shown(tool).to_owned(),
            who,
            decided: Decided::NOT,
            began: Instant::now(),
            ended: AtomicBool::new(false),
        }
    }
}

impl Started {
    /// Notes how the call was decided upon.
    pub fn decide(&mut self, decided: Decided) {
        self.decided = decided;
    }

    /// Writes the record of the call; `outcome` is `OK` or a code.
    pub fn end(&self, outcome: &str) {
        if self.ended.swap(true, Ordering::Relaxed) {
            return;
        }
        let Self { activity, call_id, tool, who, decided, began, ended: _ } = self;
        let record = Record {
            time: SystemTime::now(),
            call_id: call_id.as_str(),
            tool,
            principal: who.principal.as_str(),
            session: who.session.as_str(),
            client: record::shown(&who.client),
            decided: *decided,
            outcome,
            took: began.elapsed(),
        };
        record.log();
        if let Some(journal) = &activity.journal {
            journal.append(&record.line(), Instant::now());
        }
    }

    /// Returns what makes the record when it is dropped, should others still hold the call.
    pub fn watch(&self) -> Watch<'_> {
        Watch(self)
    }

    fn abandon(&self) {
        self.end(if std::thread::panicking() { INTERNAL_ERROR } else { CANCELLED });
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

#[cfg(test)]
mod tests;
