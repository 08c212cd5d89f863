//! A result as the server behind a tool gave it.
//!
//! Structured content may be large, and a tree of it takes ten times the room of its text. So it
//! stays the text that it came as: it is looked through once, and taken apart only for whoever has
//! to see into it.

use std::fmt;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The member that stays text.
const STRUCTURED: &str = "structuredContent";

/// A result that goes out as it came.
#[derive(Clone, Debug, Default)]
pub struct Native {
    /// All members in their order; in the place of one that stayed text there is nothing but null.
    members: Map<String, Value>,
    /// The structured content, if it stayed text.
    structured: Option<Box<RawValue>>,
}

impl Native {
    /// Reads a result.
    ///
    /// What this takes any other reader takes too: texts and numbers are looked at even where they
    /// are kept as they are.
    pub fn parse(text: String) -> serde_json::Result<Self> {
        let text = one_line(text);
        let mut read = serde_json::Deserializer::from_str(&text);
        let native = Members::default().deserialize(&mut read)?;
        read.end()?;
        Ok(native)
    }

    /// Returns all members but the structured content.
    pub fn members(&self) -> &Map<String, Value> {
        &self.members
    }

    /// Returns them for changing.
    pub fn members_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.members
    }

    /// Returns whether there is structured content.
    pub fn has_structured(&self) -> bool {
        self.members.contains_key(STRUCTURED)
    }

    /// Returns whether there is structured content, and it is an object.
    pub fn has_structured_object(&self) -> bool {
        match &self.structured {
            Some(raw) => raw.get().starts_with('{'),
            None => self.members.get(STRUCTURED).is_some_and(Value::is_object),
        }
    }

    /// Returns how many bytes the structured content has, if it stayed text.
    pub fn structured_bytes(&self) -> usize {
        self.structured.as_ref().map_or(0, |raw| raw.get().len())
    }

    /// Takes the structured content apart; null if there is none.
    pub fn structured(&self) -> Value {
        match &self.structured {
            Some(raw) => serde_json::from_str(raw.get()).unwrap_or_default(),
            None => self.members.get(STRUCTURED).cloned().unwrap_or_default(),
        }
    }

    /// Returns the structured content to be written by any writer; null if there is none.
    pub fn written_structured(&self) -> impl Serialize + '_ {
        Written { value: self.members.get(STRUCTURED), raw: self.structured.as_deref() }
    }

    /// Takes the structured content away.
    pub fn remove_structured(&mut self) {
        self.structured = None;
        self.members.shift_remove(STRUCTURED);
    }

    /// Returns the whole of it to be written anew, by the rules of whoever writes.
    pub fn written(&self) -> impl Serialize + '_ {
        Anew(self)
    }

    /// Takes all of it apart.
    pub fn to_value(&self) -> Value {
        let mut members = self.members.clone();
        if let Some(member) = members.get_mut(STRUCTURED) {
            *member = self.structured();
        }
        Value::Object(members)
    }
}

impl From<Map<String, Value>> for Native {
    fn from(members: Map<String, Value>) -> Self {
        Self { members, structured: None }
    }
}

/// Writes it as it came.
impl Serialize for Native {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.members.len()))?;
        for (key, value) in &self.members {
            match self.structured.as_ref().filter(|_| key == STRUCTURED) {
                Some(raw) => map.serialize_entry(key, raw)?,
                None => map.serialize_entry(key, value)?,
            }
        }
        map.end()
    }
}

/// The whole, written anew.
struct Anew<'a>(&'a Native);

impl Serialize for Anew<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(native) = self;
        let mut map = serializer.serialize_map(Some(native.members.len()))?;
        for (key, value) in &native.members {
            if key == STRUCTURED {
                map.serialize_entry(key, &native.written_structured())?;
            } else {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    }
}

/// Structured content, written anew without a tree in between.
struct Written<'a> {
    value: Option<&'a Value>,
    raw: Option<&'a RawValue>,
}

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.raw {
            Some(raw) => {
                let mut read = serde_json::Deserializer::from_str(raw.get());
                serde_transcode::transcode(&mut read, serializer)
            }
            None => self.value.unwrap_or(&Value::Null).serialize(serializer),
        }
    }
}

/// Puts a text of JSON on one line, as it may have to go out on one.
fn one_line(text: String) -> String {
    if memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_none() {
        return text;
    }
    // Within a text of JSON they would be escaped, so these stand between.
    let mut bytes = text.into_bytes();
    for byte in &mut bytes {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    String::from_utf8(bytes).unwrap_or_default()
}

// === reading ===

/// Reads the members of a result.
#[derive(Default)]
struct Members(Native);

impl<'de> DeserializeSeed<'de> for Members {
    type Value = Native;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Native, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members {
    type Value = Native;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Native, A::Error> {
        let Self(mut native) = self;
        while let Some(key) = map.next_key::<String>()? {
            if key == STRUCTURED {
                let raw: Box<RawValue> = map.next_value()?;
                serde_json::from_str::<Sound>(raw.get()).map_err(de::Error::custom)?;
                native.structured = Some(raw);
                native.members.insert(key, Value::Null);
            } else {
                native.members.insert(key, map.next_value()?);
            }
        }
        Ok(native)
    }
}

/// JSON in which every text and every number can be read.
struct Sound;

impl<'de> Deserialize<'de> for Sound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Sound {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        while members.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::printed::spaced;

    fn native(text: &str) -> Native {
        Native::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn it_goes_out_as_it_came() {
        let text =
            r#"{"z":1,"structuredContent":{"b": 1.50,"a":[12345678901234567890123]},"content":[]}"#;
        let read = native(text);
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        assert_eq!(spaced(&read.written()), spaced(&serde_json::from_str::<Value>(text).unwrap()));
        assert_eq!(
            spaced(&read.written_structured()),
            r#"{"b": 1.5, "a": [1.2345678901234568e+22]}"#
        );
        assert!(read.has_structured_object() && read.has_structured());
        let mut without = read.clone();
        without.remove_structured();
        assert_eq!(serde_json::to_string(&without).unwrap(), r#"{"z":1,"content":[]}"#);
        assert!(!without.has_structured() && without.structured().is_null());
        // One that we make ourselves is no different.
        let ours = Native::from(read.to_value().as_object().unwrap().clone());
        assert_eq!(ours.structured(), json!({"b": 1.5, "a": [1.234_567_890_123_456_8e22]}));
        assert_eq!(spaced(&ours), spaced(&read.written()));
    }

    #[test]
    fn it_is_one_line_whatever_came() {
        let read = native("{\n  \"structuredContent\": {\r\n \"a\": \"x\\ny\"\n}\n}");
        assert_eq!(
            serde_json::to_string(&read).unwrap(),
            "{\"structuredContent\":{   \"a\": \"x\\ny\" }}"
        );
    }

    #[test]
    fn what_others_could_not_read_is_not_read_here() {
        for structured in
            [r#"{"a":"\ud800"}"#, "[1E999]", r#"{"\udc00":1}"#, "[1,]", &"[".repeat(200)]
        {
            let text = format!("{{\"structuredContent\":{structured}}}");
            assert!(Native::parse(text).is_err(), "{structured}");
        }
        assert!(Native::parse("[]".to_owned()).is_err());
        assert!(Native::parse("{} {}".to_owned()).is_err());
    }
}
