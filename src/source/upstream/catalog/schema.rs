//! One schema of a tool: checked, put right where that is safe, and compiled.

use std::fmt;
use std::sync::Arc;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::tool::schema::{self, InputSchema, SchemaError};

use super::convert::convert;
use super::cost;
use super::dialect::{Dialect, Fate};
use super::pointer;
use super::scan::Scan;

/// How deep a schema may nest.
pub(super) const MAX_DEPTH: usize = 100;

/// How large a schema may be, in bytes of JSON.
const MAX_BYTES: usize = 1024 * 1024;

/// How much of an upstream's own text a message repeats, in characters.
const SHOWN_CHARS: usize = 200;

/// The schema of a tool's structured result.
#[derive(Clone)]
pub struct OutputSchema {
    document: Arc<Map<String, Value>>,
    validator: Arc<Validator>,
}

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Reason {
    #[error("the schema is {0}, not an object")]
    NoObject(&'static str),
    #[error("the schema nests more than {MAX_DEPTH} levels deep")]
    TooDeep,
    #[error("the schema is larger than {MAX_BYTES} bytes")]
    TooLarge,
    #[error("the schema is too involved: checking one value could take too long")]
    TooInvolved,
    #[error("the schema refers to itself without end")]
    Endless,
    #[error("the dialect {} is not known", shown(.0))]
    UnknownDialect(String),
    #[error("the reference {} leads out of the schema, and nothing is fetched", shown(.0))]
    Remote(String),
    #[error("the reference {} leads nowhere", shown(.0))]
    Unresolved(String),
    #[error("the reference {} leads to what 2020-12 has no place for", shown(.0))]
    Lost(String),
    #[error("{0} cannot be said in 2020-12")]
    Inexpressible(&'static str),
    #[error("the schema must be about an object")]
    RootType,
    #[error("the schema is not valid: {}", cut(.0))]
    Invalid(String),
}

/// A schema that can be published.
#[derive(Debug)]
pub(super) struct Prepared<C> {
    /// The schema as clients get it.
    pub(super) document: Map<String, Value>,
    pub(super) compiled: C,
    /// Whether the document is another than the server's.
    pub(super) changed: bool,
    /// What a person should know about that.
    pub(super) notes: Vec<String>,
}

/// Which of a tool's schemas it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Input,
    Output,
}

/// Prepares the schema of a tool's arguments; arguments are always an object.
pub(super) fn input(schema: Option<&Value>) -> Result<Prepared<InputSchema>, Reason> {
    let Some(schema) = schema.filter(|schema| !schema.is_null()) else {
        let document = json!({"type": "object", "properties": {}});
        let Value::Object(document) = document else {
            unreachable!("it is written as an object");
        };
        let notes = vec!["there was none, so any arguments are taken".to_owned()];
        return Ok(Prepared { document, compiled: InputSchema::object(), changed: true, notes });
    };
    prepare(schema, Role::Input, |document| InputSchema::compile(document.clone()))
}

/// Prepares the schema of a tool's structured result.
pub(super) fn output(schema: &Value) -> Result<Prepared<OutputSchema>, Reason> {
    prepare(schema, Role::Output, |document| {
        let validator = schema::compile(&Value::Object(document.clone()))?;
        Ok(OutputSchema { document: Arc::new(document.clone()), validator: Arc::new(validator) })
    })
}

fn prepare<C>(
    schema: &Value,
    role: Role,
    compile: impl Fn(&Map<String, Value>) -> Result<C, SchemaError>,
) -> Result<Prepared<C>, Reason> {
    let Value::Object(object) = schema else {
        return Err(Reason::NoObject(kind(schema)));
    };
    check_bounds(schema)?;
    let declared = Dialect::declared(object).map_err(Reason::UnknownDialect)?;
    let attempt = |dialect| attempt(schema, dialect, role, &compile);
    let first = attempt(declared.unwrap_or(Dialect::Draft202012));
    match first {
        // Before 2020-12 became the default, servers left out what they meant.
        Err(Reason::Invalid(_)) if declared.is_none() => {
            let older = [Dialect::Draft07, Dialect::Draft04];
            older.into_iter().find_map(|dialect| attempt(dialect).ok()).map_or(first, Ok)
        }
        _ => first,
    }
}

/// Prepares a schema that is of a dialect unless its parts say otherwise.
fn attempt<C>(
    schema: &Value,
    dialect: Dialect,
    role: Role,
    compile: &impl Fn(&Map<String, Value>) -> Result<C, SchemaError>,
) -> Result<Prepared<C>, Reason> {
    let mut notes = Vec::new();
    let (mut document, mut changed) = published(schema, dialect, &mut notes)?;
    changed |= set_type(&mut document, role, &mut notes)?;
    let compiled = match compile(&document) {
        Ok(compiled) => compiled,
        Err(error) => {
            changed |= drop_patterns(&mut document, "", &mut notes);
            // If it was not for the patterns, the first error is the one to tell.
            compile(&document).map_err(|_| reason(error))?
        }
    };
    Ok(Prepared { document, compiled, changed, notes })
}

/// Returns a schema as 2020-12, and whether that is another than it was.
fn published(
    schema: &Value,
    dialect: Dialect,
    notes: &mut Vec<String>,
) -> Result<(Map<String, Value>, bool), Reason> {
    let scan = Scan::new(schema, dialect)?;
    let mut document = schema.clone();
    let foreign = scan.has_foreign();
    if foreign {
        let name = dialect.name();
        if schema.get("$schema").is_none() && dialect != Dialect::Draft202012 {
            notes.push(format!("it declares no dialect and was read as {name}"));
        }
        if let Err(error) = schema::compile_draft(schema, dialect.draft()) {
            notes.push(format!("it is not valid {name}: {}", cut(&error.to_string())));
        }
        document = convert(&scan)?;
    }
    cost::check(&Scan::new(&document, Dialect::Draft202012)?)?;
    match document {
        Value::Object(root) => Ok((root, foreign)),
        _ => Err(Reason::RootType),
    }
}

/// Makes sure the root says that it is about an object, where that is what it means.
fn set_type(
    root: &mut Map<String, Value>,
    role: Role,
    notes: &mut Vec<String>,
) -> Result<bool, Reason> {
    let is_object = |value: &Value| value == "object";
    let add = match (role, root.get("type")) {
        (Role::Input, None | Some(Value::Null)) => true,
        (Role::Input, Some(Value::Array(types))) if types.iter().any(is_object) => true,
        (Role::Input, Some(declared)) if !is_object(declared) => return Err(Reason::RootType),
        (Role::Output, None | Some(Value::Null)) => root.contains_key("properties"),
        (Role::Input | Role::Output, Some(_)) => false,
    };
    if add {
        root.insert("type".to_owned(), Value::from("object"));
        notes.push("`type: object` was added".to_owned());
    }
    Ok(add)
}

/// Drops every `pattern` that our engine does not know.
///
/// The upstream checks its arguments itself; better its tool without our check than no tool.
fn drop_patterns(schema: &mut Map<String, Value>, at: &str, notes: &mut Vec<String>) -> bool {
    let before = notes.len();
    let unknown = schema.get("pattern").is_some_and(|pattern| {
        pattern.is_string() && schema::compile(&json!({"pattern": pattern})).is_err()
    });
    if unknown {
        schema.remove("pattern");
        notes.push(format!("the pattern at {} is not understood and was dropped", cut(at)));
    }
    let keywords: Vec<String> = schema.keys().cloned().collect();
    for keyword in keywords {
        let fate = Dialect::Draft202012.fate(schema, &keyword);
        let at = pointer::child(at, &keyword);
        match (fate, schema.get_mut(&keyword)) {
            (Fate::Schema(_), Some(Value::Object(child))) => {
                drop_patterns(child, &at, notes);
            }
            (Fate::List(_), Some(Value::Array(children))) => {
                for (number, child) in children.iter_mut().enumerate() {
                    if let Value::Object(child) = child {
                        drop_patterns(child, &format!("{at}/{number}"), notes);
                    }
                }
            }
            (Fate::Map(_) | Fate::Dependencies, Some(Value::Object(children))) => {
                for (name, child) in children.iter_mut() {
                    if let Value::Object(child) = child {
                        drop_patterns(child, &pointer::child(&at, name), notes);
                    }
                }
            }
            _ => {}
        }
    }
    notes.len() > before
}

fn check_bounds(schema: &Value) -> Result<(), Reason> {
    if depth(schema) > MAX_DEPTH {
        return Err(Reason::TooDeep);
    }
    let size = serde_json::to_vec(schema).map_or(usize::MAX, |json| json.len());
    if size > MAX_BYTES { Err(Reason::TooLarge) } else { Ok(()) }
}

/// Returns how many values stand within one another, counted without recursion.
fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        deepest = deepest.max(depth);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => {
                open.extend(members.values().map(|member| (member, depth + 1)));
            }
            _ => {}
        }
    }
    deepest
}

fn reason(error: SchemaError) -> Reason {
    match error {
        SchemaError::RootType => Reason::RootType,
        SchemaError::Invalid(message) => Reason::Invalid(message),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Quotes an upstream's text for a message.
fn shown(text: &str) -> String {
    format!("`{}`", cut(text))
}

/// Makes an upstream's text fit a message: short, and nothing that addresses a terminal.
pub(super) fn cut(text: &str) -> String {
    let mut characters = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut shown: String = characters.by_ref().take(SHOWN_CHARS).collect();
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

impl OutputSchema {
    /// Returns the document.
    pub fn document(&self) -> &Map<String, Value> {
        &self.document
    }

    /// Checks a structured result; the error says what is wrong with it first.
    pub fn check(&self, result: &Value) -> Result<(), String> {
        self.validator.validate(result).map_err(|error| {
            let path = error.instance_path().to_string();
            if path.is_empty() { error.to_string() } else { format!("{path}: {error}") }
        })
    }
}

impl fmt::Debug for OutputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OutputSchema").field(&self.document).finish()
    }
}
