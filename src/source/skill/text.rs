//! The text of a `SKILL.md`, read whole or not at all.

use std::fmt::Write as _;
use std::io::Read as _;

use sha2::{Digest as _, Sha256};

use crate::workspace::{FileError, Observation, ResolvedPath, Workspace};

/// The most bytes of a `SKILL.md`.
pub(super) const MOST_BYTES: u64 = 1024 * 1024;

/// A text, and what was seen of its file.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) text: String,
    pub(super) digest: String,
    pub(super) observation: Observation,
}

/// Why there is no text.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("SKILL.md does not exist or is no regular file")]
    Missing,
    #[error("SKILL.md is no valid UTF-8 text")]
    NotUtf8,
    #[error("SKILL.md has more than {MOST_BYTES} bytes")]
    TooLong,
    #[error("SKILL.md cannot be read")]
    Unreadable,
    /// It is a link that leads out.
    #[error("SKILL.md leads out of the folder of skills, or to something hidden in it")]
    Outside,
}

/// Reads the text at a path; never waits, whatever stands there.
pub(super) fn read(workspace: &Workspace, file: &ResolvedPath) -> Result<Read, ReadError> {
    let (bytes, observation) = bytes(workspace, file, MOST_BYTES)?;
    let digest = digest(&bytes);
    let text = String::from_utf8(bytes).map_err(|_| ReadError::NotUtf8)?;
    Ok(Read { text, digest, observation })
}

/// Reads all bytes of a file that has no more than `most`.
///
/// The path was found to be where it may be; a link that stands there by now leads elsewhere, and
/// is not followed.
pub(super) fn bytes(
    workspace: &Workspace,
    file: &ResolvedPath,
    most: u64,
) -> Result<(Vec<u8>, Observation), ReadError> {
    let opened = workspace.open_unlinked(file).map_err(|error| match error {
        FileError::NotFound { .. } | FileError::NotAFile { .. } => ReadError::Missing,
        FileError::Outside(_) => ReadError::Outside,
        FileError::Unreadable { .. } => ReadError::Unreadable,
    })?;
    let observation = opened.observation();
    let mut bytes = Vec::new();
    // One more than allowed, to tell a file that is too long from one that just fits.
    opened.take(most + 1).read_to_end(&mut bytes).map_err(|_| ReadError::Unreadable)?;
    if bytes.len() as u64 > most { Err(ReadError::TooLong) } else { Ok((bytes, observation)) }
}

/// Returns the digest of bytes, in the form of the protocol (SEP-2640).
pub(super) fn digest(bytes: &[u8]) -> String {
    let mut digest = "sha256:".to_owned();
    for byte in Sha256::digest(bytes) {
        // Writing to a string cannot fail.
        let _infallible = write!(digest, "{byte:02x}");
    }
    digest
}
