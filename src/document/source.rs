//! The text of a document, its lines, and what of them may be shown.

use std::fmt;
use std::path::{Path, PathBuf};

use super::error::{DocumentError, Excerpt};
use super::node::Position;
use super::{Format, MAX_DEPTH, Node, mask};

/// The longest piece of a line that is shown, in characters.
const EXCERPT_CHARS: usize = 100;

/// How many bytes of a line are counted to find a column.
const BLOCK: usize = 1024;

/// A text and the file it came from.
pub(super) struct Source {
    path: PathBuf,
    format: Format,
    text: String,
    /// The byte at which each line begins.
    lines: Vec<usize>,
    /// How many characters begin before each block of bytes.
    characters: Vec<usize>,
}

impl Source {
    pub(super) fn new(path: PathBuf, format: Format, mut text: String) -> Self {
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        // A carriage return ends a line where no line feed follows: so it does for the parsers.
        let ends = text.match_indices(['\n', '\r']).map(|(at, _)| at + 1);
        let breaks = ends.filter(|at| !text[at - 1..].starts_with("\r\n"));
        let lines = std::iter::once(0).chain(breaks).collect();
        let mut before = 0;
        let blocks = text.as_bytes().chunks(BLOCK).map(|block| {
            before += characters(block);
            before
        });
        let characters = std::iter::once(0).chain(blocks).collect();
        Self { path, format, text, lines, characters }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn format(&self) -> Format {
        self.format
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the place of a byte; one within a character is that character's.
    pub(super) fn position(&self, byte: usize) -> Position {
        let byte = self.text.floor_char_boundary(byte);
        let line = self.lines.partition_point(|start| *start <= byte).saturating_sub(1);
        let column = self.characters_before(byte) - self.characters_before(self.lines[line]);
        Position { line: count(line + 1), column: count(column + 1) }
    }

    /// Counts in no more than a block: a file may be one long line, with a place for every value.
    fn characters_before(&self, byte: usize) -> usize {
        let block = byte / BLOCK;
        self.characters[block] + characters(&self.text.as_bytes()[block * BLOCK..byte])
    }

    /// Returns a place that a parser counted itself; what is beyond a line, or the last, is its end.
    pub(super) fn counted(&self, line: usize, column: usize) -> Position {
        let Some(start) = self.lines.get(line.saturating_sub(1)) else {
            return self.position(self.text.len());
        };
        let end = self.lines.get(line.max(1)).map_or(self.text.len(), |next| next - 1);
        let length = self.characters_before(end) - self.characters_before(*start);
        Position { line: count(line.max(1)), column: count(column.min(length + 1)) }
    }

    /// Makes an error about a place.
    pub(super) fn error(&self, position: Position, message: impl Into<String>) -> DocumentError {
        DocumentError {
            position: Some(position),
            excerpt: self.excerpt(position),
            ..DocumentError::of_file(&self.path, message)
        }
    }

    /// Makes the error about a key that was given before.
    pub(super) fn duplicate(
        &self,
        position: Position,
        key: &str,
        first: Position,
    ) -> DocumentError {
        let Position { line, column } = first;
        let message = format!("the key is given twice; first at line {line}, column {column}");
        self.error(position, message).with_path(super::path::key("", key))
    }

    /// Fails for a tree that is too deep for those who walk it.
    pub(super) fn check_depth(&self, root: Node) -> Result<Node, DocumentError> {
        if root.depth() > MAX_DEPTH {
            return Err(self.error(root.position, too_deep()));
        }
        Ok(root)
    }

    fn excerpt(&self, position: Position) -> Option<Excerpt> {
        let index = usize::try_from(position.line).ok()?.checked_sub(1)?;
        let start = *self.lines.get(index)?;
        let end = self.lines.get(index + 1).map_or(self.text.len(), |next| next - 1);
        let end = start + self.text[start..end].trim_end().len();
        let line = mask::last_line(&self.text[..end], self.format);
        let column = usize::try_from(position.column).ok()?.checked_sub(1)?;
        let skipped = column.saturating_sub(EXCERPT_CHARS / 2);
        let line = line.chars().skip(skipped).take(EXCERPT_CHARS);
        // A tab would put the caret elsewhere, and a control character could address the terminal.
        let line = line.map(|c| if c.is_control() { ' ' } else { c }).collect();
        Some(Excerpt { before_caret: column - skipped, line })
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("path", &self.path).finish_non_exhaustive()
    }
}

pub(super) fn too_deep() -> String {
    format!("the document nests more than {MAX_DEPTH} levels deep")
}

/// Counts the characters that begin in some bytes of UTF-8.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
