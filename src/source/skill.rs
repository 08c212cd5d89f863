//! Skills: folders with instructions for one kind of task each, which a model loads by name.
//!
//! ```text
//! Keeper ── looks every second ──▶ Scanner ──▶ Stock ◀── load_skill, SkillRelay
//!    └────── publishes what is another
//! ```
//!
//! What is on disk is looked at again and again instead of waited for: a look is a listing of one
//! folder and the times of a few files, costs next to nothing, and sees changes on every file system,
//! also on those that tell nobody of them (network and container mounts). Texts are read when they
//! are asked for.

mod catalog;
mod files;
mod front_matter;
mod load;
mod published;
mod relay;
mod scan;
mod stock;
mod text;
mod watched;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use self::load::LoadSkill;
use self::published::Published;
use self::relay::SkillRelay;
use self::scan::{Found, Scanner, Skill};
use self::stock::Stock;
use crate::registry::diagnostic::{Severity, Stage};
use crate::registry::{Cause, Diagnostic, NameConflict, Publication, Publisher, Registry, State};
use crate::relay::{Event, Offers, Relay};
use crate::session::Sessions;
use crate::shutdown::Shutdown;
use crate::tool::{ErrorCode, Tool, ToolDefinition, Typed};
use crate::workspace::Workspace;

pub use self::load::{SKILL_NOT_FOUND, SKILL_PATH_ERROR, SKILL_READ_ERROR};

/// The name of the source.
pub const SOURCE: &str = "skills";
/// The name of the tool.
pub const LOAD_SKILL: &str = "load_skill";

/// There is no folder of skills.
pub const ROOT_MISSING: ErrorCode = ErrorCode::new("ROOT_MISSING");
/// A folder's name is none of a skill.
pub const INVALID_NAME: ErrorCode = ErrorCode::new("INVALID_NAME");
/// A folder has no `SKILL.md`.
pub const MISSING_SKILL_FILE: ErrorCode = ErrorCode::new("MISSING_SKILL_FILE");
/// A folder or its `SKILL.md` cannot be used.
pub const INVALID_SKILL: ErrorCode = ErrorCode::new("INVALID_SKILL");
/// A skill calls itself otherwise than its folder is called.
pub const NAME_MISMATCH: ErrorCode = ErrorCode::new("NAME_MISMATCH");
/// A description was too long.
pub const DESCRIPTION_TRUNCATED: ErrorCode = ErrorCode::new("DESCRIPTION_TRUNCATED");
/// A skill of the same name comes first.
pub const DUPLICATE_NAME: ErrorCode = ErrorCode::new("DUPLICATE_NAME");
/// A skill can be loaded, but is no resource.
pub const SKILL_NOT_PUBLISHED: ErrorCode = ErrorCode::new("SKILL_NOT_PUBLISHED");

/// The name that every skill's text has.
const SKILL_FILE: &str = "SKILL.md";
/// How long after a look the next one comes.
const EVERY: Duration = Duration::from_secs(1);
/// How much longer than a look the pause after it is, where a look takes long.
const PAUSES: u32 = 50;

/// What the agent file says of skills.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The folders that have skills, relative to the workspace; of two skills of one name, that of
    /// the earlier folder counts.
    pub roots: Vec<String>,
    /// The skills that must be there, and where each is written.
    pub require: Vec<(String, Option<String>)>,
}

/// Which ways to skills there are, beside the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ways {
    /// Whether instructions name them.
    pub told: bool,
    /// Whether they are resources, and answered for by the skills extension.
    pub resources: bool,
}

/// What a diagnostic is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    RootMissing,
    InvalidName,
    MissingFile,
    Invalid,
    NameMismatch,
    DescriptionTruncated,
    Duplicate,
    NotPublished,
}

/// The skills of a run.
#[derive(Clone, Debug)]
pub struct Skills(Arc<Stock>);

/// A skill, as its operator is told of it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct About {
    /// The name it is loaded by.
    pub name: String,
    /// What it is for, as models are told.
    pub description: String,
    /// Where its text is.
    pub file: PathBuf,
}

/// Looks after what is published of skills.
struct Keeper {
    scanner: Scanner,
    stock: Arc<Stock>,
    require: Vec<(String, Option<String>)>,
    ways: Ways,
    registry: Arc<Registry>,
    publisher: Publisher,
    /// The tool that was published last.
    tool: Option<Arc<dyn Tool>>,
    /// Which skills are resources, as far as any are.
    resources: Published,
    /// What was told already.
    told: Vec<Diagnostic>,
    /// What answers for skills as resources, if anything does.
    relay: Option<Arc<dyn Relay>>,
}

/// Returns the tool as it is whatever skills there are, for those who decide about it.
pub fn definition() -> ToolDefinition {
    load::definition("Loads a skill.")
}

/// Publishes the skills that there are, and goes on publishing them as they change.
pub fn start(
    config: Config,
    parts: (Arc<Workspace>, Arc<Sessions>),
    ways: Ways,
    registry: &Arc<Registry>,
    shutdown: &Shutdown,
) -> Skills {
    let mut keeper = Keeper::new(config, parts, ways, registry);
    let skills = Skills(Arc::clone(&keeper.stock));
    // Before anybody is served, so that nobody sees less than there is.
    let found = keeper.scanner.scan();
    keeper.publish(found);
    let ended = shutdown.child();
    let looking = async move {
        let mut pause = EVERY;
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = ended.cancelled() => return,
            }
            let began = Instant::now();
            let looked = tokio::task::spawn_blocking(move || {
                keeper.look();
                keeper
            });
            let looked = tokio::select! {
                looked = looked => looked,
                // A file system that hangs does not hold up the end.
                () = ended.cancelled() => return,
            };
            keeper = match looked {
                Ok(keeper) => keeper,
                Err(error) => {
                    tracing::error!(%error, "changes of skills are not seen any more");
                    return;
                }
            };
            pause = EVERY.max(began.elapsed() * PAUSES);
        }
    };
    drop(shutdown.spawn(SOURCE, looking));
    skills
}

impl Skills {
    /// Returns what is there now.
    pub fn about(&self) -> Vec<About> {
        let about = |skill: &Arc<Skill>| About {
            name: skill.name.clone(),
            description: skill.description.clone(),
            file: skill.file.absolute().to_owned(),
        };
        self.0.found().skills.iter().map(about).collect()
    }
}

impl Keeper {
    fn new(
        config: Config,
        (workspace, sessions): (Arc<Workspace>, Arc<Sessions>),
        ways: Ways,
        registry: &Arc<Registry>,
    ) -> Self {
        let Config { roots, require } = config;
        let scanner = Scanner::new(Arc::clone(&workspace), roots.clone());
        let stock = Arc::new(Stock::new(workspace, sessions, roots));
        let (registry, publisher) = (Arc::clone(registry), registry.publisher(SOURCE));
        let relay = ways
            .resources
            .then(|| -> Arc<dyn Relay> { Arc::new(SkillRelay::new(Arc::clone(&stock))) });
        let (tool, told, resources) = (None, Vec::new(), Published::default());
        Self { scanner, stock, require, ways, registry, publisher, tool, resources, told, relay }
    }

    /// Publishes what is there if it is another than before, and tells of changed files.
    fn look(&mut self) {
        let (now, before) = (self.scanner.scan(), self.stock.found());
        let mut changed = Vec::new();
        if now != *before {
            changed = changed_texts(&before, &now);
            let skills: Vec<&str> = now.skills.iter().map(|skill| skill.name.as_str()).collect();
            tracing::info!(?skills, "the skills have changed");
            self.publish(now);
        }
        if !self.ways.resources {
            return;
        }
        if self.resources.look(&self.stock) {
            self.announce(&self.stock.found());
        }
        changed.extend(self.stock.watched().changed(&self.stock));
        for uri in changed {
            let params = Map::from_iter([("uri".to_owned(), Value::from(uri.as_str()))]);
            self.registry.events().tell(Event::Updated {
                source: SOURCE.to_owned(),
                uri,
                params,
                only: None,
            });
        }
    }

    fn publish(&mut self, found: Found) {
        let found = Arc::new(found);
        self.stock.put(Arc::clone(&found));
        self.describe(&found.skills);
        if self.ways.resources {
            self.resources.renew(&self.stock, &found.skills);
        }
        self.announce(&found);
    }

    fn announce(&mut self, found: &Found) {
        let mut diagnostics = found.diagnostics.clone();
        diagnostics.extend(found.skills.iter().filter_map(|skill| self.unpublished(skill)));
        for diagnostic in diagnostics.iter().filter(|it| !self.told.contains(it)) {
            tracing::warn!("{diagnostic}");
        }
        self.told.clone_from(&diagnostics);
        let publication = Publication {
            state: self.missing(found).map_or(State::Ready, State::Failed),
            tools: self.tool.iter().cloned().collect(),
            offers: Arc::new(self.offers(&found.skills)),
            relay: self.relay.clone(),
            instructions: catalog::instructions(&found.skills).filter(|_| self.ways.told),
            diagnostics,
            ..Publication::default()
        };
        let Err(conflict) = self.publisher.publish(publication.clone()) else { return };
        tracing::error!(%conflict, "skills cannot be loaded");
        if let Err(conflict) = self.publisher.publish(untold(publication, &conflict)) {
            unreachable!("without a tool nothing conflicts: {conflict}");
        }
    }

    /// Makes the tool anew if it says something else now; there is none without skills.
    fn describe(&mut self, skills: &[Arc<Skill>]) {
        if skills.is_empty() {
            self.tool = None;
            return;
        }
        let tool = LoadSkill::new(Arc::clone(&self.stock), skills);
        let tool: Arc<dyn Tool> = Arc::new(Typed(tool));
        let said = |tool: &Arc<dyn Tool>| tool.definition().description().to_owned();
        if self.tool.as_ref().is_none_or(|before| said(before) != said(&tool)) {
            self.tool = Some(tool);
        }
    }

    fn offers(&self, skills: &[Arc<Skill>]) -> Offers {
        if !self.ways.resources {
            return Offers::default();
        }
        let published = skills.iter().filter(|skill| self.resources.refused(skill).is_none());
        let resources = published.map(|skill| Arc::new(files::listed(skill))).collect();
        // What is not in the folder of one of these is nothing to ask us for.
        Offers { resources, skills: true, ..Offers::default() }
    }

    /// Says why a skill is no resource, if it is none.
    fn unpublished(&self, skill: &Skill) -> Option<Diagnostic> {
        let why = self.resources.refused(skill)?;
        let message = format!("clients get it by {LOAD_SKILL} only, and not as a resource: {why}");
        Some(Diagnostic {
            wire_name: Some(skill.name.clone()),
            place: Some(skill.file.absolute().display().to_string()),
            ..diagnostic(Code::NotPublished, message)
        })
    }

    /// Says which skill is missing that must be there.
    fn missing(&self, found: &Found) -> Option<Cause> {
        let names = self.stock.names();
        let (name, place) = self.require.iter().find(|(name, _)| !names.contains(name))?;
        let there = if names.is_empty() {
            "there are none".to_owned()
        } else {
            format!("there are {}", names.join(", "))
        };
        let why = found.diagnostics.iter().find(|it| it.wire_name.as_ref() == Some(name));
        let why = why.map(|it| format!(" ({})", it.message)).unwrap_or_default();
        let roots = self.stock.roots().join(", ");
        let reason = format!("the required skill `{name}` is not in {roots}{why}; {there}");
        Some(Cause::from(reason).with_detail(place.clone()))
    }
}

/// Returns the addresses of the texts that are others than before.
fn changed_texts(before: &Found, now: &Found) -> Vec<String> {
    let digests: BTreeMap<&str, &str> =
        before.skills.iter().map(|it| (it.name.as_str(), it.digest.as_str())).collect();
    let is_changed = |skill: &&Arc<Skill>| {
        digests.get(skill.name.as_str()).is_some_and(|before| *before != skill.digest)
    };
    now.skills.iter().filter(is_changed).map(|skill| files::uri(&skill.name)).collect()
}

/// Takes out the tool, whose name another one has, and what tells of it.
fn untold(publication: Publication, conflict: &NameConflict) -> Publication {
    let reason = format!("skills cannot be loaded: {conflict}; give the other tool another name");
    let state = State::Failed(Cause::from(reason));
    Publication { state, tools: Vec::new(), instructions: None, ..publication }
}

impl Code {
    fn of(self) -> (ErrorCode, Severity) {
        match self {
            Self::RootMissing => (ROOT_MISSING, Severity::Warning),
            Self::InvalidName => (INVALID_NAME, Severity::Error),
            Self::MissingFile => (MISSING_SKILL_FILE, Severity::Error),
            Self::Invalid => (INVALID_SKILL, Severity::Error),
            Self::NameMismatch => (NAME_MISMATCH, Severity::Warning),
            Self::DescriptionTruncated => (DESCRIPTION_TRUNCATED, Severity::Warning),
            Self::Duplicate => (DUPLICATE_NAME, Severity::Error),
            Self::NotPublished => (SKILL_NOT_PUBLISHED, Severity::Warning),
        }
    }
}

fn diagnostic(code: Code, message: impl Into<String>) -> Diagnostic {
    let (code, severity) = code.of();
    Diagnostic {
        server: SOURCE.to_owned(),
        stage: Stage::Catalog,
        code,
        severity,
        wire_name: None,
        field: None,
        message: message.into(),
        place: None,
    }
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
