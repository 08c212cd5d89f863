//! External MCP servers whose tools, and what else they offer, are published as ours.
//!
//! The steps before a connection are pure: a file becomes [servers](self::config), their expressions are
//! [resolved](self::env), what they list becomes a [catalog], and every tool gets its [name]. Servers
//! are prepared side by side, and [kept](keeper) from then on; each time one is ready, has changed or
//! has failed, a complete new snapshot is published, in which every server has its place in the
//! order of names. A server is reached over a child's [standard streams](wire) or over [HTTP](http);
//! what is [pending] on its connection is kept in one place.

pub mod about;
mod asks;
mod backoff;
pub mod catalog;
pub mod client;
pub mod clients;
pub mod config;
pub mod convert;
pub mod diagnostic;
mod dial;
pub mod env;
mod era;
mod http;
mod keeper;
mod last_words;
mod line;
mod listen;
pub mod name;
pub mod native;
mod notices;
mod offers;
pub mod patience;
mod pending;
mod progress;
mod relay;
pub mod secret;
mod server;
mod tilde;
mod tool;
mod wanted;
mod wire;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use self::about::About;
use self::catalog::Entry;
use self::client::Protocol;
use self::clients::Scope;
use self::http::Network;
use self::native::{Keep, Natives};
use self::offers::Taken;
use self::patience::Renewal;
use self::server::{Prepared, Shared, Upstream};
use self::tool::UpstreamTool;
use crate::artifact::ArtifactStore;
use crate::process::{Grace, Processes};
use crate::registry::{Catalogue, Cause, Publication, Publisher, Registry, State};
use crate::relay::{Entry as RawEntry, Offers, Prompt};
use crate::session::Sessions;
use crate::shutdown::Shutdown;
use crate::tool::Tool;

/// What a run has of upstream servers.
#[derive(Debug)]
pub struct Config {
    /// The servers, as their files describe them.
    pub loaded: config::Loaded,
    /// What the operator says of single servers.
    pub operator: BTreeMap<String, Operator>,
    /// The environment that expressions refer to, ours and `IRIS_MCP_EXE`.
    pub environment: BTreeMap<String, String>,
    /// Where a server without `cwd` starts.
    pub workspace: PathBuf,
    /// The longest message in bytes that is read.
    pub max_message_bytes: usize,
    /// Which results are kept as they came.
    pub keep: Keep,
}

/// What the operator says of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// Which protocol era to speak.
    pub protocol: Protocol,
    /// How many calls may be under way at once.
    pub max_concurrency: usize,
    /// Variables of our environment that it also gets.
    pub inherit_env: Vec<String>,
    /// Whether a result that breaks its own output schema is an error.
    pub strict_output: bool,
    /// Who shares the connections to it.
    pub scope: Scope,
    /// Whether reports of progress prolong its calls.
    pub renewal: Renewal,
}

/// The upstream servers of a run; clones share them.
#[derive(Clone, Debug)]
pub struct Upstreams {
    board: Arc<Board>,
}

/// What every server has come to, and where that is published.
#[derive(Debug)]
struct Board {
    registry: Arc<Registry>,
    servers: Vec<Arc<Upstream>>,
    publishers: Vec<Publisher>,
    /// By server; also held while publishing, so that snapshots follow each other in order.
    places: Mutex<Vec<Place>>,
}

#[derive(Debug, Default)]
struct Place {
    entries: Vec<Entry>,
    taken: Taken,
    instructions: Option<String>,
    /// The version it was spoken to in last.
    protocol: Option<String>,
    diagnostics: Vec<diagnostic::Diagnostic>,
    /// The names its tools were last published under, and the tools.
    names: Vec<String>,
    tools: Vec<Arc<dyn Tool>>,
    /// What was last said of its names and addresses, beside those of others.
    renamed: Vec<diagnostic::Diagnostic>,
    /// What else was last published.
    offers: Arc<Offers>,
    state: State,
    published: bool,
}

impl Default for Operator {
    fn default() -> Self {
        Self {
            protocol: Protocol::Auto,
            max_concurrency: 8,
            inherit_env: Vec::new(),
            strict_output: false,
            scope: Scope::Shared,
            renewal: Renewal::default(),
        }
    }
}

// === impl Upstreams ===

impl Upstreams {
    /// Starts to prepare every server; each is published when it is ready or has failed.
    pub fn start(
        config: Config,
        registry: &Arc<Registry>,
        processes: Processes,
        (artifacts, sessions): (Arc<ArtifactStore>, Arc<Sessions>),
        shutdown: &Shutdown,
    ) -> Self {
        let Config { loaded, mut operator, environment, workspace, max_message_bytes, keep } =
            config;
        report_unused(&loaded, &operator);
        let ended = shutdown.child();
        let tasks = shutdown.tasks().clone();
        let natives = Natives { keep, artifacts };
        let network = Network::new(environment.clone(), max_message_bytes);
        let shared = Arc::new(Shared {
            processes,
            network,
            environment,
            workspace,
            max_message_bytes,
            natives,
            sessions,
            ended,
            tasks,
            events: registry.events().clone(),
        });
        let servers: Vec<Arc<Upstream>> = loaded
            .servers
            .into_iter()
            .map(|server| {
                let operator = operator.remove(&server.name).unwrap_or_default();
                Upstream::new(server, operator, Arc::clone(&shared))
            })
            .collect();
        let publishers = servers.iter().map(|server| registry.publisher(server.name())).collect();
        let places = Mutex::new(servers.iter().map(|_| Place::default()).collect());
        let board = Arc::new(Board { registry: Arc::clone(registry), servers, publishers, places });
        for diagnostic in loaded.diagnostics {
            tracing::error!("{diagnostic}");
            // A server that could not even be read is shown with the others, as failed.
            let publisher = registry.publisher(diagnostic.server.clone());
            let cause = Cause::from(diagnostic.message.clone());
            let state = State::Failed(cause.with_detail(diagnostic.place.clone()));
            let publication =
                Publication { state, diagnostics: vec![diagnostic], ..Publication::default() };
            if let Err(error) = publisher.publish(publication) {
                tracing::error!(%error, "a failed server could not be shown");
            }
        }
        for (index, server) in board.servers.iter().enumerate() {
            let (board, server, ended) = (Arc::clone(&board), Arc::clone(server), shutdown.child());
            drop(shutdown.spawn("keep", async move {
                tokio::select! {
                    () = keeper::keep(board, index, server) => {}
                    () = ended.cancelled() => {}
                }
            }));
        }
        Self { board }
    }

    /// Returns the first required server that failed, and why.
    pub fn required_failure(&self, catalogue: &Catalogue) -> Option<(String, String)> {
        let required: HashSet<&str> = self
            .board
            .servers
            .iter()
            .filter(|server| server.is_required())
            .map(|server| server.name())
            .collect();
        catalogue.sources().iter().find_map(|source| match &source.state {
            State::Failed(cause) if required.contains(source.source.as_str()) => {
                Some((source.source.clone(), cause.to_string()))
            }
            _ => None,
        })
    }

    /// Returns what the operator is told of each server, in their order.
    pub fn about(&self) -> Vec<About> {
        let places = self.board.places.lock().unwrap_or_else(PoisonError::into_inner);
        let servers = self.board.servers.iter().zip(places.iter());
        let about = servers.map(|(server, place)| {
            let failure = match &place.state {
                State::Failed(cause) => Some(cause),
                State::Starting | State::Ready => None,
            };
            server.about(place.protocol.clone(), failure)
        });
        about.collect()
    }

    /// Ends every server's process, all at once.
    pub async fn stop(&self, grace: Grace) {
        futures_util::future::join_all(self.board.servers.iter().map(|server| server.stop(grace)))
            .await;
    }
}

fn report_unused(loaded: &config::Loaded, operator: &BTreeMap<String, Operator>) {
    let known: HashSet<&str> = loaded
        .servers
        .iter()
        .map(|server| server.name.as_str())
        .chain(loaded.disabled.iter().map(String::as_str))
        .chain(loaded.diagnostics.iter().map(|diagnostic| diagnostic.server.as_str()))
        .collect();
    for name in operator.keys().filter(|name| !known.contains(name.as_str())) {
        tracing::warn!(upstream = name, "[upstream.{name}] is about a server that no MCP file has");
    }
}

// === impl Board ===

impl Board {
    /// Notes what a server has come to, and publishes a new snapshot if that is something else.
    ///
    /// A server that was ready and has failed since keeps its tools: it is there again soon, or a
    /// call says what is wrong.
    fn settle(&self, index: usize, prepared: Result<Prepared, Cause>) {
        let upstream = self.servers[index].name();
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let place = &mut places[index];
        match (prepared, &place.state) {
            (Ok(prepared), _) => {
                let Prepared { catalog, lists, instructions, protocol } = prepared;
                let tools = catalog.tools.len();
                let (taken, more) = lists.take(upstream, &place.taken);
                let diagnostics = [catalog.diagnostics, more].concat();
                let same_tools =
                    place.state == State::Ready && catalog::is_same(&place.entries, &catalog.tools);
                if same_tools
                    && place.instructions == instructions
                    && place.diagnostics == diagnostics
                    && place.taken == taken
                {
                    tracing::debug!(upstream, protocol, tools, "an upstream server is as it was");
                    return;
                }
                tracing::info!(upstream, protocol, tools, "an upstream server is ready");
                place.protocol = protocol;
                if !same_tools {
                    place.entries = catalog.tools;
                    // Made anew even under the same names.
                    place.names.clear();
                    place.tools.clear();
                }
                place.taken = taken;
                place.diagnostics = diagnostics;
                place.instructions = instructions;
                place.state = State::Ready;
            }
            (Err(cause), State::Ready) => {
                let reason = cause.to_string();
                tracing::warn!(upstream, reason, "an upstream server is not there for now");
                return;
            }
            (Err(cause), State::Failed(before)) if *before == cause => {
                let reason = cause.to_string();
                tracing::debug!(upstream, reason, "an upstream server failed again");
                return;
            }
            (Err(cause), _) => {
                let reason = cause.to_string();
                tracing::error!(upstream, reason, "an upstream server failed");
                *place = Place { state: State::Failed(cause), ..Place::default() };
            }
        }
        place.published = false;
        self.publish(&mut places);
    }

    /// Names all tools anew, in the order of servers, and publishes what changed by it.
    fn publish(&self, places: &mut [Place]) {
        let taken = self.registry.taken_beside(&self.publishers);
        let tools = self.servers.iter().zip(places.iter()).flat_map(|(server, place)| {
            place.entries.iter().map(|entry| (server.name(), entry.wire_name.as_str()))
        });
        let name::Assigned { names, diagnostics } = name::assign(tools, &taken);
        let mut names = names.into_iter();
        let (mut offers, more) = self.offers(places);
        let diagnostics = [diagnostics, more].concat();
        let mut batch = Vec::new();
        for (index, place) in places.iter_mut().enumerate() {
            let server = &self.servers[index];
            let own: Vec<String> = names.by_ref().take(place.entries.len()).collect();
            let offers = std::mem::take(&mut offers[index]);
            let of_server = |said: &&diagnostic::Diagnostic| said.server == server.name();
            let renamed: Vec<_> = diagnostics.iter().filter(of_server).cloned().collect();
            let is_same = own == place.names && offers == *place.offers && renamed == place.renamed;
            if place.published && is_same || place.state == State::Starting {
                continue;
            }
            if offers != *place.offers {
                place.offers = Arc::new(offers);
            }
            if own != place.names {
                place.tools = made(server, &place.entries, &own);
                place.names = own;
            }
            place.published = true;
            let publication = Publication {
                state: place.state.clone(),
                tools: place.tools.clone(),
                offers: Arc::clone(&place.offers),
                relay: Some(Arc::<Upstream>::clone(server)),
                apart: server.apart(),
                instructions: place.instructions.clone(),
                diagnostics: place.diagnostics.iter().chain(&renamed).cloned().collect(),
            };
            for diagnostic in &publication.diagnostics {
                tracing::warn!("{diagnostic}");
            }
            place.renamed = renamed;
            batch.push((&self.publishers[index], publication));
        }
        if let Err(error) = self.registry.publish(batch) {
            tracing::error!(%error, "the tools of an upstream server could not be published");
        }
    }

    /// Names all prompts anew, in the order of servers, and says which addresses clash.
    fn offers(&self, places: &[Place]) -> (Vec<Offers>, Vec<diagnostic::Diagnostic>) {
        let places_of = || self.servers.iter().map(|server| server.name()).zip(places);
        let prompts = places_of().flat_map(|(server, place)| {
            place.taken.prompts.iter().map(move |(wire_name, _)| (server, wire_name.as_str()))
        });
        let name::Assigned { names, mut diagnostics } = name::assign_prompts(prompts);
        diagnostics
            .extend(offers::clashes(places_of().map(|(server, place)| (server, &place.taken))));
        let mut names = names.into_iter();
        let offers = places.iter().map(|place| offered(&place.taken, &mut names)).collect();
        (offers, diagnostics)
    }
}

fn offered(taken: &Taken, names: &mut impl Iterator<Item = String>) -> Offers {
    let entries = |entries: &[(String, RawEntry)]| {
        entries.iter().map(|(_, entry)| Arc::clone(entry)).collect()
    };
    let prompts = taken.prompts.iter().zip(names).map(|((wire_name, raw), name)| Prompt {
        name,
        wire_name: wire_name.clone(),
        raw: Arc::clone(raw),
    });
    Offers {
        prompts: prompts.collect(),
        resources: entries(&taken.resources),
        templates: entries(&taken.templates),
        reads: taken.reads,
        skills: false,
    }
}

fn made(server: &Arc<Upstream>, entries: &[Entry], names: &[String]) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = Vec::with_capacity(entries.len());
    for (entry, name) in entries.iter().zip(names) {
        match UpstreamTool::new(name, entry.clone(), Arc::clone(server)) {
            Ok(tool) => tools.push(Arc::new(tool)),
            Err(error) => tracing::error!(tool.name = name, %error, "a tool could not be made"),
        }
    }
    tools
}

#[cfg(test)]
mod fuzz;
