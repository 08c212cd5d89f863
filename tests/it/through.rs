//! The protocol's conformance suite through the gateway, with a server behind it that offers all
//! that the suite looks for.
//!
//! Every scenario that a revision requires must pass, and none of its checks may fail. The suite
//! also runs extensions and what was added later; these don't count here.

use std::collections::BTreeSet;
use std::fs;

use serde_json::json;

use crate::binary::{Gateway, peer};
use crate::conformance::{Failed, failed, run_suite};
use crate::fixture::{Home, script};

#[test]
fn all_of_2025_11_25_passes_through() {
    check("2025-11-25", "legacy", 30);
}

#[test]
fn all_of_2026_07_28_passes_through() {
    check("2026-07-28", "modern", 37);
}

#[track_caller]
fn check(revision: &str, era: &str, count: usize) {
    let required = required(revision);
    assert_eq!(required.len(), count, "{revision} requires {required:#?}");

    let home = Home::new();
    home.serve(json!({ "suite": { "command": "python3", "args": [script("suite.py"), era] } }));
    let mut arguments = home.arguments();
    arguments.extend(["--names", "bare", "--approval", "client"].map(str::to_owned));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let gateway = Gateway::start(&arguments);
    let results = home.file("results");
    let report = run_suite(&gateway.url, revision, &results);

    let failed: Vec<Failed> =
        failed(&results).into_iter().filter(|check| required.contains(&check.scenario)).collect();
    let passed = passed(&report);
    let missing: Vec<&String> = required.difference(&passed).collect();
    assert!(
        failed.is_empty() && missing.is_empty(),
        "of {revision}\nfail: {failed:#?}\ndo not pass: {missing:#?}\n{report}"
    );
}

/// Returns the scenarios that servers must pass to conform to a revision.
#[track_caller]
fn required(revision: &str) -> BTreeSet<String> {
    let requirements = "npm/node_modules/@modelcontextprotocol/conformance/requirements";
    let list = peer(requirements).join(format!("{revision}.yaml"));
    let list = fs::read_to_string(list).expect("readable");
    let servers = list.lines().skip_while(|line| *line != "server:").skip(1);
    servers.map_while(|line| line.strip_prefix("  - ")).map(str::to_owned).collect()
}

/// Returns the scenarios that the suite's summary says have passed.
fn passed(report: &str) -> BTreeSet<String> {
    let lines = report.lines().filter_map(|line| line.strip_prefix("✓ "));
    lines.filter_map(|line| line.split_once(':')).map(|(scenario, _)| scenario.to_owned()).collect()
}
