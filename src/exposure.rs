//! What a session sees, and what it may call: the gate before the executor.
//!
//! A tool can be called when the view lets it exist and it is shown, or was disclosed to this
//! session. What the view hides cannot be told apart from what does not exist. Clients may have
//! other [names] for the tools than we; from here on there is only the canonical one. Where a list
//! would cost a model too much, upstream tools are *deferred*: not listed, but found by
//! `tool_search` and called by their names or through `call_tool`.

mod call_tool;
mod missing;
pub mod names;
mod nearest;
mod search;
pub mod surface;

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use self::call_tool::{CallTool, Inner};
pub use self::missing::{Missing, Why};
use self::missing::{missing, prefix};
use self::names::{Names, Naming};
use self::nearest::{LONGEST, nearest};
use self::search::ToolSearch;
use self::surface::Surface;
use crate::discovery::Selector;
use crate::registry::view::View;
use crate::registry::{Catalogue, Registry, State};
use crate::session::Session;
use crate::shutdown::beside_others;
use crate::tool::{
    Arguments, Era, ErrorCode, Failure, InputSchema, Presence, Tool, ToolDefinition, ToolName,
    ToolResult,
};

/// The tool exists but has not been disclosed to this session.
pub const TOOL_NOT_ALLOWED: ErrorCode = ErrorCode::new("TOOL_NOT_ALLOWED");

/// The name is not in the catalogue, or not for this caller.
pub const NOT_FOUND: ErrorCode = ErrorCode::new("NOT_FOUND");

/// What the operator decides about lists.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which tools there are, and which are shown in any case.
    pub view: View,
    /// What clients call the tools.
    pub naming: Naming,
    /// Whether the tools of upstreams have to be searched for.
    pub defer: Defer,
    /// How a tool that was found can be called.
    pub disclosure: Disclosure,
}

/// Returns how many bytes tools take in a list.
pub type Measure = fn(&[Arc<dyn Tool>], &Names) -> usize;

/// Whether the tools of upstreams have to be searched for.
#[derive(Clone, Copy)]
pub enum Defer {
    /// They are listed.
    Never,
    /// They have to be searched for.
    Always,
    /// They have to be searched for when the list would be longer than the budget.
    Auto {
        /// How many tokens a list may have, at 4 bytes each.
        budget_tokens: usize,
        /// How long a list is.
        measure: Measure,
    },
}

/// How a tool that was found can be called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Disclosure {
    /// By its own name, which the lists of older clients then have, or through `call_tool`.
    #[default]
    Both,
    /// Through `call_tool`, or by its own name, which no list ever has.
    Meta,
    /// By its own name, which the lists of older clients then have.
    Session,
}

/// Why something is no way to disclose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected `both`, `meta` or `session`")]
pub struct NoDisclosure;

/// Decides what each session lists and calls.
#[derive(Debug)]
pub struct Exposure {
    registry: Arc<Registry>,
    config: Config,
    selector: Arc<dyn Selector>,
    tool_search: Arc<dyn Tool>,
    call_tool: Arc<dyn Tool>,
    /// What the newest snapshot that was asked for shows.
    surface: ArcSwap<Surface>,
    prompt_names: ArcSwap<(u64, Arc<Names>)>,
}

/// What a call comes to once its name is looked up.
#[derive(Debug)]
pub struct Resolved {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// The name it was called by.
    pub name: String,
    /// The name that clients see it by.
    pub wire: String,
    /// Its arguments, as they came.
    pub arguments: Arguments,
}

/// Why a name cannot be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// Nothing by this name exists for this session.
    Unknown {
        /// Similar names that do, best first.
        nearest: Vec<String>,
        /// The server whose tool it may be, where that is not there, and why.
        missing: Option<Missing>,
    },
    /// It has to be found by a search first, or `call_tool` was called wrongly.
    Refused(Failure),
}

impl Unresolved {
    /// Makes the failure that a caller without a protocol gets.
    pub fn into_failure(self, name: &str) -> Failure {
        match self {
            Self::Refused(failure) => failure,
            Self::Unknown { nearest, missing } => {
                let hint = match (&missing, nearest.as_slice()) {
                    (Some(Missing { server, why }), _) => why.of(server),
                    (None, []) => String::new(),
                    (None, nearest) => format!("; did you mean {}?", nearest.join(" or ")),
                };
                let shown: String = name.chars().take(LONGEST).collect();
                let more = if shown.len() < name.len() { "…" } else { "" };
                let message = format!("unknown tool: {shown}{more}{hint}");
                let failure = Failure::new(NOT_FOUND, message).with_detail("nearest", nearest);
                match missing {
                    Some(Missing { server, .. }) => failure.with_detail("upstream", server),
                    None => failure,
                }
            }
        }
    }
}

impl Exposure {
    /// Makes the gate over a registry.
    pub fn new(registry: Arc<Registry>, config: Config, selector: Arc<dyn Selector>) -> Arc<Self> {
        Arc::new_cyclic(|exposure: &Weak<Self>| Self {
            registry,
            config,
            selector,
            tool_search: ToolSearch::over(Weak::clone(exposure)),
            call_tool: CallTool::tool(),
            surface: ArcSwap::default(),
            prompt_names: ArcSwap::default(),
        })
    }

    /// Returns the tools that find and call others, if there can be anything to find.
    ///
    /// They are to be published with our own; each is there only while something is deferred.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let tools = match (self.config.defer, self.config.disclosure) {
            (Defer::Never, _) => Vec::new(),
            (_, Disclosure::Session) => vec![&self.tool_search],
            (_, Disclosure::Both | Disclosure::Meta) => vec![&self.tool_search, &self.call_tool],
        };
        tools.into_iter().map(Arc::clone).collect()
    }

    /// Returns the registry.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Returns which tools there are.
    pub fn view(&self) -> &View {
        &self.config.view
    }

    /// Returns what selects tools for queries.
    pub(crate) fn selector(&self) -> &dyn Selector {
        self.selector.as_ref()
    }

    /// Returns what a snapshot shows.
    pub fn surface(&self, catalogue: &Catalogue) -> Arc<Surface> {
        let made = self.surface.load();
        if made.version == catalogue.version() {
            return Arc::clone(&made);
        }
        let surface = beside_others(|| Surface::of(catalogue, &self.config));
        let surface = Arc::new(surface);
        if made.version < catalogue.version() {
            self.surface.store(Arc::clone(&surface));
        }
        surface
    }

    /// Returns what clients call the tools of a snapshot.
    pub fn names(&self, catalogue: &Catalogue) -> Arc<Names> {
        Arc::clone(self.surface(catalogue).names())
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
        let names = Arc::new(Names::of_prompts(self.config.naming, prompts));
        if made.0 < version {
            self.prompt_names.store(Arc::new((version, Arc::clone(&names))));
        }
        names
    }

    /// Finds the tool by this name, canonical or a client's; the canonical one wins.
    pub fn find<'a>(&self, catalogue: &'a Catalogue, name: &str) -> Option<&'a Arc<dyn Tool>> {
        let surface = self.surface(catalogue);
        let available = |name: &str| {
            catalogue.get(name).filter(|tool| self.is_there(tool.definition(), &surface))
        };
        available(name).or_else(|| available(surface.names().canonical(name)?))
    }

    /// Returns whether a snapshot has the tool that a canonical name will mean when all sources
    /// have started.
    ///
    /// A client's name may come to mean another tool until then, and so may the canonical name of
    /// one that could be a tool of a source that still starts. (N1, N2, N5)
    pub fn is_certain(&self, catalogue: &Catalogue, name: &str) -> bool {
        let starting = catalogue.sources().iter().filter(|source| source.state == State::Starting);
        let mut prefixes = starting.map(|source| prefix(&source.source));
        // What finds and calls others is not asked before all of them are there.
        let is_whole = |tool: &ToolDefinition| {
            tool.presence == Presence::Always && self.config.view.is_available(tool)
        };
        let found = catalogue.get(name);
        found.is_some_and(|tool| is_whole(tool.definition()))
            && !prefixes.any(|prefix| name.starts_with(&prefix))
    }

    /// Returns the tools that `tools/list` shows a session, in the order of listing.
    ///
    /// In the modern era the list is the same for every session (MCP 2026-07-28 §server/tools);
    /// a legacy session also sees what it has disclosed.
    pub fn listed(&self, catalogue: &Catalogue, session: &Session, era: Era) -> Vec<Arc<dyn Tool>> {
        let surface = self.surface(catalogue);
        self.remember(catalogue, session, &surface);
        let grows = era == Era::Legacy && self.config.disclosure != Disclosure::Meta;
        let shown = |tool: &&Arc<dyn Tool>| {
            let definition = tool.definition();
            self.is_shown(definition, &surface)
                || (grows
                    && self.is_there(definition, &surface)
                    && session.is_revealed(definition.name.as_str()))
        };
        let tools = catalogue.tools().iter().filter(shown);
        tools
            .map(|tool| {
                let is_search = Arc::ptr_eq(tool, &self.tool_search);
                if is_search { surface.described(tool) } else { Arc::clone(tool) }
            })
            .collect()
    }

    /// Notes what a session is shown, where that may have to be searched for later.
    ///
    /// A client goes on with what it was shown when another server makes the list too long.
    fn remember(&self, catalogue: &Catalogue, session: &Session, surface: &Surface) {
        if surface.is_deferring() {
            return;
        }
        let shown = catalogue.tools().iter().map(|tool| tool.definition());
        let shown = shown.filter(|tool| self.may_be_deferred(tool) && self.is_shown(tool, surface));
        for definition in shown {
            session.reveal(definition.name.as_str());
        }
    }

    /// Says whether nothing can be searched for, so that what has to be is found by nobody.
    pub fn searches_nothing(&self) -> bool {
        matches!(self.config.defer, Defer::Never)
    }

    /// Says whether a tool that is listed may have to be searched for in a later snapshot.
    fn may_be_deferred(&self, definition: &ToolDefinition) -> bool {
        definition.origin.is_some() && matches!(self.config.defer, Defer::Auto { .. })
    }

    /// Returns the tools that there are, those that have to be searched for among them.
    pub fn all(&self, catalogue: &Catalogue) -> Vec<Arc<dyn Tool>> {
        let surface = self.surface(catalogue);
        let there = |tool: &&Arc<dyn Tool>| self.is_there(tool.definition(), &surface);
        catalogue.tools().iter().filter(there).cloned().collect()
    }

    /// Says whether clients have to search for a tool before they can call it.
    pub fn is_deferred(&self, catalogue: &Catalogue, definition: &ToolDefinition) -> bool {
        !self.is_shown(definition, &self.surface(catalogue))
    }

    /// Finds the tool that a session means by a name; a call of `call_tool` becomes the call of
    /// the tool that it names.
    pub fn resolve(
        &self,
        catalogue: &Catalogue,
        session: &Session,
        name: &str,
        arguments: Arguments,
    ) -> Result<Resolved, Unresolved> {
        let surface = self.surface(catalogue);
        let Some(tool) = self.find(catalogue, name) else {
            let nearest = self.nearest(catalogue, session, name);
            return Err(Unresolved::Unknown { nearest, missing: missing(catalogue, name) });
        };
        if Arc::ptr_eq(tool, &self.call_tool) {
            let Inner { name, arguments } =
                call_tool::unwrapped(tool.definition(), arguments).map_err(Unresolved::Refused)?;
            let inner = self.resolve(catalogue, session, &name, arguments);
            return inner.map_err(|why| Unresolved::Refused(why.into_failure(&name)));
        }
        if self.is_callable(tool.definition(), session, &surface) {
            if self.may_be_deferred(tool.definition()) {
                session.reveal(tool.definition().name.as_str());
            }
            let (tool, name) = (Arc::clone(tool), name.to_owned());
            let wire = surface.names().wire(tool.definition()).to_owned();
            return Ok(Resolved { tool, name, wire, arguments });
        }
        Err(Unresolved::Refused(undisclosed(tool.definition(), surface.names())))
    }

    /// Discloses to a session what a search has found; true if a list of its client changes by it.
    pub fn disclose(&self, session: &Session, result: &ToolResult) -> bool {
        let revealed = result.metadata.get("context_revealed_tools").and_then(Value::as_array);
        let revealed = revealed.into_iter().flatten().filter_map(Value::as_str);
        // Each of them, so no short cut.
        let new = revealed.filter(|name| session.reveal(name)).count();
        new > 0 && self.config.disclosure != Disclosure::Meta
    }

    /// Says whether there is a tool for this view and snapshot, disclosed or not.
    fn is_there(&self, definition: &ToolDefinition, surface: &Surface) -> bool {
        self.config.view.is_available(definition) && surface.has(definition)
    }

    /// Says whether a tool is shown without a search.
    fn is_shown(&self, definition: &ToolDefinition, surface: &Surface) -> bool {
        surface.has(definition) && self.config.view.shows(definition, surface.defers(definition))
    }

    fn is_callable(
        &self,
        definition: &ToolDefinition,
        session: &Session,
        surface: &Surface,
    ) -> bool {
        self.is_shown(definition, surface)
            || (self.is_there(definition, surface) && session.is_revealed(definition.name.as_str()))
    }

    fn nearest(&self, catalogue: &Catalogue, session: &Session, name: &str) -> Vec<String> {
        let surface = self.surface(catalogue);
        let callable = catalogue.tools().iter().map(|tool| tool.definition());
        let callable = callable.filter(|tool| self.is_callable(tool, session, &surface));
        nearest(name, callable.map(|tool| (tool, surface.names().wire(tool))))
    }
}

/// Makes the failure of a call that a search has to come before.
fn undisclosed(definition: &ToolDefinition, names: &Names) -> Failure {
    let wire = names.wire(definition);
    let own = definition.origin.as_ref().map_or(wire, |origin| origin.tool.as_str());
    let words = own.split(|sign: char| !sign.is_alphanumeric()).filter(|word| !word.is_empty());
    let words = words.collect::<Vec<_>>().join(" ");
    let message = format!(
        "{wire} has not been disclosed yet; call tool_search first, for instance for \"{words}\""
    );
    Failure::new(TOOL_NOT_ALLOWED, message).with_detail("tool", definition.name.as_str())
}

/// Makes the definition of a tool of the gate's own.
fn own(name: &'static str, title: &str, description: &str, schema: Value) -> ToolDefinition {
    let Value::Object(schema) = schema else { unreachable!("{name} has a schema in a literal") };
    let made = ToolName::parse(name).ok().zip(InputSchema::compile(schema).ok());
    let made = made.and_then(|(name, schema)| ToolDefinition::new(name, description, schema).ok());
    let Some(mut definition) = made else { unreachable!("{name} is defined by literals") };
    definition.title = Some(title.to_owned());
    definition.presence = Presence::WhileDeferring;
    // A client that defers tools by itself shows these in any case.
    let meta = serde_json::json!({"anthropic/alwaysLoad": true});
    definition.metadata.insert("_meta".to_owned(), meta);
    definition
}

impl fmt::Debug for Defer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("Never"),
            Self::Always => f.write_str("Always"),
            Self::Auto { budget_tokens, .. } => f.debug_tuple("Auto").field(budget_tokens).finish(),
        }
    }
}

impl FromStr for Disclosure {
    type Err = NoDisclosure;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "both" => Ok(Self::Both),
            "meta" => Ok(Self::Meta),
            "session" => Ok(Self::Session),
            _ => Err(NoDisclosure),
        }
    }
}

#[cfg(test)]
mod tests;
