//! Text that must not be shown by accident.

use std::fmt;

use url::Url;

use crate::document::secret::is_secret;

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

/// Returns what of the arguments of a program is a secret by the name it is given under: the `V` of
/// `--token=V`, `--api-key V`, `API_KEY=V` and `Authorization: Bearer V`, and what a URL hides.
pub(super) fn in_arguments(arguments: &[String]) -> Vec<Secret> {
    let mut found = Vec::new();
    let mut is_value = false;
    for argument in arguments {
        if is_value {
            found.push(argument.as_str());
        }
        let mut rest = argument.as_str();
        while let Some((name, value)) = rest.split_once(['=', ':']) {
            if !name.contains('/') && is_secret(name) {
                found.push(value);
                break;
            }
            rest = value;
        }
        // `--header`, `X-Api-Key: V` is a name of its own, and `--env`, `REGION=V` none.
        is_value = argument.starts_with('-')
            && !argument.contains('=')
            && is_secret(argument)
            && !matches!(argument.trim_start_matches('-'), "env" | "headers");
    }
    let words = found.into_iter().flat_map(|value| {
        let word = value.trim();
        // A scheme such as `Bearer` is none.
        [word].into_iter().chain(word.split_once(' ').map(|(_, rest)| rest.trim()))
    });
    let mut secrets: Vec<Secret> = words.map(Secret::new).collect();
    let urls = arguments.iter().filter_map(|argument| {
        Url::parse(argument.split_at(argument.find("http").unwrap_or(0)).1).ok()
    });
    secrets.extend(urls.flat_map(|url| in_url(&url)));
    // The longest first: another may be a part of it.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
    secrets
}

/// Returns what of a URL may be a secret: its user, its password, and the values of its query.
pub(super) fn in_url(url: &Url) -> Vec<Secret> {
    let mut found = vec![url.username().to_owned(), url.password().unwrap_or_default().to_owned()];
    found.extend(url.query().map(str::to_owned));
    let raw = url.query().unwrap_or_default().split('&');
    found.extend(raw.filter_map(|pair| Some(pair.split_once('=')?.1.to_owned())));
    found.extend(url.query_pairs().map(|(_, value)| value.into_owned()));
    found.into_iter().map(Secret::new).collect()
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
    fn what_arguments_give_under_a_secret_name_is_not_told() {
        let arguments = [
            "-y",
            "--token=SECRETARG1234",
            "--api-key",
            "SECRETARG5678",
            "--header",
            "Authorization: Bearer SECRETARG9012",
            "-e",
            "DB_PASSWORD=SECRETARG3456",
            "--remote=https://me:SECRETARG7890@example.com/mcp?key=SECRETARG1111",
            "--header=X-Api-Key: SECRETARG2222",
            "--verbose",
            "shown-value",
            "--root=/srv/shown",
        ];
        let secrets = in_arguments(&arguments.map(str::to_owned));
        let told = masked(&arguments.join(" "), secrets.iter());
        assert!(!told.contains("SECRETARG"), "{told}");
        assert!(
            told.contains("--token=*** --api-key ***") && told.contains("example.com"),
            "{told}"
        );
        assert!(told.ends_with("--verbose shown-value --root=/srv/shown"), "{told}");
    }

    #[test]
    fn what_a_server_repeats_of_its_variables_is_not_told() {
        let secrets = ["s3cret-value", "short", "/a/long/path"].map(Secret::new);
        let told = masked("s3cret-value is short, s3cret-value /a/long/path", secrets.iter());
        assert_eq!(told, "*** is short, *** /a/long/path");
    }
}
