//! The pipeline, stage by stage: T8 to T12 and the rules of hooks and wrappers.

mod fixture;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use self::fixture::{Answer, Bench, Log, Note, Wrap, approvals, cx, tool};
use super::*;
use crate::hook::{Registration, Verdict};
use crate::middleware::MiddlewareError;
use crate::permission::{Config as Permissions, Mode};
use crate::tool::Capability::{Mcp, Write};
use crate::tool::{Block, CallTraits, TimeoutOwner};

fn text(result: &Result<ToolResult, Interrupt>) -> String {
    match result {
        Ok(result) => result.model_content(),
        Err(interrupt) => format!("{interrupt:?}"),
    }
}

#[tokio::test]
async fn every_stage_runs_in_order() {
    let log = Log::default();
    let bench = Bench::new(&log)
        .hook("h1", Event::Before, Note::default())
        .hook("h2", Event::Before, Note::default())
        .hook("a1", Event::After, Note { feedback: Some("one"), ..Note::default() })
        .hook("a2", Event::After, Note { feedback: Some("two"), ..Note::default() })
        .wrap("A", Wrap::Pass)
        .wrap("B", Wrap::Pass);
    let result = bench.call(tool("t", &log)).await;
    assert_eq!(text(&result), "done\n[Hook feedback]\none\n[Hook feedback]\ntwo");
    // EX-4.5: the first wrapper is outermost.
    assert_eq!(
        log.take(),
        ["validate", "h1", "h2", "A-pre", "B-pre", "body", "B-post", "A-post", "a1", "a2"]
    );
}

#[tokio::test]
async fn h2_a_hook_is_for_a_tool_by_both_its_names() {
    let log = Log::default();
    let hook = |bench: Bench, name| bench.hook(name, Event::Before, Note::default()).only(name);
    let bench = ["t", "called", "other"].into_iter().fold(Bench::new(&log), hook);
    bench.call_as("called", tool("t", &log)).await.unwrap();
    assert_eq!(log.take(), ["validate", "t", "called", "body"]);
}

#[tokio::test]
async fn bad_arguments_reach_no_stage() {
    let log = Log::default();
    let bench = Bench::new(&log).hook("h", Event::Before, Note::default()).wrap("A", Wrap::Pass);
    let result = bench.call(tool("t", &log).refusing()).await;
    assert_eq!(text(&result), "Error[VALIDATION_ERROR]: no");
    assert_eq!(log.take(), ["validate"]);
}

#[tokio::test]
async fn t8_a_write_that_needs_a_person_is_refused_and_nothing_happens() {
    let log = Log::default();
    let bench = Bench::new(&log).hook("h", Event::Before, Note::default());
    let result = bench.call(tool("write_note", &log).with([Write])).await.unwrap();
    let failure = result.error.clone().unwrap();
    assert_eq!(failure.code, PERMISSION_ERROR);
    assert_eq!(failure.details["effect"], "require_human");
    assert_eq!(failure.details["require_confirmation"], true);
    assert_eq!(log.take(), ["validate"]);
}

#[tokio::test]
async fn t9_an_approval_holds_for_its_call_and_never_for_a_denial() {
    let check = async |writes: Mode, approved: &'static str, expected: &str| {
        let log = Log::default();
        let permissions = Permissions { writes, ..Permissions::default() };
        let bench = Bench::new(&log).permissions(permissions).approver(approvals(approved));
        let result = bench.call(tool("write_note", &log).with([Write])).await;
        assert_eq!(text(&result), expected, "{writes:?} {approved}");
    };
    let refused = "Error[PERMISSION_ERROR]: this call needs a person's approval: nobody is there";
    check(Mode::Confirm, "call-1", "done").await;
    check(Mode::Confirm, "call-2", refused).await;
    check(
        Mode::Deny,
        "call-1",
        "Error[PERMISSION_ERROR]: writing is denied by the policy (permissions.writes)",
    )
    .await;
    check(Mode::Allow, "", "done").await;
}

#[tokio::test]
async fn an_answer_decides_and_whatever_goes_wrong_is_no() {
    for (answer, expected) in [
        (Answer::Yes, "done"),
        (Answer::No, "Error[USER_REJECTED]: the user rejected the call"),
        (
            Answer::Nobody,
            "Error[PERMISSION_ERROR]: this call needs a person's approval: nobody is there",
        ),
        (
            Answer::Later,
            "Error[PERMISSION_ERROR]: this call needs a person's approval: nobody can be asked in the middle of this call",
        ),
    ] {
        let log = Log::default();
        let bench = Bench::new(&log).approver(answer);
        assert_eq!(text(&bench.call(tool("t", &log).with([Mcp])).await), expected);
    }
}

#[tokio::test]
async fn a_person_tool_needs_a_runtime_and_can_not_need_a_person_too() {
    let log = Log::default();
    let bench = Bench::new(&log).approver(Answer::Yes);
    let result = bench.call(tool("ask", &log).human()).await;
    assert_eq!(
        text(&result),
        "Error[HITL_REQUIRED]: a question for a person needs a runtime that asks it"
    );
    let result = bench.call(tool("ask", &log).human().with([Mcp])).await;
    assert_eq!(
        text(&result),
        "Error[PERMISSION_ERROR]: a tool that asks a person cannot also need a person's approval"
    );
    assert!(!log.take().contains(&"body".to_owned()));
}

#[tokio::test]
async fn a_hook_that_denies_or_fails_stops_the_call() {
    let deny = |reason: &'static str| Note { verdict: Some(reason), ..Note::default() };
    for (note, expected) in [
        (deny("not today"), "Error[HOOK_REJECTED]: not today"),
        (deny("  "), "Error[HOOK_ERROR]: the hook h1 failed: it refused without a reason"),
        (Note { fails: true, ..Note::default() }, "Error[HOOK_ERROR]: the hook h1 failed: broken"),
        (
            Note { hangs: true, ..Note::default() },
            "Error[HOOK_ERROR]: the hook h1 failed: it took longer than 0.05 s",
        ),
    ] {
        let log = Log::default();
        let bench = Bench::new(&log)
            .hook("h1", Event::Before, note)
            .hook("h2", Event::Before, Note::default())
            .hook("a", Event::After, Note::default())
            .wrap("A", Wrap::Pass);
        assert_eq!(text(&bench.call(tool("t", &log)).await), expected);
        assert_eq!(log.take(), ["validate", "h1"]);
    }
}

#[tokio::test]
async fn a_panicking_hook_stops_the_call() {
    let log = Log::default();
    let bench =
        Bench::new(&log).hook("h1", Event::Before, Note { panics: true, ..Note::default() });
    let result = text(&bench.call(tool("t", &log)).await);
    assert_eq!(result, "Error[HOOK_ERROR]: the hook h1 failed: it panicked; the log says how");
}

#[tokio::test]
async fn a_hook_is_for_the_name_used_in_the_call() {
    let log = Log::default();
    let only = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect());
    let note =
        Note { log: Some(log.clone()), name: "h".into(), verdict: Some("no"), ..Note::default() };
    let registration = |tools| Registration {
        event: Event::Before,
        name: "h".into(),
        tools,
        timeout: Duration::from_secs(1),
        hook: Arc::new(note.clone()),
    };
    let call = |name: &str| Call { tool_name: name.into(), ..fixture::call() };
    let hooks = Hooks::new(
        vec![registration(only(&["other"])), registration(only(&["alias"]))],
        TaskTracker::new(),
    );
    assert_eq!(hooks.before(&call("t")).await, Ok(None));
    assert_eq!(
        hooks.before(&call("alias")).await,
        Ok(Some(Failure::new(crate::hook::HOOK_REJECTED, "no")))
    );
}

#[tokio::test]
async fn a_failing_after_hook_changes_nothing() {
    for note in [
        Note { fails: true, ..Note::default() },
        Note { hangs: true, ..Note::default() },
        Note { panics: true, ..Note::default() },
        Note { feedback: Some(" "), ..Note::default() },
    ] {
        let log = Log::default();
        let bench = Bench::new(&log).hook("a1", Event::After, note).hook(
            "a2",
            Event::After,
            Note { feedback: Some("still"), ..Note::default() },
        );
        assert_eq!(text(&bench.call(tool("t", &log)).await), "done\n[Hook feedback]\nstill");
    }
}

#[tokio::test]
async fn an_after_hook_sees_whether_the_body_failed() {
    let log = Log::default();
    let bench = Bench::new(&log)
        .hook("a", Event::After, Note { status: true, ..Note::default() })
        .wrap("A", Wrap::Replace("fine"));
    assert_eq!(
        text(&bench.call(tool("t", &log).failing()).await),
        "fine\n[Hook feedback]\nbody failed: true"
    );
    assert_eq!(
        text(&bench.call(tool("t", &log)).await),
        "fine\n[Hook feedback]\nbody failed: false"
    );
}

#[tokio::test]
async fn t10_a_short_circuit_skips_the_body_the_breaker_and_the_after_hooks() {
    let log = Log::default();
    let bench = Bench::new(&log)
        .breaker(1)
        .hook("a", Event::After, Note::default())
        .wrap("A", Wrap::Short("cached"));
    assert_eq!(text(&bench.call(tool("t", &log).failing()).await), "cached");
    assert_eq!(text(&bench.call(tool("t", &log).failing()).await), "cached");
    assert!(!log.take().iter().any(|step| step == "body" || step == "a"));
}

#[tokio::test]
async fn t10_a_wrapper_that_fails_first_is_the_error_and_one_that_fails_late_is_not() {
    let check = async |wrap: Wrap, expected: &str| {
        let log = Log::default();
        let bench = Bench::new(&log).wrap("A", wrap);
        assert_eq!(text(&bench.call(tool("t", &log)).await), expected);
    };
    check(Wrap::FailFirst, "Error[MIDDLEWARE_ERROR]: broken").await;
    check(Wrap::FailLate, "done").await;
    check(Wrap::Outrun("early"), "done").await;
    check(Wrap::Stash, "nothing").await;
}

#[tokio::test]
async fn t10_a_stashed_rest_of_the_chain_can_not_run_later() {
    let log = Log::default();
    let stash = fixture::stash();
    let bench = Bench::new(&log).wrap_with(stash.clone());
    assert_eq!(text(&bench.call(tool("t", &log)).await), "nothing");
    let late = stash.run_late().await.unwrap();
    assert_eq!(late.error.unwrap().code, crate::tool::result::EXECUTION_ERROR);
    assert!(!log.take().contains(&"body".to_owned()));
}

#[tokio::test]
async fn a_panicking_wrapper_is_a_failing_one() {
    let log = Log::default();
    let bench = Bench::new(&log).wrap("A", Wrap::Panic);
    let result = text(&bench.call(tool("t", &log)).await);
    assert_eq!(result, "Error[MIDDLEWARE_ERROR]: a middleware panicked; the log says how");
}

#[tokio::test]
async fn an_interrupt_wins_over_any_result_of_a_wrapper() {
    for wrap in [Wrap::Pass, Wrap::Replace("fine"), Wrap::FailLate, Wrap::Outrun("early")] {
        let log = Log::default();
        let bench = Bench::new(&log).wrap("A", wrap);
        let result = bench.call(tool("t", &log).unknown()).await;
        assert!(matches!(result, Err(Interrupt::OutcomeUnknown { .. })), "{result:?}");
    }
}

#[tokio::test]
async fn the_breaker_counts_bodies_and_opens_for_the_canonical_name() {
    let log = Log::default();
    let bench = Bench::new(&log).breaker(2).wrap("A", Wrap::Replace("fine"));
    assert_eq!(text(&bench.call(tool("t", &log).failing()).await), "fine");
    assert_eq!(text(&bench.call(tool("t", &log).failing()).await), "fine");
    let open = bench.call(tool("t", &log)).await.unwrap();
    let failure = open.error.unwrap();
    assert_eq!(failure.code, CIRCUIT_OPEN);
    assert_eq!(failure.details["last_error_code"], "E1");
    assert_eq!(text(&bench.call(tool("other", &log)).await), "fine");
}

#[tokio::test]
async fn refusals_do_not_count_for_the_breaker() {
    let log = Log::default();
    let bench = Bench::new(&log).breaker(1);
    let refused = bench.call(tool("t", &log).refusing()).await;
    assert!(refused.is_ok());
    let denied = bench.call(tool("t", &log).with([Write])).await;
    assert!(denied.is_ok());
    assert_eq!(text(&bench.call(tool("t", &log)).await), "done");
}

#[tokio::test]
async fn t11_results_are_in_the_order_of_calls() {
    let log = Log::default();
    let bench = Bench::new(&log);
    let running = Arc::new(AtomicUsize::new(0));
    let slow = tool("slow", &log).waiting_for(&running, 2).answering("first");
    let fast = tool("fast", &log).waiting_for(&running, 1).answering("second");
    let write = tool("write", &log).with([Write]);
    let last = tool("last", &log).answering("third");
    let calls = [slow, fast, write, last].map(|tool| (Bench::requested(tool), cx())).into();
    let results = bench.executor().execute_many(calls, &Answer::Nobody).await;
    let texts: Vec<String> = results.iter().map(text).collect();
    assert_eq!(texts[0], "first");
    assert_eq!(texts[1], "second");
    assert!(texts[2].starts_with("Error[PERMISSION_ERROR]"));
    assert_eq!(texts[3], "third");
    assert_eq!(running.load(Ordering::SeqCst), 2, "both readers ran at once");
}

#[tokio::test]
async fn t12_what_a_tool_says_about_context_is_not_believed() {
    let claim = json!({"context_revealed_tools": ["x"], "context_retention": "keep", "extra": {"context_revealed_tools": ["x"], "kept": 1}});
    let log = Log::default();
    let bench = Bench::new(&log);
    let claiming = |claim: &serde_json::Value| tool("t", &log).claiming(claim.clone());
    let result = bench.call(claiming(&claim)).await.unwrap();
    assert_eq!(
        serde_json::Value::Object(result.metadata),
        json!({"extra": {"kept": 1}, "context_retention": "observation", "context_tool_name": "t"})
    );
    let genuine = bench.call(claiming(&claim).searching()).await.unwrap();
    assert_eq!(genuine.metadata["context_revealed_tools"], json!(["x"]));
    let failed = bench.call(claiming(&claim).searching().failing()).await.unwrap();
    assert!(!failed.metadata.contains_key("context_revealed_tools"));
}

#[tokio::test]
async fn the_result_carries_the_identity_of_its_call() {
    let log = Log::default();
    let result = Bench::new(&log).call(tool("t", &log)).await.unwrap();
    assert_eq!((result.call_id.as_str(), result.tool_name.as_str()), ("call-1", "t"));
}

#[tokio::test]
async fn a_tool_can_not_speak_for_the_hooks() {
    let log = Log::default();
    let result = Bench::new(&log).call(tool("t", &log).with_feedback("mine")).await.unwrap();
    assert_eq!(result.content, [Block::Text("done".into())]);
    assert!(result.hook_feedback.is_empty());
}

#[tokio::test]
async fn a_panicking_body_and_a_panicking_check_are_internal_errors() {
    let log = Log::default();
    let bench = Bench::new(&log).hook("a", Event::After, Note { status: true, ..Note::default() });
    let expected =
        "Error[INTERNAL_ERROR]: the tool t has a bug and did not finish; the log has the details";
    let result = bench.call(tool("t", &log).panicking()).await;
    assert_eq!(text(&result), format!("{expected}\n[Hook feedback]\nbody failed: true"));
    let result = bench.call(tool("t", &log).panicking_early()).await;
    assert_eq!(text(&result), expected);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_takes_too_long_is_ended_unless_it_ends_itself() {
    let log = Log::default();
    let bench = Bench::new(&log);
    let mut context = cx();
    context.time_limit = Some(Duration::from_secs(2));
    let result =
        bench.call_in(tool("t", &log).sleeping(Duration::from_mins(1)), context.clone()).await;
    assert_eq!(text(&result), "Error[TOOL_TIMEOUT]: the tool took longer than 2 s");
    let own = CallTraits {
        read_only: true,
        destructive: false,
        parallel: true,
        timeout_owner: TimeoutOwner::Tool,
    };
    let result =
        bench.call_in(tool("t", &log).sleeping(Duration::from_mins(1)).traits(own), context).await;
    assert_eq!(text(&result), "done");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_has_no_result_and_no_after_hooks() {
    let log = Log::default();
    let bench = Bench::new(&log).hook("a", Event::After, Note::default());
    let context = cx();
    let token = context.cancelled.clone();
    let call = bench.call_in(tool("t", &log).sleeping(Duration::from_mins(1)), context);
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        token.cancel();
    };
    let (result, ()) = tokio::join!(call, cancel);
    assert_eq!(result.unwrap_err(), Interrupt::Cancelled);
    assert_eq!(log.take(), ["validate", "body"]);
}

#[tokio::test]
async fn a_long_refusal_is_cut_and_saved_nowhere() {
    let log = Log::default();
    let bench = Bench::new(&log);
    let message = "x".repeat(300);
    let result = bench.call(tool("t", &log).refusing_with(&message).limited_to(120)).await.unwrap();
    let content = result.model_content();
    assert_eq!(content.chars().count(), 120, "{content}");
    assert!(content.starts_with("Error[VALIDATION_ERROR]: xxx"), "{content}");
    assert!(content.ends_with("x\n[the error message was cut]"), "{content}");
    assert!(result.artifact.is_none());
}

/// Returns what the only record in a file says of decision, rule, approval and outcome.
fn recorded(file: &std::path::Path) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    let record: serde_json::Value = serde_json::from_str(text.trim_end()).unwrap();
    let said = |key: &str| record[key].as_str().unwrap_or("-").to_owned();
    ["decision", "rule", "approved_by", "outcome"].map(said).join(" ")
}

#[tokio::test]
async fn every_end_of_a_call_is_recorded_once() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::default();
    let t = || tool("t", &log);
    let bench = || Bench::new(&log);
    let deny = Permissions { writes: Mode::Deny, ..Permissions::default() };
    let no = Note { verdict: Some("no"), ..Note::default() };
    let asked = "require_human default";
    let allowed = "allow read-only -";
    let table = vec![
        (bench(), t(), format!("{allowed} OK")),
        (bench(), t().refusing(), "none - - VALIDATION_ERROR".to_owned()),
        (bench(), t().panicking_early(), "none - - INTERNAL_ERROR".to_owned()),
        (bench(), t().panicking(), format!("{allowed} INTERNAL_ERROR")),
        (bench(), t().failing(), format!("{allowed} E1")),
        (bench(), t().unknown(), format!("{allowed} TOOL_OUTCOME_UNKNOWN")),
        (bench().hook("h", Event::Before, no), t(), format!("{allowed} HOOK_REJECTED")),
        (bench().wrap("A", Wrap::Panic), t(), format!("{allowed} MIDDLEWARE_ERROR")),
        (
            bench().permissions(deny),
            t().with([Write]),
            "deny writes: deny - PERMISSION_ERROR".to_owned(),
        ),
        (bench(), t().with([Mcp]), format!("{asked} - PERMISSION_ERROR")),
        (bench().approver(Answer::Yes), t().with([Mcp]), format!("{asked} tester OK")),
        (bench().approver(Answer::No), t().with([Mcp]), format!("{asked} - USER_REJECTED")),
        (bench().approver(Answer::Later), t().with([Mcp]), format!("{asked} - PERMISSION_ERROR")),
        (bench().approver(approvals("call-1")), t().with([Mcp]), format!("{asked} a grant OK")),
        (bench(), t().human(), format!("{allowed} HITL_REQUIRED")),
    ];
    for (number, (bench, tool, expected)) in table.into_iter().enumerate() {
        let file = folder.path().join(number.to_string());
        drop(bench.recording(&file).call(tool).await);
        assert_eq!(recorded(&file), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_waits_for_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::default();
    for (number, (answer, expected)) in
        [(Answer::Yes, "tester"), (Answer::Never, "-")].into_iter().enumerate()
    {
        for given_up in [true, false] {
            let file = folder.path().join(format!("{number}{given_up}"));
            let bench = Bench::new(&log).approver(answer).recording(&file);
            let context = cx();
            let token = context.cancelled.clone();
            let slow = tool("t", &log).with([Mcp]).sleeping(Duration::from_mins(1));
            let mut call = Box::pin(bench.call_in(slow, context));
            let waited = tokio::time::timeout(Duration::from_secs(1), &mut call).await;
            assert!(waited.is_err(), "it is under way");
            if given_up {
                token.cancel();
                assert_eq!(call.await.unwrap_err(), Interrupt::Cancelled);
            } else {
                drop(call);
            }
            assert_eq!(recorded(&file), format!("require_human default {expected} CANCELLED"));
        }
    }
}

#[tokio::test]
async fn a_question_leaves_a_record_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::default();
    let file = folder.path().join("calls");
    let bench = Bench::new(&log).recording(&file);
    let asked = Bench::requested(tool("t", &log).with([Mcp]));
    let prepared = bench.executor().prepare(asked, &cx(), &Answer::Later).await.unwrap();
    let Prepared::Ask(ask) = prepared else { panic!("{prepared:?}") };
    assert_eq!(bench.executor().put_off(&ask).tool, "t");
    drop(ask);
    assert_eq!(recorded(&file), "require_human default - INPUT_REQUIRED");
}

#[test]
fn a_wrapper_hands_an_interrupt_on_with_a_question_mark() {
    let error = MiddlewareError::from(Interrupt::Cancelled);
    assert_eq!(error, MiddlewareError::Interrupted(Interrupt::Cancelled));
    assert_eq!(Verdict::Continue, Verdict::Continue);
}

#[tokio::test]
async fn t17_a_result_as_long_as_the_limit_stays_and_one_more_character_is_kept() {
    let (log, root) = (Log::default(), tempfile::tempdir().unwrap());
    let bench = Bench::new(&log).keeping(root.path(), 10_000);
    let text = "é".repeat(300);
    let whole = bench.call(tool("t", &log).answering(&text).limited_to(300)).await.unwrap();
    assert_eq!(whole.model_content(), text);
    assert!(whole.artifact.is_none());
    assert!(!root.path().join(".iris").exists());
    let longer = format!("{text}x");
    let cut = bench.call(tool("t", &log).answering(&longer).limited_to(300)).await.unwrap();
    assert!(cut.model_chars() <= 300);
    let artifact = cut.artifact.as_ref().unwrap();
    assert_eq!(std::fs::read_to_string(&artifact.path).unwrap(), longer);
    assert_eq!(artifact.text_path.as_ref(), Some(&artifact.path));
    assert_eq!((cut.call_id.as_str(), cut.tool_name.as_str()), ("call-1", "t"));
    assert_eq!(cut.metadata["context_tool_name"], "t");
}

#[tokio::test]
async fn what_hooks_add_counts_and_is_kept_too() {
    let (log, root) = (Log::default(), tempfile::tempdir().unwrap());
    let note = Note { feedback: Some("look again"), ..Note::default() };
    let bench = Bench::new(&log).keeping(root.path(), 10_000).hook("a", Event::After, note);
    let cut =
        bench.call(tool("t", &log).answering(&"x".repeat(290)).limited_to(300)).await.unwrap();
    assert!(cut.model_chars() <= 300 && cut.hook_feedback.is_empty());
    let kept = std::fs::read_to_string(cut.artifact.unwrap().path).unwrap();
    assert!(kept.ends_with("x\n[Hook feedback]\nlook again"), "{kept}");
}

#[tokio::test]
async fn a_result_that_cannot_be_kept_is_an_error_that_says_the_tool_ran() {
    let (log, root) = (Log::default(), tempfile::tempdir().unwrap());
    let bench = Bench::new(&log).keeping(root.path(), 100);
    let result = bench.call(tool("t", &log).answering(&"x".repeat(400)).limited_to(300)).await;
    let result = result.unwrap();
    let content = result.model_content();
    assert!(
        content.starts_with("Error[ARTIFACT_ERROR]: the tool ran, but its result is too long and could not be saved: it has 400 bytes, and artifacts.max_bytes is 100\nIt begins:\nxxx"),
        "{content}"
    );
    assert!(content.chars().count() <= 300);
    assert!(result.content.is_empty() && result.native.is_none());
    assert_eq!(result.call_id, "call-1");
    assert_eq!(log.take(), ["validate", "body"]);
}

#[tokio::test]
async fn of_what_an_upstream_sent_only_the_texts_are_cut() {
    let (log, root) = (Log::default(), tempfile::tempdir().unwrap());
    let bench = Bench::new(&log).keeping(root.path(), 10_000);
    let many = "x".repeat(900);
    let native = json!({
        "zeta": 1,
        "content": [
            {"type": "image", "data": "AA=="},
            {"type": "text", "text": many},
            {"type": "hologram"},
            {"type": "resource", "resource": {"uri": "u:1", "text": "more"}},
            {"type": "resource", "resource": {"uri": "u:2", "blob": "AA=="}},
        ],
        "structuredContent": {"n": 1},
        "_meta": {"theirs": true},
    });
    for (listed, promised) in [(json!({}), false), (json!({"outputSchema": {}}), true)] {
        let tool = tool("t", &log).relaying(&many, native.clone(), listed).limited_to(300);
        let cut = bench.call(tool).await.unwrap();
        let wire = cut.native.as_ref().unwrap().to_value();
        assert_eq!(
            wire["content"],
            json!([
                {"type": "image", "data": "AA=="},
                {"type": "text", "text": cut.model_content()},
                {"type": "hologram"},
                {"type": "resource", "resource": {"uri": "u:2", "blob": "AA=="}},
            ])
        );
        assert_eq!(wire["_meta"], json!({"theirs": true}));
        assert_eq!(wire.get("structuredContent").is_some(), promised);
    }
}
