//! What hooks are told: keys, their order, and what stands where nothing is known.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::{Told, instant};
use crate::hook::{Finished, Run, RunFinished, RunStarted, StopReason};
use crate::tool::printed::spaced;
use crate::tool::{
    Artifact, Block, Call, CallId, ErrorCode, Failure, Image, ImageFile, SessionId, ToolResult,
};

/// 2026-12-01T08:00:00Z.
fn morning() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_hours(498_920)
}

fn call() -> Call {
    let arguments = json!({"file_path": "n.txt", "content": "hi"});
    Call {
        id: CallId::new("c1"),
        tool_name: "write_file".to_owned(),
        canonical: "write_file".to_owned(),
        told_as: "write_file".to_owned(),
        arguments: arguments.as_object().unwrap().clone(),
        agent_id: "a".to_owned(),
        session: SessionId::new("s"),
        run_id: Some("r".to_owned()),
        activation_id: Some("x".to_owned()),
        workspace: Arc::new(PathBuf::from("/ws")),
    }
}

fn run() -> Run {
    Run {
        agent_id: "a".to_owned(),
        session: SessionId::new("s"),
        workspace: Arc::new(PathBuf::from("/ws")),
        started_at: morning(),
    }
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn ex_14_1_a_call_is_told_to_the_byte() {
    assert_eq!(
        spaced(&Told::before(&call(), morning())),
        r#"{"event": "tool.before", "agent_id": "a", "session_id": "s", "run_id": "r", "activation_id": "x", "workspace": "/ws", "occurred_at": "2026-12-01T08:00:00+00:00", "call_id": "c1", "tool_name": "write_file", "arguments": {"file_path": "n.txt", "content": "hi"}}"#
    );
}

#[test]
fn a_moment_has_microseconds_if_there_are_any() {
    let at = |nanos| morning() + Duration::from_nanos(nanos);
    assert_eq!(instant(at(123_456_789), "+00:00"), "2026-12-01T08:00:00.123456+00:00");
    assert_eq!(instant(at(999), "+00:00"), "2026-12-01T08:00:00+00:00");
    assert_eq!(instant(at(50_000_000), "Z"), "2026-12-01T08:00:00.050000Z");
}

#[test]
fn letters_stay_as_they_are_and_what_is_not_known_is_null() {
    let call = Call {
        run_id: None,
        activation_id: None,
        arguments: json!({"text": "für ☃"}).as_object().unwrap().clone(),
        ..call()
    };
    let told = spaced(&Told::before(&call, morning()));
    assert!(told.contains(r#""run_id": null, "activation_id": null"#), "{told}");
    assert!(told.ends_with(r#""arguments": {"text": "für ☃"}}"#), "{told}");
}

#[test]
fn j7_a_result_is_told_with_all_its_keys() {
    let result = ToolResult { call_id: "not ours".to_owned(), ..ToolResult::text("done") };
    let finished = Finished { call: call(), result, body_failed: true };
    let told = spaced(&Told::after(&finished, morning()));
    let own = told.split_once(r#""call_id": "#).unwrap().1;
    assert_eq!(
        own,
        r#""c1", "tool_name": "write_file", "arguments": {"file_path": "n.txt", "content": "hi"}, "result": {"tool_use_id": "c1", "tool_name": "write_file", "content": [{"type": "text", "text": "done"}], "is_error": false, "error": null, "data": {}, "artifact": null, "stats": {}, "metadata": {}, "hook_feedback": []}, "body_status": "error"}"#
    );
}

#[test]
fn failures_files_and_images_are_told_with_theirs() {
    let file = |place: &str| ImageFile {
        place: place.to_owned(),
        mime_type: "image/png".to_owned(),
        width: 4,
        height: 3,
    };
    let mut kept = Image::new("image/png", "AA==");
    kept.name = Some("shot.png".to_owned());
    kept.files = Some(Arc::new((file("/ws/o.png"), file("/ws/m.png"))));
    let failure = Failure::new(ErrorCode::new("E1"), "no").retryable().with_detail("why", 7);
    let result = ToolResult {
        content: vec![Block::Image(kept), Block::Image(Image::new("image/gif", "AA=="))],
        error: Some(failure),
        artifact: Some(Artifact {
            path: "/ws/.iris/r.txt".to_owned(),
            uri: None,
            name: None,
            mime_type: "text/plain".to_owned(),
            size_bytes: 9,
            preview: "p".to_owned(),
            text_path: None,
            text_uri: None,
            note: None,
            hold: Vec::new(),
        }),
        ..ToolResult::default()
    };
    let finished = Finished { call: call(), result, body_failed: false };
    let told = serde_json::to_value(Told::after(&finished, morning())).unwrap();
    assert_eq!(told["body_status"], "success");
    let picture =
        |path: &str| json!({"path": path, "mime_type": "image/png", "width": 4, "height": 3});
    assert_eq!(
        told["result"]["content"],
        json!([
            {"type": "image", "original": picture("/ws/o.png"), "model": picture("/ws/m.png"),
             "name": "shot.png", "mime_type": "image/png"},
            {"type": "image", "original": null, "model": null, "name": null,
             "mime_type": "image/gif"},
        ])
    );
    let error = json!({"code": "E1", "message": "no", "retryable": true, "details": {"why": 7}});
    assert_eq!(told["result"]["error"], error);
    assert_eq!(
        told["result"]["artifact"],
        json!({"path": "/ws/.iris/r.txt", "mime_type": "text/plain", "size_bytes": 9,
               "preview": "p", "text_path": null})
    );
}

const RUN_KEYS: [&str; 19] = [
    "run_id",
    "session_id",
    "agent_id",
    "phase",
    "stop_reason",
    "revision",
    "current_activation_id",
    "pending_interaction_id",
    "cancellation_requested_at",
    "cancellation_reason",
    "limits",
    "usage",
    "environment_fingerprint",
    "checkpoint_sequence",
    "last_event_sequence",
    "created_at",
    "started_at",
    "updated_at",
    "finished_at",
];

const COMMON_KEYS: [&str; 7] =
    ["event", "agent_id", "session_id", "run_id", "activation_id", "workspace", "occurred_at"];

#[test]
fn a_run_is_told_when_it_begins() {
    let started = RunStarted { run: run(), activation_id: Some("c1".to_owned()) };
    let told = serde_json::to_value(Told::started(&started, morning())).unwrap();
    assert_eq!(keys(&told), [&COMMON_KEYS[..], &["run", "input"]].concat());
    assert_eq!(keys(&told["run"]), RUN_KEYS);
    assert_eq!(
        (&told["event"], &told["run_id"], &told["activation_id"], &told["input"]),
        (&json!("run.started"), &json!("s"), &json!("c1"), &json!(""))
    );
    let run = &told["run"];
    assert_eq!((&run["phase"], &run["stop_reason"]), (&json!("running"), &Value::Null));
    assert_eq!(run["started_at"], "2026-12-01T08:00:00Z");
    assert_eq!((&run["updated_at"], &run["finished_at"]), (&run["started_at"], &Value::Null));
}

#[test]
fn a_run_is_told_when_it_has_ended() {
    let finished = RunFinished {
        run: run(),
        stop_reason: StopReason::Cancelled,
        finished_at: morning() + Duration::from_secs(5),
    };
    let told = serde_json::to_value(Told::finished(&finished, finished.finished_at)).unwrap();
    assert_eq!(keys(&told), [&COMMON_KEYS[..], &["result"]].concat());
    let result = &told["result"];
    assert_eq!(keys(result), ["run", "assistant_message", "pending_interaction", "error"]);
    assert_eq!(keys(&result["run"]), RUN_KEYS);
    assert_eq!((&told["event"], &told["activation_id"]), (&json!("run.finished"), &Value::Null));
    let run = &result["run"];
    assert_eq!((&run["phase"], &run["stop_reason"]), (&json!("finished"), &json!("cancelled")));
    assert_eq!(
        (&run["finished_at"], &run["updated_at"]),
        (&json!("2026-12-01T08:00:05Z"), &run["finished_at"])
    );
}
