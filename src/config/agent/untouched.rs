//! Parts of an agent file whose content is no business of a tool server.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A mapping that is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Untouched;

/// A word, or a mapping that is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WordOrMapping;

impl<'de> Deserialize<'de> for Untouched {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Content { word: false }).map(|()| Self)
    }
}

impl<'de> Deserialize<'de> for WordOrMapping {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Content { word: true }).map(|()| Self)
    }
}

/// Passes over a mapping, or a word where there may be one.
struct Content {
    word: bool,
}

impl<'de> Visitor<'de> for Content {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.word { "a word or a mapping" } else { "a mapping" })
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        if self.word && !text.trim().is_empty() {
            return Ok(());
        }
        Err(E::invalid_type(serde::de::Unexpected::Str(text), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

impl JsonSchema for Untouched {
    fn schema_name() -> Cow<'static, str> {
        "Untouched".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

impl JsonSchema for WordOrMapping {
    fn schema_name() -> Cow<'static, str> {
        "WordOrMapping".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "object"], "pattern": r"\S" })
    }
}
