//! The last stage: identity and metadata of a result, and what is too long cut to size.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::call::Checked;
use crate::artifact::persist::Unsaved;
use crate::artifact::preview::preview;
use crate::artifact::{ARTIFACT_ERROR, ArtifactStore};
use crate::tool::{Block, CallContext, Failure, PreviewMode, Retention, Tool, ToolResult};

/// Ends a refusal that is too long.
const CUT: &str = "\n[the error message was cut]";

/// Gives a result its identity and its metadata.
///
/// What a tool says about the context of a model is not believed; only the genuine tool search
/// may say which tools it disclosed.
pub(super) fn finish(mut result: ToolResult, checked: &Checked, cx: &CallContext) -> ToolResult {
    let tool = checked.tool();
    let definition = tool.definition();
    let disclosed = result.metadata.shift_remove("context_revealed_tools");
    for key in ["context_retention", "context_tool_name"] {
        result.metadata.shift_remove(key);
    }
    if let Some(Value::Object(extra)) = result.metadata.get_mut("extra") {
        extra.shift_remove("context_revealed_tools");
    }
    let genuine = tool.auto_allow().is_some_and(crate::tool::AutoAllow::discloses);
    if let Some(names) = disclosed.filter(|_| genuine && !result.is_error()) {
        result.metadata.insert("context_revealed_tools".to_owned(), names);
    }
    let retention = match definition.retention {
        Retention::Keep => "keep",
        Retention::Observation => "observation",
    };
    result.metadata.insert("context_retention".to_owned(), retention.into());
    result.metadata.insert("context_tool_name".to_owned(), definition.name.as_str().into());
    identified(result, checked.name(), cx)
}

/// Saves the text of a result that is too long for its tool, and leaves a part of it.
///
/// If it cannot be saved, that is the result: what the tool did is done, and is not done again.
pub(super) async fn fit(
    result: ToolResult,
    checked: &Checked,
    cx: &CallContext,
    artifacts: &Arc<ArtifactStore>,
) -> ToolResult {
    let definition = checked.tool().definition();
    if result.model_chars() <= definition.max_result_chars {
        return result;
    }
    // The words about the native result must not be what makes it too long, nor be saved with it.
    let result = result.without_note();
    if result.model_chars() <= definition.max_result_chars {
        return result;
    }
    let ToolResult { call_id, tool_name, metadata, .. } = &result;
    let shell = ToolResult {
        call_id: call_id.clone(),
        tool_name: tool_name.clone(),
        metadata: metadata.clone(),
        ..ToolResult::default()
    };
    let (artifacts, tool) = (Arc::clone(artifacts), Arc::clone(checked.tool()));
    let (session, turn) = (cx.session.clone(), cx.turn.clone());
    let saving = move || {
        let definition = tool.definition();
        let result = artifacts.persist(result, definition, session.as_str(), turn.as_ref())?;
        Ok::<_, Unsaved>(with_cut_native(result, definition.native.as_deref()))
    };
    let why = match tokio::task::spawn_blocking(saving).await {
        Ok(Ok(result)) => return result,
        Ok(Err(Unsaved { error, began })) => format!("{error}\nIt begins:\n{began}"),
        Err(error) => {
            tracing::error!(%error, "saving a result went wrong");
            "saving it went wrong; the log has the details".to_owned()
        }
    };
    let said = format!("the tool ran, but its result is too long and could not be saved: {why}");
    let limit = definition.max_result_chars;
    let failure = Failure::new(ARTIFACT_ERROR, said);
    ToolResult { error: Some(cut(failure, limit)), ..shell }
}

/// Cuts the result that would have gone out as an upstream sent it.
///
/// What holds text is replaced by the part that is left; everything else stays as it came.
/// Structured content that the tool promises stays whole, since clients refuse a result without
/// it (MCP 2026-07-28 §server/tools); what nobody promised goes with the text.
fn with_cut_native(mut result: ToolResult, listed: Option<&Map<String, Value>>) -> ToolResult {
    let Some(native) = result.native.take() else { return result };
    let mut native = Arc::unwrap_or_clone(native);
    let failed = result.is_error();
    let text = match &result.error {
        Some(failure) => Some(failure.message.as_str()),
        None => result.content.iter().find_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            Block::Image(_) => None,
        }),
    };
    let mut text = text.map(|text| json!({"type": "text", "text": text}));
    let wire = native.members_mut();
    let blocks = match wire.get_mut("content").map(Value::take) {
        Some(Value::Array(blocks)) => blocks,
        _ => Vec::new(),
    };
    let mut content = Vec::new();
    for block in blocks {
        if holds_text(&block) {
            content.extend(text.take());
        } else {
            content.push(block);
        }
    }
    if let Some(text) = text {
        content.insert(0, text);
    }
    wire.insert("content".to_owned(), Value::Array(content));
    let promised = !failed && listed.is_some_and(|tool| tool.contains_key("outputSchema"));
    if !promised {
        native.remove_structured();
    }
    result.native = Some(Arc::new(native));
    result
}

fn holds_text(block: &Value) -> bool {
    match block.get("type").and_then(Value::as_str) {
        Some("text") => true,
        Some("resource") => block.get("resource").is_some_and(|held| held.get("text").is_some()),
        _ => false,
    }
}

/// Makes the result of a call that was refused after its arguments were checked.
pub(super) fn refused(refusal: Failure, checked: &Checked, cx: &CallContext) -> ToolResult {
    truncated(refusal, checked.tool(), checked.name(), cx)
}

/// Makes the result of a refusal, cut to the tool's limit; nothing is saved.
pub(super) fn truncated(
    refusal: Failure,
    tool: &Arc<dyn Tool>,
    name: &str,
    cx: &CallContext,
) -> ToolResult {
    identified(cut(refusal, tool.definition().max_result_chars).into(), name, cx)
}

/// Cuts the message of a failure to what a result may have.
fn cut(mut refusal: Failure, limit: usize) -> Failure {
    let prefix = refusal.to_string().chars().count() - refusal.message.chars().count();
    if prefix + refusal.message.chars().count() > limit {
        let room = limit.saturating_sub(prefix + CUT.chars().count());
        refusal.message = preview(&refusal.message, room, PreviewMode::Head) + CUT;
    }
    refusal
}

fn identified(mut result: ToolResult, name: &str, cx: &CallContext) -> ToolResult {
    cx.call_id.as_str().clone_into(&mut result.call_id);
    name.clone_into(&mut result.tool_name);
    result
}
