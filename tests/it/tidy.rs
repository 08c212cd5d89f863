//! The architecture as a test: what the compiler doesn't check and a reviewer would overlook.

mod checks;
mod planted;
mod source;
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use self::source::{Source, read_tree};
use self::table::{MODULES, Uses};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn src() -> PathBuf {
    root().join("src")
}

/// Runs a check over every file of `src`.
fn over(src: &Path, check: impl Fn(&Source) -> Vec<String>) -> Vec<String> {
    read_tree(src).iter().flat_map(check).collect()
}

#[track_caller]
fn holds(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n  {}\n", wrong.join("\n  "));
}

#[test]
fn modules_use_only_what_stands_in_their_row() {
    holds(&over(&src(), checks::arrows));
}

#[test]
fn every_module_has_a_row() {
    holds(&over(&src(), checks::rows));
}

#[test]
fn the_table_is_an_order_from_low_to_high() {
    for (row, (name, uses)) in MODULES.iter().enumerate() {
        let Uses::Only(used) = uses else { continue };
        for used in *used {
            let above = MODULES[..row].iter().any(|(other, _)| other == used);
            assert!(above, "{name} uses {used}, which does not stand above it");
        }
    }
}

#[test]
fn outside_crates_are_named_by_their_owners() {
    holds(&over(&src(), checks::owners));
}

#[test]
fn only_the_command_line_prints() {
    holds(&over(&src(), checks::prints));
}

#[test]
fn files_are_short_enough_to_be_read() {
    holds(&over(&src(), checks::length));
}

#[test]
fn files_say_what_they_are_for() {
    holds(&over(&src(), checks::opening));
}

#[test]
fn file_names_say_what_is_in_them() {
    holds(&over(&src(), checks::names));
}

#[test]
fn the_code_map_lists_the_modules() {
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("readable");
    holds(&checks::code_map(&architecture, &read_tree(&src())));
    assert!(architecture.lines().count() <= 150, "ARCHITECTURE.md is too long to be read");
}

#[test]
fn the_contract_lists_the_error_codes() {
    let contract = fs::read_to_string(root().join("docs/contract.md")).expect("readable");
    holds(&over(&src(), |source| checks::error_codes(&contract, source)));
}

#[test]
fn the_contracts_worked_examples_are_in_tests() {
    let contract = fs::read_to_string(root().join("docs/contract.md")).expect("readable");
    let sources = read_tree(&src());
    // Those of Python tools need an interpreter.
    let python = fs::read_to_string(root().join("tests/it/python.rs")).expect("readable");
    let texts = sources.iter().map(|source| source.text.as_str());
    let texts: Vec<&str> = texts.chain([python.as_str()]).collect();
    holds(&checks::examples(&contract, &texts.concat()));
}

#[test]
fn the_contracts_answers_to_pains_are_in_tests() {
    let contract = fs::read_to_string(root().join("docs/contract.md")).expect("readable");
    let (sources, tests) = (read_tree(&src()), read_tree(&root().join("tests/it")));
    let code: Vec<&str> = sources.iter().chain(&tests).map(|file| file.code.as_str()).collect();
    holds(&checks::pains(&contract, &code.concat()));
}
