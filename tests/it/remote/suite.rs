//! The conformance suite as an upstream: what the protocol wants of clients.

use std::time::Duration;

use crate::binary::{command, exe, peer, run};
use crate::fixture::script;

/// How long a scenario may take.
const LIMIT: Duration = Duration::from_mins(1);

#[track_caller]
fn check(revision: &str, scenarios: &[&str]) {
    for scenario in scenarios {
        let mut suite = command(peer("npm/node"));
        suite.arg(peer("npm/node_modules/@modelcontextprotocol/conformance/dist/index.js"));
        let client = format!("python3 {} {}", script("conformance_client.py"), exe());
        suite.args(["client", "--command", &client, "--scenario", scenario]);
        suite.args(["--spec-version", revision]);
        let ended = run(suite, LIMIT);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains("OVERALL: PASSED"), "{scenario}: {said}");
        assert!(!said.contains("Passed: 0/0"), "{scenario}: nothing was checked: {said}");
    }
}

#[test]
fn a_client_of_2025_11_25() {
    check("2025-11-25", &["initialize", "tools_call", "sse-retry"]);
}

#[test]
fn a_client_of_2026_07_28() {
    let scenarios = [
        "tools_call",
        "request-metadata",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        "sep-2322-client-request-state",
    ];
    check("2026-07-28", &scenarios);
}
