//! Which deferred tool answers a query: an index of them, and those who select from it.
//!
//! [`Candidates`] are all tools that a search may find in one snapshot. A [`Selector`] picks at
//! most one for each query; that nothing fits is an answer, and a better one than something else.

pub mod rank;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;

use self::rank::Index;
use crate::tool::{Failure, Tool, ToolDefinition};

/// The tools that a search may find.
#[derive(Debug, Default)]
pub struct Candidates {
    tools: Vec<Arc<dyn Tool>>,
    /// Made by the first search.
    index: OnceLock<Index>,
}

/// Picks the tool for each query.
#[async_trait]
pub trait Selector: Send + Sync + std::fmt::Debug {
    /// Returns for each query the best of the tools in these groups, or nothing where none fits.
    ///
    /// No groups given means all. Queries don't know of each other: one tool may answer several.
    async fn select(
        &self,
        queries: &[String],
        among: &Candidates,
        groups: Option<&BTreeSet<String>>,
    ) -> Result<Vec<Option<Arc<dyn Tool>>>, Failure>;
}

/// Selects by the words of names and descriptions, without asking anybody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Local;

impl Candidates {
    /// Gathers the tools that may be found, in the order of listing.
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { tools, index: OnceLock::new() }
    }

    /// Returns the tools.
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// Returns the tools that fit a query and are in these groups, best first, at most `limit`.
    pub fn best(
        &self,
        query: &str,
        groups: Option<&BTreeSet<String>>,
        limit: usize,
    ) -> Vec<&Arc<dyn Tool>> {
        let index = self.index.get_or_init(|| {
            let definitions = self.tools.iter().map(|tool| tool.definition());
            Index::of(definitions)
        });
        let is_in = |definition: &ToolDefinition| {
            groups.is_none_or(|groups| groups.contains(&definition.group))
        };
        let ranked = index.rank(query, |at| is_in(self.tools[at].definition()));
        ranked.into_iter().take(limit).map(|at| &self.tools[at]).collect()
    }
}

#[async_trait]
impl Selector for Local {
    async fn select(
        &self,
        queries: &[String],
        among: &Candidates,
        groups: Option<&BTreeSet<String>>,
    ) -> Result<Vec<Option<Arc<dyn Tool>>>, Failure> {
        let first =
            |query: &String| among.best(query, groups, 1).first().map(|tool| Arc::clone(tool));
        Ok(queries.iter().map(first).collect())
    }
}
