//! What the expressions in a server's description stand for.
//!
//! Resolving happens once, when a server is prepared, against one snapshot of the environment
//! that the caller hands in; nothing here reads the process environment or a file. Errors name
//! the place, the field and the variable, never a variable's value.

pub mod dotenv;
mod expression;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use http::HeaderName;
use url::Url;

use crate::document::secret::without_secrets;
use crate::document::{hint, path};
use crate::registry::Cause;
use crate::source::upstream::about::shown;
use crate::source::upstream::config::{Http, Server, Stdio, Transport};
use crate::source::upstream::http::is_ours;
use crate::source::upstream::secret::{Secret, in_url};
use crate::source::upstream::tilde::{CURE, begins_at_home};

pub use self::expression::{ExpressionError, expand};

/// The world that a server is resolved in.
#[derive(Clone, Copy)]
pub struct Host<'a> {
    /// The environment that expressions refer to.
    pub variables: &'a BTreeMap<String, String>,
    /// Where a server without `cwd` starts.
    pub workspace: &'a Path,
    /// Reads a dotenv file.
    pub read: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
}

/// A server's transport with nothing left to resolve.
#[derive(Clone, PartialEq)]
pub enum Resolved {
    /// A child process.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// The folder it starts in.
        cwd: PathBuf,
        /// The variables it is given beside those that every child gets.
        env: BTreeMap<String, Secret>,
        /// Lines of the dotenv file that mean nothing, as file and line.
        skipped_lines: Vec<String>,
    },
    /// Streamable HTTP.
    Http(Endpoint),
    /// HTTP with server-sent events.
    Sse(Endpoint),
}

/// A URL and the headers that every request to it has.
#[derive(Clone, PartialEq)]
pub struct Endpoint {
    /// The URL; `http` or `https`.
    pub url: Url,
    /// The headers; names in lower case, each once.
    pub headers: Vec<(String, Secret)>,
}

/// Why a server cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}.{field}: {problem}")]
pub struct ResolveError {
    /// The server.
    pub server: String,
    /// The server's path in its file.
    pub path: String,
    /// The field, by its path under the server.
    pub field: String,
    /// Where the field's value stands, as file, line and column.
    pub place: String,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// An expression has no value.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// A variable that the field names is not set.
    #[error("the environment variable `{0}` is not set; set it where the gateway runs")]
    NotSet(String),
    /// The dotenv file cannot be read.
    #[error("the dotenv file cannot be read: {0}")]
    Dotenv(String),
    /// The same header has two values.
    #[error("the header is given twice, with different values")]
    HeaderConflict,
    /// The name or the value cannot stand in a request.
    #[error("this cannot be a header")]
    Header,
    /// The header is one that we set.
    #[error("this header cannot be set, it belongs to the protocol; remove it")]
    Ours,
    /// The name of a variable cannot be one.
    #[error(
        "this cannot be the name of a variable: it is empty, or has a `=` or a NUL; write the name alone, and its value after the colon"
    )]
    Name,
    /// The value cannot be handed to a process.
    #[error("this cannot be handed to a process: it is empty or has a NUL")]
    Process,
    /// The URL is none, or not one of HTTP.
    #[error("this is no http or https URL{}", .0.as_ref().map(|url| format!("; write `{url}`")).unwrap_or_default())]
    Url(Option<String>),
}

/// Resolves a server.
pub fn resolve(server: &Server, host: Host<'_>) -> Result<Resolved, ResolveError> {
    let resolver = Resolver { server, directory: &server.directory, host };
    match &server.transport {
        Transport::Stdio(stdio) => resolver.stdio(stdio),
        Transport::Http(http) => resolver.endpoint(http).map(Resolved::Http),
        Transport::Sse(http) => resolver.endpoint(http).map(Resolved::Sse),
    }
}

struct Resolver<'a> {
    server: &'a Server,
    directory: &'a Path,
    host: Host<'a>,
}

impl Resolver<'_> {
    fn stdio(&self, stdio: &Stdio) -> Result<Resolved, ResolveError> {
        let command = self.expand("command", &stdio.command)?;
        if command.is_empty() {
            return Err(self.error("command", Problem::Process));
        }
        let args = stdio.args.iter().enumerate();
        let args = args.map(|(number, text)| self.expand(&path::index("args", number), text));
        let args = args.collect::<Result<Vec<_>, _>>()?;
        let cwd = match &stdio.cwd {
            Some(cwd) => self.directory.join(self.expand("cwd", cwd)?),
            None => self.host.workspace.to_owned(),
        };
        let mut env = BTreeMap::new();
        for (number, name) in stdio.env_vars.iter().enumerate() {
            let value = self.variable(&path::index("env_vars", number), name)?;
            env.insert(name.clone(), Secret::new(value));
        }
        let skipped_lines = match &stdio.env_file {
            Some(file) => self.dotenv(file, &mut env)?,
            None => Vec::new(),
        };
        for (name, value) in &stdio.env {
            let field = path::key("env", name);
            let value = self.expand(&field, value.expose())?;
            self.insert_env(&field, name, value, &mut env)?;
        }
        self.refuse_nul("command", &command)?;
        for (number, text) in args.iter().enumerate() {
            self.refuse_nul(&path::index("args", number), text)?;
        }
        Ok(Resolved::Stdio { command, args, cwd, env, skipped_lines })
    }

    /// Adds the variables of a dotenv file, and returns the lines that mean nothing.
    fn dotenv(
        &self,
        file: &str,
        env: &mut BTreeMap<String, Secret>,
    ) -> Result<Vec<String>, ResolveError> {
        let (written, from) = (file, self.directory.display());
        let unreadable = |why: String| {
            let tilde =
                if begins_at_home(written) { format!("; `~` {CURE}") } else { String::new() };
            let problem = format!("{why} (`{written}`, from {from}){tilde}");
            self.error("envFile", Problem::Dotenv(problem))
        };
        let file = self.directory.join(self.expand("envFile", file)?);
        let bytes = (self.host.read)(&file).map_err(|error| unreadable(error.to_string()))?;
        let text =
            String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8".to_owned()))?;
        let dotenv::Dotenv { entries, skipped_lines } = dotenv::parse(&text);
        for (name, value) in entries {
            // A name alone says nothing of a value.
            let Some(value) = value else { continue };
            let field = path::key("envFile", &name);
            let value = self.expand(&field, value.expose())?;
            self.insert_env(&field, &name, value, env)?;
        }
        let place = |line| format!("{}:{line}", file.display());
        Ok(skipped_lines.into_iter().map(place).collect())
    }

    fn insert_env(
        &self,
        field: &str,
        name: &str,
        value: String,
        env: &mut BTreeMap<String, Secret>,
    ) -> Result<(), ResolveError> {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(self.error(field, Problem::Name));
        }
        self.refuse_nul(field, &value)?;
        env.insert(name.to_owned(), Secret::new(value));
        Ok(())
    }

    fn refuse_nul(&self, field: &str, value: &str) -> Result<(), ResolveError> {
        if value.contains('\0') { Err(self.error(field, Problem::Process)) } else { Ok(()) }
    }

    fn endpoint(&self, http: &Http) -> Result<Endpoint, ResolveError> {
        let expanded = self.expand("url", &http.url)?;
        let url = Url::parse(expanded.trim()).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or_else(|| self.error("url", Problem::Url(meant(&http.url))))?;
        let mut headers = Vec::new();
        for (name, value) in &http.headers {
            let field = path::key("headers", name);
            let value = self.expand(&field, value.expose())?;
            self.add_header((&field, name), value, &mut headers)?;
        }
        for (name, variable) in &http.env_http_headers {
            let field = path::key("env_http_headers", name);
            let value = self.variable(&field, variable)?;
            self.add_header((&field, name), value, &mut headers)?;
        }
        if let Some(variable) = &http.bearer_token_env_var {
            let field = "bearer_token_env_var";
            let bearer = format!("Bearer {}", self.variable(field, variable)?);
            self.add_header((field, "authorization"), bearer, &mut headers)?;
        }
        Ok(Endpoint { url, headers })
    }

    /// Adds a header, unless it is there with the same value.
    fn add_header(
        &self,
        (field, name): (&str, &str),
        value: String,
        headers: &mut Vec<(String, Secret)>,
    ) -> Result<(), ResolveError> {
        let name = name.to_lowercase();
        let error = |problem| Err(self.error(field, problem));
        // RFC 9110 §5.1 and §5.5: a name is a token, a value has no control characters but tab.
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(token) {
            return error(Problem::Header);
        }
        if HeaderName::from_bytes(name.as_bytes()).is_ok_and(|name| is_ours(&name)) {
            return error(Problem::Ours);
        }
        if value.chars().any(|c| c.is_control() && c != '\t') {
            return error(Problem::Header);
        }
        match headers.iter().find(|(other, _)| *other == name) {
            Some((_, other)) if other.expose() == value => Ok(()),
            Some(_) => error(Problem::HeaderConflict),
            None => {
                headers.push((name, Secret::new(value)));
                Ok(())
            }
        }
    }

    fn variable(&self, field: &str, name: &str) -> Result<String, ResolveError> {
        let value = self.host.variables.get(name);
        value.cloned().ok_or_else(|| self.error(field, Problem::NotSet(name.to_owned())))
    }

    fn expand(&self, field: &str, text: &str) -> Result<String, ResolveError> {
        expand(text, self.host.variables).map_err(|error| self.error(field, error.into()))
    }

    fn error(&self, field: &str, problem: Problem) -> ResolveError {
        let Server { name, path, .. } = self.server;
        let field = self.as_written(field);
        let place = self.server.place_of(&field);
        ResolveError { server: name.clone(), path: path.clone(), field, place, problem }
    }

    /// Returns a field by the one of its two names that the file has.
    fn as_written(&self, field: &str) -> String {
        let is_there = |field: &String| self.server.written.find(field).is_some();
        let other = match field {
            "url" => Some("serverUrl".to_owned()),
            _ => field.strip_prefix("headers").map(|name| format!("http_headers{name}")),
        };
        let field = field.to_owned();
        other.filter(|other| !is_there(&field) && is_there(other)).unwrap_or(field)
    }
}

/// Returns the URL that was meant by one without a scheme or with a wrong one, if it can be told.
///
/// As it is written, so without the values of variables, and without user and query.
fn meant(written: &str) -> Option<String> {
    let written = written.trim();
    if let Some((scheme, rest)) = written.split_once("://") {
        let scheme = hint::nearest(scheme, ["http", "https"])?;
        let shown = without_secrets(&shown(&format!("{scheme}://{rest}")));
        return (!rest.is_empty() && !rest.contains("${")).then_some(shown);
    }
    if written.contains("${") || written.contains(char::is_whitespace) {
        return None;
    }
    let shown = shown(&format!("http://{}", written.trim_start_matches('/')));
    let url = Url::parse(&shown).ok()?;
    // Something like `stdio:` has a scheme, but no port.
    let is_local = match url.host()? {
        url::Host::Domain(name) => name == "localhost" || url.port().is_some(),
        url::Host::Ipv4(_) | url::Host::Ipv6(_) => true,
    };
    let is_name = url.host_str().is_some_and(|host| host.contains('.'));
    let shown = without_secrets(&shown);
    match (is_local, is_name) {
        (true, _) => Some(shown),
        (false, true) => Some(shown.replacen("http", "https", 1)),
        (false, false) => None,
    }
}

impl ResolveError {
    /// Returns the error as why a server failed.
    pub fn into_cause(self) -> Cause {
        Cause::from(self.to_string()).with_detail(self.place)
    }
}

impl Endpoint {
    /// Returns what of it may be a secret, each as it may be repeated.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        let mut secrets = in_url(&self.url);
        for (_, value) in &self.headers {
            // The token alone as well, without `Bearer`.
            let token = value.expose().split_once(' ').map(|(_, token)| Secret::new(token.trim()));
            secrets.extend([value.clone()].into_iter().chain(token));
        }
        secrets
    }
}

impl fmt::Debug for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

impl fmt::Debug for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Arguments may hold keys as well as values may.
            Self::Stdio { command: _, args, cwd, env, skipped_lines } => f
                .debug_struct("Stdio")
                .field("args", &args.len())
                .field("cwd", cwd)
                .field("env", env)
                .field("skipped_lines", skipped_lines)
                .finish_non_exhaustive(),
            Self::Http(endpoint) => f.debug_tuple("Http").field(endpoint).finish(),
            Self::Sse(endpoint) => f.debug_tuple("Sse").field(endpoint).finish(),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The rest of a URL may hold a key.
        f.debug_struct("Endpoint")
            .field("origin", &self.url.origin().ascii_serialization())
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
