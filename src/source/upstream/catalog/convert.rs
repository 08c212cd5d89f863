//! Schemas of older dialects as the equivalent 2020-12 schema.
//!
//! Every value that the old schema accepts the new one accepts, and no other, with two exceptions
//! that no 2020-12 schema can express: `format` and `contentEncoding` are annotations, and 1.0 is
//! an integer, which draft-04 denied.

use serde_json::{Map, Value, json};

use super::Reason;
use super::dialect::{Dialect, Fate, PUBLISHED};
use super::pointer;
use super::scan::{Place, Scan};

/// The anchor that stands for `$recursiveAnchor`.
const RECURSIVE: &str = "__recursive";

/// Converts the document of a scan.
pub(super) fn convert(scan: &Scan<'_>) -> Result<Value, Reason> {
    if scan.has(Dialect::Draft201909) && scan.uses("unevaluatedItems") && scan.uses("contains") {
        // There `contains` leaves an item unevaluated, in 2020-12 it evaluates it.
        return Err(Reason::Inexpressible("`unevaluatedItems` together with `contains`"));
    }
    Converter { scan }.schema("", scan.root)
}

struct Converter<'a> {
    scan: &'a Scan<'a>,
}

/// The schema being converted.
struct From<'a> {
    at: &'a str,
    place: &'a Place,
    schema: &'a Map<String, Value>,
}

impl Converter<'_> {
    fn schema(&self, at: &str, value: &Value) -> Result<Value, Reason> {
        let (Value::Object(schema), Some(place)) = (value, self.scan.place(at)) else {
            return self.data(at, value);
        };
        let from = From { at, place, schema };
        let mut out = Map::new();
        for (keyword, value) in schema {
            let at = pointer::child(at, keyword);
            match place.dialect.fate(schema, keyword) {
                Fate::Data => {
                    out.insert(keyword.clone(), self.data(&at, value)?);
                }
                Fate::Dropped => {}
                Fate::Schema(name) => {
                    out.insert(name.to_owned(), self.schema(&at, value)?);
                }
                Fate::List(name) => self.list(name, &at, value, &mut out)?,
                Fate::Map(name) => self.map(name, &at, value, &mut out)?,
                Fate::Dependencies => self.dependencies(&from, &at, value, &mut out)?,
                Fate::Own => self.own(&from, keyword, value, &mut out)?,
            }
        }
        self.recursive_reference(&from, &mut out);
        Ok(Value::Object(out))
    }

    /// Copies what is no schema; where a reference leads into it, that part is one.
    fn data(&self, at: &str, value: &Value) -> Result<Value, Reason> {
        if self.scan.place(at).is_some() && value.is_object() {
            return self.schema(at, value);
        }
        if !self.scan.has_schema_below(at) {
            return Ok(value.clone());
        }
        let part = |token: &str, value: &Value| self.data(&pointer::child(at, token), value);
        match value {
            Value::Object(members) => {
                let members =
                    members.iter().map(|(name, value)| Ok((name.clone(), part(name, value)?)));
                members.collect::<Result<Map<_, _>, _>>().map(Value::Object)
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items.map(|(number, value)| part(&number.to_string(), value)).collect()
            }
            _ => Ok(value.clone()),
        }
    }

    fn list(
        &self,
        name: &str,
        at: &str,
        value: &Value,
        out: &mut Map<String, Value>,
    ) -> Result<(), Reason> {
        let Value::Array(schemas) = value else {
            out.insert(name.to_owned(), value.clone());
            return Ok(());
        };
        let schemas = schemas.iter().enumerate();
        let schemas =
            schemas.map(|(number, schema)| self.schema(&format!("{at}/{number}"), schema));
        let schemas = schemas.collect::<Result<Vec<_>, _>>()?;
        // A tuple of nothing was legal, a `prefixItems` of nothing is not.
        if !(schemas.is_empty() && name == "prefixItems") {
            out.insert(name.to_owned(), Value::Array(schemas));
        }
        Ok(())
    }

    fn map(
        &self,
        name: &str,
        at: &str,
        value: &Value,
        out: &mut Map<String, Value>,
    ) -> Result<(), Reason> {
        let Value::Object(schemas) = value else {
            out.insert(name.to_owned(), value.clone());
            return Ok(());
        };
        for (key, schema) in schemas {
            let schema = self.schema(&pointer::child(at, key), schema)?;
            insert(out, name, key, schema);
        }
        // An empty mapping is worth keeping: `properties: {}` is what some clients look for.
        out.entry(name).or_insert_with(|| json!({}));
        Ok(())
    }

    fn dependencies(
        &self,
        from: &From<'_>,
        at: &str,
        value: &Value,
        out: &mut Map<String, Value>,
    ) -> Result<(), Reason> {
        let Value::Object(dependencies) = value else {
            return Err(Reason::Inexpressible("`dependencies` that is no mapping"));
        };
        for (key, value) in dependencies {
            let name = dependency_name(from.place.dialect, value);
            let at = pointer::child(at, key);
            let value = if value.is_array() { value.clone() } else { self.schema(&at, value)? };
            insert(out, name, key, value);
        }
        Ok(())
    }

    fn own(
        &self,
        from: &From<'_>,
        keyword: &str,
        value: &Value,
        out: &mut Map<String, Value>,
    ) -> Result<(), Reason> {
        match (keyword, value) {
            ("$schema", _) => {
                if from.at.is_empty() {
                    out.insert("$schema".to_owned(), Value::from(PUBLISHED));
                }
            }
            ("$ref" | "$dynamicRef", Value::String(reference)) => {
                let reference = self.reference(from.place, reference)?;
                out.insert(keyword.to_owned(), Value::String(reference));
            }
            ("$id" | "id", Value::String(id)) => name(id, out),
            ("$recursiveAnchor", Value::Bool(true)) => {
                out.insert("$dynamicAnchor".to_owned(), Value::from(RECURSIVE));
            }
            // What the reference means depends on other keywords, so it comes when they are done.
            ("$recursiveAnchor" | "$recursiveRef", _) => {}
            ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum", _) => {
                limit(from.schema, keyword, value, out);
            }
            _ => {
                out.insert(keyword.to_owned(), value.clone());
            }
        }
        Ok(())
    }

    fn recursive_reference(&self, from: &From<'_>, out: &mut Map<String, Value>) {
        let known = from.place.dialect == Dialect::Draft201909;
        if !known || !from.schema.contains_key("$recursiveRef") {
            return;
        }
        let root = self.scan.root.pointer(self.scan.resource_of(from.place));
        let dynamic = root.and_then(|root| root.get("$recursiveAnchor")) == Some(&json!(true));
        if dynamic {
            out.insert("$dynamicRef".to_owned(), Value::from(format!("#{RECURSIVE}")));
        } else if !out.contains_key("$ref") {
            out.insert("$ref".to_owned(), Value::from("#"));
        } else if let Value::Array(all) = out.entry("allOf").or_insert_with(|| json!([])) {
            all.push(json!({"$ref": "#"}));
        }
    }

    /// Returns a reference as it must read after conversion.
    fn reference(&self, place: &Place, reference: &str) -> Result<String, Reason> {
        let Some((resource, tokens)) = self.scan.target(place, reference)?.way else {
            return Ok(reference.to_owned());
        };
        let uri = reference.split_once('#').map_or(reference, |(uri, _)| uri);
        let pointer = self.moved(&resource, &tokens, reference)?;
        Ok(format!("{uri}#{pointer}"))
    }

    /// Returns where the schema at a pointer is after conversion; tokens stay as written.
    fn moved(&self, resource: &str, tokens: &[String], text: &str) -> Result<String, Reason> {
        let lost = || Reason::Lost(text.to_owned());
        let mut at = resource.to_owned();
        let mut moved = String::new();
        let mut rest = tokens.iter();
        while let Some(token) = rest.next() {
            let keyword = pointer::decode(token);
            let fate = match (self.scan.place(&at), self.scan.root.pointer(&at)) {
                (Some(place), Some(Value::Object(schema))) => {
                    let dialect = place.dialect;
                    if dialect.fate(schema, &keyword) == Fate::Dependencies {
                        let below = rest.as_slice().first().map(|token| pointer::decode(token));
                        let value = below.and_then(|name| schema.get(&keyword)?.get(&name));
                        Some(Fate::Map(dependency_name(dialect, value.ok_or_else(lost)?)))
                    } else {
                        Some(dialect.fate(schema, &keyword))
                    }
                }
                _ => None,
            };
            at = pointer::child(&at, &keyword);
            match fate {
                None | Some(Fate::Data | Fate::Own) => moved = format!("{moved}/{token}"),
                Some(Fate::Dropped | Fate::Dependencies) => return Err(lost()),
                Some(Fate::Schema(name)) => moved = format!("{moved}/{name}"),
                Some(Fate::List(name) | Fate::Map(name)) => {
                    let below = rest.next().ok_or_else(lost)?;
                    at = pointer::child(&at, &pointer::decode(below));
                    moved = format!("{moved}/{name}/{below}");
                }
            }
        }
        Ok(moved)
    }
}

/// Returns the keyword that a dependency belongs under.
fn dependency_name(dialect: Dialect, value: &Value) -> &'static str {
    match value {
        _ if dialect == Dialect::Draft202012 => "dependencies",
        Value::Array(_) => "dependentRequired",
        _ => "dependentSchemas",
    }
}

/// Gives a schema its names: a URI, and what was a plain fragment of it.
fn name(id: &str, out: &mut Map<String, Value>) {
    let (uri, fragment) = id.split_once('#').unwrap_or((id, ""));
    if !uri.is_empty() {
        out.insert("$id".to_owned(), Value::from(uri));
    }
    if !fragment.is_empty() {
        out.insert("$anchor".to_owned(), Value::from(fragment));
    }
}

/// Converts a limit of draft-04, where being exclusive is a flag beside it.
fn limit(schema: &Map<String, Value>, keyword: &str, value: &Value, out: &mut Map<String, Value>) {
    let exclusive = match keyword {
        "minimum" => "exclusiveMinimum",
        "maximum" => "exclusiveMaximum",
        // The flag itself; a number there is what later dialects have.
        _ if value.is_boolean() => return,
        _ => keyword,
    };
    let flag = schema.get(exclusive) == Some(&Value::Bool(true));
    let name = if flag { exclusive } else { keyword };
    out.insert(name.to_owned(), value.clone());
}

fn insert(out: &mut Map<String, Value>, name: &str, key: &str, value: Value) {
    let members = out.entry(name).or_insert_with(|| json!({}));
    if let Value::Object(members) = members {
        members.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests;
