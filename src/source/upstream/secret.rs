//! Text that must not be shown by accident.

use std::fmt;

/// A text that a log or a debugger shows as `[redacted]`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// The shortest value that is taken for a secret where a server repeats it.
const SECRET_CHARS: usize = 8;

/// Takes the values of variables out of a text; short ones and paths are no secrets.
pub(super) fn masked<'a>(text: &str, secrets: impl Iterator<Item = &'a Secret>) -> String {
    let values = secrets.map(Secret::expose);
    let secret = |value: &&str| value.len() >= SECRET_CHARS && !value.starts_with('/');
    values.filter(secret).fold(text.to_owned(), |text, value| text.replace(value, "***"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_repeats_of_its_variables_is_not_told() {
        let secrets = ["s3cret-value", "short", "/a/long/path"].map(Secret::new);
        let told = masked("s3cret-value is short, s3cret-value /a/long/path", secrets.iter());
        assert_eq!(told, "*** is short, *** /a/long/path");
    }
}
