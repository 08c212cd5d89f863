//! Which tools there are for a client at all, and which of them it sees without searching.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::registry::Catalogue;
use crate::tool::{Patterns, Tool, ToolDefinition};

/// A filter over a catalogue, by name and group.
///
/// A name is a glob that is held against each [spelling](ToolDefinition::spellings). `deny` wins over everything; groups restrict next; `allow` lets single tools through the
/// group filter and shows deferred ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The groups to keep; none given means all, an empty set means no group.
    pub include_groups: Option<BTreeSet<String>>,
    /// Tools to keep in spite of their group, and to show in spite of being deferred.
    pub allow: Patterns,
    /// Tools to drop.
    pub deny: Patterns,
}

impl View {
    /// Returns whether a tool exists for this view, disclosed or not.
    pub fn is_available(&self, definition: &ToolDefinition) -> bool {
        if names(&self.deny, definition) {
            return false;
        }
        match &self.include_groups {
            Some(groups) => groups.contains(&definition.group) || names(&self.allow, definition),
            None => true,
        }
    }

    /// Returns whether a tool is shown without a search.
    pub fn is_active(&self, definition: &ToolDefinition) -> bool {
        self.shows(definition, definition.deferred)
    }

    /// Returns whether a tool is shown without a search, where it is deferred or not.
    pub fn shows(&self, definition: &ToolDefinition, deferred: bool) -> bool {
        self.is_available(definition) && (!deferred || names(&self.allow, definition))
    }

    /// Returns the tools that exist for this view, in the order of listing.
    pub fn available<'a>(
        &'a self,
        catalogue: &'a Catalogue,
    ) -> impl Iterator<Item = &'a Arc<dyn Tool>> {
        catalogue.tools().iter().filter(|tool| self.is_available(tool.definition()))
    }

    /// Returns the tools that are shown without a search, in the order of listing.
    pub fn active<'a>(
        &'a self,
        catalogue: &'a Catalogue,
    ) -> impl Iterator<Item = &'a Arc<dyn Tool>> {
        catalogue.tools().iter().filter(|tool| self.is_active(tool.definition()))
    }

    /// Returns the tools with these canonical names, in the order of listing.
    pub fn specs_for<'a>(
        &'a self,
        catalogue: &'a Catalogue,
        names: &'a [&str],
    ) -> impl Iterator<Item = &'a Arc<dyn Tool>> {
        self.available(catalogue).filter(|tool| names.contains(&tool.definition().name.as_str()))
    }
}

/// Says whether one of the patterns names a tool.
fn names(patterns: &Patterns, definition: &ToolDefinition) -> bool {
    !patterns.is_empty() && patterns.fit(definition.spellings())
}
