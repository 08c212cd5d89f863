//! The agent file: what an Iris agent may do and which tools it has.
//!
//! All of it is checked, by its own rules. What a tool server has no use for is accepted and
//! noted. What it would have to act on and does not yet is noted too, so that nobody believes it
//! works: a run refuses to start with it, and `check` tells of it.

mod command;
mod conversation;
mod cures;
mod decision;
mod file;
mod hooks;
mod memory;
mod model;
mod options;
mod permissions;
mod policy;
mod servers;
mod skills;
mod subagents;
mod text;
mod tools;
mod unbuilt;
mod untouched;
mod within;

use std::io;
use std::path::{Path, PathBuf};

use schemars::Schema;

use self::decision::Service;
use self::file::AgentFile;
use self::policy::ContextPolicy;
use self::servers::Servers;
use self::subagents::Subagents;
use super::ConfigError;
use super::mistaken::Kind;
use crate::document::{Document, DocumentError, Format, path};
use crate::hook;
use crate::permission;
use crate::source::builtin;
use crate::source::python;
use crate::source::skill;
use crate::source::upstream::config::{LoadError, Overrides};
use crate::workspace::{PathError, Workspace};

/// Keys that say something about a model's conversation, which we do not lead.
const NOT_USED_HERE: [&str; 11] = [
    "model",
    "system",
    "context",
    "compaction",
    "maintenance",
    "speech",
    "observability",
    "evolution",
    "todo",
    "session",
    "prompts",
];

/// An agent file.
#[derive(Debug)]
pub struct Agent {
    /// The keys in it that a tool server has no use for.
    pub not_used: Vec<String>,
    /// What it turns on and this version does not have.
    pub not_built: Vec<DocumentError>,
    path: PathBuf,
    document: Document,
    file: AgentFile,
}

/// Returns the JSON schema of agent files.
pub fn schema() -> Schema {
    schemars::generate::SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<AgentFile>()
}

impl Agent {
    /// Reads an agent file, and the files that it names but for those of upstream servers.
    ///
    /// All that is wrong with it is told at once.
    pub fn read(path: &Path) -> Result<Self, Vec<DocumentError>> {
        Self::read_as_one(path).map_err(|errors| match Kind::Agent.mistaken(path) {
            Some(error) => vec![error],
            None => errors,
        })
    }

    fn read_as_one(path: &Path) -> Result<Self, Vec<DocumentError>> {
        let document = Document::open(path, Format::Yaml).map_err(|error| vec![error])?;
        let file = AgentFile::read(&document)?;
        let beside = |name: &Path| folder(path).join(name);
        let service = file.decision.as_ref().map(|decision| {
            let named = open(&document, "decision.path", &beside(decision.path()))?;
            Service::read(&named, file.context_policy().deferred_tools)
        });
        let catalog = file.tools().subagent.map(|catalog| {
            let named = open(&document, "tools.subagent", &beside(Path::new(catalog.as_str())))?;
            Subagents::read(&named)
        });
        let service = match (service.transpose(), catalog.transpose()) {
            (Ok(service), Ok(_)) => service,
            (service, catalog) => {
                return Err(service.err().into_iter().chain(catalog.err()).collect());
            }
        };
        let not_used = not_used(&file, service.as_ref(), &document);
        let not_built = unbuilt::find(&file, service.as_ref(), &document);
        Ok(Self { not_used, not_built, path: path.to_path_buf(), document, file })
    }

    /// Returns the agent's name, if the file gives one.
    pub(super) fn name(&self) -> Option<&str> {
        self.file.name.as_ref().map(text::Text::as_str)
    }

    /// Returns the keys of the built-in tools that this version has, in order.
    pub(super) fn builtin(&self) -> Vec<String> {
        let mut keys = self.file.tools().builtin;
        keys.retain(|key| builtin::check(key).is_ok());
        keys
    }

    /// Returns what the agent has in Python, and where each of it is written.
    pub(super) fn python(&self) -> python::Config {
        let tools::Python { functions, registrars } = self.file.tools().python.unwrap_or_default();
        let names = |references: Vec<text::Reference>| -> Vec<String> {
            references.iter().map(|reference| reference.as_str().to_owned()).collect()
        };
        let (functions, registrars) = (names(functions), names(registrars));
        let hooks = self.file.hooks.iter().flatten().enumerate();
        let hooks: Vec<_> = hooks.filter_map(|(index, hook)| hook.factory(index)).collect();
        let middleware = self.file.middleware.iter().flat_map(hooks::Middleware::factories);
        let middleware: Vec<_> = middleware.collect();

        let numbered = |key: &str, references: &[String]| -> Vec<String> {
            (0..references.len()).map(|number| path::index(key, number)).collect()
        };
        let mut all = numbered("tools.python.functions", &functions);
        all.extend(numbered("tools.python.registrars", &registrars));
        all.extend(hooks.iter().chain(&middleware).map(|factory| factory.place.clone()));
        let written = |path: String| {
            let place = self.document.error_in(&path, "").place()?;
            Some((path, place))
        };
        let places = all.into_iter().filter_map(written).collect();
        python::Config {
            functions,
            registrars,
            hooks,
            middleware,
            places,
            ..python::Config::default()
        }
    }

    /// Returns the agent's hooks that this version can run, in order.
    pub(super) fn hooks(&self) -> Vec<hook::Declared> {
        let hooks = self.file.hooks.iter().flatten();
        let built = hooks.filter(|hook| unbuilt::missing(&self.file, hook).is_none());
        built.map(hooks::Hook::declared).collect()
    }

    /// Returns the file's folder, from which what it names starts.
    pub(super) fn folder(&self) -> &Path {
        folder(&self.path)
    }

    /// Returns what the agent may do without asking.
    pub(super) fn permissions(&self) -> permission::Config {
        let place = |key: &str| {
            let (key, _) = self.document.root.get("permissions")?.entry(key)?;
            let file = self.path.file_name()?.to_string_lossy();
            Some(format!("{file}:{}", key.position.line))
        };
        let places = permission::Places { writes: place("writes"), execute: place("execute") };
        permission::Config { places, ..self.file.permissions().config() }
    }

    /// Returns the folder of the file tools.
    pub(super) fn workspace(&self) -> PathBuf {
        folder(&self.path).join(self.file.permissions().workspace())
    }

    /// Makes the error about a folder of the file tools that cannot be used.
    pub(super) fn bad_workspace(&self, folder: &Path, error: &io::Error) -> DocumentError {
        let message = format!("the folder {} cannot be used: {error}", folder.display());
        let hint = "name a folder that is there, from this file's own or from `/`, or another one with --workspace".to_owned();
        self.document.error_in("permissions.workspace", message).with_hint(hint)
    }

    /// Returns the MCP file and what is said beyond it.
    pub(super) fn mcp(&self) -> Option<(PathBuf, Overrides)> {
        let servers = self.file.mcp.as_ref()?;
        Some((self.mcp_file(servers), servers.overrides.clone().unwrap_or_default()))
    }

    /// Says of a mistake in MCP files where in an agent file it begins, if it does.
    pub(super) fn bad_servers(agent: Option<&Self>, error: LoadError) -> ConfigError {
        let Some((agent, servers)) =
            agent.and_then(|agent| Some((agent, agent.file.mcp.as_ref()?)))
        else {
            return error.into();
        };
        match error {
            LoadError::UnknownOverride { server, hint } => {
                let place = path::key("mcp.overrides", &server);
                let error =
                    agent.document.error_in(&place, "no MCP file has a server of this name");
                error.with_hint(hint.unwrap_or_else(|| "remove it".to_owned())).into()
            }
            LoadError::Document(error)
                if error.position().is_none() && error.file() == agent.mcp_file(servers) =>
            {
                agent.document.error_in("mcp.path", error.to_string()).into()
            }
            LoadError::Document(_) => error.into(),
        }
    }

    /// Returns where skills are looked for in a workspace, and which must be there; nothing where
    /// they are off.
    pub(super) fn skills(
        agent: Option<&Self>,
        workspace: &Path,
    ) -> Result<Option<skill::Config>, DocumentError> {
        let said = agent.and_then(|agent| Some((agent, agent.file.skills.as_ref()?)));
        let Some((agent, skills)) = said.filter(|(_, skills)| skills.enabled) else {
            return Ok(None);
        };
        let root = skills.root.as_str().trim();
        // What is wrong with the workspace itself is said elsewhere.
        let resolved = Workspace::open(workspace).map(|workspace| workspace.resolve(root));
        if let Ok(Err(error)) = resolved {
            let message = match error {
                PathError::Outside { root, .. } => {
                    format!("the folder is outside the workspace {root}")
                }
                error => error.to_string(),
            };
            let error = agent.document.error_in("skills.root", message);
            return Err(error.with_hint("name a folder inside the workspace".to_owned()));
        }
        let place = |number| {
            let key = format!("skills.{}", path::index("require", number));
            agent.document.error_in(&key, "").place()
        };
        let required = skills.require.iter().enumerate();
        let require = required.map(|(number, name)| (name.as_str().to_owned(), place(number)));
        Ok(Some(skill::Config { roots: vec![root.to_owned()], require: require.collect() }))
    }

    /// Returns whether the tools of upstreams have to be searched for.
    pub(super) fn defers(&self) -> bool {
        self.file.context_policy().deferred_tools
    }

    /// Returns whether clients can read again what was called and what came of it.
    pub(super) fn context(&self) -> bool {
        self.file.context_policy().enabled
    }

    fn mcp_file(&self, servers: &Servers) -> PathBuf {
        folder(&self.path).join(servers.path())
    }
}

/// Opens a file that an agent file names at `place`.
fn open(agent: &Document, place: &str, path: &Path) -> Result<Document, DocumentError> {
    Document::open(path, Format::Yaml).map_err(|error| match error.position() {
        Some(_) => error,
        None => agent.error_in(place, error.to_string()),
    })
}

/// Returns the keys in a file that a tool server has no use for, in its order.
fn not_used(file: &AgentFile, service: Option<&Service>, document: &Document) -> Vec<String> {
    let runs_commands = file.tools().builtin.iter().any(|key| key.starts_with("exec."))
        || file.hooks.iter().flatten().any(hooks::Hook::is_command);
    let is_idle = |key: &str| match key {
        "command" => !runs_commands,
        "decision" => service.is_some_and(|service| !service.is_on()),
        key => NOT_USED_HERE.contains(&key),
    };
    let mut names = Vec::new();
    for (key, node) in document.root.as_mapping().unwrap_or_default() {
        if key.text == "context_policy" {
            let idle = ContextPolicy::NOT_USED.into_iter().filter(|key| node.entry(key).is_some());
            names.extend(idle.map(|idle| path::key("context_policy", idle)));
        } else if is_idle(&key.text) {
            names.push(key.text.clone());
        }
    }
    for key in &names {
        tracing::debug!(key, "not used by a tool server");
    }
    names
}

fn folder(file: &Path) -> &Path {
    file.parent().unwrap_or_else(|| Path::new(""))
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
