//! What one snapshot shows: what its tools are called, and which of them have to be searched for.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;

use super::names::Names;
use super::search;
use super::{Config, Defer};
use crate::discovery::Candidates;
use crate::registry::Catalogue;
use crate::tool::{
    Arguments, AutoAllow, CallContext, Failure, Interrupt, Presence, Route, Tool, ToolDefinition,
    ToolResult, Valid,
};

/// How many bytes of the search's description may name servers.
const SERVERS_BYTES: usize = 360;
/// How many bytes of a hint may.
const HINT_BYTES: usize = 2_000;

/// What one snapshot shows; decided once for each.
#[derive(Debug, Default)]
pub struct Surface {
    pub(super) version: u64,
    names: Arc<Names>,
    deferring: bool,
    /// Whether something has to be searched for: tools of upstreams, or what says so of itself.
    searching: bool,
    candidates: Candidates,
    /// The search, with a description that says what there is to find.
    search: OnceLock<Option<Arc<dyn Tool>>>,
}

/// The tool search, as one snapshot describes it.
#[derive(Debug)]
struct Described {
    search: Arc<dyn Tool>,
    definition: ToolDefinition,
}

impl Surface {
    /// Decides what a snapshot shows.
    pub(super) fn of(catalogue: &Catalogue, config: &Config) -> Self {
        let Config { view, naming, defer, .. } = config;
        // With companions, so that a name doesn't depend on what is deferred.
        let available: Vec<_> = view.available(catalogue).collect();
        let definitions: Vec<_> = available.iter().map(|tool| tool.definition()).collect();
        let names = Names::of(*naming, &definitions);
        let is_listed = |definition: &ToolDefinition| {
            definition.presence == Presence::Always && !definition.deferred
        };
        let deferring = match defer {
            Defer::Always => true,
            Defer::Never => false,
            Defer::Auto { budget_tokens, measure } => {
                let listed: Vec<Arc<dyn Tool>> = available
                    .iter()
                    .filter(|tool| is_listed(tool.definition()))
                    .map(|tool| Arc::clone(tool))
                    .collect();
                listed.iter().any(|tool| is_upstreams(tool.definition()))
                    && measure(&listed, &names).div_ceil(BYTES_A_TOKEN) > *budget_tokens
            }
        };
        let own = available.iter().any(|tool| tool.definition().deferred);
        let searching = deferring || (own && !matches!(defer, Defer::Never));
        let candidates = available
            .into_iter()
            .filter(|tool| searching && defers(deferring, tool.definition()))
            .map(Arc::clone);
        let candidates = Candidates::new(candidates.collect());
        Self {
            version: catalogue.version(),
            names: Arc::new(names),
            deferring,
            searching,
            candidates,
            search: OnceLock::new(),
        }
    }

    /// Returns what clients call the tools.
    pub fn names(&self) -> &Arc<Names> {
        &self.names
    }

    /// Returns whether tools of upstreams have to be searched for.
    pub fn is_deferring(&self) -> bool {
        self.deferring
    }

    /// Returns whether anything has to be searched for.
    pub fn is_searching(&self) -> bool {
        self.searching
    }

    /// Returns the tools that can be found, those that are shown in any case among them.
    pub fn candidates(&self) -> &Candidates {
        &self.candidates
    }

    /// Says whether a tool has to be searched for, whatever the view says.
    pub(super) fn defers(&self, definition: &ToolDefinition) -> bool {
        defers(self.deferring, definition)
    }

    /// Says whether there is a tool at all: some are only there while others are deferred.
    pub(super) fn has(&self, definition: &ToolDefinition) -> bool {
        self.searching || definition.presence == Presence::Always
    }

    /// Returns the search with a description that names the servers whose tools it finds.
    pub(super) fn described(&self, search: &Arc<dyn Tool>) -> Arc<dyn Tool> {
        let described = self.search.get_or_init(|| {
            let servers = search::servers(self.candidates.tools(), SERVERS_BYTES);
            if servers.is_empty() {
                return None;
            }
            let plain = search.definition();
            let description = format!("{} There are tools of {servers}.", plain.description());
            let definition = plain.clone().with_description(description);
            let search = Arc::clone(search);
            Some(Arc::new(Described { search, definition }))
        });
        Arc::clone(described.as_ref().unwrap_or(search))
    }

    /// Says what there is, to a search that has found nothing.
    pub(super) fn hint(&self) -> String {
        match search::servers(self.candidates.tools(), HINT_BYTES) {
            _ if self.candidates.tools().is_empty() => "there are no tools to be found".to_owned(),
            servers if servers.is_empty() => "nothing fits".to_owned(),
            servers => format!("nothing fits; there are tools of {servers}"),
        }
    }

    /// Says in a sentence what has to be searched for, if anything has.
    pub fn remark(&self) -> Option<String> {
        if !self.searching || self.candidates.tools().is_empty() {
            return None;
        }
        let servers = search::servers(self.candidates.tools(), HINT_BYTES / 2);
        let count = self.candidates.tools().len();
        let theirs =
            if servers.is_empty() { String::new() } else { format!(" They are of {servers}.") };
        Some(format!("{count} more tools are not listed. Find them with tool_search.{theirs}"))
    }
}

fn is_upstreams(definition: &ToolDefinition) -> bool {
    definition.origin.is_some()
}

/// Says whether a tool has to be searched for where those of upstreams have, or have not.
fn defers(deferring: bool, definition: &ToolDefinition) -> bool {
    definition.deferred || (deferring && is_upstreams(definition))
}

/// How many bytes are counted as a token.
pub const BYTES_A_TOKEN: usize = 4;

#[async_trait]
impl Tool for Described {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn route(&self) -> Route {
        self.search.route()
    }

    fn auto_allow(&self) -> Option<AutoAllow> {
        self.search.auto_allow()
    }

    async fn validate(&self, raw: Arguments, cx: &CallContext) -> Result<Valid, Failure> {
        self.search.validate(raw, cx).await
    }

    async fn run(&self, call: &Valid, cx: &CallContext) -> Result<ToolResult, Interrupt> {
        self.search.run(call, cx).await
    }
}
