//! Why a source failed: what clients may know of it, and what is for the operator alone.

use std::fmt;

/// The most characters of a reason that a model is told.
const BRIEF_CHARS: usize = 400;

/// Why a source failed.
///
/// It displays as its operator is told of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// What may be told to clients.
    pub reason: String,
    /// What helps the operator alone: where it stands in a file, or where a program was looked for.
    pub detail: Option<String>,
}

impl Cause {
    /// Adds what is for the operator alone.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<Option<String>>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Returns the reason in one line, not too long, for a model.
    pub fn brief(&self) -> String {
        let line = self.reason.lines().next().unwrap_or_default();
        match line.char_indices().nth(BRIEF_CHARS) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line.to_owned(),
        }
    }
}

impl From<String> for Cause {
    fn from(reason: String) -> Self {
        Self { reason, detail: None }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.detail {
            Some(detail) => write!(f, "{} ({detail})", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_told_one_line_without_what_is_for_the_operator() {
        let cause = Cause::from(format!("{}\nmore", "x".repeat(1000)));
        let cause = cause.with_detail("PATH is /bin".to_owned());
        assert_eq!(cause.brief(), format!("{}…", "x".repeat(400)));
        assert!(cause.to_string().ends_with("more (PATH is /bin)"));
    }
}
