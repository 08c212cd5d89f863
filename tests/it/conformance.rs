//! The protocol's own conformance suite against the gateway, in both eras.
//!
//! What fails is listed, check by check, in `tests/conformance/`. A check that fails and is not
//! listed fails the test, and so does one that is listed and passes: the lists only shrink.
//! `UPDATE_EXPECT=1` writes them anew.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::binary::{Gateway, command, peer, run};

const LIMIT: Duration = Duration::from_secs(150);

#[test]
fn conforms_to_2025_11_25() {
    check("2025-11-25");
}

#[test]
fn conforms_to_2026_07_28() {
    check("2026-07-28");
}

#[track_caller]
fn check(revision: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let workspace = folder.path().join("workspace");
    fs::create_dir(&workspace).expect("a new folder");
    let gateway = Gateway::start(&["--workspace", &workspace.to_string_lossy()]);
    let results = folder.path().join("results");
    let report = run_suite(&gateway.url, revision, &results);
    let failed = failed_checks(&results, &report);

    let list = list_of(revision);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        write_list(&list, &failed);
        return;
    }
    let expected = read_list(&list);
    let new: Vec<&String> = failed.difference(&expected).collect();
    let gone: Vec<&String> = expected.difference(&failed).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "against {}\nfail and are not listed: {new:#?}\nare listed and pass: {gone:#?}\n{report}",
        list.display(),
    );
}

/// Runs what a revision requires and returns what the suite printed.
#[track_caller]
pub(crate) fn run_suite(url: &str, revision: &str, results: &Path) -> String {
    let mut suite = command(peer("npm/node"));
    suite.arg(peer("npm/node_modules/@modelcontextprotocol/conformance/dist/index.js"));
    suite.args(["server", "--url", url, "--requirements", revision, "-o"]).arg(results);
    let ended = run(suite, LIMIT);
    let summary = ended.stdout.split_once("=== SUMMARY ===").map(|(_, summary)| summary.to_owned());
    summary.unwrap_or_else(|| panic!("the suite came to no end: {ended:?}"))
}

/// A check that failed.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) scenario: String,
    pub(crate) check: String,
    /// What the suite says of it; only shown.
    #[expect(dead_code, reason = "shown when a test fails")]
    pub(crate) why: Value,
}

/// Reads the checks that failed out of a folder of results.
#[track_caller]
pub(crate) fn failed(results: &Path) -> Vec<Failed> {
    let mut failed = Vec::new();
    for entry in fs::read_dir(results).expect("readable") {
        let path = entry.expect("readable").path();
        let checks = fs::read_to_string(path.join("checks.json")).expect("readable");
        let checks: Vec<Value> = serde_json::from_str(&checks).expect("a list of checks");
        let scenario = scenario_of(&path);
        let failures = checks.iter().filter(|check| check["status"] == "FAILURE");
        failed.extend(failures.map(|check| Failed {
            scenario: scenario.clone(),
            check: check["id"].as_str().expect("an id").to_owned(),
            why: check["errorMessage"].clone(),
        }));
    }
    failed
}

/// Returns `scenario:check` for each failed check, and `scenario` for one that failed without any.
fn failed_checks(results: &Path, report: &str) -> BTreeSet<String> {
    let checks = failed(results).into_iter();
    let mut failed: BTreeSet<String> =
        checks.map(|failed| format!("{}:{}", failed.scenario, failed.check)).collect();
    for line in report.lines().filter_map(|line| line.strip_prefix("✗ ")) {
        let scenario = line.split(':').next().unwrap_or(line);
        let prefix = format!("{scenario}:");
        if !failed.iter().any(|check| check.starts_with(&prefix)) {
            failed.insert(scenario.to_owned());
        }
    }
    failed
}

/// A folder of results is called `server-SCENARIO-2026-12-01T10-54-38-153Z`.
fn scenario_of(folder: &Path) -> String {
    const TIME: usize = "-2026-12-01T10-54-38-153Z".len();
    let name = folder.file_name().expect("a name").to_string_lossy();
    let name = name.strip_prefix("server-").unwrap_or(&name);
    name[..name.len() - TIME].to_owned()
}

fn list_of(revision: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    folder.join(format!("expected-failures-{revision}.txt"))
}

fn read_list(list: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(list).expect("readable");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

fn write_list(list: &Path, failed: &BTreeSet<String>) {
    let old = fs::read_to_string(list).unwrap_or_default();
    let comments = old.lines().filter(|line| line.starts_with('#'));
    let lines: Vec<&str> = comments.chain(failed.iter().map(String::as_str)).collect();
    fs::write(list, lines.join("\n") + "\n").expect("written");
}
