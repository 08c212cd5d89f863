//! What is known of a tool without running it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::tool::{CallTraits, InputSchema, TimeoutOwner};

/// The longest a tool's own name may be, in characters.
pub const MAX_NAME_CHARS: usize = 64;

/// What policies, lists and searches know of a tool.
#[derive(Clone, Debug)]
pub struct ToolDefinition {
    /// The tool's own, canonical name.
    pub name: ToolName,
    /// A title for people, if it has one.
    pub title: Option<String>,
    description: String,
    /// The shape of its arguments.
    pub input_schema: InputSchema,
    /// What it does to the world.
    pub capabilities: Capabilities,
    /// The group that views filter by; `core` unless said otherwise.
    pub group: String,
    /// Other names it can be called by.
    pub aliases: Vec<String>,
    /// Whether its schema is hidden until a search discloses it.
    pub deferred: bool,
    /// When it is there at all.
    pub presence: Presence,
    /// The longest final text in characters; beyond it the text goes to an artifact.
    pub max_result_chars: usize,
    /// How many characters of a saved text stay in the result.
    pub preview_chars: usize,
    /// Which part of a saved text stays in the result.
    pub preview_mode: PreviewMode,
    /// Whether an old result may be shortened in a model's context.
    pub retention: Retention,
    /// Examples, tags, version and the like.
    pub metadata: Map<String, Value>,
    /// The tool as its own server lists it, where it has one; goes out untouched but for its name.
    pub native: Option<Arc<Map<String, Value>>>,
    /// The server it is a tool of, where it is not one of ours.
    pub origin: Option<Origin>,
}

/// Which server a tool comes from, and what it is called there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The server's name, as its file has it.
    pub server: String,
    /// The name that the server gives the tool.
    pub tool: String,
}

/// When a tool is there at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    /// Always.
    #[default]
    Always,
    /// While other tools have to be searched for.
    WhileDeferring,
}

/// Which part of a long text a preview shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreviewMode {
    /// The beginning.
    #[default]
    Head,
    /// The beginning and the end.
    HeadTail,
}

/// Whether an old result may be shortened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retention {
    /// It stays as it is.
    #[default]
    Keep,
    /// It can be got again, so it may be shortened.
    Observation,
}

/// A valid tool name: a letter or `_`, then letters, digits and `_`, at most 64 characters.
///
/// Letters and digits are Unicode's. Clients may want less; that is settled at the edge.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolName(Arc<str>);

/// What a tool does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Capability {
    /// Reads the workspace.
    Read,
    /// Changes the workspace.
    Write,
    /// Runs programs.
    Execute,
    /// Talks to the network.
    Network,
    /// Calls an upstream MCP server.
    Mcp,
    /// Starts another agent.
    Agent,
}

/// A set of capabilities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(BTreeSet<Capability>);

/// Why something is no tool definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// The name is empty.
    #[error("a tool name must not be empty")]
    EmptyName,
    /// The name is too long.
    #[error("a tool name has at most {MAX_NAME_CHARS} characters: `{0}`")]
    LongName(String),
    /// The name starts with something else than a letter or `_`.
    #[error("a tool name starts with a letter or an underscore: `{0}`")]
    NameStart(String),
    /// The name has a character that is no letter, digit or `_`.
    #[error("a tool name has only letters, digits and underscores: `{0}`")]
    NameCharacter(String),
    /// The description is blank.
    #[error("a tool needs a description")]
    BlankDescription,
}

impl ToolDefinition {
    /// Makes a definition with every optional part at its default.
    pub fn new(
        name: ToolName,
        description: impl Into<String>,
        input_schema: InputSchema,
    ) -> Result<Self, DefinitionError> {
        let description = description.into();
        if description.trim().is_empty() {
            return Err(DefinitionError::BlankDescription);
        }
        Ok(Self {
            name,
            title: None,
            description,
            input_schema,
            capabilities: Capabilities::default(),
            group: "core".to_owned(),
            aliases: Vec::new(),
            deferred: false,
            presence: Presence::default(),
            max_result_chars: 50_000,
            preview_chars: 8_000,
            preview_mode: PreviewMode::default(),
            retention: Retention::default(),
            metadata: Map::new(),
            native: None,
            origin: None,
        })
    }

    /// Returns the description; never blank.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the same tool with another description; a blank one changes nothing.
    #[must_use]
    pub fn with_description(self, description: String) -> Self {
        if description.trim().is_empty() { self } else { Self { description, ..self } }
    }

    /// Returns every name by which people may mean the tool: its own, its aliases, and, of a
    /// server's tool, the one that the server gives it, alone and after the server's name.
    ///
    /// Of these only the first two are certainly nobody else's.
    pub fn spellings(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let own =
            std::iter::once(self.name.as_str()).chain(self.aliases.iter().map(String::as_str));
        let theirs = self.origin.iter().flat_map(|Origin { server, tool }| {
            let plain = Origin::plain(server, tool);
            [Cow::from(format!("mcp__{plain}")), Cow::from(plain), Cow::from(tool.as_str())]
        });
        own.map(Cow::from).chain(theirs)
    }

    /// Returns the traits of a call as the capabilities alone imply them.
    pub fn traits(&self) -> CallTraits {
        CallTraits {
            read_only: self.capabilities.read_only(),
            destructive: self.capabilities.destructive(),
            parallel: true,
            timeout_owner: TimeoutOwner::Runtime,
        }
    }
}

impl Origin {
    /// Returns `server__tool`; of a chain of gateways that call each other the same, once.
    pub fn plain(server: &str, tool: &str) -> String {
        let prefix = format!("{server}__");
        if tool.starts_with(&prefix) { tool.to_owned() } else { prefix + tool }
    }
}

impl ToolName {
    /// Parses a name.
    pub fn parse(name: &str) -> Result<Self, DefinitionError> {
        let mut characters = name.chars();
        let Some(first) = characters.next() else {
            return Err(DefinitionError::EmptyName);
        };
        if name.chars().count() > MAX_NAME_CHARS {
            return Err(DefinitionError::LongName(name.to_owned()));
        }
        if !(first.is_alphabetic() || first == '_') {
            return Err(DefinitionError::NameStart(name.to_owned()));
        }
        if !characters.all(|c| c.is_alphanumeric() || c == '_') {
            return Err(DefinitionError::NameCharacter(name.to_owned()));
        }
        Ok(Self(name.into()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Capability {
    /// All there are.
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Write, Self::Execute, Self::Network, Self::Mcp, Self::Agent];

    /// Returns the capability's name in files and rules.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Execute => "execute",
            Self::Network => "network",
            Self::Mcp => "mcp",
            Self::Agent => "agent",
        }
    }
}

impl Capabilities {
    /// Returns whether the set has `capability`.
    pub fn has(&self, capability: Capability) -> bool {
        self.0.contains(&capability)
    }

    /// Returns whether every member is one of `allowed`.
    pub fn within(&self, allowed: &[Capability]) -> bool {
        self.0.iter().all(|capability| allowed.contains(capability))
    }

    /// Returns whether nothing in the set changes anything: only reading, or nothing at all.
    pub fn read_only(&self) -> bool {
        self.within(&[Capability::Read])
    }

    /// Returns whether something in the set may destroy data.
    pub fn destructive(&self) -> bool {
        self.has(Capability::Write) || self.has(Capability::Execute)
    }

    /// Returns the members in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = Capability> + '_ {
        self.0.iter().copied()
    }
}

impl<const N: usize> From<[Capability; N]> for Capabilities {
    fn from(capabilities: [Capability; N]) -> Self {
        Self(capabilities.into())
    }
}

impl FromIterator<Capability> for Capabilities {
    fn from_iter<I: IntoIterator<Item = Capability>>(capabilities: I) -> Self {
        Self(capabilities.into_iter().collect())
    }
}

#[cfg(test)]
mod tests;
