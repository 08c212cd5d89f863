//! A call through its states: requested, checked, permitted.
//!
//! A state you must have passed through is a type: only this module's parents make a
//! [`Checked`] or a [`Permitted`], and only a [`Permitted`] reaches a body.

use std::sync::Arc;

use crate::activity::{Decided, Started};
use crate::permission::{Decision, Request};
use crate::tool::{Arguments, Tool, ToolResult, Valid};

/// A call as it came in, with its tool found.
#[derive(Debug)]
pub struct Requested {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// The name the caller used.
    pub name: String,
    /// The name that clients see it by.
    pub wire: String,
    /// The arguments as they came.
    pub arguments: Arguments,
}

/// A call whose arguments are valid.
#[derive(Debug)]
pub struct Checked {
    tool: Arc<dyn Tool>,
    names: Names,
    valid: Valid,
    started: Started,
}

/// What the tool of a call is called besides its canonical name.
#[derive(Debug)]
pub(super) struct Names {
    /// By the caller.
    pub(super) name: String,
    /// In lists of clients.
    pub(super) wire: String,
}

/// A call that may run.
#[derive(Debug)]
pub struct Permitted {
    checked: Checked,
    granted: Option<Granted>,
}

/// Who said yes for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Granted(pub(super) &'static str);

/// What [`Executor::prepare`](super::Executor::prepare) comes to.
#[derive(Debug)]
pub enum Prepared {
    /// It may run.
    Ready(Permitted),
    /// It may not; this is the answer.
    Refused(ToolResult),
    /// A person has to be asked, and the answer comes with another request.
    Ask(Ask),
}

/// A call that waits for a person's answer; nothing of it has run.
#[derive(Debug)]
pub struct Ask {
    checked: Checked,
    decision: Decision,
    request: Request,
}

impl Checked {
    pub(super) fn new(tool: Arc<dyn Tool>, names: Names, valid: Valid, started: Started) -> Self {
        Self { tool, names, valid, started }
    }

    /// Returns the tool.
    pub fn tool(&self) -> &Arc<dyn Tool> {
        &self.tool
    }

    /// Returns the name the caller used.
    pub fn name(&self) -> &str {
        &self.names.name
    }

    /// Returns the name that clients see the tool by.
    pub(super) fn wire(&self) -> &str {
        &self.names.wire
    }

    /// Returns the arguments.
    pub fn valid(&self) -> &Valid {
        &self.valid
    }

    pub(super) fn started(&self) -> &Started {
        &self.started
    }

    /// Notes for the record how the call was decided upon.
    pub(super) fn decide(&mut self, decision: &Decision, granted: Option<Granted>) {
        let Decision { effect, rule, reason: _ } = decision;
        let by = granted.map(|Granted(by)| by);
        self.started.decide(Decided { effect: effect.as_str(), rule: Some(rule), by });
    }
}

impl Permitted {
    pub(super) fn new(mut checked: Checked, decision: &Decision, granted: Option<Granted>) -> Self {
        checked.decide(decision, granted);
        Self { checked, granted }
    }

    /// Returns the call.
    pub fn checked(&self) -> &Checked {
        &self.checked
    }

    pub(super) fn started(&self) -> &Started {
        &self.checked.started
    }

    /// Returns whether a person, or somebody for him, had to say yes.
    pub(super) fn was_granted(&self) -> bool {
        self.granted.is_some()
    }
}

impl Ask {
    pub(super) fn new(checked: Checked, decision: Decision, request: Request) -> Self {
        Self { checked, decision, request }
    }

    /// Returns what a person is asked.
    pub fn request(&self) -> &Request {
        &self.request
    }

    pub(super) fn checked(&self) -> &Checked {
        &self.checked
    }

    pub(super) fn decision(&self) -> &Decision {
        &self.decision
    }
}
