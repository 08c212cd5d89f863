//! A message a line: the framing of JSON-RPC over streams, bounded and cancel-safe.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;

/// The lines of a stream.
#[derive(Debug)]
pub struct Lines<R> {
    input: BufReader<R>,
    /// What was read of the current line; kept here so that reading can be given up and taken up.
    line: Vec<u8>,
    /// Whether the current line is too long, so that the rest of it is skipped.
    skipping: bool,
    limit: usize,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// The line without white space around it; may be empty.
    Whole(Vec<u8>),
    /// It was longer than the limit and was skipped.
    TooLong,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Reads lines of at most `limit` bytes, their end not counted.
    pub fn new(input: R, limit: usize) -> Self {
        let input = BufReader::with_capacity(READ_BYTES, input);
        Self { input, line: Vec::new(), skipping: false, limit }
    }

    /// Reads the next line; nothing at the end of the stream. A last line needs no end.
    ///
    /// Cancel-safe: what was read stays.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                return Ok((!self.line.is_empty() || self.skipping).then(|| self.take()));
            }
            let end = memchr::memchr(b'\n', available);
            let content = end.unwrap_or(available.len());
            if !self.skipping && self.line.len() + content > self.limit {
                self.skipping = true;
                self.line = Vec::new();
            }
            if !self.skipping {
                self.line.extend_from_slice(&available[..content]);
            }
            self.input.consume(end.map_or(content, |end| end + 1));
            if end.is_some() {
                return Ok(Some(self.take()));
            }
        }
    }

    fn take(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.skipping) {
            Line::TooLong
        } else {
            Line::Whole(line.trim_ascii().to_vec())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    async fn all(bytes: &[u8], limit: usize) -> Vec<Line> {
        let mut lines = Lines::new(bytes, limit);
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            read.push(line);
        }
        read
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.into())
    }

    #[tokio::test]
    async fn lines_are_bounded_and_the_next_one_is_read() {
        assert_eq!(all(b"", 3).await, []);
        assert_eq!(all(b"a\n\r\nb", 3).await, [whole("a"), whole(""), whole("b")]);
        assert_eq!(all(b"abc\nabcd\nx\n", 3).await, [whole("abc"), Line::TooLong, whole("x")]);
        assert_eq!(all(b"abcd", 3).await, [Line::TooLong]);
    }

    proptest! {
        #[test]
        fn every_line_is_read_however_it_is_split(lines in proptest::collection::vec("[a-z]{0,9}", 0..6), step in 1usize..7) {
            let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let read = runtime.block_on(async {
                let (mut near, far) = tokio::io::duplex(step);
                let write = async {
                    tokio::io::AsyncWriteExt::write_all(&mut near, text.as_bytes()).await.unwrap();
                    drop(near);
                };
                let read = async {
                    let mut lines = Lines::new(far, 5);
                    let mut read = Vec::new();
                    while let Some(line) = lines.next().await.unwrap() {
                        read.push(line);
                    }
                    read
                };
                tokio::join!(write, read).1
            });
            let expected: Vec<Line> =
                lines.iter().map(|line| if line.len() > 5 { Line::TooLong } else { whole(line) }).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
