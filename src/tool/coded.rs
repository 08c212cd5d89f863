//! Codes in the text of a failure, for tools whose failures are nothing but text.

use crate::tool::result::EXECUTION_ERROR;
use crate::tool::{ErrorCode, Failure};

/// The one code that a text may name in any group.
const ARTIFACT_ERROR: &str = "ARTIFACT_ERROR";

/// Makes a failure of a text, which names its code as `CODE: message` on a single line.
///
/// Only the group `file` has codes of its own; elsewhere the text may hold anything and is not
/// searched, but for `ARTIFACT_ERROR`.
pub fn failure(group: &str, text: &str) -> Failure {
    let allowed = group == "file" || text.starts_with(ARTIFACT_ERROR);
    match split(text).filter(|_| allowed) {
        Some((code, message)) => Failure::new(ErrorCode::named(code), message),
        None => Failure::new(EXECUTION_ERROR, text),
    }
}

fn split(text: &str) -> Option<(&str, &str)> {
    let (code, message) = text.split_once(':')?;
    let mut characters = code.chars();
    let first = characters.next()?;
    let is_code = first.is_ascii_uppercase()
        && code.len() >= 2
        && characters.all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let message = message.strip_suffix('\n').unwrap_or(message).trim_start();
    (is_code && !message.is_empty() && !message.contains('\n')).then_some((code, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(group: &str, text: &str, code: &str, message: &str) {
        let failure = failure(group, text);
        assert_eq!(
            (failure.code.as_str(), failure.message.as_str()),
            (code, message),
            "{group} {text:?}"
        );
    }

    #[test]
    fn ex_4_1_a_file_tool_names_its_code() {
        check("file", "FILE_NOT_FOUND: no such file", "FILE_NOT_FOUND", "no such file");
    }

    #[test]
    fn ex_4_2_another_tool_does_not() {
        check(
            "core",
            "FILE_NOT_FOUND: no such file",
            "EXECUTION_ERROR",
            "FILE_NOT_FOUND: no such file",
        );
        check("core", "ARTIFACT_ERROR: disk full", "ARTIFACT_ERROR", "disk full");
    }

    #[test]
    fn ex_4_3_a_code_has_two_characters_and_is_upper_case() {
        check("file", "A: b", "EXECUTION_ERROR", "A: b");
        check("file", "E1:x", "E1", "x");
        check("file", "ab: c", "EXECUTION_ERROR", "ab: c");
        check("file", "1E: c", "EXECUTION_ERROR", "1E: c");
    }

    #[test]
    fn ex_4_4_a_code_is_for_a_single_line() {
        check("file", "FILE_NOT_FOUND: a\nwarn", "EXECUTION_ERROR", "FILE_NOT_FOUND: a\nwarn");
        check("file", "FILE_NOT_FOUND: a\n", "FILE_NOT_FOUND", "a");
    }
}
