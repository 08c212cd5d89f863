//! `context_read`: a page of an earlier call or result, whole or the part that is looked for.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use lru::LruCache;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::matches::Search;
use super::source::{Reader, Reference, Representation, Source, no_form};
use crate::session::Sessions;
use crate::session::record::Record;
use crate::source::builtin::Parts;
use crate::source::builtin::grep_search::pattern_failure;
use crate::source::builtin::on_thread::{on_thread, unless_stopped};
use crate::source::builtin::python_regex::Pattern;
use crate::tool::printed::spaced;
use crate::tool::{
    CallContext, Failure, Presence, ToolDefinition, ToolError, ToolResult, TypedTool,
};

/// How many parts of JSON stay at hand, so that their pages don't each read all of it again.
const PARTS_AT_HAND: NonZeroUsize = NonZeroUsize::new(4).expect("not zero");

const DESCRIPTION: &str = "\
Reads an earlier result (`result:N:M`, whole) or message (`message:N`). \
Refs stand in cut results and context_search. While has_more, go on at next_offset. raw: \
the saved file. pattern (regex) lists matches as `OFFSET: TEXT`. pointer picks a JSON value.";

/// Reads the record of the caller's session, and the files that its results are kept in.
#[derive(Debug)]
pub struct ContextRead {
    definition: ToolDefinition,
    parts: Parts,
    at_hand: Arc<AtHand>,
}

/// Parts of JSON that were asked for last.
#[derive(Debug)]
struct AtHand(Mutex<LruCache<(String, String, String), Arc<str>>>);

/// The arguments of `context_read`.
#[derive(Clone, Debug, Deserialize)]
pub struct Input {
    #[serde(rename = "ref")]
    reference: String,
    #[serde(default)]
    offset: u64,
    #[serde(default = "page")]
    limit: usize,
    #[serde(default)]
    representation: Representation,
    #[serde(default)]
    pattern: Option<String>,
    #[serde(default)]
    pointer: Option<String>,
}

fn page() -> usize {
    4_000
}

impl ContextRead {
    /// Makes the tool.
    pub fn new(parts: &Parts, presence: Presence) -> Self {
        let mut definition =
            super::definition("context_read", "Read this session", DESCRIPTION, schema());
        definition.presence = presence;
        let at_hand = Arc::new(AtHand(Mutex::new(LruCache::new(PARTS_AT_HAND))));
        Self { definition, parts: parts.clone(), at_hand }
    }
}

#[async_trait]
impl TypedTool for ContextRead {
    type Input = Input;

    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn check(&self, input: &Input) -> Result<(), Failure> {
        let Some(pattern) = &input.pattern else { return Ok(()) };
        Pattern::compile(pattern).map(drop).map_err(|error| pattern_failure(&error, pattern))
    }

    async fn run(&self, input: &Input, cx: &CallContext) -> Result<ToolResult, ToolError> {
        let Parts { workspace, sessions, artifacts } = self.parts.clone();
        let record = record(&sessions, cx);
        let reader = Reader { session: cx.session.as_str().to_owned(), artifacts, workspace };
        let (input, at_hand) = (input.clone(), Arc::clone(&self.at_hand));
        on_thread(cx, move |stop| input.read(&record, &reader, &at_hand, stop)).await
    }
}

fn record(sessions: &Sessions, cx: &CallContext) -> Arc<Record> {
    sessions.get(&cx.session).record(&cx.client)
}

impl Input {
    fn read(
        &self,
        record: &Record,
        reader: &Reader,
        at_hand: &AtHand,
        stop: &CancellationToken,
    ) -> Result<ToolResult, ToolError> {
        let mut source = Reference::parse(&self.reference).find(record, self.representation)?;
        if let Some(pointer) = &self.pointer {
            source = at_hand.part(&source, pointer, reader)?;
        }
        let page = match &self.pattern {
            Some(pattern) => {
                let compiled =
                    Pattern::compile(pattern).map_err(|error| pattern_failure(&error, pattern))?;
                let search = Search { source: &source, reader, pattern: &compiled };
                search.find(self.offset, self.limit, || unless_stopped(stop))?
            }
            None => source.page(reader, self.offset, self.limit)?,
        };
        let representation = match self.representation {
            Representation::Text => "text",
            Representation::Raw => "raw",
        };
        let Self { reference, offset, .. } = self;
        let (next_offset, has_more, content) = (page.next_offset, page.has_more, page.content);
        let mut result = ToolResult::text(format!(
            "{reference} {representation} offset={offset} next_offset={next_offset} has_more={has_more}\n{content}"
        ));
        for (key, value) in [
            ("ref", Value::from(reference.as_str())),
            ("representation", representation.into()),
            ("offset", (*offset).into()),
            ("next_offset", next_offset.into()),
            ("has_more", has_more.into()),
            ("content", content.into()),
        ] {
            result.data.insert(key.to_owned(), value);
        }
        Ok(result)
    }
}

impl AtHand {
    /// Returns the value in JSON that a pointer leads to: a text as it is, anything else as JSON.
    fn part(&self, source: &Source, pointer: &str, reader: &Reader) -> Result<Source, Failure> {
        let of = match source {
            Source::Kept(key) => Some(key.uri()),
            // The one is as large as what is shown, and quickly read again; the other may change.
            Source::Text(_) | Source::Named(_) => None,
        };
        let place = of.map(|of| (reader.session.clone(), of, pointer.to_owned()));
        if let Some(place) = &place
            && let Some(text) =
                self.0.lock().unwrap_or_else(PoisonError::into_inner).get(place).cloned()
        {
            return Ok(Source::Text(text));
        }
        let json = source.json(reader)?;
        let text: Arc<str> = match json.pointer(pointer) {
            Some(Value::String(text)) => text.as_str().into(),
            Some(value) => spaced(value).into(),
            None => return Err(nothing_at(&json, pointer)),
        };
        if let Some(place) = place {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).put(place, Arc::clone(&text));
        }
        Ok(Source::Text(text))
    }
}

/// Says how far a pointer leads, and what is there.
fn nothing_at(json: &Value, pointer: &str) -> Failure {
    if !pointer.starts_with('/') {
        return no_form("a pointer is empty or begins with `/`, such as /items/0/name");
    }
    let mut known = "";
    for (end, _) in pointer.match_indices('/') {
        if json.pointer(&pointer[..end]).is_some() {
            known = &pointer[..end];
        }
    }
    let there = match json.pointer(known) {
        Some(Value::Array(items)) => format!("an array of {} items", items.len()),
        Some(Value::Object(members)) => {
            let keys: Vec<&str> = members.keys().take(20).map(String::as_str).collect();
            let more = if members.len() > keys.len() { ", …" } else { "" };
            format!("an object with {}{more}", keys.join(", "))
        }
        Some(Value::String(_)) => "a text".to_owned(),
        Some(other) => other.to_string(),
        None => "nothing".to_owned(),
    };
    let place = if known.is_empty() { "the top" } else { known };
    no_form(&format!("the pointer leads to nothing; at {place} is {there}"))
}

fn schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["ref"],
        "properties": {
            "ref": {"type": "string", "pattern": "^(message:[0-9]+|result:[0-9]+:[0-9]+)$"},
            "offset": {"type": "integer", "minimum": 0, "default": 0},
            "limit": {"type": "integer", "minimum": 1, "maximum": 8000, "default": 4000},
            "representation": {"enum": ["text", "raw"], "default": "text"},
            "pattern": {"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]},
            "pointer": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
    })
}
