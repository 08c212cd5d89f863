//! Server-sent events, one after another, each bounded.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use http_body_util::BodyDataStream;
use tokio::io::AsyncRead;
use tokio_util::io::StreamReader;

use crate::lines::{Line, Lines};

/// How much longer than its data a line may be.
const FIELD: usize = 16;

/// The events of a response.
pub(super) struct Events {
    lines: Lines<Pin<Box<dyn AsyncRead + Send>>>,
    limit: usize,
    first: bool,
    /// What was read of the current event; kept here so that reading can be given up and taken up.
    event: Event,
    has_data: bool,
    /// What is left of the current event belongs to one that was too long.
    skipping: bool,
}

/// What a stream has next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// An event.
    Event(Event),
    /// One that was longer than the limit; [`Events::ends`] has what is known of it.
    TooLong,
}

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// What it is called; empty for an ordinary message.
    pub(super) kind: String,
    pub(super) data: String,
    /// What a stream that breaks off here is taken up from.
    pub(super) id: Option<String>,
    /// How long to wait before that.
    pub(super) retry: Option<Duration>,
}

impl Events {
    /// Reads the events of a response, each of at most `limit` bytes.
    pub(super) fn new(response: reqwest::Response, limit: usize) -> Self {
        use futures_util::TryStreamExt as _;
        let body = BodyDataStream::new(reqwest::Body::from(response));
        Self::of(StreamReader::new(body.map_err(std::io::Error::other)), limit)
    }

    fn of(input: impl AsyncRead + Send + 'static, limit: usize) -> Self {
        let lines = Lines::new(Box::pin(input) as Pin<Box<dyn AsyncRead + Send>>, limit + FIELD);
        Self {
            lines,
            limit,
            first: true,
            event: Event::default(),
            has_data: false,
            skipping: false,
        }
    }

    /// Returns both ends of the event that was too long.
    pub(super) fn ends(&self) -> (&[u8], &[u8]) {
        let (head, tail) = self.lines.ends();
        (head.strip_prefix(b"data:").unwrap_or(head), tail)
    }

    /// Returns what comes next; nothing at the end of the stream, or where it breaks.
    ///
    /// Cancel-safe: what was read stays.
    pub(super) async fn next(&mut self) -> Option<Item> {
        loop {
            // Lines are in memory by thousands: a flood of them must not keep this task busy.
            tokio::task::consume_budget().await;
            let line = self.lines.next().await.ok()??;
            let is_first = std::mem::take(&mut self.first);
            let line = match line {
                Line::Whole(line) => line,
                Line::TooLong => match self.skip() {
                    Some(item) => return Some(item),
                    None => continue,
                },
            };
            let line = String::from_utf8_lossy(&line);
            let mut line = line.as_ref();
            if is_first {
                line = line.strip_prefix('\u{feff}').unwrap_or(line);
            }
            if let Some(item) = self.add(line) {
                return Some(item);
            }
        }
    }

    /// Adds a line to the current event; an empty one ends it.
    fn add(&mut self, line: &str) -> Option<Item> {
        if line.is_empty() {
            self.skipping = false;
            let says = self.has_data || self.event.id.is_some() || self.event.retry.is_some();
            let event = self.take();
            return says.then_some(Item::Event(event));
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            _ if self.skipping => {}
            "data" if self.event.data.len() + value.len() > self.limit => return self.skip(),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.event.kind),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "retry" => self.event.retry = value.parse().ok().map(Duration::from_millis),
            // A comment keeps the connection alive; other fields mean nothing.
            _ => {}
        }
        None
    }

    /// Gives up the current event; that is told once, however much of it there still is.
    fn skip(&mut self) -> Option<Item> {
        self.take();
        (!std::mem::replace(&mut self.skipping, true)).then_some(Item::TooLong)
    }

    fn take(&mut self) -> Event {
        self.has_data = false;
        std::mem::take(&mut self.event)
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("limit", &self.limit).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &'static str, limit: usize) -> Vec<Item> {
        let mut events = Events::of(text.as_bytes(), limit);
        let mut read = Vec::new();
        while let Some(item) = events.next().await {
            read.push(item);
        }
        read
    }

    fn event(kind: &str, data: &str) -> Event {
        Event { kind: kind.to_owned(), data: data.to_owned(), ..Event::default() }
    }

    #[tokio::test]
    async fn events_are_read_as_they_are_written() {
        let text = "\u{feff}data: {\"a\":1}\n\n: alive\n\nevent:endpoint\r\ndata:/m\r\n\r\n\
                    data: a\ndata:  b\nunknown: x\nnonsense\n\nid: 7\nretry: 250\ndata\n\n\
                    retry: soon\n\nevent: lonely\n\ndata: cut off";
        let primed = Event {
            id: Some("7".to_owned()),
            retry: Some(Duration::from_millis(250)),
            ..Event::default()
        };
        let expected =
            [event("", "{\"a\":1}"), event("endpoint", "/m"), event("", "a\n b"), primed];
        assert_eq!(read(text, 100).await, expected.map(Item::Event));
    }

    #[tokio::test]
    async fn an_event_that_is_too_long_is_skipped() {
        let text = "data: 12345678\n\ndata: ok\n\ndata: 1234\ndata: 5678\n\ndata: 9012345678901234567890\n\ndata: ok\n\n";
        let ok = Item::Event(event("", "ok"));
        let items = read(text, 5).await;
        assert_eq!(items, [Item::TooLong, ok.clone(), Item::TooLong, Item::TooLong, ok.clone()]);
        // What is left of one is none of its own, and is told of once.
        let text = "data: 123456\nid: 1\ndata\ndata: 123456\n: 123456789012345678901234567890\n\ndata: ok\n\n";
        assert_eq!(read(text, 5).await, [Item::TooLong, ok.clone()]);
        let text = ": 123456789012345678901234567890\ndata: 1\n\ndata: ok\n\n";
        assert_eq!(read(text, 5).await, [Item::TooLong, ok.clone()]);
        // Only what begins the stream may have a mark before it.
        let text = ": 123456789012345678901234567890\n\n\u{feff}data: 1\n\ndata: ok\n\n";
        assert_eq!(read(text, 5).await, [Item::TooLong, ok]);
    }
}
