//! What is wrong with a document, and where.

use std::fmt;
use std::path::{Path, PathBuf};

use super::node::Position;
use super::secret::without_secrets;

/// A mistake in a configuration file.
///
/// It displays as `mcp.json:3:22: mcpServers.github.comand: unknown key; did you mean
/// `command`?`, and never repeats a value.
#[derive(Clone, PartialEq, Eq)]
pub struct DocumentError {
    pub(super) file: PathBuf,
    pub(super) position: Option<Position>,
    pub(super) path: String,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    pub(super) excerpt: Option<Excerpt>,
}

/// A line of the source with its strings blanked out.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Excerpt {
    pub(super) before_caret: usize,
    pub(super) line: String,
}

impl DocumentError {
    /// Makes an error about a file as a whole.
    pub fn of_file(file: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            position: None,
            path: String::new(),
            // What it repeats of a file may be a key.
            message: without_secrets(&message.into()),
            hint: None,
            excerpt: None,
        }
    }

    /// Says which value the error is about, by its [path](super::path).
    #[must_use]
    pub fn with_path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Says that the value is part of the one at `parent`.
    #[must_use]
    pub(super) fn under(mut self, parent: &str) -> Self {
        let joint = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{parent}{joint}{}", self.path);
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Option<String>>) -> Self {
        self.hint = hint.into().map(|hint| without_secrets(&hint));
        self
    }

    /// Returns the file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the place, unless the error is about the file as a whole.
    pub fn position(&self) -> Option<Position> {
        self.position
    }

    /// Returns the path of the value or key; empty for the whole document.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns what is wrong, without where and without the hint.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns what to do about it, if that is known.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Returns the file, line and column, as the error displays them.
    pub fn place(&self) -> Option<String> {
        self.position.map(|position| format!("{}:{position}", self.file.display()))
    }

    /// Returns the error as it displays, without file, line and column.
    pub fn without_place(&self) -> String {
        let path = if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) };
        let hint = self.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        visible(&format!("{path}{}{hint}", self.message))
    }

    /// Returns the error with the line it is about and a caret under the place.
    ///
    /// For a terminal. Strings in the line are blanked out, as they may be secrets.
    pub fn render(&self) -> String {
        let Some((excerpt, position)) = self.excerpt.as_ref().zip(self.position) else {
            return self.to_string();
        };
        let number = position.line.to_string();
        let margin = " ".repeat(number.len());
        let space = " ".repeat(excerpt.before_caret);
        format!("{self}\n{margin} |\n{number} | {}\n{margin} | {space}^", excerpt.line)
    }
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", visible(&self.file.display().to_string()))?;
        if let Some(position) = self.position {
            write!(f, ":{position}")?;
        }
        write!(f, ": {}", self.without_place())
    }
}

impl fmt::Debug for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DocumentError({self})")
    }
}

impl std::error::Error for DocumentError {}

/// Writes control characters as Rust would: names from a file must not address the terminal.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { shown.extend(c.escape_debug()) } else { shown.push(c) }
    }
    shown
}
