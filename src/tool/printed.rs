//! The printed form of an error: its message and the facts that go with it.

use std::fmt::Write as _;

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

#[cfg(test)]
mod tests {
    use super::printed;

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
