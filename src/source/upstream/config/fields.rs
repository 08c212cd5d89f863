//! The fields of one server.

use crate::document::{Document, DocumentError, Format, Key, Node, hint, path};
use crate::source::upstream::secret::Secret;

use super::{Filter, Http, Seconds, Stdio, Transport};

/// Every field a server can have.
const KNOWN: [&str; 21] = [
    "command",
    "args",
    "cwd",
    "env",
    "env_vars",
    "envFile",
    "url",
    "serverUrl",
    "headers",
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
    "type",
    "required",
    "startup_timeout_sec",
    "startup_timeout_ms",
    "tool_timeout_sec",
    "enabled_tools",
    "disabled_tools",
    "enabled",
    "disabled",
];

/// Fields that other programs have, and where ours is.
const ELSEWHERE: [(&str, &str); 7] = [
    ("alwaysAllow", "what may run unasked is a setting of the gateway: `--permit`"),
    ("autoApprove", "what may run unasked is a setting of the gateway: `--permit`"),
    ("httpUrl", "did you mean `url`?"),
    ("timeout", "did you mean `tool_timeout_sec`?"),
    ("transport", "did you mean `type`?"),
    ("transportType", "did you mean `type`?"),
    ("trust_annotations", "it stands in the agent file's `mcp.overrides`, or in `[upstream.NAME]`"),
];

/// The fields of a child process, and what they are called once aliases are gone.
const STDIO: [(&str, &str); 6] = [
    ("args", "args"),
    ("command", "command"),
    ("cwd", "cwd"),
    ("env", "env"),
    ("envFile", "env_file"),
    ("env_vars", "env_vars"),
];

/// The fields of a server that is reached by URL.
const HTTP: [(&str, &str); 6] = [
    ("bearer_token_env_var", "bearer_token_env_var"),
    ("env_http_headers", "env_http_headers"),
    ("headers", "header_values"),
    ("http_headers", "header_values"),
    ("serverUrl", "url"),
    ("url", "url"),
];

/// How many of a unit of time make a second.
const SECOND: f64 = 1.0;
const MILLISECOND: f64 = 1000.0;

/// A field's name and what is wrong with it.
pub(super) type Problem = (String, DocumentError);

/// What the fields of a server say.
pub(super) struct Parts {
    pub(super) transport: Transport,
    pub(super) startup_timeout: Option<Seconds>,
    pub(super) tool_timeout: Option<Seconds>,
    pub(super) filter: Filter,
}

/// The fields of one server, by name.
pub(super) struct Fields<'a> {
    pub(super) document: &'a Document,
    pub(super) path: &'a str,
    pub(super) key: &'a Key,
    pub(super) entries: &'a [(Key, Node)],
}

/// How a server is reached, as `type` says it or the other fields imply it.
#[derive(Clone, Copy, PartialEq)]
enum Type {
    Stdio,
    Http,
    Sse,
}

/// What `type` can say; clients also write `streamable_http` and `streamableHttp`.
const TYPES: [(&str, Type); 4] = [
    ("stdio", Type::Stdio),
    ("http", Type::Http),
    ("streamable-http", Type::Http),
    ("sse", Type::Sse),
];

impl Fields<'_> {
    /// Returns whether the server is switched off.
    pub(super) fn disabled(&self) -> Result<bool, Problem> {
        let enabled = self.boolean("enabled")?;
        let disabled = self.boolean("disabled")?;
        match (enabled, disabled) {
            (Some(enabled), Some(disabled)) if enabled == disabled => {
                Err(self.problem("disabled", "`enabled` and `disabled` contradict each other"))
            }
            (_, Some(disabled)) => Ok(disabled),
            (enabled, None) => Ok(!enabled.unwrap_or(true)),
        }
    }

    /// Reads all other fields.
    pub(super) fn read(&self) -> Result<Parts, Problem> {
        self.refuse_unknown()?;
        self.boolean("required")?;
        let stdio = self.stdio()?;
        let http = self.http()?;
        let transport = self.transport_type()?;
        let startup_timeout = self.startup_timeout()?;
        let tool_timeout = self.seconds("tool_timeout_sec", SECOND)?;
        let filter = Filter {
            enabled: if self.is_null("enabled_tools") { None } else { self.list("enabled_tools")? },
            disabled: self.list("disabled_tools")?.unwrap_or_default(),
        };
        let transport = self.transport(transport, stdio, http)?;
        Ok(Parts { transport, startup_timeout, tool_timeout, filter })
    }

    fn refuse_unknown(&self) -> Result<(), Problem> {
        let unknown = self.entries.iter().map(|(key, _)| key);
        let unknown = unknown.filter(|key| !KNOWN.contains(&key.text.as_str()));
        let Some(key) = unknown.min_by(|a, b| a.text.cmp(&b.text)) else {
            return Ok(());
        };
        let elsewhere = ELSEWHERE.iter().find(|(name, _)| *name == key.text);
        let hint = match elsewhere {
            Some((_, hint)) => Some((*hint).to_owned()),
            None => hint::for_unknown(&key.text, &KNOWN),
        };
        let path = path::key(self.path, &key.text);
        let error = self.document.error_at(key.position, path, "unknown key").with_hint(hint);
        Err((key.text.clone(), error))
    }

    fn stdio(&self) -> Result<Stdio, Problem> {
        Ok(Stdio {
            command: self.text("command")?.unwrap_or_default(),
            args: self.list("args")?.unwrap_or_default(),
            cwd: self.text("cwd")?,
            env: self.secrets("env")?,
            env_vars: self.list("env_vars")?.unwrap_or_default(),
            env_file: self.text("envFile")?,
        })
    }

    fn http(&self) -> Result<Http, Problem> {
        let url = self.text("url")?;
        let server_url = self.text("serverUrl")?;
        if let (Some(url), Some(server_url)) = (&url, &server_url)
            && url != server_url
        {
            return Err(self.problem("serverUrl", "`url` and `serverUrl` differ; give one of them"));
        }
        let mut headers = self.secrets("headers")?;
        headers.extend(self.secrets("http_headers")?);
        Ok(Http {
            url: url.or(server_url).unwrap_or_default(),
            headers,
            env_http_headers: self.pairs("env_http_headers")?,
            bearer_token_env_var: self.text("bearer_token_env_var")?,
        })
    }

    fn transport_type(&self) -> Result<Type, Problem> {
        let Some(text) = self.text("type")? else {
            let is_command = self.get("command").is_some();
            return Ok(if is_command { Type::Stdio } else { Type::Http });
        };
        let folded = |text: &str| text.replace(['-', '_'], "").to_lowercase();
        match TYPES.iter().find(|(name, _)| folded(name) == folded(&text)) {
            Some((_, found)) => Ok(*found),
            None => {
                let message = "the choices are `stdio`, `http` (or `streamable-http`) and `sse`";
                let (field, error) = self.problem("type", message);
                let near = hint::nearest(&text, TYPES.iter().map(|(name, _)| *name));
                Err((field, error.with_hint(near.map(|name| format!("did you mean `{name}`?")))))
            }
        }
    }

    /// Checks that the fields fit the transport and one another.
    fn transport(&self, of: Type, stdio: Stdio, http: Http) -> Result<Transport, Problem> {
        let (name, foreign) = match of {
            Type::Stdio => ("a stdio server", HTTP),
            Type::Http => ("an HTTP server", STDIO),
            Type::Sse => ("an SSE server", STDIO),
        };
        if let Some((field, normal)) = foreign.iter().find(|(field, _)| self.get(field).is_some()) {
            let (_, error) = self.problem(field, format!("it does not apply to {name}"));
            let both = self.get("command").is_some() && !http.url.is_empty();
            let hint = both.then(|| "give `command` or `url`, not both".to_owned());
            return Err(((*normal).to_owned(), error.with_hint(hint)));
        }
        match of {
            Type::Stdio if stdio.command.is_empty() => Err(self.absent("command", name)),
            Type::Http | Type::Sse if http.url.is_empty() => Err(self.absent("url", name)),
            Type::Stdio => Ok(Transport::Stdio(stdio)),
            Type::Http => Ok(Transport::Http(http)),
            Type::Sse => Ok(Transport::Sse(http)),
        }
    }

    /// Makes the error about a field that is missing or empty.
    fn absent(&self, field: &str, name: &str) -> Problem {
        if self.get(field).is_some_and(|(_, node)| !node.is_null()) {
            return self.problem(field, "it must not be empty");
        }
        let message = format!("{name} needs `{field}`");
        let mut error = self.document.error_at(self.key.position, self.path, message);
        if field == "url" && self.get("type").is_none() {
            error = error.with_hint("a server that is a program needs `command`".to_owned());
        }
        (field.to_owned(), error)
    }

    fn startup_timeout(&self) -> Result<Option<Seconds>, Problem> {
        let seconds = self.seconds("startup_timeout_sec", SECOND)?;
        let milliseconds = self.seconds("startup_timeout_ms", MILLISECOND)?;
        if let (Some(a), Some(b)) = (seconds, milliseconds)
            && a != b
        {
            let message = "`startup_timeout_sec` and `startup_timeout_ms` differ; give one of them";
            return Err(self.problem("startup_timeout_ms", message));
        }
        Ok(seconds.or(milliseconds))
    }

    fn seconds(&self, field: &str, per_second: f64) -> Result<Option<Seconds>, Problem> {
        let Some((_, node)) = self.get(field) else {
            return Ok(None);
        };
        let Some(number) = node.as_f64() else {
            return Err(self.wrong(field, node, field, "a number"));
        };
        match Seconds::try_from(number / per_second) {
            Ok(seconds) => Ok(Some(seconds)),
            Err(error) => Err(self.problem(field, error.to_string())),
        }
    }

    fn boolean(&self, field: &str) -> Result<Option<bool>, Problem> {
        let Some((_, node)) = self.get(field) else {
            return Ok(None);
        };
        match node.as_bool() {
            Some(flag) => Ok(Some(flag)),
            None => Err(self.wrong(field, node, field, "a boolean")),
        }
    }

    /// Reads a text; null is none.
    fn text(&self, field: &str) -> Result<Option<String>, Problem> {
        match self.get(field) {
            None => Ok(None),
            Some((_, node)) if node.is_null() => Ok(None),
            Some((_, node)) => match node.as_str() {
                Some(text) => Ok(Some(text.to_owned())),
                None => Err(self.wrong(field, node, field, "a string")),
            },
        }
    }

    fn list(&self, field: &str) -> Result<Option<Vec<String>>, Problem> {
        let Some((_, node)) = self.get(field) else {
            return Ok(None);
        };
        let Some(items) = node.as_sequence() else {
            return Err(self.wrong(field, node, field, "a list of strings"));
        };
        let items = items.iter().enumerate().map(|(number, item)| {
            let text = item.as_str().map(str::to_owned);
            text.ok_or_else(|| self.wrong(field, item, &path::index(field, number), "a string"))
        });
        items.collect::<Result<_, _>>().map(Some)
    }

    fn pairs(&self, field: &str) -> Result<Vec<(String, String)>, Problem> {
        let Some((_, node)) = self.get(field) else {
            return Ok(Vec::new());
        };
        let Some(entries) = node.as_mapping() else {
            return Err(self.wrong(field, node, field, "a mapping of strings"));
        };
        let entries = entries.iter().map(|(key, value)| match value.as_str() {
            Some(text) => Ok((key.text.clone(), text.to_owned())),
            None => Err(self.wrong(field, value, &path::key(field, &key.text), "a string")),
        });
        entries.collect()
    }

    fn secrets(&self, field: &str) -> Result<Vec<(String, Secret)>, Problem> {
        let pairs = self.pairs(field)?.into_iter();
        Ok(pairs.map(|(name, value)| (name, Secret::new(value))).collect())
    }

    fn get(&self, field: &str) -> Option<&(Key, Node)> {
        self.entries.iter().find(|(key, _)| key.text == field)
    }

    fn is_null(&self, field: &str) -> bool {
        self.get(field).is_some_and(|(_, node)| node.is_null())
    }

    /// Makes an error about a field as a whole; it points at the value.
    fn problem(&self, field: &str, message: impl Into<String>) -> Problem {
        let position = self.get(field).map_or(self.key.position, |(_, node)| node.position);
        let path = path::key(self.path, field);
        (field.to_owned(), self.document.error_at(position, path, message))
    }

    /// Makes the error about a value of a wrong type, which stands at `place` under the server.
    fn wrong(&self, field: &str, node: &Node, place: &str, wanted: &str) -> Problem {
        let message = format!("expected {wanted}, found {}", node.describe());
        let path = format!("{}.{place}", self.path);
        let error = self.document.error_at(node.position, path, message);
        let is_toml = self.document.format() == Format::Toml;
        let hint = way_out(field, node, wanted).map(|hint| match (hint, is_toml) {
            (AS_MAPPING, true) => AS_MAPPING.replace(':', " =").replace("\"NAME\"", "NAME"),
            (hint, _) => hint.to_owned(),
        });
        (field.to_owned(), error.with_hint(hint))
    }
}

/// How a mapping is written, in JSON.
const AS_MAPPING: &str = "write each name with its value, as in `{\"NAME\": \"value\"}`";

/// Returns what to do about a value of a wrong type, where that is plain.
fn way_out(field: &str, node: &Node, wanted: &str) -> Option<&'static str> {
    Some(match (wanted, node.describe()) {
        (_, "null") => "give it a value, or remove the key",
        ("a string", "a number" | "a boolean") => "put it in quotes",
        ("a string", "a list") if field == "command" => {
            "the program alone is the `command`, the rest goes to `args`"
        }
        ("a list of strings", "a string") if field == "args" => {
            "write each word in quotes, in square brackets: `[\"-v\", \"FILE\"]`"
        }
        ("a list of strings", "a string") => "put it in square brackets: `[\"NAME\"]`",
        ("a list of strings", "a mapping") if field == "env_vars" => {
            "names and their values go to `env`"
        }
        ("a mapping of strings", "a list" | "a string") => AS_MAPPING,
        ("a boolean", _) => "write `true` or `false`, without quotes",
        ("a number", "a string") => "write it without quotes",
        _ => return None,
    })
}
