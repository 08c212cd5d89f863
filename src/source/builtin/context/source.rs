//! What a reference stands for: a text at hand, or a file that is read in pages.

use std::io::{self, Read as _};
use std::sync::Arc;

use super::{CONTEXT_REPRESENTATION_UNAVAILABLE, CONTEXT_SOURCE_UNAVAILABLE};
use crate::artifact::page::Marks;
use crate::artifact::{ArtifactStore, Key, Page};
use crate::session::record::{Part, Record};
use crate::tool::{Artifact, Failure};
use crate::workspace::Workspace;

/// The longest file that is searched or that a value is taken out of, in bytes.
const LONGEST: u64 = 64 << 20;

/// A reference: `message:N`, or `result:N:M` for block M of message N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reference {
    Message(u64),
    Result(u64, usize),
}

/// Which form of a result is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Representation {
    /// What a model got, whole.
    #[default]
    Text,
    /// The native or published file.
    Raw,
}

/// Something to read in pages of characters.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Text(Arc<str>),
    /// A file of ours.
    Kept(Key),
    /// A file that a tool named, in the workspace.
    Named(String),
}

/// Where sources are read from.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    pub(super) session: String,
    pub(super) artifacts: Arc<ArtifactStore>,
    pub(super) workspace: Arc<Workspace>,
}

impl Reference {
    /// Reads a reference; a number that is too large leads nowhere, like any other.
    pub(super) fn parse(text: &str) -> Self {
        let number = |text: &str| text.parse().unwrap_or(u64::MAX);
        match text.strip_prefix("result:").and_then(|rest| rest.split_once(':')) {
            Some((index, block)) => {
                Self::Result(number(index), usize::try_from(number(block)).unwrap_or(usize::MAX))
            }
            None => Self::Message(number(text.strip_prefix("message:").unwrap_or_default())),
        }
    }

    /// Finds what it stands for in a record.
    pub(super) fn find(
        self,
        record: &Record,
        representation: Representation,
    ) -> Result<Source, Failure> {
        let (Self::Message(index) | Self::Result(index, _)) = self;
        let Some(message) = record.get(index) else {
            return Err(unavailable("the reference is not in this session, or not any more"));
        };
        let Self::Result(_, block) = self else {
            return match representation {
                Representation::Raw => Err(no_form("a message reference has no raw form")),
                Representation::Text => Ok(Source::Text(message.render().into())),
            };
        };
        let Some(Part::Result { text, artifact, .. }) = message.blocks.get(block) else {
            return Err(unavailable("the reference does not lead to a tool result"));
        };
        match (representation, artifact.as_deref()) {
            (Representation::Raw, Some(Artifact { uri, path, .. })) => Ok(file(uri.as_ref(), path)),
            (Representation::Raw, None) => Err(no_form("this result has no native artifact")),
            (Representation::Text, Some(Artifact { text_uri, text_path: Some(path), .. })) => {
                Ok(file(text_uri.as_ref(), path))
            }
            (Representation::Text, _) => Ok(Source::Text(text.as_str().into())),
        }
    }
}

fn file(uri: Option<&String>, path: &str) -> Source {
    match uri.and_then(|uri| Key::parse(uri)) {
        Some(key) => Source::Kept(key),
        None => Source::Named(path.to_owned()),
    }
}

impl Source {
    /// Reads a page; blocks.
    pub(super) fn page(&self, reader: &Reader, offset: u64, limit: usize) -> Result<Page, Failure> {
        match self {
            Self::Text(text) => Ok(page_of(text, offset, limit)),
            Self::Kept(key) => {
                reader.artifacts.page(&reader.session, key, offset, limit).map_err(unreadable)
            }
            Self::Named(path) => {
                let mut file = reader.named(path)?;
                Marks::default().page(&mut file, offset, limit).map_err(unreadable)
            }
        }
    }

    /// Reads all of it as JSON; blocks.
    pub(super) fn json(&self, reader: &Reader) -> Result<serde_json::Value, Failure> {
        serde_json::from_slice(&self.bytes(reader)?).map_err(|error| {
            no_form(&format!("a pointer leads into JSON, and this is none: {error}"))
        })
    }

    /// Reads all of it as text; blocks.
    pub(super) fn text(&self, reader: &Reader) -> Result<Arc<str>, Failure> {
        if let Self::Text(text) = self {
            return Ok(Arc::clone(text));
        }
        let text = String::from_utf8(self.bytes(reader)?);
        text.map(Arc::from).map_err(|_| unreadable(io::ErrorKind::InvalidData.into()))
    }

    fn bytes(&self, reader: &Reader) -> Result<Vec<u8>, Failure> {
        let bytes = match self {
            Self::Text(text) => text.as_bytes().to_vec(),
            Self::Kept(key) => {
                let read = reader.artifacts.bytes(&reader.session, key, 0, LONGEST + 1);
                read.map_err(unreadable)?.0
            }
            Self::Named(path) => {
                let mut bytes = Vec::new();
                let mut file = reader.named(path)?.take(LONGEST + 1);
                file.read_to_end(&mut bytes).map_err(unreadable)?;
                bytes
            }
        };
        if bytes.len() as u64 > LONGEST {
            let message = "it has more than 64 MiB, and can only be read in pages";
            return Err(no_form(message));
        }
        Ok(bytes)
    }
}

impl Reader {
    fn named(&self, path: &str) -> Result<crate::workspace::OpenFile, Failure> {
        let gone = || unreadable(io::ErrorKind::NotFound.into());
        let path = self.workspace.resolve(path).map_err(|_| gone())?;
        self.workspace.open_file(&path).map_err(|_| gone())
    }
}

/// Takes a page of a text at hand.
pub(super) fn page_of(text: &str, offset: u64, limit: usize) -> Page {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let Some((from, _)) = text.char_indices().nth(start) else {
        return Page { content: String::new(), next_offset: offset, has_more: false };
    };
    let rest = &text[from..];
    let end = rest.char_indices().nth(limit).map(|(end, _)| end);
    let content = rest[..end.unwrap_or(rest.len())].to_owned();
    let next_offset = offset + content.chars().count() as u64;
    Page { content, next_offset, has_more: end.is_some() }
}

pub(super) fn unavailable(message: &str) -> Failure {
    Failure::new(CONTEXT_SOURCE_UNAVAILABLE, message)
}

pub(super) fn no_form(message: &str) -> Failure {
    Failure::new(CONTEXT_REPRESENTATION_UNAVAILABLE, message)
}

/// What was kept cannot be read; the part that was shown is no answer instead.
fn unreadable(error: io::Error) -> Failure {
    let why = match error.kind() {
        io::ErrorKind::NotFound => "it is not there any more".to_owned(),
        io::ErrorKind::InvalidData => "it is no text; read it as a resource".to_owned(),
        _ => error.to_string(),
    };
    unavailable(&format!("the saved result cannot be read: {why}"))
}
