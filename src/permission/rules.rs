//! What the operator says of single tools: globs over names and capabilities.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::tool::ToolDefinition;

/// The operator's rules; each is a set of globs.
///
/// A glob is held against the tool's canonical name, its aliases, the name its own server gives
/// it, and the names of its capabilities (`write`, `execute`, `network`, `mcp`, …).
#[derive(Clone, Debug, Default)]
pub struct Rules {
    permit: GlobSet,
    ask: GlobSet,
    forbid: GlobSet,
}

/// A rule that is no glob.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{glob}` is no glob: {problem}")]
pub struct BadRule {
    /// The rule as it was written.
    pub glob: String,
    /// What is wrong with it.
    pub problem: String,
}

impl Rules {
    /// Compiles the rules.
    pub fn new(permit: &[String], ask: &[String], forbid: &[String]) -> Result<Self, BadRule> {
        Ok(Self { permit: set(permit)?, ask: set(ask)?, forbid: set(forbid)? })
    }

    pub(super) fn permits(&self, definition: &ToolDefinition) -> bool {
        matches(&self.permit, definition)
    }

    pub(super) fn asks(&self, definition: &ToolDefinition) -> bool {
        matches(&self.ask, definition)
    }

    pub(super) fn forbids(&self, definition: &ToolDefinition) -> bool {
        matches(&self.forbid, definition)
    }
}

fn set(globs: &[String]) -> Result<GlobSet, BadRule> {
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        let bad = |error: globset::Error| BadRule {
            glob: glob.clone(),
            problem: error.kind().to_string(),
        };
        builder.add(GlobBuilder::new(glob).build().map_err(bad)?);
    }
    builder.build().map_err(|error| BadRule { glob: globs.join(", "), problem: error.to_string() })
}

fn matches(set: &GlobSet, definition: &ToolDefinition) -> bool {
    if set.is_empty() {
        return false;
    }
    let native = definition.native.as_ref().and_then(|native| native.get("name")?.as_str());
    set.is_match(definition.name.as_str())
        || definition.aliases.iter().any(|alias| set.is_match(alias))
        || native.is_some_and(|name| set.is_match(name))
        || definition.capabilities.iter().any(|capability| set.is_match(capability.as_str()))
}
