//! How things are printed: an error with the facts that go with it, and JSON as Python writes it.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// Joins a message with its context: `message (Context: key='value', …)`.
///
/// Without facts it is the message alone. Values are quoted and escaped so that one error is
/// always one line.
pub fn printed(message: &str, facts: &[(&str, &str)]) -> String {
    let mut text = message.to_owned();
    for (index, (key, value)) in facts.iter().enumerate() {
        text.push_str(if index == 0 { " (Context: " } else { ", " });
        // Writing to a string cannot fail.
        _ = write!(text, "{key}={}", quoted(value));
    }
    if !facts.is_empty() {
        text.push(')');
    }
    text
}

/// Returns a text with the characters escaped that would show it as something it is not: those
/// that turn the direction of writing, and controls that JSON leaves as they are.
pub fn unmasked(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\u{61c}'
            | '\u{7f}'..='\u{9f}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}' => shown.extend(character.escape_unicode()),
            character => shown.push(character),
        }
    }
    shown
}

fn quoted(value: &str) -> String {
    let quote = if value.contains('\'') && !value.contains('"') { '"' } else { '\'' };
    let mut text = String::with_capacity(value.len() + 2);
    text.push(quote);
    for character in value.chars() {
        match character {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\\' => text.push_str("\\\\"),
            c if c == quote => {
                text.push('\\');
                text.push(c);
            }
            c if c.is_control() => _ = write!(text, "\\x{:02x}", u32::from(c)),
            c => text.push(c),
        }
    }
    text.push(quote);
    text
}

/// Writes JSON with a space after each comma and colon, and nothing else between.
pub fn spaced(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    match spaced_to(&mut bytes, value) {
        Ok(()) => String::from_utf8(bytes).unwrap_or_default(),
        // Maps whose keys are no strings are not among what we write.
        Err(_) => String::new(),
    }
}

/// Writes JSON with a space after each comma and colon to somewhere else than memory.
pub fn spaced_to(writer: impl std::io::Write, value: &impl Serialize) -> std::io::Result<()> {
    struct Spaced;

    impl Formatter for Spaced {
        fn begin_array_value<W: std::io::Write + ?Sized>(
            &mut self,
            writer: &mut W,
            first: bool,
        ) -> std::io::Result<()> {
            if first { Ok(()) } else { writer.write_all(b", ") }
        }

        fn begin_object_key<W: std::io::Write + ?Sized>(
            &mut self,
            writer: &mut W,
            first: bool,
        ) -> std::io::Result<()> {
            if first { Ok(()) } else { writer.write_all(b", ") }
        }

        fn begin_object_value<W: std::io::Write + ?Sized>(
            &mut self,
            writer: &mut W,
        ) -> std::io::Result<()> {
            writer.write_all(b": ")
        }
    }

    Ok(value.serialize(&mut Serializer::with_formatter(writer, Spaced))?)
}

#[cfg(test)]
mod tests {
    use super::{printed, unmasked};

    #[test]
    fn what_turns_the_direction_is_shown() {
        assert_eq!(unmasked("a\u{202e}b\u{9b}\n\t"), "a\\u{202e}b\\u{9b}\n\t");
    }

    #[test]
    fn facts_follow_the_message() {
        assert_eq!(printed("no", &[]), "no");
        assert_eq!(printed("bad", &[("pattern", "(")]), "bad (Context: pattern='(')");
        assert_eq!(
            printed("bad", &[("a", "it's"), ("b", "x\ny")]),
            "bad (Context: a=\"it's\", b='x\\ny')"
        );
    }
}
