//! Where the schemas of a document are, and whether its references stay within it.
//!
//! Only what a dialect takes for a schema is one, and what a reference leads to; a `$ref` in an
//! example or a constant is data.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};
use url::Url;

use super::dialect::{Dialect, Fate};
use super::pointer;
use super::schema::{MAX_DEPTH, Reason};

/// The base URI of a document that does not name itself.
const NO_BASE: &str = "json-schema:///";

/// How many schemas a document may have.
const MAX_SCHEMAS: usize = 10_000;

/// How long the pointer of a schema may be; every schema below has it again.
const MAX_POINTER: usize = 4_096;

/// The schemas of a document.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    pub(super) root: &'a Value,
    /// Every schema that is an object, by its pointer.
    places: BTreeMap<String, Place>,
    /// The pointers of those schemas that have a URI.
    resources: HashMap<String, String>,
    /// The pointers of those that have a plain name in a resource.
    anchors: HashMap<(String, String), String>,
    /// References not followed yet: where they stand, and what they say.
    pending: Vec<(String, String)>,
}

/// How a schema is to be read.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) dialect: Dialect,
    /// The URI that its references start from.
    base: String,
}

/// What a reference leads to.
#[derive(Debug)]
pub(super) struct Target {
    /// The pointer of what it is.
    pub(super) at: String,
    /// The resource and the way from there, tokens as written, if it is not a name.
    pub(super) way: Option<(String, Vec<String>)>,
}

impl<'a> Scan<'a> {
    /// Finds every schema, and fails if a reference leads out of the document, or nowhere.
    pub(super) fn new(root: &'a Value, dialect: Dialect) -> Result<Self, Reason> {
        let mut scan = Self {
            root,
            places: BTreeMap::new(),
            resources: HashMap::from([(NO_BASE.to_owned(), String::new())]),
            anchors: HashMap::new(),
            pending: Vec::new(),
        };
        scan.visit(root, String::new(), Place { dialect, base: NO_BASE.to_owned() })?;
        // All names must be known before the first is looked up, so this is a second pass; what it
        // finds at an unusual place is a schema too, and may have references of its own.
        while let Some((at, reference)) = scan.pending.pop() {
            let place = scan.places[&at].clone();
            let target = scan.target(&place, &reference)?;
            scan.follow(&target, &reference)?;
        }
        Ok(scan)
    }

    /// Returns the pointers of all schemas that are objects.
    pub(super) fn places(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(String::as_str)
    }

    /// Returns how the schema at a pointer is to be read, if there is one.
    pub(super) fn place(&self, at: &str) -> Option<&Place> {
        self.places.get(at)
    }

    /// Returns whether there is a schema below a pointer.
    pub(super) fn has_schema_below(&self, at: &str) -> bool {
        let prefix = format!("{at}/");
        let mut after = self.places.range(prefix.clone()..);
        after.next().is_some_and(|(place, _)| place.starts_with(&prefix))
    }

    /// Returns whether some schema is of a dialect.
    pub(super) fn has(&self, dialect: Dialect) -> bool {
        self.places.values().any(|place| place.dialect == dialect)
    }

    /// Returns whether some schema is not of the published dialect.
    pub(super) fn has_foreign(&self) -> bool {
        self.places.values().any(|place| place.dialect != Dialect::Draft202012)
    }

    /// Returns whether some schema has a keyword.
    pub(super) fn uses(&self, keyword: &str) -> bool {
        self.places
            .keys()
            .any(|at| self.root.pointer(at).and_then(|schema| schema.get(keyword)).is_some())
    }

    /// Returns the root of the resource that a schema belongs to.
    pub(super) fn resource_of(&self, place: &Place) -> &str {
        self.resources.get(&place.base).map_or("", String::as_str)
    }

    /// Finds what a reference leads to.
    pub(super) fn target(&self, place: &Place, reference: &str) -> Result<Target, Reason> {
        let remote = || Reason::Remote(reference.to_owned());
        let unresolved = || Reason::Unresolved(reference.to_owned());
        let (uri, fragment) = match reference.split_once('#') {
            Some((uri, fragment)) => (uri, fragment),
            None => (reference, ""),
        };
        let base = if uri.is_empty() { place.base.clone() } else { join(&place.base, uri) };
        let resource = self.resources.get(&base).ok_or_else(remote)?;
        if let Some(pointer) = fragment.strip_prefix('/') {
            // Nothing is deeper than the bound; following a pointer of a million steps is work.
            let tokens = pointer.split('/').take(MAX_DEPTH + 1).map(str::to_owned);
            let tokens: Vec<String> = tokens.collect();
            if tokens.len() > MAX_DEPTH {
                return Err(unresolved());
            }
            let at = tokens
                .iter()
                .fold(resource.clone(), |at, token| pointer::child(&at, &pointer::decode(token)));
            return Ok(Target { at, way: Some((resource.clone(), tokens)) });
        }
        let name = pointer::percent_decode(fragment);
        let at = if name.is_empty() { Some(resource) } else { self.anchors.get(&(base, name)) };
        let at = at.ok_or_else(unresolved)?;
        Ok(Target { at: at.clone(), way: None })
    }

    /// Makes sure that there is a schema where a reference leads.
    fn follow(&mut self, target: &Target, text: &str) -> Result<(), Reason> {
        let Some(schema @ (Value::Object(_) | Value::Bool(_))) = self.root.pointer(&target.at)
        else {
            return Err(Reason::Unresolved(text.to_owned()));
        };
        // It is read as the nearest schema around it is.
        let mut above = target.at.as_str();
        while !self.places.contains_key(above) {
            let Some((parent, _)) = above.rsplit_once('/') else {
                return Err(Reason::Unresolved(text.to_owned()));
            };
            above = parent;
        }
        let nearest = self.places[above].clone();
        self.visit(schema, target.at.clone(), nearest)
    }

    fn visit(&mut self, schema: &Value, at: String, outer: Place) -> Result<(), Reason> {
        let Value::Object(schema) = schema else {
            return Ok(());
        };
        if self.places.contains_key(&at) {
            return Ok(());
        }
        let declared = Dialect::declared(schema).map_err(Reason::UnknownDialect)?;
        let dialect = declared.unwrap_or(outer.dialect);
        let mut place = Place { dialect, ..outer };
        // At the root a name counts even beside a reference; nothing can be said against it there.
        if at.is_empty() || !dialect.only_reference(schema) {
            self.name(schema, &at, &mut place);
        }
        self.places.insert(at.clone(), place.clone());
        if self.places.len() > MAX_SCHEMAS || at.len() > MAX_POINTER {
            return Err(Reason::TooInvolved);
        }
        for reference in references(schema, dialect) {
            self.pending.push((at.clone(), reference.to_owned()));
        }
        for (keyword, value) in schema {
            for (below, child) in children(dialect, schema, keyword, value) {
                self.visit(child, format!("{at}{below}"), place.clone())?;
            }
        }
        Ok(())
    }

    /// Takes the names that a schema gives itself.
    fn name(&mut self, schema: &Map<String, Value>, at: &str, place: &mut Place) {
        let text = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
        if let Some(id) = text(place.dialect.id_keyword()) {
            let (uri, fragment) = id.split_once('#').unwrap_or((id, ""));
            if !uri.is_empty() {
                place.base = join(&place.base, uri);
                self.resources.entry(place.base.clone()).or_insert_with(|| at.to_owned());
            }
            if !fragment.is_empty() {
                let name = (place.base.clone(), fragment.to_owned());
                self.anchors.entry(name).or_insert_with(|| at.to_owned());
            }
        }
        let anchors = [("$anchor", Dialect::Draft201909), ("$dynamicAnchor", Dialect::Draft202012)];
        for (keyword, first) in anchors {
            if let Some(anchor) = text(keyword).filter(|_| place.dialect >= first) {
                let name = (place.base.clone(), anchor.to_owned());
                self.anchors.entry(name).or_insert_with(|| at.to_owned());
            }
        }
    }
}

/// Returns the references of a schema that its dialect knows.
pub(super) fn references(
    schema: &Map<String, Value>,
    dialect: Dialect,
) -> impl Iterator<Item = &str> {
    let keywords = [
        ("$ref", true),
        ("$dynamicRef", dialect == Dialect::Draft202012),
        ("$recursiveRef", dialect == Dialect::Draft201909),
    ];
    let known = keywords.into_iter().filter(|(_, known)| *known);
    known.filter_map(|(keyword, _)| schema.get(keyword).and_then(Value::as_str))
}

/// Returns the schemas in a keyword's value, with their pointers below the schema that has it.
pub(super) fn children<'v>(
    dialect: Dialect,
    schema: &Map<String, Value>,
    keyword: &str,
    value: &'v Value,
) -> Vec<(String, &'v Value)> {
    let at = pointer::child("", keyword);
    match (dialect.fate(schema, keyword), value) {
        (Fate::Schema(_), schema) => vec![(at, schema)],
        (Fate::List(_), Value::Array(schemas)) => {
            let schemas = schemas.iter().enumerate();
            schemas.map(|(number, schema)| (format!("{at}/{number}"), schema)).collect()
        }
        (Fate::Map(_) | Fate::Dependencies, Value::Object(schemas)) => {
            schemas.iter().map(|(name, schema)| (pointer::child(&at, name), schema)).collect()
        }
        _ => Vec::new(),
    }
}

/// Resolves a URI against a base; one that cannot be is a name of its own.
fn join(base: &str, uri: &str) -> String {
    let joined = Url::parse(base).and_then(|base| base.join(uri));
    joined.map_or_else(|_| uri.to_owned(), String::from)
}
