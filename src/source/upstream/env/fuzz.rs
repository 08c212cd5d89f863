//! Any text as a value with expressions, and as a dotenv file.

use super::*;
use crate::fuzz::{spell, target};

const WORDS: &[&str] = &[
    "${",
    "}",
    ":-",
    "${TOKEN}",
    "${env:TOKEN}",
    "${NONE:-",
    "${EMPTY",
    "${workspaceFolder",
    "${input:",
    "export ",
    "A=",
    "B",
    "'",
    "\"",
    "\\",
    "\\n",
    "\n",
    "\r\n",
    "\r",
    " #",
    "#",
    "=",
    " ",
    "\t",
    "\u{b}",
    "é",
    "\u{a0}",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "\0",
    "$",
];

/// A value that no message may say.
const VALUE: &str = "v~lue";

#[test]
fn expressions() {
    target("expressions", 64 * 1024, |input| check_expressions(&spell(input, WORDS)));
}

fn check_expressions(text: &str) {
    let variables: BTreeMap<String, String> = [("TOKEN", VALUE), ("EMPTY", ""), ("B", "${TOKEN}")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let expanded = expand(text, &variables);
    match &expanded {
        Ok(_) if !text.contains("${") => assert_eq!(expanded.as_deref(), Ok(text)),
        Ok(expanded) => assert!(expanded.len() <= text.len() * 2),
        Err(error) => {
            let shown = error.to_string();
            assert!(!shown.contains(VALUE) || text.contains(VALUE), "{shown}");
            assert!(!shown.chars().any(char::is_control), "{shown:?}");
        }
    }
    // An expression stands for itself whatever stands around it.
    if let Some((before, after)) = text.split_once("${TOKEN}")
        && !before.contains("${")
    {
        let after = expand(after, &variables);
        assert_eq!(expanded, after.map(|after| format!("{before}{VALUE}{after}")));
    }
}

#[test]
fn dotenv_file() {
    target("dotenv_file", 64 * 1024, |input| check_dotenv(&spell(input, WORDS)));
}

fn check_dotenv(text: &str) {
    let parsed = dotenv::parse(text);
    let lines = text.split('\n').count();
    assert!(parsed.skipped_lines.is_sorted_by(|one, next| one < next));
    assert!(parsed.skipped_lines.iter().all(|line| (1..=lines).contains(line)));
    for (name, value) in &parsed.entries {
        assert!(!name.is_empty() && text.contains(name.as_str()), "{name:?}");
        assert!(value.as_ref().is_none_or(|value| value.expose().len() <= text.len()));
    }
    // A line more at the top changes nothing but numbers.
    if !text.starts_with('\u{feff}') {
        let shifted = dotenv::parse(&format!("# a comment\n{text}"));
        assert_eq!(shifted.entries, parsed.entries);
        let numbers: Vec<usize> = parsed.skipped_lines.iter().map(|line| line + 1).collect();
        assert_eq!(shifted.skipped_lines, numbers);
    }
    // What was read can be written so that it is read again.
    let written: Vec<String> = parsed
        .entries
        .iter()
        .map(|(name, value)| {
            let quoted =
                |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"));
            let name = if name.contains('\'') { name.clone() } else { format!("'{name}'") };
            value
                .as_ref()
                .map_or(name.clone(), |value| format!("{name}={}", quoted(value.expose())))
        })
        .collect();
    let again = dotenv::parse(&format!("\n{}", written.join("\n")));
    assert_eq!(again.entries, parsed.entries);
    assert!(again.skipped_lines.is_empty());
}
