//! What a session sees, and what it may call: the gate before the executor.
//!
//! A tool can be called when the view lets it exist and it is shown, or was disclosed to this
//! session. What the view hides cannot be told apart from what does not exist. Clients may have
//! other [names] for the tools than we; from here on there is only the canonical one.

pub mod names;

use std::sync::Arc;

use arc_swap::ArcSwap;

use self::names::{Names, Naming};
use crate::registry::view::View;
use crate::registry::{Catalogue, Registry, State};
use crate::session::Session;
use crate::tool::{Era, ErrorCode, Failure, Tool};

/// The tool exists but has not been disclosed to this session.
pub const TOOL_NOT_ALLOWED: ErrorCode = ErrorCode::new("TOOL_NOT_ALLOWED");

/// The name is not in the catalogue, or not for this caller.
pub const NOT_FOUND: ErrorCode = ErrorCode::new("NOT_FOUND");

/// How alike a name must be to be offered instead, between 0 and 1.
const NEAR: f64 = 0.75;

/// Decides what each session lists and calls.
#[derive(Debug)]
pub struct Exposure {
    registry: Arc<Registry>,
    view: View,
    naming: Naming,
    /// What clients call the tools of the newest snapshot that was asked for, and its version.
    names: ArcSwap<(u64, Arc<Names>)>,
    prompt_names: ArcSwap<(u64, Arc<Names>)>,
}

/// Why a name cannot be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// Nothing by this name exists for this session.
    Unknown {
        /// Similar names that do, best first.
        nearest: Vec<String>,
    },
    /// It has to be found by a search first.
    Undisclosed(Failure),
}

impl Unresolved {
    /// Makes the failure that a caller without a protocol gets.
    pub fn into_failure(self, name: &str) -> Failure {
        match self {
            Self::Undisclosed(failure) => failure,
            Self::Unknown { nearest } => {
                let hint = match nearest.as_slice() {
                    [] => String::new(),
                    nearest => format!("; did you mean {}?", nearest.join(" or ")),
                };
                Failure::new(NOT_FOUND, format!("unknown tool: {name}{hint}"))
                    .with_detail("nearest", nearest)
            }
        }
    }
}

impl Exposure {
    /// Makes the gate over a registry.
    pub fn new(registry: Arc<Registry>, view: View, naming: Naming) -> Self {
        Self { registry, view, naming, names: ArcSwap::default(), prompt_names: ArcSwap::default() }
    }

    /// Returns the registry.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Returns what clients call the tools of a snapshot.
    pub fn names(&self, catalogue: &Catalogue) -> Arc<Names> {
        let (version, made) = (catalogue.version(), self.names.load());
        if made.0 == version {
            return Arc::clone(&made.1);
        }
        let available: Vec<_> =
            self.view.available(catalogue).map(|tool| tool.definition()).collect();
        let names = Arc::new(Names::of(self.naming, &available));
        if made.0 < version {
            self.names.store(Arc::new((version, Arc::clone(&names))));
        }
        names
    }

    /// Returns what clients call the prompts of a snapshot.
    pub fn prompt_names(&self, catalogue: &Catalogue) -> Arc<Names> {
        let (version, made) = (catalogue.version(), self.prompt_names.load());
        if made.0 == version {
            return Arc::clone(&made.1);
        }
        let sources = catalogue.sources();
        let prompts = catalogue.offered().prompts().iter().filter_map(|(source, prompt)| {
            let server = sources.get(*source)?.source.as_str();
            Some((prompt.name.as_str(), server, prompt.wire_name.as_str()))
        });
        let names = Arc::new(Names::of_prompts(self.naming, prompts));
        if made.0 < version {
            self.prompt_names.store(Arc::new((version, Arc::clone(&names))));
        }
        names
    }

    /// Finds the tool by this name, canonical or a client's; the canonical one wins.
    pub fn find<'a>(&self, catalogue: &'a Catalogue, name: &str) -> Option<&'a Arc<dyn Tool>> {
        let available = |name: &str| {
            catalogue.get(name).filter(|tool| self.view.is_available(tool.definition()))
        };
        available(name).or_else(|| available(self.names(catalogue).canonical(name)?))
    }

    /// Returns whether a snapshot has the tool that a canonical name will mean when all sources
    /// have started.
    ///
    /// A client's name may come to mean another tool until then, and so may the canonical name of
    /// one that could be a tool of a source that still starts. (N1, N2, N5)
    pub fn is_certain(&self, catalogue: &Catalogue, name: &str) -> bool {
        let starting = catalogue.sources().iter().filter(|source| source.state == State::Starting);
        let word = |sign: char| if sign.is_ascii_alphanumeric() { sign } else { '_' };
        let mut prefixes = starting.map(|source| {
            format!("mcp__{}__", source.source.chars().map(word).collect::<String>())
        });
        let found = catalogue.get(name);
        found.is_some_and(|tool| self.view.is_available(tool.definition()))
            && !prefixes.any(|prefix| name.starts_with(&prefix))
    }

    /// Returns the tools that `tools/list` shows a session, in the order of listing.
    ///
    /// In the modern era the list is the same for every session (MCP 2026-07-28 §server/tools);
    /// a legacy session also sees what it has disclosed.
    pub fn listed(&self, catalogue: &Catalogue, session: &Session, era: Era) -> Vec<Arc<dyn Tool>> {
        let shown = |tool: &&Arc<dyn Tool>| match era {
            Era::Modern => self.view.is_active(tool.definition()),
            Era::Legacy => self.is_callable(tool.as_ref(), session),
        };
        self.view.available(catalogue).filter(shown).cloned().collect()
    }

    /// Finds the tool that a session means by a name.
    pub fn resolve(
        &self,
        catalogue: &Catalogue,
        session: &Session,
        name: &str,
    ) -> Result<Arc<dyn Tool>, Unresolved> {
        let Some(tool) = self.find(catalogue, name) else {
            return Err(Unresolved::Unknown { nearest: self.nearest(catalogue, session, name) });
        };
        if self.is_callable(tool.as_ref(), session) {
            return Ok(Arc::clone(tool));
        }
        let canonical = tool.definition().name.as_str();
        let names = self.names(catalogue);
        let wire = names.wire(tool.definition());
        let words = wire.replace('_', " ");
        let message = format!(
            "{wire} has not been disclosed yet; call tool_search first, for instance for \"{words}\""
        );
        Err(Unresolved::Undisclosed(
            Failure::new(TOOL_NOT_ALLOWED, message).with_detail("tool", canonical),
        ))
    }

    fn is_callable(&self, tool: &dyn Tool, session: &Session) -> bool {
        let definition = tool.definition();
        self.view.is_active(definition) || session.is_revealed(definition.name.as_str())
    }

    fn nearest(&self, catalogue: &Catalogue, session: &Session, name: &str) -> Vec<String> {
        let names = self.names(catalogue);
        let callable =
            self.view.available(catalogue).filter(|tool| self.is_callable(tool.as_ref(), session));
        let mut scored: Vec<(f64, String)> = callable
            .flat_map(|tool| {
                let definition = tool.definition();
                let (canonical, wire) = (definition.name.as_str(), names.wire(definition));
                // Whoever means the canonical name is shown the one that is listed.
                let score = likeness(name, wire).max(likeness(name, canonical));
                let aliases = definition.aliases.iter();
                let aliases = aliases.map(|alias| (likeness(name, alias), alias.clone()));
                std::iter::once((score, wire.to_owned())).chain(aliases).collect::<Vec<_>>()
            })
            .filter(|(score, _)| *score >= NEAR)
            .collect();
        scored.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
        scored.into_iter().take(3).map(|(_, candidate)| candidate).collect()
    }
}

/// How alike two names are; the last part of a qualified name counts as the whole.
fn likeness(name: &str, candidate: &str) -> f64 {
    let last = candidate.rsplit("__").next().unwrap_or(candidate);
    let [name, candidate, last] = [name, candidate, last].map(str::to_lowercase);
    strsim::jaro_winkler(&name, &candidate).max(strsim::jaro_winkler(&name, &last))
}

#[cfg(test)]
mod tests;
