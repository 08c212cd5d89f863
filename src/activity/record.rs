//! One record: what is in it, and its line in a file.

use std::time::{Duration, SystemTime};

use serde::Serialize;

use super::Decided;

/// The most characters of a name that somebody else chose.
const SHOWN_CHARS: usize = 64;

/// What is to be said of a call that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    /// When it ended.
    pub(super) time: SystemTime,
    pub(super) call_id: &'a str,
    pub(super) tool: &'a str,
    pub(super) principal: &'a str,
    pub(super) session: &'a str,
    pub(super) client: &'a str,
    pub(super) decided: Decided,
    /// `OK` or a code.
    pub(super) outcome: &'a str,
    pub(super) took: Duration,
}

/// The keys of a line, in their order.
#[derive(Serialize)]
struct Line<'a> {
    time: String,
    call_id: &'a str,
    tool: &'a str,
    principal: &'a str,
    session: &'a str,
    client: &'a str,
    decision: &'a str,
    rule: Option<&'a str>,
    approved_by: Option<&'a str>,
    outcome: &'a str,
    duration_ms: f64,
}

impl Record<'_> {
    /// Writes it to the log.
    pub(super) fn log(&self) {
        let Self { time: _, call_id, tool, principal, session, client, decided, outcome, took } =
            self;
        tracing::info!(
            call.id = call_id,
            tool.name = tool,
            principal,
            session.id = session,
            client.name = client,
            decision = decided.effect,
            rule = decided.rule,
            approved_by = decided.by,
            outcome,
            duration_ms = milliseconds(*took),
            "call"
        );
    }

    /// Returns its line in a file, with the line feed.
    pub(super) fn line(&self) -> String {
        let Self { time, call_id, tool, principal, session, client, decided, outcome, took } =
            *self;
        let line = Line {
            time: humantime::format_rfc3339_millis(time).to_string(),
            call_id,
            tool,
            principal,
            session,
            client,
            decision: decided.effect,
            rule: decided.rule,
            approved_by: decided.by,
            outcome,
            duration_ms: milliseconds(took),
        };
        let json = serde_json::to_string(&line).expect("texts and a finite number are JSON");
        harmless(&json) + "\n"
    }
}

/// Returns the beginning of a name that somebody else chose.
pub(super) fn shown(name: &str) -> &str {
    let end = name.char_indices().nth(SHOWN_CHARS).map_or(name.len(), |(end, _)| end);
    &name[..end]
}

/// Escapes what JSON lets through and a terminal or another reader of lines would act upon.
fn harmless(json: &str) -> String {
    let is_bad = |character: char| matches!(character, '\u{7f}'..='\u{9f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !json.contains(is_bad) {
        return json.to_owned();
    }
    let escaped = json.chars().map(|character| match character {
        bad if is_bad(bad) => format!("\\u{:04x}", u32::from(bad)),
        good => good.to_string(),
    });
    escaped.collect()
}

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
