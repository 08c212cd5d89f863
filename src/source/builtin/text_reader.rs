//! UTF-8 text read piece by piece, however long the file or its lines are.
//!
//! Line ends are universal: `\r\n` and `\r` count as one `\n`. A byte order mark is text. Only one
//! chunk is in memory at a time.

use std::io::{self, ErrorKind, Read};

use tokio_util::sync::CancellationToken;

/// How much is read at once, in bytes.
const CHUNK_BYTES: usize = 32 * 1024;

/// Reads text from `R` until it is told to stop.
#[derive(Debug)]
pub(super) struct TextReader<'a, R> {
    source: R,
    stop: &'a CancellationToken,
    /// What was read and checked; everything before `at` is used up.
    text: String,
    at: usize,
    /// Where a chunk is read to. Its first `kept` bytes are the beginning of a character whose end
    /// has not been read yet.
    chunk: Box<[u8]>,
    kept: usize,
    /// How many bytes were read and checked, `text` included.
    checked: u64,
    invalid: bool,
    ended: bool,
    /// A `\r` was the last character used, so a `\n` now belongs to it.
    after_return: bool,
}

/// The next piece of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    /// Part of a line, never empty, without its end.
    Text(&'t str),
    /// The end of a line.
    LineEnd,
    /// The end of the text.
    End,
}

/// Why a text cannot be read on.
#[derive(Debug, thiserror::Error)]
pub(super) enum TextError {
    /// Here the file is no UTF-8.
    #[error("it is not UTF-8 text: the byte at offset {offset} is invalid")]
    Invalid {
        /// Where the invalid sequence starts, in bytes from the beginning.
        offset: u64,
    },
    /// The system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The call was cancelled.
    #[error("stopped")]
    Stopped,
}

impl<'a, R: Read> TextReader<'a, R> {
    pub(super) fn new(source: R, stop: &'a CancellationToken) -> Self {
        Self {
            source,
            stop,
            text: String::new(),
            at: 0,
            chunk: vec![0; CHUNK_BYTES].into_boxed_slice(),
            kept: 0,
            checked: 0,
            invalid: false,
            ended: false,
            after_return: false,
        }
    }

    /// Returns the next piece: at most `max_chars` (at least one) of the line, or its end.
    pub(super) fn piece(&mut self, max_chars: usize) -> Result<Piece<'_>, TextError> {
        self.load()?;
        let rest = &self.text[self.at..];
        let Some(first) = rest.bytes().next() else { return Ok(Piece::End) };
        if is_line_end(first) {
            self.at += 1;
            self.after_return = first == b'\r';
            return Ok(Piece::LineEnd);
        }
        let line = &rest[..rest.bytes().position(is_line_end).unwrap_or(rest.len())];
        let length = prefix(line, max_chars).len();
        let start = self.at;
        self.at += length;
        Ok(Piece::Text(&self.text[start..self.at]))
    }

    /// Returns whether there is anything further, readable or not.
    pub(super) fn more(&mut self) -> Result<bool, TextError> {
        match self.load() {
            Ok(()) => Ok(self.at < self.text.len()),
            Err(TextError::Invalid { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Sees to it that there is text to use, unless the end is reached.
    fn load(&mut self) -> Result<(), TextError> {
        loop {
            if self.after_return && self.at < self.text.len() {
                self.after_return = false;
                if self.text[self.at..].starts_with('\n') {
                    self.at += 1;
                }
            }
            if self.at < self.text.len() {
                return Ok(());
            }
            if self.invalid {
                return Err(TextError::Invalid { offset: self.checked });
            }
            if self.ended {
                return Ok(());
            }
            self.read_chunk()?;
        }
    }

    fn read_chunk(&mut self) -> Result<(), TextError> {
        if self.stop.is_cancelled() {
            return Err(TextError::Stopped);
        }
        let read = read_some(&mut self.source, &mut self.chunk[self.kept..])?;
        self.ended = read == 0;
        let filled = self.kept + read;
        let chunk = &self.chunk[..filled];
        self.text.clear();
        self.at = 0;
        self.kept = 0;
        match str::from_utf8(chunk) {
            Ok(text) => self.text.push_str(text),
            Err(error) => {
                let valid = error.valid_up_to();
                self.text.push_str(str::from_utf8(&chunk[..valid]).unwrap_or_default());
                if error.error_len().is_none() && !self.ended {
                    self.kept = filled - valid;
                    self.chunk.copy_within(valid..filled, 0);
                } else {
                    self.invalid = true;
                }
            }
        }
        self.checked += self.text.len() as u64;
        Ok(())
    }
}

fn read_some(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

fn is_line_end(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

/// Returns the first `max_chars` characters of a text.
fn prefix(text: &str, max_chars: usize) -> &str {
    // A character is at least one byte, so a short text need not be counted.
    if text.len() <= max_chars {
        return text;
    }
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

#[cfg(test)]
mod tests;
