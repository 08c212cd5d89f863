//! The question that a person is asked about a call, and the answers there are; pure.

use serde_json::{Map, Value, json};

use crate::artifact::preview::preview;
use crate::permission::Request;
use crate::tool::PreviewMode;
use crate::tool::printed::unmasked;

/// The most characters of arguments that a question shows.
const SHOWN_CHARS: usize = 2_000;

/// A person's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// This call may run.
    Once,
    /// This call may run, and others of the tool until the session ends.
    Session,
    /// It must not run.
    Refuse,
}

/// Makes the parameters of `elicitation/create`: one choice, and what it is about.
///
/// An answer for the whole session is only offered where the session is one client's own.
pub(super) fn form(request: &Request, offers_session: bool) -> Map<String, Value> {
    let Request { tool, arguments, reason, .. } = request;
    let arguments = format!("{:#}", Value::Object(arguments.clone()));
    let shown = unmasked(&preview(&arguments, SHOWN_CHARS, PreviewMode::HeadTail));
    let choices =
        if offers_session { &["once", "session", "refuse"][..] } else { &["once", "refuse"] };
    let explained = if offers_session {
        "once: this call; session: this tool until the session ends; refuse: it does not run"
    } else {
        "once: this call; refuse: it does not run"
    };
    let form = json!({
        "mode": "form",
        "message": format!("Allow the call of {tool}? {}.\n{shown}", sentence(reason)),
        "requestedSchema": {
            "type": "object",
            "properties": {
                "answer": {"type": "string", "title": "Answer", "description": explained, "enum": choices}
            },
            "required": ["answer"],
        },
    });
    match form {
        Value::Object(form) => form,
        _ => unreachable!("written as an object above"),
    }
}

/// Reads a client's result; whatever is no plain yes is a no.
pub(super) fn answer(result: &Value, offers_session: bool) -> Answer {
    let accepted = result.get("action").and_then(Value::as_str) == Some("accept");
    match result.pointer("/content/answer").and_then(Value::as_str) {
        Some("once") if accepted => Answer::Once,
        Some("session") if accepted && offers_session => Answer::Session,
        _ => Answer::Refuse,
    }
}

/// Returns whether a client says that it can show a form.
pub(super) fn can_show_form(capabilities: &Map<String, Value>) -> bool {
    match capabilities.get("elicitation") {
        Some(Value::Object(modes)) => modes.is_empty() || modes.contains_key("form"),
        _ => false,
    }
}

fn sentence(reason: &str) -> String {
    let mut characters = reason.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_no_plain_yes_is_a_no() {
        let check = |result: Value, expected: Answer| {
            assert_eq!(answer(&result, true), expected, "{result}");
        };
        check(json!({"action": "accept", "content": {"answer": "once"}}), Answer::Once);
        check(json!({"action": "accept", "content": {"answer": "session"}}), Answer::Session);
        for no in [
            json!({"action": "accept", "content": {"answer": "refuse"}}),
            json!({"action": "accept", "content": {"answer": "yes"}}),
            json!({"action": "accept", "content": {}}),
            json!({"action": "accept"}),
            json!({"action": "decline", "content": {"answer": "once"}}),
            json!({"action": "cancel"}),
            json!({}),
            json!(null),
        ] {
            check(no, Answer::Refuse);
        }
        let session = json!({"action": "accept", "content": {"answer": "session"}});
        assert_eq!(answer(&session, false), Answer::Refuse);
    }

    #[test]
    fn a_form_needs_the_client_to_say_so() {
        let check = |capabilities: Value, expected: bool| {
            assert_eq!(
                can_show_form(capabilities.as_object().unwrap()),
                expected,
                "{capabilities}"
            );
        };
        check(json!({}), false);
        check(json!({"elicitation": {}}), true);
        check(json!({"elicitation": {"form": {}, "url": {}}}), true);
        check(json!({"elicitation": {"url": {}}}), false);
        check(json!({"elicitation": null}), false);
    }
}
