//! EX-8.12, EX-8.13, and what a search does with the files it meets.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::{Duration, Instant};

use nix::sys::stat::Mode;
use nix::unistd::{geteuid, mkfifo};

use super::*;
use crate::source::builtin::bench::Bench;
use crate::tool::Typed;
use crate::tool::{Capability, Retention};

fn tool(bench: &Bench) -> Typed<GrepSearch> {
    Typed(GrepSearch::new(&bench.parts))
}

async fn grep(bench: &Bench, arguments: Value) -> String {
    bench.text(&tool(bench), arguments).await
}

#[tokio::test]
async fn ex_8_12_matching_lines_are_given_with_path_and_number() {
    let bench = Bench::new();
    bench.write("log.txt", "x\nneedle 1\r\ny needle");
    let expected = "log.txt:2: needle 1\nlog.txt:3: y needle";
    assert_eq!(grep(&bench, json!({"pattern": "needle"})).await, expected);
    assert_eq!(grep(&bench, json!({"pattern": "needle", "path": "log.txt"})).await, expected);
    assert_eq!(
        grep(&bench, json!({"pattern": "needle", "max_results": 1})).await,
        "log.txt:2: needle 1"
    );
    assert_eq!(grep(&bench, json!({"pattern": "needle$"})).await, "log.txt:3: y needle");
    assert_eq!(grep(&bench, json!({"pattern": r"1\Z"})).await, "log.txt:2: needle 1");
    let result = bench.call(&tool(&bench), json!({"pattern": "none"})).await.unwrap();
    assert!(!result.is_error() && result.content.is_empty());
}

#[tokio::test]
async fn ex_8_13_a_pattern_that_is_none_is_refused() {
    let bench = Bench::new();
    assert_eq!(
        grep(&bench, json!({"pattern": "("})).await,
        "Error[VALIDATION_ERROR]: invalid regex pattern (Context: pattern='(')"
    );
    assert_eq!(
        grep(&bench, json!({"pattern": "(?<=a+)b"})).await,
        "Error[VALIDATION_ERROR]: invalid regex pattern (Context: pattern='(?<=a+)b')"
    );
    assert_eq!(
        grep(&bench, json!({"pattern": r"\N{BULLET}"})).await,
        r"Error[VALIDATION_ERROR]: regex patterns here cannot have \N{…}; write the character itself or \u and its code (Context: pattern='\\N{BULLET}')"
    );
    let result = bench.call(&tool(&bench), json!({"pattern": "a)"})).await.unwrap();
    let reason = &result.error.unwrap().details["reason"];
    assert_eq!(reason, "unbalanced parenthesis at position 1");
}

#[tokio::test]
async fn the_path_is_judged_before_the_pattern_and_that_before_existence() {
    let bench = Bench::new();
    let outside = grep(&bench, json!({"pattern": "(", "path": "../x"})).await;
    assert!(outside.contains("PATH_OUTSIDE_WORKSPACE"), "{outside}");
    let pattern = grep(&bench, json!({"pattern": "(", "path": "none"})).await;
    assert!(pattern.contains("invalid regex pattern"), "{pattern}");
    assert_eq!(
        grep(&bench, json!({"pattern": "a", "path": "none"})).await,
        "Error[FILE_NOT_FOUND]: the path does not exist: none"
    );
}

#[tokio::test]
async fn t15_nothing_wanted_is_nothing_looked_at() {
    let bench = Bench::new();
    for arguments in [
        json!({"pattern": "(", "max_results": 0}),
        json!({"pattern": "a", "path": "../..", "max_results": 0}),
    ] {
        let result = bench.call(&tool(&bench), arguments).await.unwrap();
        assert!(!result.is_error() && result.content.is_empty());
    }
}

#[tokio::test]
async fn t16_our_own_folder_is_searched_only_from_within() {
    let bench = Bench::new();
    for name in [".iris/a", "d/.iris/b", "d/.iris/e/c", "d/f", ".irisx"] {
        bench.write(name, "needle");
    }
    bench.write("d/g/.iris", "needle in a file of that name");
    for (path, expected) in [
        (".", &[".irisx", "d/f", "d/g/.iris"][..]),
        ("d", &["d/f", "d/g/.iris"]),
        (".iris", &[".iris/a"]),
        (".iris/a", &[".iris/a"]),
        ("d/.iris", &["d/.iris/b", "d/.iris/e/c"]),
        ("d/.iris/e", &["d/.iris/e/c"]),
    ] {
        let text = grep(&bench, json!({"pattern": "needle", "path": path})).await;
        let mut found: Vec<&str> =
            text.lines().filter_map(|line| Some(line.split_once(':')?.0)).collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{path}");
    }
}

#[tokio::test]
async fn t16_a_binary_file_ends_at_its_first_invalid_byte() {
    let bench = Bench::new();
    bench.write("bin", b"needle 1\nneedle 2 \xff needle\nneedle 3\n");
    assert_eq!(grep(&bench, json!({"pattern": "needle"})).await, "bin:1: needle 1");
    bench.write("bin", b"a\0needle\n\x80");
    assert_eq!(grep(&bench, json!({"pattern": "needle"})).await, "bin:1: a\0needle");
}

#[tokio::test]
async fn lines_are_numbered_as_read_file_numbers_them() {
    let bench = Bench::new();
    bench.write("f", "a\rb\r\n\nneedle\r\r\nneedle");
    assert_eq!(grep(&bench, json!({"pattern": "needle"})).await, "f:4: needle\nf:6: needle");
    assert_eq!(grep(&bench, json!({"pattern": "^$"})).await, "f:3: \nf:5: ");
    bench.write("f", "");
    assert_eq!(grep(&bench, json!({"pattern": ""})).await, "");
}

#[tokio::test]
async fn only_files_of_the_workspace_are_searched() {
    let bench = Bench::new();
    fs::write(bench.outside("secret"), "needle").unwrap();
    symlink("../secret", bench.path("out")).unwrap();
    bench.write("d/in", "needle");
    symlink("d/in", bench.path("link")).unwrap();
    mkfifo(&bench.path("pipe"), Mode::S_IRWXU).unwrap();
    assert_eq!(
        grep(&bench, json!({"pattern": "needle"})).await,
        "d/in:1: needle\nd/in:1: needle",
        "the link counts as the file it leads to"
    );
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_mentioned() {
    let bench = Bench::new();
    bench.write("a", "needle");
    fs::set_permissions(bench.path("a"), fs::Permissions::from_mode(0o0)).unwrap();
    let expected = if geteuid().is_root() {
        "a:1: needle"
    } else {
        "[grep_search: cannot read: Permission denied (os error 13): a]"
    };
    assert_eq!(grep(&bench, json!({"pattern": "needle"})).await, expected);
}

#[tokio::test]
async fn a_line_beyond_the_bound_is_passed_over_and_told() {
    let bench = Bench::new();
    let mut content = "needle".repeat(LONGEST_LINE / 6 + 1);
    content.push_str("\nneedle\n");
    content.push_str(&"x".repeat(LONGEST_BACKTRACKED + 1));
    content.push_str("needle\nneedle");
    bench.write("f", &content);
    let text = grep(&bench, json!({"pattern": "^needle"})).await;
    assert_eq!(
        text,
        "f:2: needle\nf:4: needle\n[grep_search: not searched, longer than 8388608 bytes: f:1]"
    );
    let text = grep(&bench, json!({"pattern": "(?<!x)needle"})).await;
    assert_eq!(
        text,
        "f:2: needle\nf:4: needle\n[grep_search: not searched, longer than 16384 bytes: f:1, f:3]"
    );
}

#[tokio::test]
async fn a_long_pattern_is_not_searched_for_in_the_longest_lines() {
    let bench = Bench::new();
    // The engine may look at every part of the pattern for every byte.
    let pattern = format!("needle|{}", "y".repeat(16 * 1024 - 7));
    bench.write("f", format!("{}\nneedle", "y".repeat(LONGEST_LINE)));
    let text = grep(&bench, json!({"pattern": pattern})).await;
    let expected = "f:2: needle\n[grep_search: not searched, longer than 65536 bytes: f:1]";
    assert_eq!(text, expected);
}

#[tokio::test]
async fn a_result_beyond_the_bound_ends_the_search_and_is_told() {
    let bench = Bench::new();
    let line = "n".repeat(LONGEST_LINE - 1);
    bench.write("f", [line.as_str(); 4].join("\n"));
    let text = grep(&bench, json!({"pattern": "n"})).await;
    assert!(text.len() < LONGEST_RESULT + LONGEST_LINE);
    assert_eq!(text.lines().count(), 3);
    let note = "[grep_search: ended early, the results have 16777216 bytes: f:2]";
    assert_eq!(text.lines().last(), Some(note));
}

#[tokio::test]
async fn a_pattern_that_never_comes_to_an_end_is_given_up() {
    let bench = Bench::new();
    bench.write("f", format!("fine\n{}!\n", "a".repeat(2_000)));
    assert_eq!(
        grep(&bench, json!({"pattern": r"^(?:(a+)+\1)+$"})).await,
        "Error[EXECUTION_ERROR]: the pattern takes too many steps on f:2; \
         use a simpler pattern, or a path without that file (Context: pattern='^(?:(a+)+\\\\1)+$')"
    );
    // Without references and look-around, time is linear whatever the pattern.
    assert_eq!(grep(&bench, json!({"pattern": "^(a+)+$"})).await, "");
}

#[tokio::test]
async fn a_cancelled_search_ends_at_once_and_leaves_no_thread() {
    let bench = Bench::new();
    for folder in 0..30 {
        for file in 0..30 {
            bench.write(&format!("{folder}/{file}"), "line\n".repeat(2_000));
        }
    }
    fs::File::create(bench.path("huge")).unwrap().set_len(100 << 30).unwrap();
    let tool = tool(&bench);
    let call = bench.call(&tool, json!({"pattern": "needle"}));
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        bench.cx.cancelled.cancel();
        Instant::now()
    };
    let (result, cancelled_at) = tokio::join!(call, cancel);
    assert_eq!(result.unwrap_err(), Interrupt::Cancelled);
    assert!(cancelled_at.elapsed() < Duration::from_millis(500));
    // The runtime waits for its threads: if one went on, this test would take minutes.
}

#[test]
fn the_definition_is_the_contract() {
    let bench = Bench::new();
    let definition = tool(&bench).0.definition;
    assert_eq!(definition.name.as_str(), "grep_search");
    assert_eq!(definition.group, "file");
    assert_eq!(definition.retention, Retention::Observation);
    assert!(definition.capabilities.read_only() && definition.capabilities.has(Capability::Read));
    assert_eq!(Value::Object(definition.input_schema.document().clone()), schema());
}

#[tokio::test]
async fn a_pattern_that_is_hard_on_every_line_is_given_up_on_all_of_them() {
    let bench = Bench::new();
    // Each line is within its own limit.
    let line = format!("{}!\n", "a".repeat(22));
    bench.write("f", line.repeat(100));
    let answer = grep(&bench, json!({"pattern": r"^(?:(a+)+\1)+$"})).await;
    assert!(
        answer.starts_with("Error[EXECUTION_ERROR]: the search was given up at f:11"),
        "{answer}"
    );
    assert!(answer.contains("too many lines; use a simpler pattern"), "{answer}");
}
