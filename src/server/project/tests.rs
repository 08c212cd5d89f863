//! The client's side of every way a call can end.

use super::*;

#[track_caller]
fn check(outcome: Result<ToolResult, Interrupt>, era: Era, expected: Value) {
    let form = Form { era, links: true, paths: true };
    let reply = reply(outcome, &CallId::new("call"), form).unwrap();
    let mut reply: Value = serde_json::from_str(&reply).unwrap();
    let meta = reply["_meta"].as_object_mut().unwrap();
    if meta.get(SERVER_KEY).is_some() {
        meta.insert(SERVER_KEY.to_owned(), "us".into());
    }
    assert_eq!(reply, expected);
}

fn native(value: Value) -> ToolResult {
    ToolResult {
        native: Some(Arc::new(Native::parse(value.to_string()).unwrap())),
        ..ToolResult::text("projected")
    }
}

#[test]
fn our_results_are_their_model_blocks() {
    let mut result = ToolResult::text("hello");
    result.call_id = "c".into();
    result.data.insert("n".into(), 1.into());
    let remarks = json!({"call_id": "c", "data": {"n": 1}});
    let content = json!([{"type": "text", "text": "hello"}]);
    check(
        Ok(result.clone()),
        Era::Legacy,
        json!({"content": content, "isError": false, "_meta": {"iris/result": remarks}}),
    );
    check(
        Ok(result),
        Era::Modern,
        json!({"content": content, "isError": false, "_meta": {"iris/result": remarks, SERVER_KEY: "us"}, "resultType": "complete"}),
    );
}

#[test]
fn a_failure_is_a_result_with_its_code() {
    let failure = Failure::new(ErrorCode::new("E1"), "no").retryable().with_detail("k", "v");
    check(
        Ok(failure.into()),
        Era::Legacy,
        json!({
            "content": [{"type": "text", "text": "Error[E1]: no"}], "isError": true,
            "_meta": {"iris/result": {"call_id": "call", "code": "E1", "retryable": true, "details": {"k": "v"}}}
        }),
    );
}

#[test]
fn an_upstreams_result_goes_out_as_it_came() {
    let upstream = json!({
        "content": [{"type": "hologram", "odd": [1.5, null]}, {"type": "text", "text": "t", "annotations": {"x": 1}}],
        "structuredContent": {"b": 1, "a": 2}, "isError": false, "extra": "kept",
        "_meta": {"theirs": 1, "iris/result": {"call_id": "inner"}}
    });
    let mut expected = upstream.clone();
    expected["_meta"]["iris/result"] = json!({"call_id": "call", "upstream": {"call_id": "inner"}});
    check(Ok(native(upstream)), Era::Legacy, expected);
}

#[test]
fn feedback_is_added_to_an_upstreams_result() {
    let mut result =
        native(json!({"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}]}));
    result.hook_feedback.push("note".into());
    check(
        Ok(result),
        Era::Legacy,
        json!({
            "content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}, {"type": "text", "text": "[Hook feedback]\nnote"}],
            "_meta": {"iris/result": {"call_id": "call"}}
        }),
    );
}

#[test]
fn each_era_gets_its_own_form() {
    let upstream = json!({"content": [], "structuredContent": [1], "resultType": "complete", "_meta": {SERVER_KEY: {"name": "them"}}});
    check(
        Ok(native(upstream.clone())),
        Era::Legacy,
        json!({"content": [], "_meta": {"iris/result": {"call_id": "call"}}}),
    );
    check(
        Ok(native(upstream)),
        Era::Modern,
        json!({"content": [], "structuredContent": [1], "resultType": "complete", "_meta": {SERVER_KEY: "us", "iris/result": {"call_id": "call"}}}),
    );
}

#[test]
fn a_call_that_was_cancelled_or_has_an_unknown_outcome_is_a_result() {
    let interrupt =
        Interrupt::OutcomeUnknown { target: "up".into(), reason: "it went away".into() };
    check(
        Err(interrupt),
        Era::Legacy,
        json!({
            "content": [{"type": "text", "text": "Error[TOOL_OUTCOME_UNKNOWN]: the call to up was sent and its outcome is unknown: it went away"}],
            "isError": true,
            "_meta": {"iris/result": {"call_id": "call", "code": "TOOL_OUTCOME_UNKNOWN", "retryable": false, "details": {"upstream": "up"}}}
        }),
    );
    // It is read where we are ending.
    check(
        Err(Interrupt::Cancelled),
        Era::Legacy,
        json!({
            "content": [{"type": "text", "text": "Error[TOOL_OUTCOME_UNKNOWN]: the call was cancelled, or broken off since iris-mcp is ending; its outcome is unknown"}],
            "isError": true,
            "_meta": {"iris/result": {"call_id": "call", "code": "TOOL_OUTCOME_UNKNOWN", "retryable": false}}
        }),
    );
}

#[test]
fn an_unknown_tool_is_invalid_parameters_with_the_nearest_names() {
    let error = unknown_tool(
        "nope",
        Unresolved::Unknown { nearest: vec!["note".to_owned()], missing: None },
    );
    assert_eq!(error.code.0, -32602);
    assert_eq!(error.message, "unknown tool: nope; did you mean note?");
    assert_eq!(error.data, Some(json!({"code": "NOT_FOUND", "nearest": ["note"]})));
}
