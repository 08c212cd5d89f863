//! `${NAME}`, `${env:NAME}`, `${NAME:-default}`.

use std::collections::BTreeMap;

/// What other clients put there; none of it means anything here unless it has a default.
const CLIENT_WORDS: [&str; 4] =
    ["workspaceFolder", "userHome", "CLAUDE_PLUGIN_ROOT", "CLAUDE_PROJECT_DIR"];

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// The variable is not set, and there is no default.
    #[error("the environment variable `{0}` is not set; set it, or write `${{{0}:-default}}`")]
    NotSet(String),
    /// It is one of another client.
    #[error(
        "{}is no expression of ours; those are `${{NAME}}`, `${{env:NAME}}` and `${{NAME:-default}}`",
        .0.as_deref().map_or_else(|| "this ".to_owned(), |word| format!("`${{{word}}}` "))
    )]
    Unsupported(Option<String>),
}

/// Replaces every expression in a text, once: what comes in is not looked at again.
///
/// `$NAME` and an unclosed `${` are ordinary text. A default stands in for a variable that is not
/// set or empty, and may hold anything but `}`.
pub fn expand(text: &str, variables: &BTreeMap<String, String>) -> Result<String, ExpressionError> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, opened)) = rest.split_once("${") {
        let Some((inner, after)) = opened.split_once('}') else {
            break;
        };
        expanded.push_str(before);
        expanded.push_str(&value(inner, variables)?);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn value(inner: &str, variables: &BTreeMap<String, String>) -> Result<String, ExpressionError> {
    if CLIENT_WORDS.contains(&inner) {
        return Err(ExpressionError::Unsupported(Some(inner.to_owned())));
    }
    // `env:-x` is the variable `env` with a default.
    let reference = inner.strip_prefix("env:").filter(|name| !name.starts_with('-'));
    let reference = reference.unwrap_or(inner);
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference, None),
    };
    if !is_identifier(name) {
        // `input:x` is worth naming; anything less regular may be half a secret.
        let word = inner.split_once(':').filter(|(word, _)| is_identifier(word));
        return Err(ExpressionError::Unsupported(word.map(|(word, _)| format!("{word}:…"))));
    }
    match (variables.get(name), default) {
        (Some(value), None) => Ok(value.clone()),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value.clone()),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(ExpressionError::NotSet(name.to_owned())),
    }
}

fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
