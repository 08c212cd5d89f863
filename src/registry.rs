//! Every tool there is, by source, as one immutable snapshot at a time.
//!
//! A source gets a [`Publisher`] from whoever composes the program and replaces its
//! [`Publication`] whenever what it offers changes. Each change makes a new, complete
//! [`Catalogue`]; readers take the current one without a lock and keep it for as long as a call
//! lasts. The order of publishers, then of tools within a publication, is the order of listing.

mod apart;
mod cause;
pub mod diagnostic;
pub mod offered;
pub mod view;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use tokio::sync::watch;

pub use self::apart::Apart;
pub use self::cause::Cause;
pub use self::diagnostic::Diagnostic;
use self::offered::Offered;
use crate::relay::{Events, Kind, Offers, Relay};
use crate::tool::{Presence, Tool};

/// The registry: the sources' latest publications and the catalogue made of them.
#[derive(Debug)]
pub struct Registry {
    /// What each source published last, by slot. Written under the lock, read to rebuild.
    slots: Mutex<Vec<Slot>>,
    /// The snapshot everybody reads.
    catalogue: ArcSwap<Catalogue>,
    /// The version of that snapshot, for those who wait for a change.
    version: watch::Sender<u64>,
    /// What sources say by themselves.
    events: Events,
}

#[derive(Debug)]
struct Slot {
    source: String,
    publication: Publication,
}

/// A source's right to publish, under one name and at one place in the order.
#[derive(Clone, Debug)]
pub struct Publisher {
    registry: Arc<Registry>,
    slot: usize,
}

/// What a source offers now.
#[derive(Clone, Debug, Default)]
pub struct Publication {
    /// How far the source has come.
    pub state: State,
    /// Its tools, in its order.
    pub tools: Vec<Arc<dyn Tool>>,
    /// What it offers besides tools.
    pub offers: Arc<Offers>,
    /// The way to that.
    pub relay: Option<Arc<dyn Relay>>,
    /// The clients that it keeps apart, if it does.
    pub apart: Option<Arc<Apart>>,
    /// What it has to say about itself to clients.
    pub instructions: Option<String>,
    /// What went wrong with parts of it.
    pub diagnostics: Vec<Diagnostic>,
}

/// How far a source has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It is still being prepared.
    #[default]
    Starting,
    /// It is ready.
    Ready,
    /// It failed, and why.
    Failed(Cause),
}

/// A complete, immutable list of what can be called.
#[derive(Debug, Default)]
pub struct Catalogue {
    version: u64,
    tools: Vec<Arc<dyn Tool>>,
    names: HashMap<String, usize>,
    aliases: HashMap<String, usize>,
    sources: Vec<SourceStatus>,
    offered: Offered,
    revision: Revision,
}

/// The version in which each list that clients see was last another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Revision {
    /// Of tools.
    pub tools: u64,
    /// Of prompts.
    pub prompts: u64,
    /// Of resources and their templates.
    pub resources: u64,
}

/// What a catalogue knows of one source.
#[derive(Clone, Debug)]
pub struct SourceStatus {
    /// The source's name.
    pub source: String,
    /// How far it has come.
    pub state: State,
    /// How many tools it offers, whatever else is there.
    pub tools: usize,
    /// The way to what it offers besides tools.
    pub relay: Option<Arc<dyn Relay>>,
    /// The clients that it keeps apart, if it does.
    pub apart: Option<Arc<Apart>>,
    /// What it has to say about itself to clients.
    pub instructions: Option<String>,
    /// What went wrong with parts of it.
    pub diagnostics: Vec<Diagnostic>,
}

/// Two tools want one name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("two tools want the name `{name}`: it is a name or an alias of another tool")]
pub struct NameConflict {
    /// The name or alias.
    pub name: String,
}

// === impl Registry ===

impl Registry {
    /// Makes an empty registry.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            slots: Mutex::default(),
            catalogue: ArcSwap::default(),
            version: watch::Sender::new(0),
            events: Events::default(),
        })
    }

    /// Adds a source after those that are there; until it publishes it counts as starting.
    pub fn publisher(self: &Arc<Self>, source: impl Into<String>) -> Publisher {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.push(Slot { source: source.into(), publication: Publication::default() });
        let slot = slots.len() - 1;
        let catalogue = Catalogue::build(&slots, &self.snapshot());
        match catalogue {
            Ok(catalogue) => self.store(catalogue),
            Err(conflict) => {
                unreachable!("an empty publication conflicts with nothing: {conflict}")
            }
        }
        Publisher { registry: Arc::clone(self), slot }
    }

    /// Replaces several publications at once: all of them, or on a conflict none.
    pub fn publish(&self, batch: Vec<(&Publisher, Publication)>) -> Result<(), NameConflict> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let mut replaced = Vec::with_capacity(batch.len());
        for (publisher, publication) in batch {
            let old = std::mem::replace(&mut slots[publisher.slot].publication, publication);
            replaced.push((publisher.slot, old));
        }
        match Catalogue::build(&slots, &self.snapshot()) {
            Ok(catalogue) => {
                self.store(catalogue);
                Ok(())
            }
            Err(conflict) => {
                for (slot, old) in replaced.into_iter().rev() {
                    slots[slot].publication = old;
                }
                Err(conflict)
            }
        }
    }

    /// Returns every name and alias of the sources beside these.
    pub fn taken_beside(&self, publishers: &[Publisher]) -> HashSet<String> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let others = slots
            .iter()
            .enumerate()
            .filter(|(slot, _)| !publishers.iter().any(|publisher| publisher.slot == *slot));
        others
            .flat_map(|(_, slot)| slot.publication.tools.iter())
            .flat_map(names_of)
            .map(str::to_owned)
            .collect()
    }

    /// Returns the current snapshot.
    pub fn snapshot(&self) -> Arc<Catalogue> {
        self.catalogue.load_full()
    }

    /// Returns a receiver that sees the version of each new snapshot.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Waits until no source is starting any more, and returns the snapshot of that moment.
    pub async fn settled(&self) -> Arc<Catalogue> {
        self.until(Catalogue::is_settled).await
    }

    /// Waits until a snapshot is good enough, and returns it.
    pub async fn until(&self, is_enough: impl Fn(&Catalogue) -> bool) -> Arc<Catalogue> {
        let mut changed = self.changed();
        loop {
            // Seen before the look, so that a change in between wakes the wait below.
            changed.mark_unchanged();
            let catalogue = self.snapshot();
            if is_enough(&catalogue) {
                return catalogue;
            }
            if changed.changed().await.is_err() {
                return catalogue;
            }
        }
    }

    /// Returns where sources say what they say by themselves.
    pub fn events(&self) -> &Events {
        &self.events
    }

    fn store(&self, catalogue: Catalogue) {
        let version = catalogue.version;
        self.catalogue.store(Arc::new(catalogue));
        self.version.send_replace(version);
    }
}

// === impl Publisher ===

impl Publisher {
    /// Replaces what this source offers; on a conflict the old publication stays.
    pub fn publish(&self, publication: Publication) -> Result<(), NameConflict> {
        self.registry.publish(vec![(self, publication)])
    }
}

fn names_of(tool: &Arc<dyn Tool>) -> impl Iterator<Item = &str> {
    let definition = tool.definition();
    std::iter::once(definition.name.as_str()).chain(definition.aliases.iter().map(String::as_str))
}

// === impl SourceStatus ===

impl SourceStatus {
    /// Says whether it is worth naming: one whose tools are only there for the sake of others'
    /// tools is not.
    pub fn counts(&self) -> bool {
        self.tools > 0
            || self.relay.is_some()
            || self.state != State::Ready
            || !self.diagnostics.is_empty()
    }
}

// === impl Catalogue ===

impl Catalogue {
    /// Makes the snapshot that follows another one.
    fn build(slots: &[Slot], before: &Self) -> Result<Self, NameConflict> {
        let mut catalogue = Self { version: before.version + 1, ..Self::default() };
        for slot in slots {
            let Publication { state, tools, offers: _, relay, apart, instructions, diagnostics } =
                &slot.publication;
            for tool in tools {
                catalogue.add(tool)?;
            }
            let lasting = |tool: &&Arc<dyn Tool>| tool.definition().presence == Presence::Always;
            let count = tools.iter().filter(lasting).count();
            catalogue.sources.push(SourceStatus {
                source: slot.source.clone(),
                state: state.clone(),
                tools: count,
                relay: relay.clone(),
                apart: apart.clone(),
                instructions: instructions.clone(),
                diagnostics: diagnostics.clone(),
            });
        }
        catalogue.offered = Offered::build(slots.iter().map(|slot| &slot.publication.offers));
        catalogue.revision = catalogue.revised(before);
        Ok(catalogue)
    }

    /// Compares what clients see with what they saw before.
    fn revised(&self, before: &Self) -> Revision {
        let same_tools = self.tools.len() == before.tools.len()
            && self.tools.iter().zip(&before.tools).all(|(one, other)| Arc::ptr_eq(one, other));
        let is_same = |kind| self.offered.is_same(&before.offered, kind);
        let since = |same: bool, before: u64| if same { before } else { self.version };
        let resources = is_same(Kind::Resources) && is_same(Kind::ResourceTemplates);
        Revision {
            tools: since(same_tools, before.revision.tools),
            prompts: since(is_same(Kind::Prompts), before.revision.prompts),
            resources: since(resources, before.revision.resources),
        }
    }

    fn add(&mut self, tool: &Arc<dyn Tool>) -> Result<(), NameConflict> {
        let index = self.tools.len();
        let definition = tool.definition();
        for (position, name) in names_of(tool).enumerate() {
            if self.names.contains_key(name) || self.aliases.contains_key(name) {
                return Err(NameConflict { name: name.to_owned() });
            }
            let map = if position == 0 { &mut self.names } else { &mut self.aliases };
            map.insert(name.to_owned(), index);
        }
        debug_assert!(self.names.contains_key(definition.name.as_str()));
        self.tools.push(Arc::clone(tool));
        Ok(())
    }

    /// Returns the number of this snapshot; each is greater than the one before.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns when each list was last another one.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns what there is besides tools.
    pub fn offered(&self) -> &Offered {
        &self.offered
    }

    /// Returns all tools in the order of listing.
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// Returns the tool with this alias or name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        let index = self.aliases.get(name).or_else(|| self.names.get(name))?;
        self.tools.get(*index)
    }

    /// Returns the sources in order.
    pub fn sources(&self) -> &[SourceStatus] {
        &self.sources
    }

    /// Returns whether no source is starting any more.
    pub fn is_settled(&self) -> bool {
        self.sources.iter().all(|source| source.state != State::Starting)
    }
}

#[cfg(test)]
mod tests;
