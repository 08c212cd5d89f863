//! A message a line: the framing of JSON-RPC over streams, bounded and cancel-safe.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;
/// How much of either end of a line that is too long is kept.
const END_BYTES: usize = 256;

/// The lines of a stream.
#[derive(Debug)]
pub struct Lines<R> {
    input: BufReader<R>,
    /// What was read of the current line; kept here so that reading can be given up and taken up.
    line: Vec<u8>,
    /// Whether the current line is too long, so that the rest of it is skipped.
    skipping: bool,
    /// The first and the last bytes of the line that was skipped last.
    head: Vec<u8>,
    tail: Vec<u8>,
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
        let (head, tail) = (Vec::new(), Vec::new());
        Self { input, line: Vec::new(), skipping: false, head, tail, limit }
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
                self.head = std::mem::take(&mut self.line);
                self.tail = self.head[self.head.len().saturating_sub(END_BYTES)..].to_vec();
                self.head.truncate(END_BYTES);
                self.head.shrink_to_fit();
            }
            if self.skipping {
                let missing = END_BYTES.saturating_sub(self.head.len()).min(content);
                self.head.extend_from_slice(&available[..missing]);
                self.tail.extend_from_slice(&available[content.saturating_sub(END_BYTES)..content]);
                let surplus = self.tail.len().saturating_sub(END_BYTES);
                drop(self.tail.drain(..surplus));
            } else {
                self.line.extend_from_slice(&available[..content]);
            }
            self.input.consume(end.map_or(content, |end| end + 1));
            if end.is_some() {
                return Ok(Some(self.take()));
            }
        }
    }

    /// Returns the first and the last bytes of the line that was too long last.
    pub fn ends(&self) -> (&[u8], &[u8]) {
        (&self.head, &self.tail)
    }

    fn take(&mut self) -> Line {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.skipping) {
            return Line::TooLong;
        }
        // In place: a long line is not to be there twice.
        line.truncate(line.trim_ascii_end().len());
        let blank = line.len() - line.trim_ascii_start().len();
        drop(line.drain(..blank));
        Line::Whole(line)
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

    #[tokio::test]
    async fn both_ends_of_a_line_that_is_too_long_are_known() {
        for step in [1, 7, 100_000] {
            let text = format!("head{}tail\nnext\n", "x".repeat(90_000));
            let (mut near, far) = tokio::io::duplex(step);
            let write = async {
                tokio::io::AsyncWriteExt::write_all(&mut near, text.as_bytes()).await.unwrap();
            };
            let read = async {
                let mut lines = Lines::new(far, 5);
                assert_eq!(lines.next().await.unwrap(), Some(Line::TooLong));
                let (head, tail) = lines.ends();
                assert!(head.starts_with(b"headxxx") && tail.ends_with(b"xxxtail"), "{step}");
                assert!(head.len() == 256 && tail.len() == 256, "{step}");
                assert_eq!(lines.next().await.unwrap(), Some(whole("next")));
            };
            tokio::join!(write, read);
        }
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
