//! What of a line may be shown in a message: one rule for all languages.
//!
//! Values are masked that stand under `env` or a mapping of headers, under a key whose name says
//! that it is a secret, after such an option in a list, URLs with a user or a query, and what looks
//! like a [secret](super::secret). The text need not be well-formed: it is read from the top, loosely, and what is unclear counts as part of
//! the value before it.

use super::Format;
use super::secret::{holds_secret, is_secret, shaped};

/// Returns the last of some lines as it may be shown, each character masked or as it is.
pub(super) fn last_line(text: &str, format: Format) -> String {
    let mut masker = Masker::new(format);
    let mut shown = Vec::new();
    for line in text.replace("\r\n", "\n").split(['\n', '\r']) {
        shown = masker.line(line);
    }
    // What a secret looks like gives it away wherever it stands.
    for (from, to) in shaped(&shown) {
        mask(&mut shown, from, to);
    }
    shown.into_iter().collect()
}

/// Reads lines, and knows what each value stands under.
struct Masker {
    format: Format,
    frames: Vec<Frame>,
    /// Whether a comment of several lines is open.
    comment: bool,
    /// The three quotes of a text of several lines that is open, and whether it is masked.
    quotes: Option<([char; 3], bool)>,
    /// How far the line was looked at for what stands before a token, and what that is.
    before: (usize, Option<char>),
}

/// A mapping or list that is open.
#[derive(Clone, Copy, Default)]
struct Frame {
    /// Whether everything in it is masked.
    secret: bool,
    /// Whether the value that comes next is: its key says so, or the option before it.
    next: bool,
    /// Where its key stands, if it is a block of YAML.
    column: Option<usize>,
}

impl Masker {
    fn new(format: Format) -> Self {
        let (frames, before) = (vec![Frame::default()], (0, None));
        Self { format, frames, comment: false, quotes: None, before }
    }

    fn line(&mut self, line: &str) -> Vec<char> {
        let mut line: Vec<char> = line.chars().collect();
        self.before = (0, None);
        self.leave(&line);
        let is_flow = self.top().column.is_none() && self.frames.len() > 1;
        let start = match self.format {
            _ if self.quotes.is_some() || is_flow => 0,
            Format::Json5 => 0,
            Format::Toml => self.table(&line),
            Format::Yaml => self.block(&mut line),
        };
        self.flow(&mut line, start);
        line
    }

    /// Leaves brackets that were never closed, where a line cannot stand in them.
    fn leave(&mut self, line: &[char]) {
        match (self.format, line.first()) {
            (Format::Toml, Some('[')) if self.quotes.is_none() && line.ends_with(&[']']) => {
                self.frames.truncate(1);
            }
            (Format::Yaml, Some(_)) => {
                let (at, closes) = (spaces(line, 0), ['}', ']']);
                let is_outside = line.get(at).is_some_and(|c| !closes.contains(c));
                let block = self.frames.iter().rposition(|frame| frame.column.is_some());
                if let Some(block) = block.filter(|_| is_outside)
                    && self.frames[block].column.is_some_and(|column| at <= column)
                {
                    self.frames.truncate(block + 1);
                }
            }
            _ => {}
        }
    }

    fn top(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.frames.push(Frame::default());
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// Begins a line of TOML outside of any value; returns where values may begin.
    fn table(&mut self, line: &[char]) -> usize {
        self.top().next = false;
        let text: String = line.iter().collect();
        let Some(header) = text.trim().strip_prefix('[') else { return 0 };
        let header = header.split('#').next().unwrap_or_default();
        let secret = header.split(['.', ']', '[']).any(|part| is_secret(part.trim()));
        self.frames = vec![Frame { secret, ..Frame::default() }];
        line.len()
    }

    /// Begins a line of YAML that is in no brackets; returns where its value in brackets or quotes
    /// begins, having masked any other.
    fn block(&mut self, line: &mut [char]) -> usize {
        let mut at = spaces(line, 0);
        if at == line.len() || line[at] == '#' {
            return at;
        }
        while line[at..].first() == Some(&'-') && line.get(at + 1).is_none_or(|c| *c == ' ') {
            // What stood in the item before is over; the list may stand below its key.
            self.close(at + 1);
            at = spaces(line, at + 1);
        }
        if let Some((key, end)) = block_key(line, at) {
            self.close(at);
            let secret = self.top().secret || is_secret(&key);
            self.frames.push(Frame { secret, next: false, column: Some(at) });
            at = spaces(line, end);
        }
        while matches!(line.get(at), Some('&' | '!')) {
            at += line[at..].iter().take_while(|c| !c.is_whitespace()).count();
            at = spaces(line, at);
        }
        if matches!(line.get(at), Some('{' | '[' | '"' | '\'' | '#') | None) {
            return at;
        }
        // A plain text to its end, with spaces.
        let comment = line.windows(2).skip(at).position(|two| two == [' ', '#']);
        let end = comment.map_or(line.len(), |found| at + found);
        self.value(line, at, end);
        end
    }

    /// Closes the blocks of YAML whose keys stand at a column or further in.
    fn close(&mut self, column: usize) {
        while self.frames.len() > 1 && self.top().column.is_none_or(|at| at >= column) {
            self.frames.pop();
        }
    }

    /// Reads what looks alike in all languages: brackets, quotes, commas, words and comments.
    fn flow(&mut self, line: &mut [char], mut at: usize) {
        while at < line.len() {
            if let Some((quotes, secret)) = self.quotes {
                at = self.long_text(line, at, (quotes, secret));
                continue;
            }
            if self.comment {
                let end = find(line, at, &['*', '/']);
                self.comment = end.is_none();
                mask_comment(line, at, end.unwrap_or(line.len()));
                at = end.map_or(line.len(), |end| end + 2);
                continue;
            }
            let is_json = self.format == Format::Json5;
            match (line[at], line.get(at + 1)) {
                ('#', _) if !is_json => return mask_comment(line, at, line.len()),
                ('/', Some('/')) if is_json => return mask_comment(line, at, line.len()),
                ('/', Some('*')) if is_json => {
                    self.comment = true;
                    at += 2;
                }
                ('{' | '[', _) => {
                    let top = self.top();
                    let secret = top.secret || top.next;
                    self.frames.push(Frame { secret, ..Frame::default() });
                    at += 1;
                }
                ('}' | ']', _) => {
                    if self.frames.len() > 1 && self.top().column.is_none() {
                        self.frames.pop();
                    }
                    self.top().next = false;
                    at += 1;
                }
                (',' | ':' | '=', _) => at += 1,
                (c, _) if c.is_whitespace() => at += 1,
                (quote @ ('"' | '\''), _) => at = self.text(line, at, quote),
                _ => at = self.word(line, at),
            }
        }
    }

    /// Reads a text in quotes; returns where it ends.
    fn text(&mut self, line: &mut [char], at: usize, quote: char) -> usize {
        let quotes = [quote; 3];
        if self.format == Format::Toml && line[at..].starts_with(&quotes) {
            let secret = self.top().secret || self.top().next;
            self.quotes = Some((quotes, secret));
            return at + quotes.len();
        }
        let end = string_end(line, at);
        let closed = end - at > 1 && line[end - 1] == quote;
        let inner = (at + 1, if closed { end - 1 } else { end });
        self.key_or_value(line, inner, end);
        end
    }

    /// Reads the rest of a line in a text of several.
    fn long_text(
        &mut self,
        line: &mut [char],
        at: usize,
        (quotes, secret): ([char; 3], bool),
    ) -> usize {
        let end = find(line, at, &quotes);
        if secret {
            mask(line, at, end.unwrap_or(line.len()));
        }
        match end {
            Some(end) => {
                self.quotes = None;
                self.top().next = false;
                end + quotes.len()
            }
            None => line.len(),
        }
    }

    /// Reads a word without quotes; returns where it ends.
    fn word(&mut self, line: &mut [char], at: usize) -> usize {
        let is_yaml = self.format == Format::Yaml;
        let mut end = at;
        while let Some(c) = line.get(end) {
            let is_end = match c {
                ',' | '}' | ']' | '{' | '[' => true,
                ':' if is_yaml => line.get(end + 1).is_none_or(|c| c.is_whitespace()),
                ':' => self.format == Format::Json5,
                '=' => self.format == Format::Toml,
                '#' => is_yaml && end > at && line[end - 1].is_whitespace(),
                '"' | '\'' => !is_yaml,
                c => c.is_whitespace() && !is_yaml,
            };
            if is_end {
                break;
            }
            end += 1;
        }
        let end = end.max(at + 1);
        self.key_or_value(line, (at, end), end);
        end
    }

    /// Returns what stands before a token, quotes and spaces aside; tokens come one after the other.
    fn before(&mut self, line: &[char], from: usize) -> Option<char> {
        let (looked, before) = self.before;
        let new = line.get(looked..from).unwrap_or_default().iter();
        let last = new.rev().find(|c| !matches!(c, ' ' | '\t' | '"' | '\''));
        self.before = (from.max(looked), last.copied().or(before));
        self.before.1
    }

    /// Takes a token for a key if one can stand there, else for a value.
    fn key_or_value(&mut self, line: &mut [char], (from, to): (usize, usize), end: usize) {
        let key: String = line[from..to].iter().collect();
        let before = self.before(line, from);
        let after = line.get(spaces(line, end));
        let is_dotted = self.format == Format::Toml;
        let no_key = matches!(before, Some(':' | '=')) || self.top().column.is_some();
        let is_key = match self.format {
            _ if no_key => false,
            Format::Json5 | Format::Yaml => after == Some(&':'),
            Format::Toml => matches!(after, Some('=' | '.')) || key.ends_with('.'),
        };
        if !is_key {
            return self.value(line, from, to);
        }
        let parts = key.split('.').filter(|_| is_dotted);
        let secret = is_secret(&key) || parts.map(str::trim).any(is_secret);
        // The first part of `env."A".b` counts for all of it.
        let goes_on = is_dotted && (before == Some('.') || key.starts_with('.'));
        let top = self.top();
        top.next = secret || (goes_on && top.next);
    }

    /// Masks a value, if it is to be.
    fn value(&mut self, line: &mut [char], from: usize, to: usize) {
        let text: String = line[from..to].iter().collect();
        let top = self.top();
        if top.secret || top.next || holds_secret(&text) {
            mask(line, from, to);
        }
        // `--token`, `x`: what comes after an option is its value.
        self.top().next = text.starts_with('-') && !text.contains('=') && is_secret(&text);
    }
}

fn mask(line: &mut [char], from: usize, to: usize) {
    line[from..to].fill('*');
}

/// Masks a comment that may be a line with a secret, put aside.
fn mask_comment(line: &mut [char], from: usize, to: usize) {
    let text: String = line[from..to].iter().collect();
    let mut words = text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-'));
    if words.any(is_secret) || holds_secret(&text) {
        mask(line, from, to);
    }
}

fn spaces(line: &[char], from: usize) -> usize {
    from + line[from..].iter().take_while(|c| c.is_whitespace()).count()
}

fn find(line: &[char], from: usize, wanted: &[char]) -> Option<usize> {
    line[from..].windows(wanted.len()).position(|some| some == wanted).map(|at| from + at)
}

/// Returns the key of a block that begins here, and where what follows its colon begins.
fn block_key(line: &[char], from: usize) -> Option<(String, usize)> {
    let is_colon = |at: usize| {
        line.get(at) == Some(&':') && line.get(at + 1).is_none_or(|c| c.is_whitespace())
    };
    let text = |to: usize| line[from..to].iter().filter(|c| !matches!(c, '"' | '\'')).collect();
    match line.get(from)? {
        '{' | '[' | '#' => None,
        '"' | '\'' => {
            let end = string_end(line, from);
            let colon = spaces(line, end);
            is_colon(colon).then(|| (text(end), colon + 1))
        }
        _ => {
            let colon = (from..line.len()).find(|at| is_colon(*at))?;
            Some((text(colon), colon + 1))
        }
    }
}

/// Returns where the string that opens at `start` ends: after its closing quote, or with the line.
fn string_end(characters: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < characters.len() {
        match characters[at] {
            '\\' => at += 1,
            c if c == characters[start] => return at + 1,
            _ => {}
        }
        at += 1;
    }
    characters.len()
}

#[cfg(test)]
mod tests;
