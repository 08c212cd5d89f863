//! What clients see of a name, and that every one is short, legal, unique and leads back.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::tool::Tool;
use crate::tool::fixture::named;

fn ours(name: &str) -> Arc<dyn Tool> {
    named(name, |_| {})
}

/// A tool of a server under a canonical name that is unique, as the source of upstreams sees to.
fn theirs(server: &str, tool: &str) -> Arc<dyn Tool> {
    called(&crate::source::upstream::name::public_name(server, tool), server, tool)
}

fn called(canonical: &str, server: &str, tool: &str) -> Arc<dyn Tool> {
    named(canonical, |definition| {
        definition.origin = Some(Origin { server: server.to_owned(), tool: tool.to_owned() });
    })
}

fn names(style: Style, max: usize, tools: &[Arc<dyn Tool>]) -> (Names, Vec<String>) {
    let definitions: Vec<_> = tools.iter().map(|tool| tool.definition()).collect();
    let names = Names::of(Naming { style, max: MaxName::new(max).unwrap() }, &definitions);
    let wire = definitions.iter().map(|tool| names.wire(tool).to_owned()).collect();
    (names, wire)
}

#[track_caller]
fn check(style: Style, max: usize, tools: &[Arc<dyn Tool>], expected: &[&str]) {
    assert_eq!(names(style, max, tools).1, expected, "{style:?} {max}");
}

#[test]
fn n3_each_style_has_its_names() {
    let tools = [ours("read_file"), theirs("git-hub", "get-me"), theirs("docs", "search")];
    let suffixed = "mcp__git_hub__get_me__4889ed6ee3";
    check(Style::Iris, 64, &tools, &["read_file", suffixed, "mcp__docs__search"]);
    check(Style::Plain, 64, &tools, &["read_file", "git-hub__get-me", "docs__search"]);
    check(Style::Bare, 64, &tools, &["read_file", "get-me", "search"]);
}

#[test]
fn n4_what_is_no_name_for_every_client_takes_the_suffix_form() {
    let long = "x".repeat(53);
    let tools = [theirs("a", "b.c"), theirs("a", "查询"), theirs("a", &long), theirs("a", "b/c")];
    let plain =
        ["a__b_c__3ea3bbb603", "a______8a30ca9232", &format!("a__{long}"), "a__b_c__6449bf3fd8"];
    check(Style::Plain, 64, &tools, &plain);
    let cut = format!("a__{}__b73f7d2a5f", "x".repeat(17));
    check(Style::Plain, 32, &tools, &[plain[0], plain[1], &cut, plain[3]]);
    let bare = ["b_c__3ea3bbb603", "____8a30ca9232", "xxxx__b73f7d2a5f", "b_c__6449bf3fd8"];
    check(Style::Bare, 16, &tools, &bare);
    check(Style::Iris, 16, &[theirs("docs", "search")], &["mcp___43cfeb1326"]);
    let own = [ours("größe"), ours("a_name_of_seventeen")];
    check(Style::Iris, 16, &own, &["gr____e2e86c1213", "a_na__074b078d2a"]);
    // The same, whatever else there is.
    check(Style::Plain, 64, &tools[..1], &plain[..1]);
    check(Style::Plain, 64, &tools[3..], &plain[3..]);
}

#[test]
fn n5_of_two_that_want_one_name_the_first_has_it_and_ours_before_all() {
    let tools = [theirs("a", "search"), theirs("b", "search"), ours("search")];
    check(Style::Bare, 64, &tools, &["a__search", "b__search", "search"]);
    check(Style::Bare, 64, &tools[..2], &["search", "b__search"]);
    check(Style::Bare, 64, &tools[1..2], &["search"]);
    // What the later one would take is gone as well.
    let tools = [theirs("a", "b__x"), theirs("a", "x"), theirs("b", "x")];
    check(Style::Bare, 64, &tools, &["b__x", "x", "x__0aaa98e2de"]);
    let second = || called("mcp__a__b__c__9f1b6cc4b5", "a__b", "c");
    let tools = [theirs("a", "b__c"), second()];
    check(Style::Plain, 64, &tools, &["a__b__c", "a__b__c__528239e9b3"]);
    let suffixed = names(Style::Plain, 64, &tools).1.remove(1);
    let tools = [ours(&suffixed), theirs("a", "b__c"), second()];
    assert_ne!(names(Style::Plain, 64, &tools).1[2], suffixed);
}

#[test]
fn n6_no_name_is_the_canonical_name_of_another_tool() {
    let tools = [theirs("gateway", "mcp__docs__search"), theirs("docs", "search")];
    check(Style::Bare, 64, &tools, &["gateway__mcp__docs__search", "search"]);
    let aliased = named("ours", |definition| definition.aliases = vec!["search".to_owned()]);
    check(Style::Bare, 64, &[theirs("docs", "search"), aliased], &["docs__search", "ours"]);
}

#[test]
fn n7_a_chain_of_gateways_says_its_name_once() {
    check(Style::Plain, 64, &[theirs("up", "up__read")], &["up__read"]);
    check(Style::Plain, 64, &[theirs("up", "other__read")], &["up__other__read"]);
    check(Style::Bare, 64, &[theirs("up", "up__read")], &["up__read"]);
    let both = [theirs("up", "up__read"), theirs("up", "read")];
    check(Style::Plain, 64, &both, &["up__read", "up__read__320f97218a"]);
}

#[test]
fn a_limit_is_a_number_from_16_to_128() {
    for (text, limit) in [
        ("16", Some(16)),
        ("128", Some(128)),
        ("15", None),
        ("129", None),
        ("-1", None),
        ("x", None),
    ] {
        assert_eq!(text.parse().ok().map(MaxName::get), limit, "{text}");
    }
    assert_eq!(MaxName::default().get(), 64);
}

#[test]
fn why_a_tool_has_another_name_is_told() {
    let tools = [ours("search"), theirs("a", "search"), theirs("a", "b.c"), theirs("a", "x")];
    let (names, _) = names(Style::Bare, 64, &tools);
    let told: Vec<String> = names.renamed().iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "the name `search` is another tool's, so clients see `a__search`",
            "the name `b.c` has characters that not every client takes, so clients see `b_c__3ea3bbb603`",
        ]
    );
}

proptest! {
    #[test]
    fn every_name_is_short_legal_unique_and_leads_back(
        tools in prop::collection::hash_set(("[ab_.-]{1,6}", "[ab_.é]{1,24}"), 1..24),
        own in prop::collection::hash_set("[ab_]{1,5}", 0..4),
        style in prop::sample::select(vec![Style::Iris, Style::Plain, Style::Bare]),
        max in 16_usize..=128,
    ) {
        let mut seen = HashSet::new();
        let tools = own.iter().map(|name| ours(name)).chain(tools.iter().map(|(a, b)| theirs(a, b)));
        let tools: Vec<_> =
            tools.filter(|tool| seen.insert(tool.definition().name.clone())).collect();
        let (names, wire) = names(style, max, &tools);
        let unique: HashSet<_> = wire.iter().collect();
        prop_assert_eq!(unique.len(), wire.len());
        for (tool, wire) in tools.iter().zip(&wire) {
            let canonical = tool.definition().name.as_str();
            prop_assert!((1..=max).contains(&wire.len()) && wire.chars().all(is_legal), "{}", wire);
            // A canonical name wins, so it may be no other tool's.
            let found = seen.iter().find(|name| name.as_str() == wire).map(crate::tool::ToolName::as_str);
            prop_assert_eq!(found.or_else(|| names.canonical(wire)), Some(canonical));
        }
    }
}
