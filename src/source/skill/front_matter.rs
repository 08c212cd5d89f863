//! The front matter of a `SKILL.md`: YAML between two lines of three hyphens at the very beginning.

use std::path::Path;

use serde_json::{Map, Value};

use crate::document::{Document, DocumentError, Format, Key, Node};

/// The line before and after front matter.
const FENCE: &str = "---";
/// The most bytes of front matter, as it is written and as JSON: a few aliases can stand for a lot.
pub(super) const MOST_BYTES: usize = 64 * 1024;

/// The longest description that is shown, in characters.
pub(super) const DESCRIPTION_CHARS: usize = 1024;

/// What a skill says of itself, as it is written there.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FrontMatter {
    /// Every field; empty where there is no front matter at all.
    pub(super) fields: Map<String, Value>,
}

/// A description, made short where it is too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Description {
    pub(super) text: String,
    pub(super) is_cut: bool,
}

/// Why front matter cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FrontMatterError {
    #[error("the front matter has no line `---` at its end")]
    NotClosed,
    #[error("the front matter is no YAML: {}", .0.without_place())]
    Yaml(DocumentError),
    #[error("the front matter is {0}, and has to be a mapping")]
    NotAMapping(&'static str),
    #[error("the front matter has the key `{}`, which is no text; put it in quotes", .0.text)]
    KeyNotText(Key),
    #[error("the front matter comes to more than {MOST_BYTES} bytes")]
    TooLong,
}

impl FrontMatter {
    /// Reads what stands at the beginning of a text; `path` is for messages only.
    pub(super) fn read(path: &Path, text: &str) -> Result<Self, FrontMatterError> {
        let Some(yaml) = fenced(text)? else { return Ok(Self::default()) };
        if yaml.len() > MOST_BYTES {
            return Err(FrontMatterError::TooLong);
        }
        // With the line of the first fence, so that lines have the numbers they have in the file.
        let text = format!("\n{yaml}");
        let document =
            Document::parse(path, Format::Yaml, text.clone()).map_err(FrontMatterError::Yaml)?;
        let root = &document.root;
        let entries = root.as_mapping().ok_or(FrontMatterError::NotAMapping(root.describe()))?;
        if let Some((key, _)) = entries.iter().find(|(key, _)| !is_text(key, &text)) {
            return Err(FrontMatterError::KeyNotText(key.clone()));
        }
        let Value::Object(fields) = root.to_json() else { return Ok(Self::default()) };
        let bytes = serde_json::to_string(&fields).map_or(usize::MAX, |json| json.len());
        if bytes > MOST_BYTES { Err(FrontMatterError::TooLong) } else { Ok(Self { fields }) }
    }

    /// Returns the name, if it is a text.
    pub(super) fn name(&self) -> Option<&str> {
        self.fields.get("name").and_then(Value::as_str)
    }

    /// Returns the description without space around it, cut to what is shown; nothing where it
    /// says nothing.
    pub(super) fn description(&self) -> Option<Description> {
        let text = self.fields.get("description")?.as_str()?.trim();
        if text.is_empty() {
            return None;
        }
        let end = text.char_indices().nth(DESCRIPTION_CHARS).map(|(end, _)| end);
        let text = &text[..end.unwrap_or(text.len())];
        Some(Description { text: text.to_owned(), is_cut: end.is_some() })
    }
}

impl FrontMatterError {
    /// Returns the line and column in the file, where they are known.
    pub(super) fn place(&self) -> Option<String> {
        let position = match self {
            Self::Yaml(error) => error.position()?,
            Self::KeyNotText(key) => key.position,
            Self::NotClosed | Self::NotAMapping(_) | Self::TooLong => return None,
        };
        Some(position.to_string())
    }
}

/// Returns what stands between the fences; nothing where the first line is none.
fn fenced(text: &str) -> Result<Option<&str>, FrontMatterError> {
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| is_fence(line)) else { return Ok(None) };
    let begin = first.len();
    let mut end = begin;
    for line in lines {
        if is_fence(line) {
            return Ok(Some(&text[begin..end]));
        }
        end += line.len();
    }
    Err(FrontMatterError::NotClosed)
}

fn is_fence(line: &str) -> bool {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line) == FENCE
}

/// Says whether a key is a text and not, say, a number: one in quotes is, whatever it holds.
fn is_text(key: &Key, yaml: &str) -> bool {
    let place = |number: u32| usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
    let line = yaml.lines().nth(place(key.position.line)).unwrap_or_default();
    let is_plain = !matches!(line.chars().nth(place(key.position.column)), Some('"' | '\''));
    let as_value = || Document::parse("", Format::Yaml, key.text.clone());
    // What YAML would take for something else as a value is no text as a key either.
    !is_plain || as_value().is_ok_and(|document| Node::as_str(&document.root).is_some())
}

#[cfg(test)]
mod tests;
