//! Any text as a pattern, and lines to search.

use super::*;
use crate::fuzz::{spell, target};

const WORDS: &[&str] = &[
    "(",
    ")",
    "(?:",
    "(?=",
    "(?!",
    "(?<=",
    "(?<!",
    "(?P<a>",
    "(?P=a)",
    "(?(1)",
    "(?(a)",
    "(?>",
    "(?i)",
    "(?x)",
    "(?s)",
    "(?m)",
    "(?a)",
    "(?i:",
    "(?-i:",
    "(?#",
    "|",
    "*",
    "+",
    "?",
    "*?",
    "++",
    "{2}",
    "{1,3}",
    "{,2}",
    "{3,}",
    "{2,1}",
    "{1000}",
    "[",
    "]",
    "[^",
    "[]",
    "[a-z]",
    "-",
    "^",
    "$",
    ".",
    "\\b",
    "\\B",
    "\\d",
    "\\D",
    "\\w",
    "\\W",
    "\\s",
    "\\S",
    "\\A",
    "\\Z",
    "\\1",
    "\\2",
    "\\01",
    "\\x41",
    "\\u00e9",
    "\\U0001F600",
    "\\n",
    "\\",
    "a",
    "b",
    "é",
    "İ",
    "ß",
    "ſ",
    "\u{345}",
    "²",
    "中",
    "\n",
    "\0",
    "[[:alpha:]]",
    "&&",
    "||",
    "--",
    "~~",
    "\\N{BULLET}",
    "#",
    " ",
];

const LINES: &[&str] = &[
    "",
    "a",
    "ab",
    "aab",
    "aaa bbb",
    "abcabc",
    "é",
    "İi",
    "ß ss",
    "²3",
    "中文 a",
    "\t",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!",
    "The quick (brown) fox: [1, 2] {3}",
    "a\u{345}b",
    "x^$|\\",
];

#[test]
fn pattern() {
    target("pattern", 16 * 1024, |input| check(&spell(input, WORDS)));
}

fn check(text: &str) {
    let pattern = match Pattern::compile(text) {
        Ok(pattern) => pattern,
        Err(PatternError::Invalid { at, reason }) => {
            assert!(at <= text.chars().count(), "{reason} at {at}");
            return;
        }
        Err(PatternError::Unsupported { construct }) => {
            assert!(construct.len() < 300, "{construct}");
            return;
        }
    };
    for line in LINES.iter().copied().chain([text]) {
        let found = pattern.is_match(line);
        let mut start = 0;
        while let Ok(Some(at)) = pattern.find_from(line, start) {
            assert!(at.start >= start && line.get(at.clone()).is_some(), "{at:?} in {line:?}");
            let next = line[at.end..].chars().next().map_or(1, char::len_utf8);
            start = if at.is_empty() { at.end + next } else { at.end };
        }
        if line.is_ascii() && !line.is_empty() {
            let first = pattern.find_from(line, 0);
            assert_eq!(first.map(|first| first.is_some()), found, "{line:?}");
        }
    }
}
