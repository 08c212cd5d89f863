//! What the operator says of single tools: globs over names and capabilities.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::tool::{Capability, ToolDefinition};

/// The operator's rules; each is a set of globs.
///
/// A glob is held against the tool's canonical name, its aliases, the name its own server gives
/// it, and the names of its capabilities (`write`, `execute`, `network`, `mcp`, …).
#[derive(Clone, Debug, Default)]
pub struct Rules {
    permit: Globs,
    ask: Globs,
    forbid: Globs,
}

#[derive(Clone, Debug, Default)]
struct Globs {
    set: GlobSet,
    /// As they were written, in the order of the set.
    written: Vec<String>,
}

/// A rule that concerns no tool there is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{flag}: `{glob}` matches no tool, neither by a name nor by a capability")]
pub struct Idle {
    /// The flag that gives rules of its kind.
    pub flag: &'static str,
    /// The rule as it was written.
    pub glob: String,
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
        Ok(Self { permit: Globs::new(permit)?, ask: Globs::new(ask)?, forbid: Globs::new(forbid)? })
    }

    /// Returns the rules that concern none of these tools.
    ///
    /// One that is the word for a capability is for whatever may come, and never idle.
    pub fn idle<'a>(&self, tools: impl Iterator<Item = &'a ToolDefinition> + Clone) -> Vec<Idle> {
        let of = |flag, globs: &Globs| {
            let idle = globs.unused(tools.clone());
            idle.into_iter().map(move |glob| Idle { flag, glob }).collect::<Vec<_>>()
        };
        let rules = [("--permit", &self.permit), ("--ask", &self.ask), ("--forbid", &self.forbid)];
        rules.into_iter().flat_map(|(flag, globs)| of(flag, globs)).collect()
    }

    pub(super) fn permits(&self, definition: &ToolDefinition) -> bool {
        self.permit.matches(definition)
    }

    pub(super) fn asks(&self, definition: &ToolDefinition) -> bool {
        self.ask.matches(definition)
    }

    pub(super) fn forbids(&self, definition: &ToolDefinition) -> bool {
        self.forbid.matches(definition)
    }
}

impl Globs {
    fn new(globs: &[String]) -> Result<Self, BadRule> {
        Ok(Self { set: set(globs)?, written: globs.to_vec() })
    }

    fn matches(&self, definition: &ToolDefinition) -> bool {
        !self.set.is_empty() && words(definition).any(|word| self.set.is_match(word))
    }

    fn unused<'a>(&self, tools: impl Iterator<Item = &'a ToolDefinition>) -> Vec<String> {
        let is_capability =
            |glob: &String| Capability::ALL.iter().any(|capability| capability.as_str() == glob);
        let mut used: Vec<bool> = self.written.iter().map(is_capability).collect();
        for word in tools.flat_map(words) {
            for index in self.set.matches(word) {
                used[index] = true;
            }
        }
        let unused = self.written.iter().zip(used).filter(|(_, used)| !used);
        unused.map(|(glob, _)| glob.clone()).collect()
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

/// Returns everything that a glob is held against.
fn words(definition: &ToolDefinition) -> impl Iterator<Item = &str> {
    let native = definition.native.as_ref().and_then(|native| native.get("name")?.as_str());
    let aliases = definition.aliases.iter().map(String::as_str);
    let capabilities = definition.capabilities.iter().map(|one| -> &str { one.as_str() });
    std::iter::once(definition.name.as_str()).chain(aliases).chain(native).chain(capabilities)
}
