//! What was called in a session and what came of it: what the context tools read.
//!
//! The messages of a record have indexes that never change. A call takes its place when it comes
//! to its end: call k is message 2k, which uses the tool, and message 2k + 1, which has the result.
//! A record is bounded; what was not read or added for longest is dropped, and its index stays
//! unused. So a result that is being read in pages outlives the calls that read it.

use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use serde_json::{Map, Value};

use crate::tool::printed::spaced;
use crate::tool::{Artifact, ToolResult, Turn};

/// How many messages a record holds.
const MOST_MESSAGES: usize = 10_000;
/// How many bytes of text a record holds.
const MOST_BYTES: usize = 16 << 20;

/// The messages of one client's session.
#[derive(Debug, Default)]
pub struct Record {
    next: Arc<AtomicU64>,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    messages: LruCache<u64, Arc<Message>>,
    bytes: usize,
    /// One more than the last index there was.
    total: u64,
}

/// One message of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// `user` or `assistant`; results are the user's.
    pub role: &'static str,
    /// Who sent it; results have no sender.
    pub sender: &'static str,
    /// What it says, in order.
    pub blocks: Vec<Part>,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Text.
    Text(String),
    /// A call.
    Use {
        /// The call's id.
        id: String,
        /// The name it was made by.
        name: String,
        /// Its arguments.
        input: Map<String, Value>,
    },
    /// What a call came to.
    Result {
        /// The call's id.
        id: String,
        /// The name it was made by.
        name: String,
        /// Whether it failed.
        is_error: bool,
        /// What the model got of it; an image is the line that names it.
        text: String,
        /// The files that hold it, or more of it.
        artifact: Option<Box<Artifact>>,
    },
}

/// Some messages, and where to go on.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    /// The messages, with their indexes.
    pub items: Vec<(u64, Arc<Message>)>,
    /// One more than the last index there is.
    pub total: u64,
}

impl Record {
    /// Makes the turn of a call; its place is free until it is taken.
    pub fn turn(&self) -> Turn {
        Turn::new(Arc::clone(&self.next))
    }

    /// Adds a call that has ended.
    pub fn add(&self, turn: &Turn, arguments: Map<String, Value>, result: &ToolResult) {
        let (id, name) = (&result.call_id, &result.tool_name);
        let asked = Part::Use { id: id.clone(), name: name.clone(), input: arguments };
        let artifact = result.artifact.clone().map(|artifact| {
            // Nobody is on the way any more.
            Box::new(Artifact { hold: Vec::new(), ..artifact })
        });
        let answered = Part::Result {
            id: id.clone(),
            name: name.clone(),
            is_error: result.is_error(),
            text: inline(result),
            artifact,
        };
        let at = turn.take() * 2;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.put(at, Message { role: "assistant", sender: "assistant", blocks: vec![asked] });
        kept.put(at + 1, Message { role: "user", sender: "", blocks: vec![answered] });
    }

    /// Returns a message, unless there is none, or none any more.
    pub fn get(&self, index: u64) -> Option<Arc<Message>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.messages.get(&index).cloned()
    }

    /// Returns at most `limit` messages from an index on; what was dropped is passed over.
    pub fn read(&self, start: u64, limit: usize) -> Messages {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut items: Vec<_> = kept
            .messages
            .iter()
            .filter(|(index, _)| **index >= start)
            .map(|(index, message)| (*index, Arc::clone(message)))
            .collect();
        items.sort_by_key(|(index, _)| *index);
        items.truncate(limit);
        Messages { items, total: kept.total }
    }

    /// Puts messages in, as they come; for tests of those who read them.
    #[cfg(test)]
    pub(crate) fn fill(&self, messages: impl IntoIterator<Item = Message>) {
        let mut kept = self.kept.lock().unwrap();
        for message in messages {
            let at = kept.total;
            kept.put(at, message);
        }
    }
}

impl Default for Kept {
    fn default() -> Self {
        // With a bound it would have room for all of them from the beginning.
        Self { messages: LruCache::unbounded(), bytes: 0, total: 0 }
    }
}

impl Kept {
    fn put(&mut self, index: u64, message: Message) {
        self.total = self.total.max(index + 1);
        self.bytes += message.bytes();
        if let Some((_, dropped)) = self.messages.push(index, Arc::new(message)) {
            self.bytes -= dropped.bytes();
        }
        while (self.bytes > MOST_BYTES || self.messages.len() > MOST_MESSAGES)
            && let Some((_, dropped)) = self.messages.pop_lru()
        {
            self.bytes -= dropped.bytes();
        }
    }
}

impl Message {
    /// Returns the message as one text. (EX-L2.1 to EX-L2.3)
    pub fn render(&self) -> String {
        let mut text = format!("role={} sender={}", self.role, self.sender);
        for (index, part) in self.blocks.iter().enumerate() {
            // Writing to a string cannot fail.
            _ = write!(text, "\n[block {index} {}]\n", part.kind());
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Use { id, name, .. } => {
                    _ = write!(text, "{name} call_id={id}\n{}", part.input_text());
                }
                Part::Result { id, name, is_error, text: inline, artifact: _ } => {
                    let is_error = if *is_error { "True" } else { "False" };
                    _ = write!(text, "{name} call_id={id} is_error={is_error}\n{inline}");
                }
            }
        }
        text
    }

    /// Returns about how much room it takes.
    fn bytes(&self) -> usize {
        let parts = self.blocks.iter().map(|part| match part {
            Part::Text(text) | Part::Result { text, .. } => text.len(),
            Part::Use { input, .. } => {
                input.iter().map(|(key, value)| key.len() + room(value)).sum()
            }
        });
        parts.sum::<usize>() + 256
    }
}

impl Part {
    fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Use { .. } => "tool_use",
            Self::Result { .. } => "tool_result",
        }
    }

    /// Returns the arguments of a call as JSON with sorted keys; nothing for other parts.
    pub fn input_text(&self) -> String {
        match self {
            Self::Use { input, .. } => spaced(&sorted(&Value::Object(input.clone()))),
            Self::Text(_) | Self::Result { .. } => String::new(),
        }
    }
}

/// Returns the text a model got, with a line for each image. (EX-L9.2)
fn inline(result: &ToolResult) -> String {
    let text = result.texts(|image| Some(image.entry())).join("\n");
    // Where the native result is belongs to this answer, not to what the tool said.
    match result.artifact.as_ref().and_then(|artifact| artifact.note.as_deref()) {
        Some(note) if text == note => String::new(),
        Some(note) => text.replacen(&format!("\n\n{note}"), "", 1),
        None => text,
    }
}

fn room(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 16,
        Value::String(text) => text.len() + 16,
        Value::Array(items) => items.iter().map(room).sum::<usize>() + 16,
        Value::Object(members) => {
            members.iter().map(|(key, value)| key.len() + room(value) + 16).sum::<usize>() + 16
        }
    }
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(text: &str) -> Message {
        Message { role: "user", sender: "user", blocks: vec![Part::Text(text.to_owned())] }
    }

    fn result(id: &str) -> ToolResult {
        ToolResult { call_id: id.into(), tool_name: "t".into(), ..ToolResult::text("done") }
    }

    #[test]
    fn a_call_is_two_messages_at_the_place_it_took() {
        let record = Record::default();
        let (slow, quick) = (record.turn(), record.turn());
        assert_eq!(quick.reference(), "result:1:0");
        assert_eq!(slow.reference(), "result:3:0");
        record.add(&slow, json!({"b": 1, "a": [1]}).as_object().unwrap().clone(), &result("slow"));
        assert_eq!(record.get(1), None);
        assert_eq!(
            record.get(2).unwrap().render(),
            "role=assistant sender=assistant\n[block 0 tool_use]\nt call_id=slow\n{\"a\": [1], \"b\": 1}"
        );
        record.add(&quick, Map::new(), &result("quick"));
        assert_eq!(
            record.get(1).unwrap().render(),
            "role=user sender=\n[block 0 tool_result]\nt call_id=quick is_error=False\ndone"
        );
        assert_eq!(record.read(0, 10).total, 4);
    }

    #[test]
    fn what_is_longest_unread_is_dropped_and_indexes_stay() {
        let (record, most) = (Record::default(), MOST_MESSAGES);
        record.fill((0..most).map(|number| text(&number.to_string())));
        assert_eq!(record.get(0), Some(Arc::new(text("0"))));
        record.fill([text("one more"), text("and one")]);
        assert_eq!(record.get(1), None);
        assert_eq!(record.get(2), None);
        assert_eq!(record.get(0), Some(Arc::new(text("0"))), "it was read");
        let page = record.read(1, 2);
        assert_eq!(page.items.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(page.total, most as u64 + 2);
        record.fill([text(&"x".repeat(MOST_BYTES / 2)), text(&"y".repeat(MOST_BYTES / 2))]);
        let kept = record.read(0, usize::MAX);
        assert_eq!(
            kept.items.iter().map(|(index, _)| *index).collect::<Vec<_>>(),
            [most as u64 + 3]
        );
        // What is too much by itself leaves nothing, and the next one is kept again.
        record.fill([text(&"z".repeat(MOST_BYTES + 1))]);
        assert!(record.read(0, usize::MAX).items.is_empty());
        record.fill([text("small")]);
        assert_eq!(record.read(0, usize::MAX).items.len(), 1);
    }
}
