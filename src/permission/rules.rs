//! What the operator says of single tools: globs over names and capabilities.

use std::borrow::Cow;

use crate::tool::{BadPattern, Capability, Patterns, ToolDefinition};

/// The operator's rules.
///
/// A glob is held against everything that a tool is called: its canonical name, its aliases, the
/// name that clients see, the name its own server gives it, alone and after the server's name; and
/// against the names of its capabilities (`write`, `execute`, `network`, `mcp`, …).
#[derive(Clone, Debug, Default)]
pub struct Rules {
    permit: Written,
    ask: Written,
    forbid: Written,
}

/// Rules of one kind, and where they are written.
#[derive(Clone, Debug, Default)]
pub struct Written {
    globs: Patterns,
    place: Option<String>,
}

/// A rule that concerns no tool there is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: `{glob}` matches no tool, neither by a name nor by a capability")]
pub struct Idle {
    /// The flag that gives rules of its kind.
    pub flag: &'static str,
    /// The rule as it was written.
    pub glob: String,
    /// Where it is written.
    pub place: String,
}

/// Says of every tool what it is and what clients call it.
pub type Known<'a> = (&'a ToolDefinition, &'a str);

/// The flag that gives rules of what needs nobody's approval.
pub(super) const PERMIT: &str = "--permit";
/// The flag that gives rules of what is always asked for.
pub(super) const ASK: &str = "--ask";
/// The flag that gives rules of what is always refused.
pub const FORBID: &str = "--forbid";

impl Written {
    /// Compiles rules; `place` says where they are written, if it is not the flag.
    pub fn new(globs: &[impl AsRef<str>], place: Option<String>) -> Result<Self, BadPattern> {
        Ok(Self { globs: Patterns::new(globs)?, place })
    }

    fn place(&self, flag: &'static str) -> String {
        self.place.clone().unwrap_or_else(|| flag.to_owned())
    }

    /// Returns the rule that fits a tool, with its place.
    fn find(&self, (definition, wire): Known<'_>, flag: &'static str) -> Option<String> {
        if self.globs.is_empty() {
            return None;
        }
        let glob = self.globs.find(words(definition, wire))?;
        Some(format!("{}: `{glob}`", self.place(flag)))
    }
}

impl Rules {
    /// Puts the rules of an operator together.
    pub fn new(permit: Written, ask: Written, forbid: Written) -> Self {
        Self { permit, ask, forbid }
    }

    /// Returns the rules that concern none of these tools.
    ///
    /// One that is the word for a capability is for whatever may come, and never idle.
    pub fn idle<'a>(&self, tools: impl Iterator<Item = Known<'a>> + Clone) -> Vec<Idle> {
        let is_capability =
            |glob: &str| Capability::ALL.iter().any(|capability| capability.as_str() == glob);
        let rules = [(PERMIT, &self.permit), (ASK, &self.ask), (FORBID, &self.forbid)];
        let mut idle = Vec::new();
        for (flag, written) in rules {
            if written.globs.is_empty() {
                continue;
            }
            let words = tools.clone().flat_map(|(definition, wire)| words(definition, wire));
            let unused =
                written.globs.unused(words).into_iter().filter(|glob| !is_capability(glob));
            idle.extend(unused.map(|glob| Idle {
                flag,
                glob: glob.to_owned(),
                place: written.place(flag),
            }));
        }
        idle
    }

    pub(super) fn permits(&self, tool: Known<'_>) -> bool {
        self.permit.find(tool, PERMIT).is_some()
    }

    /// Returns the rule that a tool is to be asked for by.
    pub(super) fn asks(&self, tool: Known<'_>) -> Option<String> {
        self.ask.find(tool, ASK)
    }

    /// Returns the rule that a tool is refused by.
    pub(super) fn forbids(&self, tool: Known<'_>) -> Option<String> {
        self.forbid.find(tool, FORBID)
    }
}

/// Returns everything that a glob is held against.
fn words<'a>(definition: &'a ToolDefinition, wire: &'a str) -> impl Iterator<Item = Cow<'a, str>> {
    let capabilities = definition.capabilities.iter().map(|one| Cow::from(one.as_str()));
    definition.spellings().chain(std::iter::once(Cow::from(wire))).chain(capabilities)
}
