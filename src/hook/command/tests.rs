//! What the answers of commands mean, and what is wrong with those that mean nothing.

use std::time::Duration;

use super::{answer_of, nothing, text_alone};
use crate::command::capture::{BUDGET, Capture};
use crate::command::{Outcome, Status, Truncation};
use crate::hook::{Event, HookError};
use crate::tool::Interrupt;

fn printed(stdout: &[u8]) -> Outcome {
    let mut capture = Capture::new(BUDGET);
    capture.push(stdout);
    Outcome {
        status: Status::Exited,
        exit_code: Some(0),
        stdout: capture.end(),
        stderr: Capture::new(BUDGET).end(),
        truncation: Vec::new(),
        duration: Duration::ZERO,
    }
}

fn before(outcome: &Outcome) -> Result<Option<String>, String> {
    said(outcome, Event::Before, "deny_reason")
}

fn said(outcome: &Outcome, event: Event, key: &str) -> Result<Option<String>, String> {
    answer_of(outcome, Duration::from_millis(1500))
        .and_then(|mut answer| text_alone(&mut answer, event, key))
        .map_err(|error| error.to_string())
}

#[test]
fn ex_14_2_a_reason_denies_and_feedback_is_said() {
    let reason = before(&printed(br#"{"deny_reason":"no writes on Friday"}"#));
    assert_eq!(reason, Ok(Some("no writes on Friday".to_owned())));
    let feedback =
        said(&printed(b"{\"feedback\": \"mention the diff\"}\n"), Event::After, "feedback");
    assert_eq!(feedback, Ok(Some("mention the diff".to_owned())));
    assert_eq!(before(&printed(b" {} \n")), Ok(None));
}

#[test]
fn j3_what_is_no_answer_is_told_with_what_came() {
    let one = "its command must print one JSON object on standard output, and printed ";
    let fields = "for `tool.before` its command may print `{}` or `{\"deny_reason\": \"…\"}` with a text that is not blank, and printed ";
    let long = format!("[{}]", "x".repeat(300));
    let table: Vec<(&[u8], String)> = vec![
        (b"", format!("{one}nothing; `{{}}` says that there is nothing to say")),
        (b" \n", format!("{one}nothing; `{{}}` says that there is nothing to say")),
        (b"ok", format!("{one}`ok`")),
        (b"{}{}", format!("{one}`{{}}{{}}`")),
        (b"{}\n{}\n", format!("{one}`{{}}\n{{}}`")),
        (b"{", format!("{one}`{{`")),
        (b"[]", format!("{one}`[]`")),
        (b"null", format!("{one}`null`")),
        (b"\"{}\"", format!("{one}`\"{{}}\"`")),
        (b"{\"deny_reason\": \"\xff\"}", format!("{one}20 bytes that are not UTF-8")),
        (long.as_bytes(), format!("{one}`[{}…`", "x".repeat(199))),
        (b"{\"deny_reason\":\" \"}", format!("{fields}`{{\"deny_reason\": \" \"}}`")),
        (b"{\"deny_reason\":null}", format!("{fields}`{{\"deny_reason\": null}}`")),
        (b"{\"deny_reason\":1}", format!("{fields}`{{\"deny_reason\": 1}}`")),
        (b"{\"feedback\":\"x\"}", format!("{fields}`{{\"feedback\": \"x\"}}`")),
        (
            b"{\"deny_reason\":\"x\",\"more\":1}",
            format!("{fields}`{{\"deny_reason\": \"x\", \"more\": 1}}`"),
        ),
    ];
    for (stdout, expected) in table {
        assert_eq!(before(&printed(stdout)), Err(expected));
    }
}

#[test]
fn j3_a_run_is_answered_with_nothing() {
    let heard = |stdout: &[u8]| {
        let answer = answer_of(&printed(stdout), Duration::ZERO);
        answer.and_then(|answer| nothing(&answer, Event::RunStarted)).map_err(|e| e.to_string())
    };
    assert_eq!(heard(b"{}"), Ok(()));
    let message = "for `run.started` its command may print only `{}`, and printed `{\"x\": 1}`";
    assert_eq!(heard(b"{\"x\":1}"), Err(message.to_owned()));
}

#[test]
fn j3_a_command_that_did_not_end_well_has_no_answer() {
    let ended = |status, exit_code, truncation: &[Truncation]| {
        let truncation = truncation.to_vec();
        before(&Outcome { status, exit_code, truncation, ..printed(b"{}") }).unwrap_err()
    };
    let exited = Status::Exited;
    assert_eq!(ended(Status::TimedOut, None, &[]), "it took longer than 1.5 s");
    assert_eq!(ended(exited, Some(1), &[]), "its command ended with exit code 1");
    assert_eq!(ended(exited, Some(-9), &[]), "its command was ended by signal 9");
    let both = [Truncation::ByteLimit, Truncation::DrainTimeout];
    assert_eq!(
        ended(exited, Some(0), &both),
        "what its command printed could not be kept whole (byte_limit, drain_timeout)"
    );
    let cancelled = Outcome { status: Status::Cancelled, exit_code: None, ..printed(b"") };
    let answer = answer_of(&cancelled, Duration::ZERO);
    assert_eq!(answer, Err(HookError::Interrupted(Interrupt::Cancelled)));
}
