//! The tree: nodes, keys, and where they stand.

use std::fmt;

use serde_json::{Map, Number, Value};

/// A place in a file: line and column, both from 1; a column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The character in the line.
    pub column: u32,
}

/// A value and where it begins.
#[derive(Clone, PartialEq)]
pub struct Node {
    /// Where the value begins.
    pub position: Position,
    /// What it is.
    pub kind: Kind,
}

/// What a value is.
#[derive(Clone, PartialEq)]
pub enum Kind {
    /// Nothing.
    Null,
    /// A boolean.
    Bool(bool),
    /// A finite number.
    Number(Number),
    /// A text.
    String(String),
    /// Values in order.
    Sequence(Vec<Node>),
    /// Values by name, in the order of the file; no name twice.
    Mapping(Vec<(Key, Node)>),
}

/// The name of a value in a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The name.
    pub text: String,
    /// Where it begins.
    pub position: Position,
}

impl Node {
    /// Makes a node.
    pub fn new(position: Position, kind: Kind) -> Self {
        Self { position, kind }
    }

    /// Returns the entries, if this is a mapping.
    pub fn as_mapping(&self) -> Option<&[(Key, Self)]> {
        match &self.kind {
            Kind::Mapping(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns the items, if this is a sequence.
    pub fn as_sequence(&self) -> Option<&[Self]> {
        match &self.kind {
            Kind::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the text, if this is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self.kind {
            Kind::Bool(flag) => Some(flag),
            _ => None,
        }
    }

    /// Returns the number, if this is one; it is finite.
    pub fn as_f64(&self) -> Option<f64> {
        match &self.kind {
            Kind::Number(number) => number.as_f64(),
            _ => None,
        }
    }

    /// Returns whether this is null.
    pub fn is_null(&self) -> bool {
        self.kind == Kind::Null
    }

    /// Returns the value under `name`, if this is a mapping that has it.
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.entry(name).map(|(_, node)| node)
    }

    /// Returns the key and the value under `name`, if this is a mapping that has it.
    pub fn entry(&self, name: &str) -> Option<&(Key, Self)> {
        self.as_mapping()?.iter().find(|(key, _)| key.text == name)
    }

    /// Returns the value that `path` leads to from here, if there is one.
    pub fn find(&self, path: &str) -> Option<&Self> {
        let (node, name) = super::path::find(self, path);
        (name == path).then_some(node)
    }

    /// Returns where the value stands that `path` leads to from here, or the nearest one above it.
    ///
    /// For what is found wrong with a value when it is used.
    pub fn position_of(&self, path: &str) -> Position {
        super::path::find(self, path).0.position
    }

    /// Returns what the value is, for a message: `a string`, `a mapping`.
    pub fn describe(&self) -> &'static str {
        self.kind.describe()
    }

    /// Returns the value without its places.
    pub fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(flag) => Value::Bool(*flag),
            Kind::Number(number) => Value::Number(number.clone()),
            Kind::String(text) => Value::String(text.clone()),
            Kind::Sequence(items) => items.iter().map(Self::to_json).collect(),
            Kind::Mapping(entries) => {
                let members = entries.iter().map(|(key, node)| (key.text.clone(), node.to_json()));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }

    /// Returns how many nodes the tree has.
    pub(super) fn size(&self) -> usize {
        1 + match &self.kind {
            Kind::Sequence(items) => items.iter().map(Self::size).sum::<usize>(),
            Kind::Mapping(entries) => entries.iter().map(|(_, node)| node.size()).sum(),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => 0,
        }
    }

    /// Returns how many bytes of text the tree has, keys included.
    pub(super) fn text_bytes(&self) -> usize {
        match &self.kind {
            Kind::Sequence(items) => items.iter().map(Self::text_bytes).sum(),
            Kind::Mapping(entries) => {
                entries.iter().map(|(key, node)| key.text.len() + node.text_bytes()).sum()
            }
            Kind::String(text) => text.len(),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) => 0,
        }
    }

    /// Returns how many nodes stand above one another, this one included.
    pub(super) fn depth(&self) -> usize {
        1 + match &self.kind {
            Kind::Sequence(items) => items.iter().map(Self::depth).max().unwrap_or(0),
            Kind::Mapping(entries) => {
                entries.iter().map(|(_, node)| node.depth()).max().unwrap_or(0)
            }
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => 0,
        }
    }
}

impl Kind {
    /// Returns what the value is, for a message.
    pub fn describe(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Sequence(_) => "a list",
            Self::Mapping(_) => "a mapping",
        }
    }
}

/// Reads a decimal number of any of the languages; nothing if it is not finite.
pub(super) fn number(text: &str) -> Option<Number> {
    if let Ok(integer) = text.parse::<i64>() {
        return Some(Number::from(integer));
    }
    if let Ok(integer) = text.parse::<u64>() {
        return Some(Number::from(integer));
    }
    text.parse().ok().and_then(Number::from_f64)
}

impl fmt::Debug for Node {
    // Says what a value is and not what it holds: trees like this carry secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.describe(), self.position)
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.describe())
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}
