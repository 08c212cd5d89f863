//! What a server that is a process said before it failed: on standard error, or else on standard
//! output.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::process::ChildStdout;

use crate::lines::{Line, Lines};
use crate::process::{Child, Exit};

/// How long a server that failed to answer is given to say why.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(500);
/// How many lines are told, beside the one that names the error.
const TOLD_LINES: usize = 5;
/// How many stray lines are kept, and how many characters of each.
const KEPT: (usize, usize) = (20, 1000);

/// The last lines of a server that failed.
#[derive(Debug, Default)]
pub(super) struct LastWords(Mutex<Vec<String>>);

/// The last lines on a server's standard output that were no messages; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Stray {
    lines: Arc<Mutex<VecDeque<String>>>,
    /// The standard output, for what nobody has read when its server has ended.
    output: Option<Arc<tokio::sync::Mutex<Lines<ChildStdout>>>>,
}

impl LastWords {
    /// Waits a moment, and returns how the server ended, if it did, and what it wrote last.
    ///
    /// What it repeats of its variables is `masked`.
    pub(super) async fn hear(
        &self,
        child: &Child,
        stray: &Stray,
        masked: impl Fn(&str) -> String,
    ) -> (Option<Exit>, String) {
        let exit = tokio::time::timeout(LAST_WORDS, child.wait()).await.ok();
        let mut lines = told(&child.last_stderr());
        if lines.is_empty() {
            if exit.is_some() {
                // What it has started may hold its output open.
                drop(tokio::time::timeout(LAST_WORDS, stray.read_on()).await);
            }
            lines = told(&stray.get());
        }
        let lines: Vec<String> = lines.iter().map(|line| masked(line)).collect();
        let words = joined(&lines);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = lines;
        (exit, words)
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

impl Stray {
    /// Makes a place for the stray lines of an output.
    pub(super) fn beside(output: &Arc<tokio::sync::Mutex<Lines<ChildStdout>>>) -> Self {
        Self { output: Some(Arc::clone(output)), ..Self::default() }
    }

    /// Reads what a server that has ended has left: one that could not be written to any more was
    /// not read from either.
    async fn read_on(&self) {
        let Some(output) = &self.output else { return };
        while let Ok(Some(line)) = output.lock().await.next().await {
            match line {
                // A late message says nothing of why.
                Line::Whole(line) if line.starts_with(b"{") => {}
                Line::Whole(line) => self.push(&String::from_utf8_lossy(&line)),
                Line::TooLong => {}
            }
        }
    }

    /// Notes a line.
    pub(super) fn push(&self, line: &str) {
        let (most, characters) = KEPT;
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == most {
            lines.pop_front();
        }
        lines.push_back(line.chars().take(characters).collect());
    }

    fn get(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

fn joined(lines: &[String]) -> String {
    if lines.is_empty() {
        String::new()
    } else {
        format!("; its last words: {}", lines.join(" | "))
    }
}

/// Returns the last lines that say something, and before them the first that names an error.
///
/// What went wrong often stands above a long trace of where.
fn told(lines: &[String]) -> Vec<String> {
    let lines: Vec<&String> = lines.iter().filter(|line| !line.trim().is_empty()).collect();
    let last = lines.len().saturating_sub(TOLD_LINES);
    let error = lines.iter().position(|line| names_error(line)).filter(|at| *at < last);
    let gap = error.filter(|at| at + 1 < last).map(|_| "…".to_owned());
    let error = error.map(|at| lines[at].clone());
    error.into_iter().chain(gap).chain(lines[last..].iter().copied().cloned()).collect()
}

/// Says whether a line looks like the one that names an error, in whatever language.
fn names_error(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_error = |word: &str| {
        let word = word.to_lowercase();
        ["error", "exception", "fatal", "panic"].iter().any(|end| word.ends_with(end))
    };
    let ends_with_colon = words.iter().enumerate().any(|(at, word)| {
        let Some(word) = word.strip_suffix(':') else { return false };
        // `Error:`, `KeyError:`, `error[E0432]:`, and `Error [ERR_MODULE_NOT_FOUND]:`.
        match (word.split_once('['), at.checked_sub(1)) {
            (Some(("", _)), Some(before)) => is_error(words[before]),
            (Some((word, _)), _) => is_error(word),
            (None, _) => is_error(word),
        }
    });
    let is_loud = |word: &&str| {
        matches!(word.trim_matches(|c: char| !c.is_alphanumeric()), "ERROR" | "FATAL" | "ERR")
    };
    ends_with_colon
        || line.contains("panicked at")
        || words.iter().any(is_loud)
        || matches!(words.as_slice(), ["npm", "error", ..])
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

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_line_that_names_the_error_is_told_beside_the_last_ones() {
        let node = "node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\n\
            Error: Cannot find module '/srv/server.js'\n    at Module._resolveFilename\n    at a\n    \
            at b\n    at c\n  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v22.1.0\n\n";
        let shown = told(&lines(node));
        assert_eq!(shown[..2], ["Error: Cannot find module '/srv/server.js'", "…"]);
        assert_eq!(shown.last().unwrap(), "Node.js v22.1.0");
        assert_eq!(shown.len(), 2 + TOLD_LINES);
        // One that is among the last is not told twice, and nothing is left out in silence.
        let python =
            "Traceback:\n  File\n\n    import x\nModuleNotFoundError: No module named 'x'\n";
        assert_eq!(told(&lines(python)), lines(python.replace("\n\n", "\n").as_str()));
        assert_eq!(told(&lines("error: a\n1\n2\n3\n4\n5")), lines("error: a\n1\n2\n3\n4\n5"));
        assert_eq!(told(&lines("\n \n")), Vec::<String>::new());
    }

    #[test]
    fn errors_are_known_in_many_languages() {
        for line in [
            "Error: Cannot find module 'x'",
            "Uncaught TypeError: x is not a function",
            "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'",
            "error: unexpected argument '--x'",
            "error[E0432]: unresolved import",
            "server.py: error: the following arguments are required: root",
            "thread 'main' panicked at src/main.rs:2:5:",
            "panic: runtime error: index out of range",
            "Exception in thread \"main\" java.lang.NullPointerException: x",
            "2026-01-01 12:00:00 [ERROR] no database",
            "npm ERR! code E404",
            "npm error code E404",
        ] {
            assert!(names_error(line), "{line}");
        }
        for line in ["    at Module._load", "listening on 8080", "0 errors", "the error was mine"] {
            assert!(!names_error(line), "{line}");
        }
    }
}
