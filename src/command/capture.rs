//! What is kept of a stream: its beginning and its end, however much comes in between.

use std::collections::VecDeque;

/// How many bytes of each stream are kept.
pub const BUDGET: usize = 512 * 1024;

/// Stands where bytes were left out.
const OMITTED: &str = "\n\n[the middle of the output was left out]\n\n";

/// Takes a stream in, piece by piece, and keeps half of the budget of its beginning and the other
/// half of its end.
#[derive(Debug)]
pub struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_room: usize,
    tail_room: usize,
    total: u64,
}

/// A stream as it was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    head: Vec<u8>,
    tail: Vec<u8>,
    /// How many bytes came.
    pub total: u64,
}

impl Capture {
    /// Makes one that keeps so many bytes.
    pub fn new(budget: usize) -> Self {
        let head_room = budget / 2;
        let tail_room = budget - head_room;
        Self { head: Vec::new(), tail: VecDeque::new(), head_room, tail_room, total: 0 }
    }

    /// Takes the next piece in.
    pub fn push(&mut self, piece: &[u8]) {
        self.total = self.total.saturating_add(piece.len() as u64);
        let (first, rest) = piece.split_at(piece.len().min(self.head_room - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.tail_room)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.tail_room);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// Returns what was kept.
    pub fn end(self) -> Captured {
        Captured { head: self.head, tail: self.tail.into(), total: self.total }
    }
}

impl Captured {
    /// Returns how many bytes were kept.
    pub fn retained(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// Returns whether bytes were left out.
    pub fn is_cut(&self) -> bool {
        self.total > self.retained() as u64
    }

    /// Returns all bytes that came, unless some were left out.
    pub fn whole(&self) -> Option<Vec<u8>> {
        (!self.is_cut()).then(|| [self.head.as_slice(), &self.tail].concat())
    }

    /// Returns the text, with a remark where bytes were left out.
    pub fn text(&self) -> String {
        match self.whole() {
            Some(whole) => String::from_utf8_lossy(&whole).into_owned(),
            None => {
                let [head, tail] =
                    [&self.head, &self.tail].map(|half| String::from_utf8_lossy(half));
                format!("{head}{OMITTED}{tail}")
            }
        }
    }
}

#[cfg(test)]
mod tests;
