//! The last stage: identity and metadata of a result, and refusals cut to size.

use std::sync::Arc;

use serde_json::Value;

use super::call::Checked;
use crate::artifact::preview::preview;
use crate::tool::{CallContext, Failure, PreviewMode, Retention, Tool, ToolResult};

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

/// Makes the result of a call that was refused after its arguments were checked.
pub(super) fn refused(refusal: Failure, checked: &Checked, cx: &CallContext) -> ToolResult {
    truncated(refusal, checked.tool(), checked.name(), cx)
}

/// Makes the result of a refusal, cut to the tool's limit; nothing is saved.
pub(super) fn truncated(
    mut refusal: Failure,
    tool: &Arc<dyn Tool>,
    name: &str,
    cx: &CallContext,
) -> ToolResult {
    let limit = tool.definition().max_result_chars;
    let prefix = refusal.to_string().chars().count() - refusal.message.chars().count();
    if prefix + refusal.message.chars().count() > limit {
        let room = limit.saturating_sub(prefix + CUT.chars().count());
        refusal.message = preview(&refusal.message, room, PreviewMode::Head) + CUT;
    }
    identified(refusal.into(), name, cx)
}

fn identified(mut result: ToolResult, name: &str, cx: &CallContext) -> ToolResult {
    cx.call_id.as_str().clone_into(&mut result.call_id);
    name.clone_into(&mut result.tool_name);
    result
}
