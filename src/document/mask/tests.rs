//! What is masked in each language, and what is not.

use proptest::prelude::*;

use super::super::Format::{Json5, Toml, Yaml};
use super::*;

/// Checks the last line of a text; every `s3cret` in it is to be masked, and nothing else.
#[track_caller]
fn check(format: Format, text: &str) {
    let shown = last_line(text, format);
    let last = text.split('\n').next_back().unwrap();
    assert_eq!(shown, last.replace("s3cret", "******"), "{text}");
}

#[test]
fn values_under_env_headers_and_secret_names_are_masked_in_every_language() {
    // As one line, as lines, in a list, and dotted.
    for key in ["env", "headers", "http_headers", "httpHeaders"] {
        check(Json5, &format!("{{\"{key}\": {{\"A\": \"s3cret\", B: 's3cret'}}, \"x\": \"y\"}}"));
        check(Json5, &format!("{{\"{key}\": {{\n \"A\": \"x\",\n \"B\": \"s3cret\""));
        check(Json5, &format!("{{\"{key}\": [\"s3cret\"]}}"));
        check(Toml, &format!("{key} = {{ A = \"s3cret\", B = 's3cret' }} # yes"));
        check(Toml, &format!("[a.{key}]\nx = 1\nA = \"s3cret\""));
        check(Toml, &format!("{key}.\"A\".b = \"s3cret\""));
        check(Yaml, &format!("{key}: {{A: s3cret, \"B\": 's3cret'}} # yes"));
        check(Yaml, &format!("a:\n  {key}:\n    A: x\n    B: s3cret"));
        check(Yaml, &format!("a:\n  {key}:\n  - name: s3cret"));
    }
    for key in ["token", "API_KEY", "apiKey", "x-api-key", "clientSecret", "db_password"] {
        check(Json5, &format!("{{\"{key}\": \"s3cret\", \"other\": \"shown\"}}"));
        check(Json5, &format!("{{\"other\": \"shown\" \"{key}\": \"s3cret\"}}"));
        check(Json5, &format!("{{{key}: s3cret}}"));
        check(Toml, &format!("{key} = \"s3cret\""));
        check(Yaml, &format!("{key}: s3cret"));
        check(Yaml, &format!("- {{other: shown, {key}: s3cret}}"));
        check(Yaml, &format!("x: &anchor {{{key}: \"s3cret\"}}"));
        check(Yaml, &format!("{key}: |\n  s3cret"));
    }
}

#[test]
fn other_values_are_shown() {
    for text in [
        r#"{"mcpServers": {"github": {"command": "npx", "args": ["-y", "server"], "comand": 5}}}"#,
        r#"{"bearer_token_env_var": "GITHUB_TOKEN", "env_vars": ["TOKEN"], "max_tokens": 5}"#,
        r#"{"envFile": ".env", "url": "https://example.com/mcp", "env_http_headers": {"A": "B"}}"#,
        r#"{"env": {}, "after": "shown"}"#,
    ] {
        check(Json5, text);
        check(Yaml, text);
    }
    check(Json5, "{\"env\": {\"A\": \"x\"},\n \"command\": \"shown\"");
    check(Toml, "[a.env]\nA = 1\n[a]\ncommand = \"shown\" # of course");
    check(Toml, "token = \"x\"\ncommand = \"shown\"");
    check(Yaml, "env:\n  A: x\nmodel: shown");
    check(Yaml, "- env:\n    A: x\n  model: shown");
    check(Yaml, "system: Say: what you see");
}

#[test]
fn a_secret_in_an_option_a_url_or_a_comment_is_masked() {
    check(Json5, "{\"args\": [\"-y\", \"--token\", \"s3cret\", \"shown\"]}");
    check(Yaml, "args:\n  - --api-key\n  - s3cret");
    check(Yaml, "args: [--api-key, s3cret, shown]");
    let masked = |text: &str| last_line(text, Json5);
    assert_eq!(masked("[\"--token=s3cret\", \"a\"]"), "[\"**************\", \"a\"]");
    assert_eq!(masked("[\"http://h?k=s3cret\"]"), "[\"*****************\"]");
    assert!(!masked("{ // \"token\": \"s3cret\"").contains("s3cret"));
    assert!(!last_line("# token: s3cret", Yaml).contains("s3cret"));
    assert!(!last_line("a: b # token: s3cret", Yaml).contains("s3cret"));
}

#[test]
fn what_is_broken_before_lets_no_secret_out() {
    check(Json5, "{\"a\": \"open\n \"env\": {\"A\": \"s3cret");
    check(Json5, "{\"token\": \"s3cret\": 5}");
    check(Toml, "args = [\"a\"\n[a.env]\nA = \"s3cret\"");
    check(Toml, "token = \"\"\"x\ns3cret");
    check(Yaml, "a: [x\nenv:\n  A: s3cret");
    check(Yaml, "a: |\n  {open\nenv:\n  A: s3cret");
    check(Yaml, "token: \"s3cret");
}

proptest! {
    #[test]
    fn a_line_keeps_its_length(text in "[a-z{}\\[\\]\"'#,:=./*\\\\ \n-]{0,80}") {
        for format in [Json5, Toml, Yaml] {
            let last = text.split('\n').next_back().unwrap_or_default();
            prop_assert_eq!(last_line(&text, format).chars().count(), last.chars().count());
        }
    }
}
