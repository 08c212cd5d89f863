//! Proof that the checks refuse: first on samples, then in a copy of the real tree.

use std::fs;
use std::path::{Path, PathBuf};

use super::checks;
use super::source::Source;
use super::{over, src};

#[track_caller]
fn check(check: impl Fn(&Source) -> Vec<String>, name: &str, text: &str, expected: &[&str]) {
    assert_eq!(check(&Source::new(name, text)), expected, "in {name}:\n{text}");
}

#[test]
fn arrows_are_found_in_every_form() {
    let refused = "permission/table.rs:1: permission must not use executor";
    let arrows = |text: &str, expected: &[&str]| {
        check(checks::arrows, "permission/table", text, expected);
    };
    arrows("use crate::executor::Executor;", &[refused]);
    arrows("use crate::{tool::Tool, executor::{Call, Permitted}};", &[refused]);
    arrows("use crate::{tool::{Call, Tool}, executor};", &[refused]);
    arrows("pub(crate) use crate :: executor as other;", &[refused]);
    arrows("fn run() { crate::executor::run(); }", &[refused]);
    arrows("use super::super::executor::Executor;", &[refused]);
    arrows("use crate::*;", &["permission/table.rs:1: permission must not use *"]);
    arrows(
        "use crate::{\n    tool::Tool,\n    executor::Call,\n};",
        &["permission/table.rs:3: permission must not use executor"],
    );
    arrows("use crate::nowhere::X;", &["permission/table.rs:1: permission must not use nowhere"]);
}

#[test]
fn what_is_no_arrow_is_left_alone() {
    let arrows = |text: &str| check(checks::arrows, "permission", text, &[]);
    arrows("use crate::tool::{Call, Tool};\nuse crate::permission::Policy;");
    arrows("pub(crate) struct Policy;\npub(in crate::permission) struct Inner;");
    arrows("// use crate::executor::Executor;\n/* crate::executor /* crate::app */ crate::cli */");
    arrows("const A: &str = \"crate::executor\";\nconst B: &str = r#\"\"crate::executor\"#;");
    arrows("fn split<'a>(text: &'a str) -> char { '\"' }\n// crate::executor \"\nfn next() {}");
    arrows("#[cfg(test)]\nmod tests {\n    use super::*;\n    use crate::executor::Call;\n}");
    arrows("#[cfg(test)]\n#[track_caller]\nfn check(a: [u8; 2]) { crate::executor::run() }");
    arrows("mod inner { use super::super::Policy; }");
    check(checks::arrows, "permission/tests", "use crate::executor::Call;", &[]);
    check(checks::arrows, "lib", "pub use crate::executor::Call;", &[]);
}

#[test]
fn code_after_a_test_module_is_seen() {
    check(
        checks::arrows,
        "permission",
        "#[cfg(test)]\nmod tests { fn x() { if true {} } }\nuse crate::executor::Call;",
        &["permission.rs:3: permission must not use executor"],
    );
}

#[test]
fn unowned_crates_are_found() {
    let refused = |line: usize| {
        format!("permission.rs:{line}: rmcp belongs to [\"server\", \"source/upstream\"]")
    };
    check(checks::owners, "permission", "use rmcp::model::Tool;", &[&refused(1)]);
    check(checks::owners, "permission", "use {\n  rmcp::model::Tool,\n};", &[&refused(2)]);
    check(checks::owners, "permission", "fn a(_: ::rmcp::Peer) {}", &[&refused(1)]);
    check(checks::owners, "permission", "use rmcp as other;", &[&refused(1)]);
    check(checks::owners, "permission", "use ::rmcp;", &[&refused(1)]);
    check(checks::owners, "permission", "fn a() { <A>::rmcp() }", &[]);
    check(checks::owners, "server", "use rmcp::model::Tool;", &[]);
    check(checks::owners, "server/http/auth", "use axum::Router;", &[]);
    check(checks::owners, "source/upstream/client", "use rmcp::model::Tool;", &[]);
    check(checks::owners, "permission", "// rmcp::model\nfn rmcp() { inner::rmcp::x() }", &[]);
    check(checks::owners, "hook/tests", "use nix::unistd::mkfifo;", &[]);
    let tested = "#[cfg(test)]\nmod tests { use rmcp::Peer; }";
    check(checks::owners, "permission", tested, &[&refused(2)]);
    let axum = "server/names.rs:1: axum belongs to [\"server/http\"]";
    check(checks::owners, "server/names", "use axum::Router;", &[axum]);
    let upstreams = "source/upstreams.rs:1: rmcp belongs to [\"server\", \"source/upstream\"]";
    check(checks::owners, "source/upstreams", "use rmcp::Peer;", &[upstreams]);
}

#[test]
fn prints_are_found() {
    let refused = "hook.rs:2: println! outside cli";
    check(checks::prints, "hook", "fn a() {\n    println!(\"x\");\n}", &[refused]);
    check(checks::prints, "hook", "fn a() { dbg!(1); }", &["hook.rs:1: dbg! outside cli"]);
    check(checks::prints, "cli/tools", "fn a() { println!(\"x\"); }", &[]);
    check(checks::prints, "hook", "/// Not `println!(1)`.\nfn a() { write!(out, \"\"); }", &[]);
}

#[test]
fn length_counts_no_tests() {
    let long = |lines: usize| format!("//! A.\n{}", "fn a() {}\n".repeat(lines - 1));
    check(checks::length, "hook", &long(500), &[]);
    check(checks::length, "hook", &long(501), &["hook.rs: 501 lines"]);
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", long(300));
    check(checks::length, "hook", &format!("{}{tests}", long(500)), &[]);
    check(checks::length, "hook/tests", &long(900), &[]);
}

#[test]
fn openings_and_names_are_found() {
    check(checks::opening, "hook", "use std::fs;\n", &["hook.rs: no `//!` at the top"]);
    check(checks::opening, "hook", "//! Hooks.\n", &[]);
    for name in ["hook/utils", "hook/common", "helpers", "misc/a", "hook/mod", "manager"] {
        assert_eq!(checks::names(&Source::new(name, "")).len(), 1, "{name}");
    }
    check(checks::names, "hook/command", "", &[]);
}

#[test]
fn a_module_without_a_row_is_found() {
    check(checks::rows, "extra/inner", "", &["extra/inner.rs: extra has no row"]);
    check(checks::rows, "tool/inner", "", &[]);
}

#[test]
fn documents_are_compared() {
    let sources = [Source::new("tool", ""), Source::new("hook", ""), Source::new("lib", "")];
    let map =
        "## Code map\n| module | what |\n|---|---|\n| `tool` | x |\n| `relay` | y |\n## Next\n";
    let expected = ["code map: hook is missing", "code map: there is no relay"];
    assert_eq!(checks::code_map(map, &sources), expected);

    let contract = "## Error codes\n| code | when |\n| `A1`, `A2` | x |\n";
    let codes = "const A: ErrorCode = ErrorCode::new(\"A2\");\nfn b() { ErrorCode::new(\"B1\") }";
    let source = Source::new("tool", codes);
    assert_eq!(checks::error_codes(contract, &source), ["tool.rs:2: B1 is in no table"]);
}

#[test]
fn an_example_without_a_test_is_refused() {
    let contract = "a (EX-1.1) b (EX-2.1 to EX-2.3, EX-10.2) `EX-n.n`";
    let tests = "fn ex_1_1_a() {} // EX-2.1 and EX-2.2; EX-2.31, ex_10_20";
    let refused = ["EX-10.2 is in no test", "EX-2.3 is in no test"];
    assert_eq!(checks::examples(contract, tests), refused);
}

#[test]
fn a_pain_without_a_test_is_refused() {
    let table = "## What goes wrong elsewhere\n| a | b | test |\n|---|---|---|\n\
        | it hurts | `x` is done | `is_there`, `is_not` |\n| it hurts | so | none |\n## Next\n| a | `b` |\n";
    let refused = ["there is no test is_not", "no test is named: none"];
    assert_eq!(checks::pains(table, "fn is_there() {} fn is_not_at_all() {}"), refused);
}

/// Copies `src/` and hands out the copy.
fn copy_of_the_tree(name: &str) -> PathBuf {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if copy.exists() {
        fs::remove_dir_all(&copy).expect("removable");
    }
    copy_folder(&src(), &copy);
    copy
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a new folder");
    for entry in fs::read_dir(from).expect("readable") {
        let path = entry.expect("readable").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target).expect("copied");
        }
    }
}

/// Appends `text` to a file of a copy, and shows that the check held before and refuses after.
#[track_caller]
fn plant(name: &str, file: &str, text: &str, check: fn(&Source) -> Vec<String>, refusal: &str) {
    let copy = copy_of_the_tree(name);
    assert_eq!(over(&copy, check), [] as [&str; 0], "before planting");
    let path = copy.join(file);
    let before = fs::read_to_string(&path).expect("readable");
    fs::write(&path, format!("{before}\n{text}\n")).expect("written");
    let after = over(&copy, check);
    assert!(after.len() == 1 && after[0].ends_with(refusal), "{after:?}");
    assert!(after[0].starts_with(file), "{after:?}");
}

#[test]
fn a_planted_arrow_is_refused() {
    let text = "use crate::{\n    tool::Call,\n    server::{Gateway, http},\n};";
    plant("arrow", "tool/result.rs", text, checks::arrows, ": tool must not use server");
}

#[test]
fn a_planted_print_is_refused() {
    let text = "fn stray() {\n    println!(\"here\");\n}";
    plant("print", "tool/result.rs", text, checks::prints, ": println! outside cli");
}

#[test]
fn a_planted_long_file_is_refused() {
    let text = "fn stray() {}\n".repeat(501);
    plant("long", "tool/result.rs", &text, checks::length, " lines");
}

#[test]
fn a_planted_crate_is_refused() {
    let text = "use rmcp::model::Tool as Stray;";
    let refusal = ": rmcp belongs to [\"server\", \"source/upstream\"]";
    plant("crate", "tool/result.rs", text, checks::owners, refusal);
}
