//! What a server that is a process said on standard error before it failed.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::process::Child;

/// How long a server that failed to answer is given to say why.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(500);
/// How many lines are told.
const TOLD_LINES: usize = 5;

/// The last lines of a server that failed.
#[derive(Debug, Default)]
pub(super) struct LastWords(Mutex<Vec<String>>);

impl LastWords {
    /// Waits a moment; says whether the server ended and how, and what it wrote last.
    ///
    /// What it repeats of its variables is `masked`.
    pub(super) async fn hear(
        &self,
        child: &Child,
        masked: impl Fn(&str) -> String,
    ) -> (bool, String) {
        let exit = tokio::time::timeout(LAST_WORDS, child.wait()).await.ok();
        let ended = exit.is_some();
        let how = exit.map(|exit| format!("; it ended: {exit}")).unwrap_or_default();
        let mut lines = child.last_stderr();
        lines.drain(..lines.len().saturating_sub(TOLD_LINES));
        let lines: Vec<String> = lines.iter().map(|line| masked(line)).collect();
        let words = how + &joined(&lines);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = lines;
        (ended, words)
    }

    /// Takes a reason for a failure and the lines in it apart.
    pub(super) fn apart(&self, reason: &str) -> (Vec<String>, String) {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match reason.strip_suffix(&joined(&lines)) {
            Some(reason) => (lines.clone(), reason.to_owned()),
            // They are another failure's.
            None => (Vec::new(), reason.to_owned()),
        }
    }
}

fn joined(lines: &[String]) -> String {
    if lines.is_empty() {
        String::new()
    } else {
        format!("; its last words: {}", lines.join(" | "))
    }
}

/// Writes an error with everything behind it.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
