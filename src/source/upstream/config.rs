//! MCP files: which servers there are, as they are written.
//!
//! A file is JSON5 (`.json`, `.jsonc`) or TOML and has one mapping of servers. Everything is
//! checked here but what `${…}` expressions stand for: they are [resolved](super::env) when the
//! server is prepared. No message repeats a value.

mod fields;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::document::{Document, DocumentError, Format, Key, Node, Position, hint, path};
use crate::source::upstream::diagnostic::{Diagnostic, MCP_CONFIG_INVALID, Severity, Stage};
use crate::source::upstream::secret::Secret;

use self::fields::Fields;

/// The names that the mapping of servers can have.
pub const ROOTS: [&str; 3] = ["mcpServers", "servers", "mcp_servers"];

/// How long a server has to start, and a call to end, unless the file says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest time limit; a longer one means this one.
const LONGEST: Duration = Duration::from_hours(10 * 365 * 24);

/// A server as a file describes it, its expressions unresolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Its name: case and punctuation as written.
    pub name: String,
    /// The file that describes it.
    pub file: PathBuf,
    /// Where in the file its name stands.
    pub position: Position,
    /// Its path in the file: `mcpServers.github`.
    pub path: String,
    /// Its description as it is written, which knows where each value stands.
    pub written: Node,
    /// The folder that relative paths in its description start from.
    pub directory: PathBuf,
    /// How it is reached.
    pub transport: Transport,
    /// Whether its failure is everybody's.
    pub required: bool,
    /// How long it may take until its tools are known.
    pub startup_timeout: Duration,
    /// How long a call may take.
    pub tool_timeout: Duration,
    /// Which of its tools are wanted.
    pub filter: Filter,
    /// Whether its word that a tool changes nothing is believed.
    pub trust_annotations: bool,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    /// A child process, over its standard input and output.
    Stdio(Stdio),
    /// Streamable HTTP.
    Http(Http),
    /// HTTP with server-sent events, as it was before 2025.
    Sse(Http),
}

/// A server that is a child process.
#[derive(Clone, PartialEq)]
pub struct Stdio {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The folder it starts in.
    pub cwd: Option<String>,
    /// Variables and their values.
    pub env: Vec<(String, Secret)>,
    /// Variables handed on from our own environment.
    pub env_vars: Vec<String>,
    /// A dotenv file with more variables.
    pub env_file: Option<String>,
}

/// A server that is reached by URL.
#[derive(Clone, PartialEq)]
pub struct Http {
    /// The URL.
    pub url: String,
    /// Headers, first those of `headers`, then those of `http_headers`.
    pub headers: Vec<(String, Secret)>,
    /// Headers and the variables that hold their values.
    pub env_http_headers: Vec<(String, String)>,
    /// The variable that holds the bearer token.
    pub bearer_token_env_var: Option<String>,
}

/// Which tools of a server are wanted, by the names the server gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The only ones wanted, if not all are.
    pub enabled: Option<Vec<String>>,
    /// Those not wanted, whatever else is said.
    pub disabled: Vec<String>,
}

/// What an agent file says about a server beyond its MCP file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Override {
    /// Whether its failure is everybody's.
    pub required: Option<bool>,
    /// Whether its word that a tool changes nothing is believed.
    pub trust_annotations: Option<bool>,
    /// How long it may take until its tools are known.
    pub startup_timeout_sec: Option<Seconds>,
    /// How long a call may take.
    pub tool_timeout_sec: Option<Seconds>,
}

/// What is overridden, by server.
pub type Overrides = BTreeMap<String, Override>;

/// A time limit: a number of seconds above 0.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "f64")]
#[schemars(extend("exclusiveMinimum" = 0))]
pub struct Seconds(Duration);

/// Why a number is no time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a time limit is a number above 0")]
pub struct NoTimeLimit;

/// What to do about a server that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// Fail, unless the server says `required: false`.
    Fail,
    /// Leave it out with a diagnostic, and go on.
    Skip,
}

/// The servers of all files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// Those to be prepared, by name.
    pub servers: Vec<Server>,
    /// Those that are switched off, by name.
    pub disabled: Vec<String>,
    /// What was left out.
    pub diagnostics: Vec<Diagnostic>,
}

/// Why the servers cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// A mistake in a file.
    #[error(transparent)]
    Document(#[from] Box<DocumentError>),
    /// An override for a server that no file has.
    #[error("no MCP file has the server `{server}` that is overridden{}", suffix(hint.as_ref()))]
    UnknownOverride {
        /// The name in the override.
        server: String,
        /// What may have been meant.
        hint: Option<String>,
    },
}

/// Reads files of servers; the same server in two of them is an error.
pub fn load(
    files: &[PathBuf],
    overrides: &Overrides,
    on_error: OnError,
) -> Result<Loaded, LoadError> {
    let documents = files.iter().map(|file| open(file)).collect::<Result<Vec<_>, _>>();
    let mut loaded = read(&documents.map_err(Box::new)?, overrides, on_error)?;
    for server in &mut loaded.servers {
        // Fails only where the current folder is gone; the path as written is then all there is.
        if let Ok(directory) = std::path::absolute(Path::new(".").join(&server.directory)) {
            server.directory = directory;
        }
    }
    Ok(loaded)
}

/// Opens a file of servers in the language its suffix says.
fn open(file: &Path) -> Result<Document, DocumentError> {
    let suffix = file.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
    let format = match suffix.to_ascii_lowercase().as_str() {
        "toml" => Format::Toml,
        "json" | "jsonc" => Format::Json5,
        _ => {
            let message = "an MCP file ends in .json, .jsonc or .toml";
            return Err(DocumentError::of_file(file, message));
        }
    };
    Document::open(file, format)
}

/// Takes the servers from parsed files.
pub fn read(
    documents: &[Document],
    overrides: &Overrides,
    on_error: OnError,
) -> Result<Loaded, LoadError> {
    let mut loaded = Loaded::default();
    let mut named: BTreeMap<&str, (&Document, &Key)> = BTreeMap::new();
    for document in documents {
        let (root, servers) = roots(document).map_err(Box::new)?;
        for (key, node) in servers {
            if key.text.trim().is_empty() {
                let path = path::key(root, &key.text);
                let error = document.error_at(key.position, path, "a server needs a name");
                let hint = "tools are named after it: `mcp__NAME__tool`".to_owned();
                return Err(Box::new(error.with_hint(hint)).into());
            }
            if let Some((other, first)) = named.insert(&key.text, (document, key)) {
                let place = format!("{}:{}", other.path().display(), first.position);
                let message = format!("this server is already in {place}");
                let path = path::key(root, &key.text);
                return Err(Box::new(document.error_at(key.position, path, message)).into());
            }
            let path = path::key(root, &key.text);
            let entry = Entry { document, path, key, node, changes: overrides.get(&key.text) };
            entry.take(on_error, &mut loaded).map_err(Box::new)?;
        }
    }
    if let Some(server) = overrides.keys().find(|server| !named.contains_key(server.as_str())) {
        let nearest = hint::nearest(server, named.keys().copied());
        let hint = nearest.map(|name| format!("did you mean `{name}`?"));
        return Err(LoadError::UnknownOverride { server: server.clone(), hint });
    }
    loaded.servers.sort_by(|a, b| a.name.cmp(&b.name));
    loaded.disabled.sort();
    Ok(loaded)
}

/// The name of a file's mapping of servers, and its entries.
type Root<'a> = (&'static str, &'a [(Key, Node)]);

/// Finds the one mapping of servers.
fn roots(document: &Document) -> Result<Root<'_>, DocumentError> {
    let at = |position, path: &str, message: String| document.error_at(position, path, message);
    let Some(entries) = document.root.as_mapping() else {
        let found = document.root.describe();
        let message = format!("expected a mapping at the top, found {found}");
        return Err(at(document.root.position, "", message));
    };
    let mut found = entries.iter().filter_map(|(key, node)| {
        ROOTS.into_iter().find(|root| *root == key.text).map(|root| (root, key, node))
    });
    let Some((root, _, node)) = found.next() else {
        let message = "one of `mcpServers`, `servers` and `mcp_servers` must hold the servers";
        let near = |(key, _): &(Key, Node)| {
            let name = hint::nearest(&key.text, ROOTS)?;
            let error = at(key.position, &path::key("", &key.text), message.to_owned());
            Some(error.with_hint(format!("did you mean `{name}`?")))
        };
        // The servers themselves, without anything around them.
        let unwrapped = |(key, node): &(Key, Node)| {
            ["command", "url", "serverUrl"].iter().find_map(|field| node.get(field))?;
            let hint = "put this and all others under `mcpServers`".to_owned();
            Some(at(key.position, &path::key("", &key.text), message.to_owned()).with_hint(hint))
        };
        let error = entries.iter().find_map(near).or_else(|| entries.iter().find_map(unwrapped));
        let error = error.unwrap_or_else(|| at(document.root.position, "", message.to_owned()));
        return Err(error);
    };
    if let Some((second, key, _)) = found.next() {
        let message = format!("the servers are already in `{root}`; only one may hold them");
        return Err(at(key.position, second, message));
    }
    match node.as_mapping() {
        Some(servers) => Ok((root, servers)),
        None => {
            let message = format!("expected a mapping of servers, found {}", node.describe());
            Err(at(node.position, root, message))
        }
    }
}

/// One server in its file.
struct Entry<'a> {
    document: &'a Document,
    path: String,
    key: &'a Key,
    node: &'a Node,
    changes: Option<&'a Override>,
}

/// What an entry comes to, unless it cannot be used.
enum Outcome {
    Server(Box<Server>),
    Disabled,
}

impl Entry<'_> {
    /// Adds the server to what is loaded, or the reason why it is left out.
    fn take(self, on_error: OnError, loaded: &mut Loaded) -> Result<(), DocumentError> {
        let optional = on_error == OnError::Skip;
        let (field, error) = match self.outcome() {
            Ok(Outcome::Server(server)) => {
                loaded.servers.push(*server);
                return Ok(());
            }
            Ok(Outcome::Disabled) => {
                loaded.disabled.push(self.key.text.clone());
                return Ok(());
            }
            Err(Invalid::Entry(field, error)) if optional => (field, error),
            Err(Invalid::Field(field, error)) if optional || !self.required() => (field, error),
            Err(Invalid::Entry(_, error) | Invalid::Field(_, error)) => return Err(error),
        };
        loaded.diagnostics.push(Diagnostic {
            server: self.key.text.clone(),
            stage: Stage::Config,
            code: MCP_CONFIG_INVALID,
            severity: Severity::Error,
            wire_name: None,
            field: Some(field),
            message: error.without_place(),
            place: error.place(),
        });
        Ok(())
    }

    fn outcome(&self) -> Result<Outcome, Invalid> {
        let Some(entries) = self.node.as_mapping() else {
            let message = format!("expected a mapping, found {}", self.node.describe());
            let error = self.document.error_at(self.node.position, &self.path, message);
            return Err(Invalid::Entry("server".to_owned(), error));
        };
        let fields = Fields { document: self.document, path: &self.path, key: self.key, entries };
        if fields.disabled().map_err(|(field, error)| Invalid::Entry(field, error))? {
            return Ok(Outcome::Disabled);
        }
        let server = self.server(&fields);
        let server = server.map_err(|(field, error)| Invalid::Field(field, error))?;
        Ok(Outcome::Server(Box::new(server)))
    }

    fn server(&self, fields: &Fields<'_>) -> Result<Server, fields::Problem> {
        let parts = fields.read()?;
        let none = Override::default();
        let changes = self.changes.unwrap_or(&none);
        let file = self.document.path().to_owned();
        Ok(Server {
            name: self.key.text.clone(),
            directory: file.parent().map(Path::to_owned).unwrap_or_default(),
            file,
            position: self.key.position,
            path: self.path.clone(),
            written: self.node.clone(),
            transport: parts.transport,
            required: self.required(),
            startup_timeout: limit(changes.startup_timeout_sec, parts.startup_timeout),
            tool_timeout: limit(changes.tool_timeout_sec, parts.tool_timeout),
            filter: parts.filter,
            trust_annotations: changes.trust_annotations.unwrap_or(false),
        })
    }

    /// Returns whether the server is required: anything but a plain `false` says so.
    fn required(&self) -> bool {
        let declared = self.node.get("required").and_then(Node::as_bool);
        self.changes.and_then(|changes| changes.required).or(declared).unwrap_or(true)
    }
}

/// What is wrong with an entry: the field's name and the error.
enum Invalid {
    /// The entry as such, or its switches: an error even for a server that is not required.
    Entry(String, DocumentError),
    /// One of its fields.
    Field(String, DocumentError),
}

fn limit(changed: Option<Seconds>, declared: Option<Seconds>) -> Duration {
    changed.or(declared).map_or(DEFAULT_TIMEOUT, Seconds::duration)
}

fn suffix(hint: Option<&String>) -> String {
    hint.map(|hint| format!("; {hint}")).unwrap_or_default()
}

impl Seconds {
    /// Returns the limit.
    pub fn duration(self) -> Duration {
        self.0
    }
}

impl TryFrom<f64> for Seconds {
    type Error = NoTimeLimit;

    fn try_from(seconds: f64) -> Result<Self, NoTimeLimit> {
        if seconds.is_finite() && seconds > 0.0 {
            Ok(Self(Duration::from_secs_f64(seconds.min(LONGEST.as_secs_f64()))))
        } else {
            Err(NoTimeLimit)
        }
    }
}

impl Server {
    /// Returns where the value of a field stands, as file, line and column.
    pub(super) fn place_of(&self, field: &str) -> String {
        format!("{}:{}", self.file.display(), self.written.position_of(field))
    }
}

impl Filter {
    /// Returns whether a tool is wanted; being disabled beats being enabled.
    pub fn admits(&self, wire_name: &str) -> bool {
        let listed = |names: &[String]| names.iter().any(|name| name == wire_name);
        !listed(&self.disabled) && self.enabled.as_deref().is_none_or(listed)
    }
}

impl fmt::Debug for Stdio {
    // Arguments may hold keys as well as values may.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdio")
            .field("command", &self.command)
            .field("args", &self.args.len())
            .field("cwd", &self.cwd)
            .field("env", &self.env)
            .field("env_vars", &self.env_vars)
            .field("env_file", &self.env_file)
            .finish()
    }
}

impl fmt::Debug for Http {
    // A URL may have a key in its query.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("headers", &self.headers)
            .field("env_http_headers", &self.env_http_headers)
            .field("bearer_token_env_var", &self.bearer_token_env_var)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
