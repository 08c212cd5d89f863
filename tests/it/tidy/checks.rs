//! The checks; each returns one line for each thing that is wrong.

use std::collections::BTreeSet;

use super::source::{Source, Token, tokens};
use super::table::{FREE_IN_TESTS, MODULES, OWNERS, allowed};

/// The longest a file may be, tests not counted.
pub(crate) const LINES: usize = 500;

const PRINTS: &[&str] = &["println", "eprintln", "print", "eprint", "dbg"];
const EMPTY_NAMES: &[&str] = &["util", "utils", "helper", "helpers", "common", "misc", "manager"];

/// Each module names only what stands in its row of the table.
pub(crate) fn arrows(source: &Source) -> Vec<String> {
    let user = source.module();
    // The one declares the modules, the other may use all of them.
    if matches!(user, "lib" | "main") {
        return Vec::new();
    }
    let named = named_modules(&source.production(), source.name.split('/').count());
    let wrong = named.into_iter().filter(|used| !allowed(user, used.text));
    wrong
        .map(|used| {
            let line = source.line(used.at);
            format!("{}.rs:{line}: {user} must not use {}", source.name, used.text)
        })
        .collect()
}

/// Returns the first names of all paths from the crate's root.
fn named_modules<'a>(all: &[Token<'a>], depth: usize) -> Vec<Token<'a>> {
    let mut found = Vec::new();
    let mut next = 0;
    while next < all.len() {
        let steps = all[next..].chunks(2).take_while(|pair| is_step(pair, "super")).count();
        if is_step(&all[next..], "crate") {
            heads(&all[next + 2..], &mut found);
        } else if steps >= depth {
            let mut names = Vec::new();
            heads(&all[next + 2 * steps..], &mut names);
            // In a nested module such a path may end inside the file.
            let known = |token: &Token<'_>| MODULES.iter().any(|(name, _)| *name == token.text);
            found.extend(names.into_iter().filter(known));
        }
        next += 1 + 2 * steps;
    }
    found
}

fn is_step(pair: &[Token<'_>], word: &str) -> bool {
    matches!(pair, [name, colons, ..] if name.text == word && colons.text == "::")
}

/// Collects the name that a path goes on with, or those of its group.
fn heads<'a>(rest: &[Token<'a>], found: &mut Vec<Token<'a>>) {
    let Some(first) = rest.first() else { return };
    if first.text != "{" {
        found.push(*first);
        return;
    }
    let mut depth = 0_usize;
    for (at, token) in rest.iter().enumerate() {
        match token.text {
            "{" => depth += 1,
            "}" if depth == 1 => return,
            "}" => depth -= 1,
            _ => {}
        }
        let starts = depth == 1 && matches!(token.text, "{" | ",");
        let next = rest.get(at + 1).filter(|next| starts && !matches!(next.text, "}" | ","));
        found.extend(next.copied());
    }
}

/// Every module on disk has a row in the table.
pub(crate) fn rows(source: &Source) -> Vec<String> {
    let module = source.module();
    let known = matches!(module, "lib" | "main") || MODULES.iter().any(|(name, _)| *name == module);
    if known { Vec::new() } else { vec![format!("{}.rs: {module} has no row", source.name)] }
}

/// Crates from outside are named by their owners only.
pub(crate) fn owners(source: &Source) -> Vec<String> {
    let all = tokens(&source.code);
    let mut wrong = Vec::new();
    for (at, token) in all.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |before| all[before].text);
        let after = all.get(at + 1).map_or("", |after| after.text);
        // `::` before a name starts the path where no word is before it.
        let inner = before == "::" && at >= 2 && is_path_part(all[at - 2].text);
        let is_path = !inner && (after == "::" || matches!(before, "use" | "crate" | "::"));
        let is_free = source.in_tests(token.at) && FREE_IN_TESTS.contains(&token.text);
        let owned = OWNERS.iter().find(|(name, _)| is_path && !is_free && *name == token.text);
        if let Some((name, places)) = owned
            && !places.iter().any(|place| is_at(&source.name, place))
        {
            let line = source.line(token.at);
            wrong.push(format!("{}.rs:{line}: {name} belongs to {places:?}", source.name));
        }
    }
    wrong
}

fn is_path_part(text: &str) -> bool {
    text == ">"
        || text != "use" && text.starts_with(|first: char| first == '_' || first.is_alphabetic())
}

fn is_at(name: &str, place: &str) -> bool {
    name.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Standard output belongs to the protocol, and logs go through tracing.
pub(crate) fn prints(source: &Source) -> Vec<String> {
    if matches!(source.module(), "cli" | "main") {
        return Vec::new();
    }
    let found = source.production();
    let called =
        found.windows(2).filter(|pair| PRINTS.contains(&pair[0].text) && pair[1].text == "!");
    called
        .map(|pair| {
            format!("{}.rs:{}: {}! outside cli", source.name, source.line(pair[0].at), pair[0].text)
        })
        .collect()
}

/// A file is short enough to be read.
pub(crate) fn length(source: &Source) -> Vec<String> {
    let lines = source.production_lines();
    if lines <= LINES { Vec::new() } else { vec![format!("{}.rs: {lines} lines", source.name)] }
}

/// A file says what it is for.
pub(crate) fn opening(source: &Source) -> Vec<String> {
    let opens = source.text.starts_with("//! ");
    if opens { Vec::new() } else { vec![format!("{}.rs: no `//!` at the top", source.name)] }
}

/// A file's name says what is in it.
pub(crate) fn names(source: &Source) -> Vec<String> {
    let parts = source.name.split('/');
    let wrong = parts.filter(|part| EMPTY_NAMES.contains(part) || *part == "mod");
    wrong.map(|part| format!("{}.rs: no file is called {part}", source.name)).collect()
}

/// The code map lists the modules there are, and no others.
pub(crate) fn code_map(architecture: &str, sources: &[Source]) -> Vec<String> {
    let listed = first_cells(architecture, "## Code map");
    let files = sources.iter().map(|source| source.name.clone());
    let modules: BTreeSet<String> =
        files.filter(|name| !name.contains('/') && name != "lib" && name != "main").collect();
    let missing = modules.difference(&listed).map(|name| format!("code map: {name} is missing"));
    let extra = listed.difference(&modules).map(|name| format!("code map: there is no {name}"));
    missing.chain(extra).collect()
}

/// Every error code that the code can answer is in the contract's table.
pub(crate) fn error_codes(contract: &str, source: &Source) -> Vec<String> {
    const CALL: &str = "ErrorCode::new(";
    let listed = first_cells(contract, "## Error codes");
    let mut wrong = Vec::new();
    for (at, _) in source.code.match_indices(CALL).filter(|(at, _)| !source.in_tests(*at)) {
        let argument = source.text[at + CALL.len()..].trim_start();
        let Some((code, _)) = argument.strip_prefix('"').and_then(|text| text.split_once('"'))
        else {
            continue;
        };
        if !listed.contains(code) {
            wrong.push(format!("{}.rs:{}: {code} is in no table", source.name, source.line(at)));
        }
    }
    wrong
}

/// Every worked example that the contract cites is in a test, by its number.
pub(crate) fn examples(contract: &str, tests: &str) -> Vec<String> {
    let cited = contract.match_indices("EX-").map(|(at, _)| &contract[at + 3..]);
    let number = |text: &str| -> Option<(u32, u32)> {
        let end = text.find(|digit: char| !digit.is_ascii_digit() && digit != '.');
        let (part, example) = text[..end.unwrap_or(text.len())].split_once('.')?;
        Some((part.parse().ok()?, example.trim_end_matches('.').parse().ok()?))
    };
    let mut missing = BTreeSet::new();
    for text in cited {
        let Some((part, first)) = number(text) else { continue };
        let range = text
            .split_once(" to EX-")
            .filter(|(before, _)| number(before) == Some((part, first)) && before.len() <= 5);
        let last = range.and_then(|(_, after)| number(after)).map_or(first, |(_, last)| last);
        for example in first..=last {
            let names = [format!("EX-{part}.{example}"), format!("ex_{part}_{example}")];
            let is_whole = |name: &String| {
                tests.match_indices(name.as_str()).any(|(at, _)| {
                    !tests[at + name.len()..].starts_with(|next: char| next.is_ascii_digit())
                })
            };
            if !names.iter().any(is_whole) {
                missing.insert(format!("EX-{part}.{example} is in no test"));
            }
        }
    }
    missing.into_iter().collect()
}

/// Every pain that the contract has an answer to is held by a test, and each test it names exists.
pub(crate) fn pains(contract: &str, code: &str) -> Vec<String> {
    let rows = rows_of(contract, "## What goes wrong elsewhere");
    // Below the heading of the table.
    let cells = rows.filter_map(|row| row.trim_end_matches(" |").rsplit(" | ").next()).skip(1);
    let mut wrong = Vec::new();
    for cell in cells {
        let named: Vec<&str> = quoted_in(cell).collect();
        if named.is_empty() {
            wrong.push(format!("no test is named: {cell}"));
        }
        let missing = named.iter().filter(|name| !code.contains(&format!("fn {name}(")));
        wrong.extend(missing.map(|name| format!("there is no test {name}")));
    }
    wrong
}

/// Returns what stands in backticks in the first cells of a section's tables.
fn first_cells(document: &str, heading: &str) -> BTreeSet<String> {
    let cells = rows_of(document, heading).filter_map(|row| row.split(" |").next());
    cells.flat_map(quoted_in).map(str::to_owned).collect()
}

/// Returns the rows of a section's tables, without what they begin with.
fn rows_of<'a>(document: &'a str, heading: &str) -> impl Iterator<Item = &'a str> {
    let section = document.lines().skip_while(move |line| *line != heading).skip(1);
    let rows = section.take_while(|line| !line.starts_with("## "));
    rows.filter_map(|row| row.strip_prefix("| "))
}

fn quoted_in(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}
