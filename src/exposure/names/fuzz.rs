//! Any names of servers and tools, and what clients see of them.

use std::sync::Arc;

use super::*;
use crate::fuzz::{spell, target};
use crate::source::upstream::name::assign;
use crate::tool::fixture::named;
use crate::tool::{Tool, ToolName};

const WORDS: &[&str] = &[
    "\n",
    "\n",
    "/",
    "/",
    "mcp__",
    "__",
    "_",
    "-",
    ".",
    "a",
    "b",
    "mcp__a__b",
    "a__b",
    "read_file",
    "é",
    "查询",
    "\u{202e}",
    "\0",
    " ",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "__8a30ca9232",
    "A",
];

#[test]
fn names() {
    target("names", 8 * 1024, check);
}

fn check(input: &[u8]) {
    let settings = [0, 1].map(|at| usize::from(input.get(at).copied().unwrap_or_default()));
    let style = [Style::Iris, Style::Plain, Style::Bare][settings[0] % 3];
    let max = MaxName::LEAST + settings[1] % (MaxName::MOST - MaxName::LEAST + 1);
    let text = spell(input.get(2..).unwrap_or_default(), WORDS);
    let mut seen = HashSet::new();
    let lines: Vec<&str> = text.split('\n').filter(|line| seen.insert(*line)).collect();
    // A line is `server/tool`, or the name of a tool of ours.
    let ours = lines.iter().filter(|line| !line.contains('/') && ToolName::parse(line).is_ok());
    let own: HashSet<String> = ours.map(|line| (*line).to_owned()).collect();
    let theirs: Vec<(&str, &str)> = lines
        .iter()
        .filter_map(|line| line.split_once('/'))
        .filter(|(_, tool)| !tool.is_empty())
        .collect();
    let assigned = assign(theirs.iter().copied(), &own);
    assert_eq!(assigned.names.len(), theirs.len());

    let mut tools: Vec<Arc<dyn Tool>> = own.iter().map(|name| named(name, |_| {})).collect();
    tools.extend(assigned.names.iter().zip(&theirs).map(|(name, (server, tool))| {
        let origin = Origin { server: (*server).to_owned(), tool: (*tool).to_owned() };
        named(name, |definition| definition.origin = Some(origin))
    }));
    let definitions: Vec<_> = tools.iter().map(|tool| tool.definition()).collect();
    let naming = Naming { style, max: MaxName::new(max).unwrap() };
    let names = Names::of(naming, &definitions);
    let canonical: HashSet<&str> = definitions.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(canonical.len(), tools.len(), "two tools have one name inside");
    let mut wires = HashSet::new();
    for tool in &definitions {
        let wire = names.wire(tool);
        assert!((1..=max).contains(&wire.len()) && wire.chars().all(is_legal), "{wire:?}");
        assert!(wires.insert(wire), "two tools are called {wire}");
        // Whoever calls it by the one name or the other reaches it: inside, a canonical name wins.
        let reached = canonical.get(wire).copied().or_else(|| names.canonical(wire));
        assert_eq!(reached, Some(tool.name.as_str()), "{wire}");
    }
    for renamed in names.renamed() {
        assert_eq!(names.wire_of(&renamed.canonical), renamed.wire);
        assert_ne!(renamed.wanted, renamed.wire);
    }
}
