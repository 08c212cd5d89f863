//! Rust files, as far as the checks must understand them.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// A file below `src/`.
#[derive(Debug)]
pub(crate) struct Source {
    /// Where it is below `src/`, without `.rs`: `executor/call`.
    pub(crate) name: String,
    /// The file as it stands.
    pub(crate) text: String,
    /// The same with every byte of a comment or a literal blanked.
    pub(crate) code: String,
    /// The parts of it that only tests see.
    pub(crate) tests: Vec<Range<usize>>,
}

/// A word or a mark of the code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) at: usize,
    pub(crate) text: &'a str,
}

impl Source {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let code = blank_literals(text);
        let whole_file = name.split('/').any(|part| part == "tests");
        let tests = if whole_file { whole(text) } else { test_ranges(&tokens(&code)) };
        Self { name: name.to_owned(), text: text.to_owned(), code, tests }
    }

    /// Returns the module that the file belongs to, as it stands in `lib.rs`.
    pub(crate) fn module(&self) -> &str {
        self.name.split('/').next().unwrap_or(&self.name)
    }

    /// Returns the line of a byte, counted from one.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count() + 1
    }

    /// Returns whether only tests see this byte.
    pub(crate) fn in_tests(&self, at: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&at))
    }

    /// Returns the tokens that are compiled into the product.
    pub(crate) fn production(&self) -> Vec<Token<'_>> {
        tokens(&self.code).into_iter().filter(|token| !self.in_tests(token.at)).collect()
    }

    /// Counts the lines that no test range covers.
    pub(crate) fn production_lines(&self) -> usize {
        let mut start = 0;
        let mut count = 0;
        for line in self.text.split_inclusive('\n') {
            let end = start + line.trim_end().len();
            let covered = self.tests.iter().any(|range| range.start <= start && end <= range.end);
            count += usize::from(!covered);
            start += line.len();
        }
        count
    }

    /// Returns the names of the files that this one declares for tests only.
    fn test_files(&self) -> Vec<String> {
        let all = tokens(&self.code);
        let declared = all.windows(3).filter_map(|three| match three {
            [keyword, name, end]
                if keyword.text == "mod" && end.text == ";" && self.in_tests(keyword.at) =>
            {
                Some(format!("{}/{}", self.name, name.text))
            }
            _ => None,
        });
        declared.collect()
    }
}

/// Reads every Rust file below `src`, in the order of their names.
pub(crate) fn read_tree(src: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    walk(src, src, &mut found);
    found.sort_by(|left, right| left.name.cmp(&right.name));
    let only_tests: BTreeSet<String> = found.iter().flat_map(Source::test_files).collect();
    for source in &mut found {
        if only_tests.contains(&source.name) {
            source.tests = whole(&source.text);
        }
    }
    found
}

fn walk(root: &Path, folder: &Path, found: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            walk(root, &path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).expect("a path below the root").with_extension("");
            let text = fs::read_to_string(&path).expect("a readable file");
            found.push(Source::new(&name.to_string_lossy(), &text));
        }
    }
}

/// Splits code into identifiers, `::`, and single characters.
pub(crate) fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = code[at..].chars().next() {
        let length = if is_word(first) {
            code[at..].find(|next| !is_word(next)).unwrap_or(code.len() - at)
        } else if code[at..].starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        if !first.is_whitespace() {
            found.push(Token { at, text: &code[at..at + length] });
        }
        at += length;
    }
    found
}

/// The range of everything: all of the file is for tests.
fn whole(text: &str) -> Vec<Range<usize>> {
    std::iter::once(0..text.len()).collect()
}

fn is_word(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

/// Finds the items under `#[cfg(test)]`, attribute included.
fn test_ranges(all: &[Token<'_>]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut next = 0;
    while next < all.len() {
        let words: Vec<&str> = all[next..].iter().take(8).map(|token| token.text).collect();
        match words.as_slice() {
            ["#", "!", "[", "cfg", "(", "test", ")", "]"] => {
                return std::iter::once(0..usize::MAX).collect();
            }
            ["#", "[", "cfg", "(", "test", ")", "]", ..] => {
                let last = item_end(all, next + 7);
                found.push(all[next].at..all[last].at + 1);
                next = last + 1;
            }
            _ => next += 1,
        }
    }
    found
}

/// Returns the token that ends the item starting at `next`: its `;` or its last `}`.
fn item_end(all: &[Token<'_>], mut next: usize) -> usize {
    let mut open = 0_usize;
    let mut braces = 0_usize;
    while next < all.len() {
        match all[next].text {
            "(" | "[" => open += 1,
            ")" | "]" => open = open.saturating_sub(1),
            "{" => braces += 1,
            "}" if braces <= 1 => return next,
            "}" => braces -= 1,
            ";" if open == 0 && braces == 0 => return next,
            _ => {}
        }
        next += 1;
    }
    all.len() - 1
}

/// Replaces every byte of comments, strings and characters by a space, but keeps line ends.
fn blank_literals(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    while out.len() < bytes.len() {
        let at = out.len();
        let length = literal_length(text, at);
        if length == 0 {
            out.push(bytes[at]);
        } else {
            let blanked = bytes[at..at + length].iter();
            out.extend(blanked.map(|byte| if *byte == b'\n' { b'\n' } else { b' ' }));
        }
    }
    String::from_utf8(out).expect("whole characters were kept or blanked")
}

/// Returns how long the comment or literal at `at` is; 0 if there is none.
fn literal_length(text: &str, at: usize) -> usize {
    if !text.is_char_boundary(at) {
        return 0;
    }
    let rest = &text[at..];
    let inside_word = text[..at].chars().next_back().is_some_and(is_word);
    match rest.as_bytes()[0] {
        b'/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
        b'/' if rest.starts_with("/*") => block_comment(rest),
        b'"' => quoted(rest, '"'),
        b'\'' => character(rest),
        b'r' | b'b' | b'c' if !inside_word => raw_string(rest),
        _ => 0,
    }
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest.as_bytes()[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.as_bytes()[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, next) in rest.char_indices().skip(1) {
        match next {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if next == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A character literal, but not a lifetime.
fn character(rest: &str) -> usize {
    let mut inside = rest.chars().skip(1);
    match (inside.next(), inside.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => quoted(rest, '\''),
        _ => 0,
    }
}

/// `r"…"`, `r#"…"#` and the byte and C forms; the plain forms are found at their quote.
fn raw_string(rest: &str) -> usize {
    let marked = rest.strip_prefix(['b', 'c']).unwrap_or(rest);
    let Some(hashed) = marked.strip_prefix('r') else { return 0 };
    let body = hashed.trim_start_matches('#');
    if !body.starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashed.len() - body.len()));
    let head = rest.len() - body.len() + 1;
    rest[head..].find(&end).map_or(rest.len(), |at| head + at + end.len())
}
