//! Nodes as a source for serde.
//!
//! Plain structs with `deny_unknown_fields` are read by [`Document::decode`](super::Document);
//! every error knows its place. `flatten` and `untagged` would lose it, so don't use them.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{
    self, Deserialize, DeserializeSeed, EnumAccess, Expected, IntoDeserializer as _, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::error::DocumentError;
use super::node::{Key, Kind, Node, Position};
use super::source::Source;
use super::{hint, path};

/// Decodes a node that stands at `path`.
pub fn decode<'de, T: Deserialize<'de>>(node: &Node, path: &str) -> Result<T, DecodeError> {
    Decoder { node, path }.decode(PhantomData)
}

/// A mistake found while decoding; [`Document`](super::Document) makes a [`DocumentError`] of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    place: Option<(Position, String)>,
    message: String,
    hint: Option<String>,
}

impl DecodeError {
    pub(super) fn at(self, source: &Source, otherwise: Position) -> DocumentError {
        let (position, path) = self.place.unwrap_or((otherwise, String::new()));
        source.error(position, self.message).with_path(path).with_hint(self.hint)
    }

    fn new(message: impl Into<String>) -> Self {
        Self { place: None, message: message.into(), hint: None }
    }

    /// Says where the mistake is, unless something further down has.
    fn placed(mut self, position: Position, path: impl FnOnce() -> String) -> Self {
        if self.place.is_none() {
            self.place = Some((position, path()));
        }
        self
    }
}

/// One node on its way into a type.
#[derive(Clone, Copy, Debug)]
struct Decoder<'a> {
    node: &'a Node,
    path: &'a str,
}

impl Decoder<'_> {
    /// Decodes the node; what a type itself has against a value is placed here too.
    fn decode<'de, T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, DecodeError> {
        seed.deserialize(self).map_err(|error| self.placed(error))
    }

    fn placed(&self, error: DecodeError) -> DecodeError {
        error.placed(self.node.position, || self.path.to_owned())
    }

    fn visit<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match &self.node.kind {
            Kind::Null => visitor.visit_unit(),
            Kind::Bool(flag) => visitor.visit_bool(*flag),
            Kind::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), _, _) => visitor.visit_u64(number),
                (_, Some(number), _) => visitor.visit_i64(number),
                (_, _, Some(number)) => visitor.visit_f64(number),
                (None, None, None) => Err(DecodeError::new("the number is too large")),
            },
            Kind::String(text) => visitor.visit_str(text),
            Kind::Sequence(items) => {
                visitor.visit_seq(Items { all: items, next: 0, path: self.path })
            }
            Kind::Mapping(entries) => {
                visitor.visit_map(Entries { rest: entries, value: None, path: self.path })
            }
        }
    }
}

impl<'de> de::Deserializer<'de> for Decoder<'_> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.visit(visitor).map_err(|error| self.placed(error))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        if self.node.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_newtype_struct(self).map_err(|error| self.placed(error))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let variant = match &self.node.kind {
            Kind::String(text) => Ok(Variant { name: text, value: None, path: self.path }),
            Kind::Mapping(entries) => match entries.as_slice() {
                [(key, value)] => {
                    Ok(Variant { name: &key.text, value: Some(value), path: self.path })
                }
                _ => Err(DecodeError::new("expected a string, or a mapping of one key")),
            },
            kind => {
                let message = format!("{}, found {}", choices(variants), kind.describe());
                Err(DecodeError::new(message))
            }
        };
        variant.and_then(|variant| visitor.visit_enum(variant)).map_err(|error| self.placed(error))
    }

    // A derived visitor would also take its fields from a list, in order.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        if self.node.is_null() || self.node.as_mapping().is_some() {
            return self.deserialize_any(visitor);
        }
        let refused = if self.node.as_sequence().is_some() {
            Err(self.placed(DecodeError::new("expected a mapping, found a list")))
        } else {
            self.deserialize_any(visitor)
        };
        refused.map_err(|error| DecodeError { hint: its_keys(fields), ..error })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// The items of a sequence.
struct Items<'a> {
    all: &'a [Node],
    next: usize,
    path: &'a str,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        let Some(node) = self.all.get(self.next) else {
            return Ok(None);
        };
        let path = path::index(self.path, self.next);
        self.next += 1;
        Decoder { node, path: &path }.decode(seed).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.all.len() - self.next)
    }
}

/// The entries of a mapping.
struct Entries<'a> {
    rest: &'a [(Key, Node)],
    value: Option<&'a (Key, Node)>,
    path: &'a str,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, DecodeError> {
        let Some((entry, rest)) = self.rest.split_first() else {
            return Ok(None);
        };
        self.rest = rest;
        self.value = Some(entry);
        let key = &entry.0;
        seed.deserialize(key.text.as_str().into_deserializer()).map(Some).map_err(
            |error: DecodeError| error.placed(key.position, || path::key(self.path, &key.text)),
        )
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, DecodeError> {
        let (key, node) = self.value.take().ok_or_else(|| DecodeError::new("no value"))?;
        let path = path::key(self.path, &key.text);
        Decoder { node, path: &path }.decode(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// A variant of an enum: a string, or a mapping of its name to its content.
struct Variant<'a> {
    name: &'a str,
    value: Option<&'a Node>,
    path: &'a str,
}

impl<'de, 'a> EnumAccess<'de> for Variant<'a> {
    type Error = DecodeError;
    type Variant = Content<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Content<'a>), DecodeError> {
        let variant = seed.deserialize(self.name.into_deserializer())?;
        let path = path::key(self.path, self.name);
        Ok((variant, Content { value: self.value, path }))
    }
}

/// What stands under the name of a variant.
struct Content<'a> {
    value: Option<&'a Node>,
    path: String,
}

impl Content<'_> {
    fn node(&self) -> Result<Decoder<'_>, DecodeError> {
        let node = self.value.ok_or_else(|| DecodeError::new("this choice needs a value"))?;
        Ok(Decoder { node, path: &self.path })
    }
}

impl<'de> VariantAccess<'de> for Content<'_> {
    type Error = DecodeError;

    fn unit_variant(self) -> Result<(), DecodeError> {
        match self.value {
            None => Ok(()),
            Some(_) => Err(DecodeError::new("this choice has no value")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, DecodeError> {
        self.node()?.decode(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        de::Deserializer::deserialize_any(self.node()?, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        de::Deserializer::deserialize_struct(self.node()?, "", fields, visitor)
    }
}

impl de::Error for DecodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    // Those of serde repeat the value.
    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = wanted(expected);
        let hint = way_out(&expected, unexpected).map(str::to_owned);
        Self { hint, ..Self::new(format!("expected {expected}, found {}", describe(unexpected))) }
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let too_large = matches!(unexpected, Unexpected::Unsigned(1..));
        match wanted(expected).as_str() {
            word if too_large && word.starts_with("a whole number") => {
                Self::new("the number is too large")
            }
            word => Self::new(format!("expected {word}")),
        }
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let hint = hint::nearest(variant, expected.iter().copied());
        Self {
            hint: hint.map(|name| format!("did you mean `{name}`?")),
            ..Self::new(choices(expected))
        }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self { hint: hint::for_unknown(field, expected), ..Self::new("unknown key") }
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(missing(field))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new(format!("the key `{field}` is given twice, under two names"))
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DecodeError {}

fn missing(key: &str) -> String {
    format!("the key `{key}` is missing")
}

/// Returns the key that is missing, if that is what a message says.
pub(super) fn missing_key(message: &str) -> Option<&str> {
    message.strip_prefix("the key `")?.strip_suffix("` is missing")
}

/// Returns what was expected in the words of a file, not of Rust.
fn wanted(expected: &dyn Expected) -> String {
    let expected = expected.to_string();
    let word = match expected.as_str() {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        text if text.starts_with("a nonzero ") => "a whole number above 0",
        "path string" => "a path",
        "a sequence" => "a list",
        "a map" => "a mapping",
        text if text.starts_with("struct ") => "a mapping",
        text => text,
    };
    word.to_owned()
}

/// Returns what to do about a value of a wrong kind, where that is plain.
fn way_out(expected: &str, found: Unexpected<'_>) -> Option<&'static str> {
    match (expected, found) {
        (_, Unexpected::Unit | Unexpected::Option) => Some("give it a value, or remove the key"),
        (
            "a string" | "a path",
            Unexpected::Bool(_)
            | Unexpected::Unsigned(_)
            | Unexpected::Signed(_)
            | Unexpected::Float(_),
        ) => Some("put it in quotes"),
        ("a list", Unexpected::Map) => Some("a list stands in square brackets"),
        ("a list", _) => Some("put it in square brackets"),
        ("a boolean", _) => Some("write `true` or `false`, without quotes"),
        ("a number", Unexpected::Str(_)) => Some("write it without quotes"),
        _ => None,
    }
}

/// Returns what can stand in a mapping, for who wrote something else there.
fn its_keys(fields: &[&str]) -> Option<String> {
    let are = if fields.len() == 1 { "its key is" } else { "its keys are" };
    (!fields.is_empty()).then(|| format!("{are} {}", hint::list(fields)))
}

fn choices(names: &[&str]) -> String {
    let are = if names.len() == 1 { "the only choice is" } else { "the choices are" };
    format!("{are} {}", hint::list(names))
}

fn describe(unexpected: Unexpected<'_>) -> &'static str {
    match unexpected {
        Unexpected::Bool(_) => "a boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "an integer",
        Unexpected::Float(_) => "a number with a fraction",
        Unexpected::Char(_) | Unexpected::Str(_) => "a string",
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Seq => "a list",
        Unexpected::Map => "a mapping",
        _ => "something else",
    }
}
