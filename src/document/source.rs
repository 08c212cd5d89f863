//! The text of a document, its lines, and what of them may be shown.

use std::fmt;
use std::path::{Path, PathBuf};

use super::error::{DocumentError, Excerpt};
use super::node::Position;
use super::{Format, MAX_DEPTH, Node};

/// The longest piece of a line that is shown, in characters.
const EXCERPT_CHARS: usize = 100;

/// A text and the file it came from.
pub(super) struct Source {
    path: PathBuf,
    format: Format,
    text: String,
    /// The byte at which each line begins.
    lines: Vec<usize>,
}

impl Source {
    pub(super) fn new(path: PathBuf, format: Format, mut text: String) -> Self {
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(breaks).collect();
        Self { path, format, text, lines }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the place of a byte; one within a character is that character's.
    pub(super) fn position(&self, byte: usize) -> Position {
        let byte = self.text.floor_char_boundary(byte);
        let line = self.lines.partition_point(|start| *start <= byte).saturating_sub(1);
        let column = self.text[self.lines[line]..byte].chars().count();
        Position { line: count(line + 1), column: count(column + 1) }
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
        let line = self.text[start..end].trim_end();
        let line = match self.format {
            Format::Json5 | Format::Toml => blank_strings(line),
            // Agent files are no place for secrets, and most of their strings have no quotes.
            Format::Yaml => line.to_owned(),
        };
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

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Blanks every quoted string of a line that is no key.
fn blank_strings(line: &str) -> String {
    let characters: Vec<char> = line.chars().collect();
    let mut shown = String::with_capacity(line.len());
    let mut at = 0;
    while at < characters.len() {
        let quote = characters[at];
        if !matches!(quote, '"' | '\'') {
            shown.push(quote);
            at += 1;
            continue;
        }
        let end = string_end(&characters, at);
        let mut after = characters[end..].iter().skip_while(|c| c.is_whitespace());
        if matches!(after.next(), Some(':' | '=')) && is_key(&characters, at) {
            shown.extend(&characters[at..end]);
        } else {
            shown.push(quote);
            shown.extend(std::iter::repeat_n('*', (end - at).saturating_sub(2)));
            if end - at > 1 {
                shown.push(quote);
            }
        }
        at = end;
    }
    shown
}

/// Returns where the string that opens at `start` ends: after its closing quote, or with the line.
fn string_end(characters: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < characters.len() {
        match characters[at] {
            '\\' => at += 1,
            c if c == characters[start] => return at + 1,
            _ => {}
        }
        at += 1;
    }
    characters.len()
}

/// Returns whether a key can stand at `start`: first in the line, or after `{`, `,` or `.`.
fn is_key(characters: &[char], start: usize) -> bool {
    let before = characters[..start].iter().rev().find(|c| !c.is_whitespace());
    matches!(before, None | Some('{' | ',' | '.'))
}
