//! Any bytes as a stream of server-sent events.

use tokio::io::AsyncReadExt as _;

use super::*;
use crate::fuzz::{block_on, spell, target};

const LIMIT: usize = 40;

const WORDS: &[&str] = &[
    "data: ",
    "data:",
    "data",
    "data: {\"jsonrpc\":\"2.0\"}",
    "event: ",
    "event: endpoint",
    "id: ",
    "id",
    "retry: ",
    "retry: 10",
    ":",
    ": ping",
    "\n",
    "\n\n",
    "\r\n",
    "\r\n\r\n",
    "\r",
    "\u{feff}",
    "é",
    "\u{2028}",
    "\0",
    "18446744073709551616",
    "-1",
    " ",
    "12345678901234567890",
];

#[test]
fn events() {
    target("events", 32 * 1024, check);
}

fn check(input: &[u8]) {
    // Bytes that are no UTF-8 come at the end.
    let text = [spell(input, WORDS).as_bytes(), b"\n", input].concat();
    let items = read(&text, text.len());
    for item in &items {
        let Item::Event(event) = item else { continue };
        // Bytes that are no UTF-8 become three each.
        assert!(event.data.len() <= 3 * (LIMIT + 1), "{event:?}");
        let id = event.id.as_deref().unwrap_or_default();
        assert!(!event.kind.contains('\n') && !id.contains(['\n', '\0']), "{event:?}");
    }
    // However the bytes come, with whatever comments between them, the events are the same.
    assert_eq!(read(&text, input.len() / 2), items);
    if text.ends_with(b"\n") {
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        let commented: Vec<&[u8]> = lines.flat_map(|line| [line, b": a comment\n"]).collect();
        assert_eq!(read(&commented.concat(), 0), items);
    }
}

fn read(text: &[u8], cut: usize) -> Vec<Item> {
    let (one, other) = text.split_at(cut);
    let input = std::io::Cursor::new(one.to_vec()).chain(std::io::Cursor::new(other.to_vec()));
    let mut events = Events::of(input, LIMIT);
    block_on(async {
        let mut items = Vec::new();
        while let Some(item) = events.next().await {
            assert!(events.ends().0.len() <= 256 && events.ends().1.len() <= 256);
            items.push(item);
        }
        items
    })
}
