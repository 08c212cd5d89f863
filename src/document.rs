//! A configuration file as a tree that knows its lines.
//!
//! JSON5, TOML and YAML come to the same [`Node`]s, so that whoever reads a file, by hand or
//! through serde, can say of every mistake where it is: file, line, column and path. Reading is
//! strict: a boolean is only a boolean, a number only a finite number, a key is given once. No
//! message repeats a value, since files of this kind hold secrets; of the line that is shown with
//! it, they are [masked](mask).

pub mod decode;
pub mod error;
pub mod hint;
pub mod node;
pub mod path;
pub mod secret;

mod gather;
mod json5;
mod mask;
mod source;
mod toml;
mod yaml;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;

pub use self::error::DocumentError;
pub use self::node::{Key, Kind, Node, Position};
use self::source::Source;

/// The largest file that is read, in bytes.
pub const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// How deep a document may nest.
pub const MAX_DEPTH: usize = 128;

/// A parsed configuration file.
#[derive(Clone, Debug)]
pub struct Document {
    source: Arc<Source>,
    /// The top of the tree.
    pub root: Node,
}

/// The languages a document can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON5, which JSON and JSONC are part of.
    Json5,
    /// TOML.
    Toml,
    /// YAML as `PyYAML` reads it: one document, with the words `yes`, `no`, `on` and `off`.
    Yaml,
}

impl Document {
    /// Parses a text; `path` is for messages only.
    pub fn parse(
        path: impl Into<PathBuf>,
        format: Format,
        text: impl Into<String>,
    ) -> Result<Self, DocumentError> {
        let source = Arc::new(Source::new(path.into(), format, text.into()));
        let root = match format {
            Format::Json5 => json5::parse(&source),
            Format::Toml => toml::parse(&source),
            Format::Yaml => yaml::parse(&source),
        }?;
        Ok(Self { source, root })
    }

    /// Parses bytes, which must be UTF-8 and may begin with a byte order mark.
    pub fn parse_bytes(
        path: impl Into<PathBuf>,
        format: Format,
        bytes: Vec<u8>,
    ) -> Result<Self, DocumentError> {
        match String::from_utf8(bytes) {
            Ok(text) => Self::parse(path, format, text),
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned();
                let source = Source::new(path.into(), format, text);
                let position = source.position(source.text().len());
                Err(source.error(position, "the file is not UTF-8"))
            }
        }
    }

    /// Reads and parses a file.
    pub fn open(path: &Path, format: Format) -> Result<Self, DocumentError> {
        let bytes = read(path).map_err(|error| {
            DocumentError::of_file(path, format!("the file cannot be read: {error}"))
        })?;
        Self::parse_bytes(path, format, bytes)
    }

    /// Returns the path the document was parsed under.
    pub fn path(&self) -> &Path {
        self.source.path()
    }

    /// Returns the language it is written in.
    pub fn format(&self) -> Format {
        self.source.format()
    }

    /// Decodes the whole document.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, DocumentError> {
        self.decode_node(&self.root, "")
    }

    /// Decodes one node, which stands at `path` in the document.
    pub fn decode_node<T: DeserializeOwned>(
        &self,
        node: &Node,
        path: &str,
    ) -> Result<T, DocumentError> {
        decode::decode(node, path).map_err(|error| error.at(&self.source, node.position))
    }

    /// Makes an error about the place `position`, which has the name `path`.
    ///
    /// A [`Node`] and a [`Key`] each know their position.
    pub fn error_at(
        &self,
        position: Position,
        path: impl Into<String>,
        message: impl Into<String>,
    ) -> DocumentError {
        self.source.error(position, message).with_path(path)
    }

    /// Makes an error about the place that `path` names, or the nearest one above it that exists.
    ///
    /// For what is found wrong after decoding, when the nodes are out of sight.
    pub fn error_in(&self, path: &str, message: impl Into<String>) -> DocumentError {
        self.error_at(path::locate(&self.root, path), path, message)
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than allowed, to tell a file that is too large from one that just fits.
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("it is larger than {MAX_BYTES} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
