//! What clients call the tools: canonical names projected at the edge, both ways.
//!
//! Inside, a tool has its canonical name, and rules, hooks, records and diagnostics know no other.
//! A client may have shorter ones. Every name it sees is short enough, has only characters that
//! all clients take, and is no other tool's, neither as its name nor as its canonical name.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::tool::definition::MAX_NAME_CHARS;
use crate::tool::suffix::suffixed;
use crate::tool::{Origin, ToolDefinition};

/// How clients see the names of tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Naming {
    /// What a name is made of.
    pub style: Style,
    /// The longest one.
    pub max: MaxName,
}

/// What the name of an upstream's tool is made of; our own tools keep theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// `mcp__server__tool`, the canonical name.
    #[default]
    Iris,
    /// `server__tool`.
    Plain,
    /// The name that the upstream gives it.
    Bare,
}

/// The longest name in characters: 16 to 128, 64 by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "i64")]
pub struct MaxName(usize);

/// Why something is no limit of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a whole number from {} to {}", MaxName::LEAST, MaxName::MOST)]
pub struct NoMaxName;

/// Why something is no style of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected `iris`, `plain` or `bare`")]
pub struct NoStyle;

/// The names of the tools in one snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// By canonical name, where the two differ.
    wire: HashMap<String, String>,
    /// The same the other way round.
    canonical: HashMap<String, String>,
    renamed: Vec<Renamed>,
}

/// A tool that could not have the name that its style gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// Its canonical name.
    pub canonical: String,
    /// The name it would have.
    pub wanted: String,
    /// The name it has.
    pub wire: String,
    /// Why.
    pub why: Why,
}

/// Why a tool cannot have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It has characters that not every client takes.
    Characters,
    /// It is too long.
    Length,
    /// Another tool has it.
    Taken,
}

/// What is named: a tool or a prompt.
#[derive(Clone, Copy, Debug)]
struct Subject<'a> {
    canonical: &'a str,
    aliases: &'a [String],
    /// Its server, and what that calls it; nothing for ours.
    origin: Option<(&'a str, &'a str)>,
}

impl<'a> From<&'a ToolDefinition> for Subject<'a> {
    fn from(tool: &'a ToolDefinition) -> Self {
        let origin = tool.origin.as_ref();
        Self {
            canonical: tool.name.as_str(),
            aliases: &tool.aliases,
            origin: origin.map(|origin| (origin.server.as_str(), origin.tool.as_str())),
        }
    }
}

// === impl Names ===

impl Names {
    /// Names tools, in their order, ours before all others.
    ///
    /// A name that is wrong in itself becomes the suffix form whatever else there is. Of two tools
    /// that want one name, the first has it.
    pub fn of(naming: Naming, tools: &[&ToolDefinition]) -> Self {
        let tools: Vec<Subject<'_>> = tools.iter().map(|tool| Subject::from(*tool)).collect();
        Self::among(naming, &tools)
    }

    /// Names prompts, in their order, in the same way: each has a canonical name, a server, and
    /// the name that the server gives it.
    pub fn of_prompts<'a>(
        naming: Naming,
        prompts: impl Iterator<Item = (&'a str, &'a str, &'a str)>,
    ) -> Self {
        let subject = |(canonical, server, own)| Subject {
            canonical,
            aliases: &[],
            origin: Some((server, own)),
        };
        let prompts: Vec<Subject<'_>> = prompts.map(subject).collect();
        Self::among(naming, &prompts)
    }

    fn among(naming: Naming, tools: &[Subject<'_>]) -> Self {
        let mut owners: HashMap<&str, &str> = HashMap::new();
        for tool in tools {
            let canonical = tool.canonical;
            owners.extend(tool.aliases.iter().map(|alias| (alias.as_str(), canonical)));
            owners.insert(canonical, canonical);
        }
        let mut names = Self::default();
        let mut used = HashSet::new();
        let ours = tools.iter().filter(|tool| tool.origin.is_none());
        let others = tools.iter().filter(|tool| tool.origin.is_some());
        for tool in ours.chain(others) {
            let canonical = tool.canonical;
            let is_free = |name: &str| {
                !used.contains(name) && owners.get(name).is_none_or(|owner| *owner == canonical)
            };
            let (wire, renamed) = choose(naming, tool, is_free);
            names.renamed.extend(renamed);
            if wire != canonical {
                names.wire.insert(canonical.to_owned(), wire.clone());
                names.canonical.insert(wire.clone(), canonical.to_owned());
            }
            used.insert(wire);
        }
        names
    }

    /// Returns the name that clients see.
    pub fn wire<'a>(&'a self, tool: &'a ToolDefinition) -> &'a str {
        self.wire_of(tool.name.as_str())
    }

    /// Returns the name that clients see of what has a canonical name.
    pub fn wire_of<'a>(&'a self, canonical: &'a str) -> &'a str {
        self.wire.get(canonical).map_or(canonical, String::as_str)
    }

    /// Returns the canonical name of a tool that clients see under another one.
    pub fn canonical(&self, wire: &str) -> Option<&str> {
        self.canonical.get(wire).map(String::as_str)
    }

    /// Returns the tools that could not have the name that their style gives them.
    pub fn renamed(&self) -> &[Renamed] {
        &self.renamed
    }
}

/// Chooses the name of one tool, and says why if it is not the one that its style gives it.
fn choose(
    naming: Naming,
    tool: &Subject<'_>,
    is_free: impl Fn(&str) -> bool,
) -> (String, Option<Renamed>) {
    let wanted = wanted(naming.style, tool);
    let own = wanted[0].clone();
    let refused = |name: &str| refusal(name, naming.max).or((!is_free(name)).then_some(Why::Taken));
    let Some(why) = refused(&own) else { return (own, None) };
    let second = wanted.into_iter().skip(1).find(|name| refused(name).is_none());
    let wire = second.unwrap_or_else(|| next_free(naming.max, &own, tool, is_free));
    let canonical = tool.canonical.to_owned();
    (wire.clone(), Some(Renamed { canonical, wanted: own, wire, why }))
}

/// Returns what a tool may be called in a style, best first.
fn wanted(style: Style, tool: &Subject<'_>) -> Vec<String> {
    match (tool.origin, style) {
        (None, _) | (_, Style::Iris) => vec![tool.canonical.to_owned()],
        (Some((server, own)), Style::Plain) => vec![Origin::plain(server, own)],
        (Some((server, own)), Style::Bare) => vec![own.to_owned(), Origin::plain(server, own)],
    }
}

/// Says why a name is none for clients.
fn refusal(name: &str, max: MaxName) -> Option<Why> {
    if !name.chars().all(is_legal) {
        Some(Why::Characters)
    } else if name.len() > max.0 {
        Some(Why::Length)
    } else {
        None
    }
}

fn is_legal(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// Returns the first suffix form that is free; the hash counts on, should even that be taken.
fn next_free(
    max: MaxName,
    own: &str,
    tool: &Subject<'_>,
    is_free: impl Fn(&str) -> bool,
) -> String {
    let base: String = own.chars().map(|c| if is_legal(c) { c } else { '_' }).collect();
    let identity = |count: u64| {
        let mut parts: Vec<Value> = match tool.origin {
            Some((server, own)) => vec![server.into(), own.into()],
            None => vec![tool.canonical.into()],
        };
        parts.extend((count > 1).then(|| json!(count)));
        Value::Array(parts)
    };
    let mut count = 1;
    loop {
        let name = suffixed(&base, max.0, &identity(count));
        if is_free(&name) {
            return name;
        }
        count += 1;
    }
}

impl fmt::Display for Renamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { canonical: _, wanted, wire, why } = self;
        let why = match why {
            Why::Characters => "has characters that not every client takes",
            Why::Length => "is too long (max_name)",
            Why::Taken => "is another tool's",
        };
        write!(f, "the name `{wanted}` {why}, so clients see `{wire}`")
    }
}

// === impl MaxName ===

impl MaxName {
    const LEAST: usize = 16;
    const MOST: usize = 128;

    /// Makes a limit.
    pub fn new(characters: usize) -> Result<Self, NoMaxName> {
        let fits = (Self::LEAST..=Self::MOST).contains(&characters);
        if fits { Ok(Self(characters)) } else { Err(NoMaxName) }
    }

    /// Returns the number of characters.
    pub fn get(self) -> usize {
        self.0
    }
}

impl Default for MaxName {
    fn default() -> Self {
        Self(MAX_NAME_CHARS)
    }
}

impl TryFrom<i64> for MaxName {
    type Error = NoMaxName;

    fn try_from(characters: i64) -> Result<Self, Self::Error> {
        usize::try_from(characters).map_err(|_| NoMaxName).and_then(Self::new)
    }
}

impl FromStr for MaxName {
    type Err = NoMaxName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map_err(|_| NoMaxName).and_then(Self::new)
    }
}

impl FromStr for Style {
    type Err = NoStyle;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "iris" => Ok(Self::Iris),
            "plain" => Ok(Self::Plain),
            "bare" => Ok(Self::Bare),
            _ => Err(NoStyle),
        }
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
