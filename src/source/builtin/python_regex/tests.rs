//! A pattern means what it means to Python, or is refused by name.

mod table;

use super::*;

#[track_caller]
fn check(pattern: &str, text: &str, expected: Option<bool>) {
    let found = match Pattern::compile(pattern) {
        Ok(pattern) => Some(pattern.is_match(text).unwrap()),
        Err(PatternError::Invalid { .. }) => None,
        Err(error) => panic!("{pattern:?}: {error}"),
    };
    assert_eq!(found, expected, "{pattern:?} {text:?}");
}

#[test]
fn a_pattern_matches_what_it_matches_in_python() {
    for (pattern, text, expected) in table::TABLE {
        check(pattern, text, *expected);
    }
}

#[test]
fn an_invalid_pattern_says_what_is_wrong_and_where() {
    for (pattern, expected) in [
        ("(a", "missing ), unterminated subpattern at position 2"),
        ("a)", "unbalanced parenthesis at position 1"),
        ("a**", "multiple repeat at position 2"),
        ("[a", "unterminated character set at position 0"),
        ("é[b-a]", "bad character range at position 2"),
        ("(?<=a+)b", "look-behind requires fixed-width pattern at position 7"),
        ("a(?i)", "global flags not at the start of the expression at position 5"),
        ("(?L)a", "the flag 'L' is for bytes patterns only at position 3"),
        ("(?(3)a)", "invalid group reference 3 at position 3"),
        (r"\1", "invalid group reference 1 at position 1"),
    ] {
        assert_eq!(Pattern::compile(pattern).unwrap_err().to_string(), expected, "{pattern}");
    }
}

#[test]
fn what_cannot_be_had_is_refused_by_name() {
    for (pattern, expected) in [
        (r"\N{BULLET}".to_owned(), r"\N{…}; write the character itself or \u and its code"),
        (r"[\N{BULLET}]".to_owned(), r"\N{…}; write the character itself or \u and its code"),
        ("(?:a{1000}){1000}".to_owned(), "repetitions that large"),
        ("(".repeat(80) + &")".repeat(80), "groups nested so deeply"),
        ("(".repeat(20_000), "groups nested so deeply"),
        ("a".repeat(MAX_PATTERN + 1), "more than 32768 bytes"),
    ] {
        let error = Pattern::compile(&pattern).unwrap_err();
        let construct = expected.to_owned();
        assert_eq!(error, PatternError::Unsupported { construct }, "{}", &pattern[..9]);
    }
}

#[test]
fn only_what_needs_it_backtracks() {
    for (pattern, expected) in [
        (r"^\s*(?P<n>a|b)+\b[^c]{2,}$", false),
        ("a(?=b)", true),
        ("(?<!a)b", true),
        (r"(a)\1", true),
        ("(?>a)b", true),
        ("a++b", true),
        ("(a)?(?(1)b)", true),
    ] {
        assert_eq!(Pattern::compile(pattern).unwrap().backtracks(), expected, "{pattern}");
    }
}

#[test]
fn a_search_without_an_end_is_given_up() {
    let pattern = Pattern::compile(r"^(?:(a+)+\1)+$").unwrap();
    for length in [100, 10_000] {
        assert_eq!(pattern.is_match(&("a".repeat(length) + "!")), Err(TooManySteps::Line));
    }
    let linear = Pattern::compile("^(a+)+$").unwrap();
    assert_eq!(linear.is_match(&("a".repeat(200_000) + "!")), Ok(false));
}

#[test]
fn a_word_boundary_costs_no_match_on_a_long_line() {
    let pattern = Pattern::compile(r"\bfoo\b").unwrap();
    let padding = "é ".repeat(SHORT_LINE);
    assert_eq!(pattern.is_match(&format!("{padding}foo {padding}")), Ok(true));
    assert_eq!(pattern.is_match(&format!("{padding}foos {padding}")), Ok(false));
}

#[test]
fn a_word_boundary_alone_is_never_too_much() {
    let pattern = Pattern::compile(r"\b.*.*x\b").unwrap();
    assert_eq!(pattern.is_match(&"中".repeat(SHORT_LINE / 3)), Ok(false));
}

#[test]
fn lines_that_are_hard_are_too_many_at_some_point() {
    let pattern = || Pattern::compile(r"^(?:(a+)+\1)+$").unwrap();
    let line = |length: usize| "a".repeat(length) + "!";
    // One that is neither easy nor too much by itself.
    let is_hard = |length: &usize| {
        let (pattern, line) = (pattern(), line(*length));
        pattern.is_match(&line).is_ok() && pattern.left.into_inner() < ALL_STEPS
    };
    let length = (1..100).find(is_hard).unwrap();
    let pattern = pattern();
    for _ in 0..ALL_STEPS / MAX_STEPS {
        assert_eq!(pattern.is_match(&line(length)), Ok(false));
    }
    assert_eq!(pattern.is_match(&line(length)), Err(TooManySteps::All));
    assert_eq!(pattern.is_match("easy"), Ok(false));
}
