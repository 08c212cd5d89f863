//! EX-8.11, and wildcards as a shell knows them.

use super::*;

#[track_caller]
fn check(pattern: &str, path: &str, expected: bool) {
    let path_components: Vec<Vec<char>> =
        path.split('/').map(|name| name.chars().collect()).collect();
    let found =
        PathPattern::parse(pattern).is_some_and(|pattern| pattern.matches(&path_components));
    assert_eq!(found, expected, "{pattern} {path}");
}

#[test]
fn ex_8_11_a_pattern_matches_the_end_of_a_path() {
    for path in ["a.py", "s/a.py", "s/t/a.py"] {
        check("*.py", path, true);
    }
    for (path, expected) in [("s/a.py", true), ("x/s/a.py", true), ("s/t/a.py", false)] {
        check("s/*.py", path, expected);
    }
    for path in ["s/a.py", "s/t/a.py", "x/s/t/u/a.py"] {
        check("s/**/*.py", path, true);
    }
    check("s/**/*.py", "t/a.py", false);
    for path in ["a.py", "s/a.py", ".hidden", "s/.git/config"] {
        check("**", path, true);
        check("*", path, true);
        check("", path, true);
        check(".", path, true);
        check("*/", path, false);
    }
    for path in ["a.py", "s/a.py", "b.py"] {
        check("./a.py", path, path != "b.py");
        check("a.py", path, path != "b.py");
    }
    check("*.PY", "a.py", false);
    check("s/**", "s/t/a.py", true);
    check("**/t/*", "s/t/a.py", true);
    check("t", "t/a.py", false);
    check("/s/a.py", "s/a.py", true);
    check("../a.py", "a.py", false);
}

#[test]
fn a_name_is_matched_as_a_shell_would() {
    for (pattern, name, expected) in [
        ("a?c", "abc", true),
        ("a?c", "a中c", true),
        ("a?c", "ac", false),
        ("a*b*c", "aXbYbZc", true),
        ("a*b*c", "aXbYbZ", false),
        ("[abc]x", "bx", true),
        ("[a-c]x", "dx", false),
        ("[!a-c]x", "dx", true),
        ("[!a-c]x", "bx", false),
        ("[]]x", "]x", true),
        ("[!]]x", "]x", false),
        ("[a-]x", "-x", true),
        ("[c-a]x", "bx", false),
        ("[^a]x", "^x", true),
        ("[^a]x", "bx", false),
        ("[", "[", true),
        ("[a", "[a", true),
        ("[]", "[]", true),
        ("[!]", "[!]", true),
        ("{a,b}", "{a,b}", true),
        ("{a,b}", "a", false),
        ("\\*", "\\x", true),
        ("a**b", "aXXb", true),
        ("*", "", true),
    ] {
        check(pattern, name, expected);
    }
}

#[test]
fn a_hostile_pattern_is_quick() {
    let pattern = "*a".repeat(1_000) + "b";
    let name = "a".repeat(3_000);
    check(&pattern, &name, false);
    let pattern = "**/a/".repeat(300) + "b";
    let path = "a/".repeat(1_000) + "a";
    check(&pattern, &path, false);
}
