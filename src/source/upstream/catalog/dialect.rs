//! The dialects of JSON Schema, and what each makes of a keyword.

use jsonschema::Draft;
use serde_json::{Map, Value};

/// The URI of the dialect that everything is published in.
pub(super) const PUBLISHED: &str = "https://json-schema.org/draft/2020-12/schema";

/// A dialect of JSON Schema; a later one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dialect {
    Draft04,
    Draft06,
    Draft07,
    Draft201909,
    Draft202012,
}

/// What becomes of a keyword's value when its schema is read as 2020-12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate<'a> {
    /// It stays as it is; if there are schemas in it, the dialect does not know.
    Data,
    /// It means nothing in its own dialect and would mean something in 2020-12.
    Dropped,
    /// It is a schema, under this name.
    Schema(&'a str),
    /// It is a list of schemas, under this name.
    List(&'a str),
    /// It maps names to schemas, under this name.
    Map(&'a str),
    /// It maps names to schemas and lists of names, which part into two keywords.
    Dependencies,
    /// It is about the schema as such, and has its own rule.
    Own,
}

impl Dialect {
    /// Returns the dialect a schema declares for itself; `Err` has the name of an unknown one.
    pub(super) fn declared(schema: &Map<String, Value>) -> Result<Option<Self>, String> {
        match schema.get("$schema") {
            None => Ok(None),
            Some(Value::String(uri)) => Self::of_uri(uri).map(Some).ok_or_else(|| uri.clone()),
            Some(other) => Err(other.to_string()),
        }
    }

    fn of_uri(uri: &str) -> Option<Self> {
        let name = uri.strip_suffix('#').unwrap_or(uri);
        let name = name.strip_prefix("https://").or_else(|| name.strip_prefix("http://"))?;
        match name.strip_prefix("json-schema.org/")? {
            "draft-04/schema" => Some(Self::Draft04),
            "draft-06/schema" => Some(Self::Draft06),
            "draft-07/schema" => Some(Self::Draft07),
            "draft/2019-09/schema" => Some(Self::Draft201909),
            "draft/2020-12/schema" => Some(Self::Draft202012),
            _ => None,
        }
    }

    /// Returns the name people use.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Draft04 => "draft-04",
            Self::Draft06 => "draft-06",
            Self::Draft07 => "draft-07",
            Self::Draft201909 => "2019-09",
            Self::Draft202012 => "2020-12",
        }
    }

    pub(super) fn draft(self) -> Draft {
        match self {
            Self::Draft04 => Draft::Draft4,
            Self::Draft06 => Draft::Draft6,
            Self::Draft07 => Draft::Draft7,
            Self::Draft201909 => Draft::Draft201909,
            Self::Draft202012 => Draft::Draft202012,
        }
    }

    /// Returns the keyword by which a schema names itself.
    pub(super) fn id_keyword(self) -> &'static str {
        if self == Self::Draft04 { "id" } else { "$id" }
    }

    /// Returns whether a schema is its `$ref` and nothing beside it counts.
    pub(super) fn only_reference(self, schema: &Map<String, Value>) -> bool {
        self <= Self::Draft07 && schema.get("$ref").is_some_and(Value::is_string)
    }

    /// Returns what becomes of a keyword of `schema`.
    pub(super) fn fate<'a>(self, schema: &Map<String, Value>, keyword: &'a str) -> Fate<'a> {
        let fate = self.fate_alone(schema, keyword);
        if !self.only_reference(schema) {
            return fate;
        }
        match keyword {
            // Schemas are looked up in there, whatever stands beside it.
            "definitions" | "$defs" | "$schema" | "$ref" => fate,
            _ if is_annotation(keyword) || !asserts(keyword) => fate,
            _ => Fate::Dropped,
        }
    }

    fn fate_alone<'a>(self, schema: &Map<String, Value>, keyword: &'a str) -> Fate<'a> {
        if introduced(keyword).is_some_and(|first| self < first) {
            return Fate::Dropped;
        }
        let tuple = self < Self::Draft202012 && schema.get("items").is_some_and(Value::is_array);
        match keyword {
            "$schema" | "$ref" | "$dynamicRef" | "$id" => Fate::Own,
            "id" if self == Self::Draft04 => Fate::Own,
            "$recursiveRef" | "$recursiveAnchor" if self == Self::Draft201909 => Fate::Own,
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum"
                if self == Self::Draft04 =>
            {
                Fate::Own
            }
            "definitions" if self < Self::Draft202012 && !shares_names(schema) => {
                Fate::Map("$defs")
            }
            "definitions" | "$defs" | "properties" | "patternProperties" | "dependentSchemas" => {
                Fate::Map(keyword)
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => Fate::List(keyword),
            "items" if tuple => Fate::List("prefixItems"),
            "additionalItems" if tuple => Fate::Schema("items"),
            // Without a tuple there is nothing it could add to.
            "additionalItems" => Fate::Dropped,
            "dependencies" => Fate::Dependencies,
            "additionalProperties"
            | "contains"
            | "contentSchema"
            | "else"
            | "if"
            | "items"
            | "not"
            | "propertyNames"
            | "then"
            | "unevaluatedItems"
            | "unevaluatedProperties" => Fate::Schema(keyword),
            _ => Fate::Data,
        }
    }
}

/// Returns the dialect that first knew a keyword, for those a schema cannot have by chance.
///
/// In an older dialect such a keyword means nothing, and must not begin to mean something.
fn introduced(keyword: &str) -> Option<Dialect> {
    Some(match keyword {
        "$id" | "const" | "contains" | "propertyNames" => Dialect::Draft06,
        "if" | "then" | "else" => Dialect::Draft07,
        "$anchor"
        | "$vocabulary"
        | "contentSchema"
        | "dependentRequired"
        | "dependentSchemas"
        | "maxContains"
        | "minContains"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Dialect::Draft201909,
        "$dynamicAnchor" | "$dynamicRef" | "prefixItems" => Dialect::Draft202012,
        _ => return None,
    })
}

fn is_annotation(keyword: &str) -> bool {
    matches!(
        keyword,
        "title"
            | "description"
            | "default"
            | "examples"
            | "deprecated"
            | "readOnly"
            | "writeOnly"
            | "$comment"
    )
}

/// Returns whether a keyword of 2020-12 can refuse a value or names the schema.
fn asserts(keyword: &str) -> bool {
    introduced(keyword).is_some()
        || matches!(
            keyword,
            "id" | "type"
                | "enum"
                | "multipleOf"
                | "maximum"
                | "exclusiveMaximum"
                | "minimum"
                | "exclusiveMinimum"
                | "maxLength"
                | "minLength"
                | "pattern"
                | "maxItems"
                | "minItems"
                | "uniqueItems"
                | "maxProperties"
                | "minProperties"
                | "required"
                | "format"
                | "items"
                | "additionalItems"
                | "properties"
                | "patternProperties"
                | "additionalProperties"
                | "dependencies"
                | "allOf"
                | "anyOf"
                | "oneOf"
                | "not"
                | "contentEncoding"
                | "contentMediaType"
                | "$recursiveRef"
                | "$recursiveAnchor"
        )
}

/// Returns whether `definitions` and `$defs` have a name in common, and so cannot be put together.
fn shares_names(schema: &Map<String, Value>) -> bool {
    let names = |keyword| schema.get(keyword).and_then(Value::as_object);
    match (names("definitions"), names("$defs")) {
        (Some(old), Some(new)) => old.keys().any(|name| new.contains_key(name)),
        _ => false,
    }
}
