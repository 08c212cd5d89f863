//! EX-9.3, and what holds for every name.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(server: &str, wire_name: &str, expected: &str) {
    assert_eq!(public_name(server, wire_name), expected, "{server} {wire_name}");
}

#[test]
fn ex_9_3_public_names() {
    check("local", "echo", "mcp__local__echo");
    check("fixture", "a-b", "mcp__fixture__a_b__aa16caaa4a");
    check("fixture", "a.b", "mcp__fixture__a_b__f4bc55e610");
    check("Docs-Local", "search", "mcp__Docs_Local__search__6d10b8df81");
    check("my server", "list items", "mcp__my_server__list_items__901375ca05");
    check("git hub", "create.issue/comment", "mcp__git_hub__create_issue_comment__db56f4fac7");
    check("中文服务", "查询", "mcp____________a4e13e9d9f");
    check("s", &"x".repeat(56), &format!("mcp__s__{}", "x".repeat(56)));
    check("s", &"x".repeat(57), &format!("mcp__s__{}__29a6ba54fb", "x".repeat(44)));
    check("fixture", &"x".repeat(80), &format!("mcp__fixture__{}__f305ad8420", "x".repeat(38)));
    check("a", "b__c", "mcp__a__b__c");
    check("a__b", "c", "mcp__a__b__c");
}

#[test]
fn ex_9_3_the_later_of_two_clashing_tools_takes_the_suffix_form() {
    let tools = [("a", "b__c"), ("a", "d"), ("a__b", "c")];
    let assigned = assign(tools, &HashSet::new());
    let suffix = suffix_name("a__b", "c");
    assert!(suffix.starts_with("mcp__a__b__c__"), "{suffix}");
    assert_eq!(assigned.names, ["mcp__a__b__c", "mcp__a__d", &suffix]);
    let [diagnostic] = assigned.diagnostics.as_slice() else {
        panic!("{:?}", assigned.diagnostics);
    };
    assert_eq!(
        diagnostic.to_string(),
        format!("a__b: c: the name `mcp__a__b__c` is taken, so the tool is called `{suffix}`")
    );
}

#[test]
fn a_name_that_belongs_to_another_is_left_to_it() {
    let taken = HashSet::from(["mcp__a__b".to_owned(), suffix_name("a", "b")]);
    let assigned = assign([("a", "b"), ("a", "b")], &taken);
    assert_eq!(assigned.names.len(), 2);
    assert!(assigned.names.iter().all(|name| !taken.contains(name)));
    assert_ne!(assigned.names[0], assigned.names[1]);
}

#[test]
fn names_that_differ_only_in_punctuation_stay_apart() {
    let assigned = assign([("f", "read-file"), ("f", "read_file")], &HashSet::new());
    assert_eq!(assigned.names[1], "mcp__f__read_file");
    assert!(assigned.names[0].starts_with("mcp__f__read_file__"));
    assert!(assigned.diagnostics.is_empty());
}

proptest! {
    #[test]
    fn every_name_is_legal_and_unique(
        tools in prop::collection::vec(("[ab_.é]{0,40}", "[ab_/ ]{0,70}"), 0..30),
        taken in prop::collection::hash_set("mcp__[ab]{0,2}__[ab]{0,2}", 0..10),
    ) {
        let pairs = tools.iter().map(|(server, wire)| (server.as_str(), wire.as_str()));
        let names = assign(pairs, &taken).names;
        prop_assert_eq!(names.len(), tools.len());
        let mut seen = taken;
        for name in names {
            prop_assert!((1..=64).contains(&name.len()), "{}", name);
            prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{}", name);
            prop_assert!(seen.insert(name));
        }
    }
}
