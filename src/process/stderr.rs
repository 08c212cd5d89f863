//! What a child says on standard error: to the log, and the last lines kept.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio_util::sync::CancellationToken;

/// How many lines are kept.
const KEPT_LINES: usize = 50;
/// How many bytes of a line are kept; the rest is dropped.
const LINE_BYTES: usize = 4096;

/// The last lines of a child's standard error.
#[derive(Clone, Debug, Default)]
pub(super) struct LastLines {
    lines: Arc<Mutex<VecDeque<String>>>,
    ended: CancellationToken,
}

impl LastLines {
    /// Returns the lines, oldest first.
    pub(super) fn get(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }

    /// Says that nothing is read here.
    pub(super) fn end(&self) {
        self.ended.cancel();
    }

    /// Waits until everything was read.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    fn push(&self, name: &str, line: String) {
        tracing::debug!(process.name = name, "{line}");
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

/// Reads `stream` to its end.
pub(super) async fn follow(name: String, mut stream: impl AsyncRead + Unpin, last: LastLines) {
    let _ended = last.ended.clone().drop_guard();
    let mut splitter = Splitter::default();
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut chunk).await {
        splitter.feed(&chunk[..count], |line| last.push(&name, line));
    }
    splitter.finish(|line| last.push(&name, line));
}

/// Cuts a stream into lines of bounded length.
#[derive(Debug, Default)]
struct Splitter {
    line: Vec<u8>,
}

impl Splitter {
    fn feed(&mut self, chunk: &[u8], mut line: impl FnMut(String)) {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            let room = LINE_BYTES - self.line.len();
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            if ends {
                line(self.take());
            }
        }
    }

    fn finish(mut self, mut line: impl FnMut(String)) {
        if !self.line.is_empty() {
            line(self.take());
        }
    }

    fn take(&mut self) -> String {
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        let text = String::from_utf8_lossy(line).into_owned();
        self.line.clear();
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT_LINES, LINE_BYTES, LastLines, Splitter, follow};

    fn split(chunks: &[&[u8]]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut splitter = Splitter::default();
        for chunk in chunks {
            splitter.feed(chunk, |line| lines.push(line));
        }
        splitter.finish(|line| lines.push(line));
        lines
    }

    #[test]
    fn lines_are_found_whatever_the_chunks() {
        assert_eq!(split(&[b"one\ntw", b"o\r\n", b"\nthree"]), ["one", "two", "", "three"]);
        assert_eq!(split(&[b"\xff\n"]), ["\u{fffd}"]);
        assert!(split(&[]).is_empty());
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_one_whole() {
        let lines = split(&[&vec![b'x'; LINE_BYTES - 1], &[b'y'; 10], b"\nnext\n"]);
        assert_eq!(lines.iter().map(String::len).collect::<Vec<_>>(), [LINE_BYTES, 4]);
    }

    #[tokio::test]
    async fn the_last_lines_are_kept() {
        let last = LastLines::default();
        let lines: Vec<_> = (0..KEPT_LINES + 7).map(|number| number.to_string()).collect();
        let text = lines.join("\n");
        follow("test".to_owned(), text.as_bytes(), last.clone()).await;
        last.ended().await;
        let lines = last.get();
        assert_eq!((lines.len(), lines[0].as_str()), (KEPT_LINES, "7"));
    }
}
