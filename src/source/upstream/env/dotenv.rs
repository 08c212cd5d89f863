//! Dotenv files, as `python-dotenv` reads them without interpolation.
//!
//! A line is `NAME=value`, `export NAME=value` or `NAME` alone; `#` begins a comment. A value in
//! single quotes is taken as it is but for `\'` and `\\`; one in double quotes has `\n` and the
//! like; both may go over several lines. A bare value ends at ` #` or with the line. Nothing in a
//! value refers to another variable: that is left to [expressions](super::expand).

use crate::source::upstream::secret::Secret;

/// What a dotenv file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dotenv {
    /// Names and values in order; a name may have none, and may come again.
    pub entries: Vec<(String, Option<Secret>)>,
    /// The lines that could not be read, by number from 1.
    pub skipped_lines: Vec<usize>,
}

/// Reads a dotenv file.
pub fn parse(text: &str) -> Dotenv {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut dotenv = Dotenv { entries: Vec::new(), skipped_lines: Vec::new() };
    let mut rest = text;
    // How far lines are counted, and the number of the one there.
    let (mut counted, mut line) = (0, 1);
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return dotenv;
        }
        if rest.starts_with('#') {
            rest = after_line(rest);
            continue;
        }
        match entry(rest) {
            Some((name, value, after)) => {
                dotenv.entries.push((name, value));
                rest = after;
            }
            None => {
                let read = text.len() - rest.len();
                line += text[counted..read].matches('\n').count();
                counted = read;
                dotenv.skipped_lines.push(line);
                rest = after_line(rest);
            }
        }
    }
}

/// Reads one entry; what comes after it is the rest of the file.
fn entry(text: &str) -> Option<(String, Option<Secret>, &str)> {
    let text = match text.strip_prefix("export") {
        Some(after) if after.starts_with(BLANKS) => after.trim_start_matches(BLANKS),
        _ => text,
    };
    let (name, rest) = name(text)?;
    let rest = rest.trim_start_matches(BLANKS);
    let (value, rest) = match rest.strip_prefix('=') {
        None => (None, rest),
        Some(rest) => {
            let value = rest.trim_start_matches(BLANKS);
            let (value, rest) = match value.chars().next() {
                Some(quote @ ('\'' | '"')) => quoted(value, quote)?,
                // A comment begins after a blank, so the one before it counts.
                _ => bare(rest),
            };
            (Some(Secret::new(value)), rest)
        }
    };
    let rest = rest.trim_start_matches(BLANKS);
    let ended = rest.is_empty() || rest.starts_with(['#', '\n', '\r']);
    ended.then(|| (name, value, after_line(rest)))
}

/// What separates words within a line.
const BLANKS: [char; 4] = [' ', '\t', '\u{b}', '\u{c}'];

fn name(text: &str) -> Option<(String, &str)> {
    if let Some(quoted) = text.strip_prefix('\'') {
        let (name, rest) = quoted.split_once('\'')?;
        return (!name.is_empty()).then(|| (name.to_owned(), rest));
    }
    let end = text.find(|c: char| c == '=' || c == '#' || c.is_whitespace());
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    (!name.is_empty()).then(|| (name.to_owned(), rest))
}

fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        if c == quote {
            return Some((value, &text[at + c.len_utf8()..]));
        }
        if c != '\\' {
            value.push(c);
            continue;
        }
        let (_, escaped) = characters.next()?;
        match escape(escaped).filter(|_| quote == '"' || matches!(escaped, '\'' | '\\')) {
            Some(c) => value.push(c),
            None => value.extend(['\\', escaped]),
        }
    }
    None
}

fn escape(c: char) -> Option<char> {
    Some(match c {
        '\\' | '\'' | '"' => c,
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        _ => return None,
    })
}

fn bare(text: &str) -> (String, &str) {
    let end = text.find(['\n', '\r']).unwrap_or(text.len());
    let (line, rest) = text.split_at(end);
    let mut hashes = line.match_indices('#').map(|(at, _)| at);
    let comment = hashes.find(|at| line[..*at].ends_with(char::is_whitespace));
    (line[..comment.unwrap_or(line.len())].trim().to_owned(), rest)
}

fn after_line(text: &str) -> &str {
    text.split_once('\n').map_or("", |(_, rest)| rest)
}
