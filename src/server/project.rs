//! What a call came to, as the client gets it; the only place with JSON-RPC codes for calls.

use std::sync::Arc;

use rmcp::model::{ErrorCode as RpcCode, ProtocolVersion};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::caller::Connection;
use crate::exposure::Unresolved;
use crate::tool::{
    Artifact, Block, CallId, Era, ErrorCode, Failure, Image, Interrupt, Native, ToolResult,
};

/// A call was sent and nobody can say whether it took effect.
pub const TOOL_OUTCOME_UNKNOWN: ErrorCode = ErrorCode::new("TOOL_OUTCOME_UNKNOWN");

/// A retry came with a state that does not hold; in JSON-RPC errors only.
pub(super) const REQUEST_STATE_INVALID: &str = "REQUEST_STATE_INVALID";

/// The code of what needs a capability that the client does not declare (MCP 2026-07-28 §basic).
const MISSING_CAPABILITY: i32 = -32021;

/// The name under which we stand in our own results.
pub(super) const SERVER_NAME: &str = "iris-mcp";

/// The `_meta` key of what we have to say about a result.
const RESULT_KEY: &str = "iris/result";
/// The `_meta` key under which a modern result names its server.
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// What a client can read of a result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    era: Era,
    /// It knows links to resources (since MCP 2025-06-18).
    links: bool,
    /// It is on this machine, and paths mean something to it.
    paths: bool,
}

impl Form {
    /// Says what the client of a request can read.
    pub(super) fn of(
        context: &RequestContext<RoleServer>,
        era: Era,
        connection: &Connection,
    ) -> Self {
        let links = context
            .protocol_version()
            .is_some_and(|version| version >= ProtocolVersion::V_2025_06_18);
        Self { era, links, paths: connection.is_one_client() }
    }
}

/// Makes the result of a call that has none, for those who need one.
pub(super) fn interrupted(interrupt: &Interrupt, call_id: &CallId, name: &str) -> ToolResult {
    let failure = match interrupt {
        Interrupt::Cancelled => Failure::new(
            TOOL_OUTCOME_UNKNOWN,
            "the call was cancelled, or broken off since iris-mcp is ending; its outcome is unknown",
        ),
        Interrupt::OutcomeUnknown { target, reason } => Failure::new(
            TOOL_OUTCOME_UNKNOWN,
            format!("the call to {target} was sent and its outcome is unknown: {reason}"),
        )
        .with_detail("upstream", target.as_str()),
        Interrupt::CleanupFailed { reason } => Failure::new(
            TOOL_OUTCOME_UNKNOWN,
            format!("the call ended but not everything it started did: {reason}"),
        ),
    };
    let (call_id, tool_name) = (call_id.as_str().to_owned(), name.to_owned());
    ToolResult { call_id, tool_name, ..failure.into() }
}

/// Makes the reply to a call that was made, whatever it came to.
///
/// Failures are results with `isError`, so that the model can read them; so is a call that was
/// cancelled, which is read where we are ending and the client is still there.
pub(super) fn reply(
    outcome: Result<ToolResult, Interrupt>,
    call_id: &CallId,
    form: Form,
) -> Result<String, ErrorData> {
    let mut result: ToolResult = match outcome {
        Ok(result) => result,
        Err(interrupt) => interrupted(&interrupt, call_id, ""),
    };
    if let Some(error) = missing_capability(&result, form.era) {
        return Err(error);
    }
    // What no stage finished has no identity yet.
    if result.call_id.is_empty() {
        call_id.as_str().clone_into(&mut result.call_id);
    }
    written(&wire(result, form))
}

/// Writes a reply, once: it may be large, and goes out as this text.
fn written(reply: &impl Serialize) -> Result<String, ErrorData> {
    serde_json::to_string(reply).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// Makes the error of a call that an upstream refused because of what the client cannot be asked.
///
/// In the modern era that is an error of the protocol, by which a client knows what to declare.
fn missing_capability(result: &ToolResult, era: Era) -> Option<ErrorData> {
    let details = &result.error.as_ref()?.details;
    let code = details.get("code").and_then(Value::as_i64);
    if era != Era::Modern || code != Some(i64::from(MISSING_CAPABILITY)) {
        return None;
    }
    let message = details.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
    Some(ErrorData::new(RpcCode(MISSING_CAPABILITY), message, details.get("data").cloned()))
}

/// Makes the whole wire form of a result, for who looks at it on this machine.
pub fn whole(result: ToolResult) -> Value {
    wire(result, Form { era: Era::Modern, links: true, paths: true }).to_value()
}

/// Makes the wire form of a result.
///
/// An upstream's own result goes out as it came, with our remarks added; any other is made of
/// its model blocks.
fn wire(mut result: ToolResult, form: Form) -> Native {
    let mut remarks = remarks(&mut result, form);
    let links = if form.links { links(&result) } else { Vec::new() };
    let mut wire = match result.native.take() {
        Some(native) => {
            // A large one is not copied, unless somebody else still looks at it.
            let mut wire = Arc::unwrap_or_clone(native);
            // What stood for it is not needed any more.
            result.content = Vec::new();
            let feedback = result
                .hook_feedback
                .iter()
                .map(|text| block(Block::Text(format!("[Hook feedback]\n{text}"))));
            if let Some(Value::Array(content)) = wire.members_mut().get_mut("content") {
                content.extend(feedback);
            }
            wire
        }
        None => {
            let content: Vec<Value> = result.model_blocks().into_iter().map(block).collect();
            let mut wire = Map::new();
            wire.insert("content".to_owned(), Value::Array(content));
            wire.insert("isError".to_owned(), result.is_error().into());
            wire.into()
        }
    };
    if let Some(Value::Array(content)) = wire.members_mut().get_mut("content") {
        content.extend(links);
    }
    let meta = meta_of(wire.members_mut());
    let upstream = meta.shift_remove(RESULT_KEY);
    if let Some(upstream) = upstream {
        remarks.insert("upstream".to_owned(), upstream);
    }
    meta.insert(RESULT_KEY.to_owned(), Value::Object(remarks));
    for_era(wire.members_mut(), form.era);
    // Before 2026-07-28 structured content is an object (§server/tools).
    if form.era == Era::Legacy && !wire.has_structured_object() {
        wire.remove_structured();
    }
    wire
}

/// Makes links to the files of a result, unless it goes out as an upstream sent it.
fn links(result: &ToolResult) -> Vec<Value> {
    let Some(artifact) = &result.artifact else { return Vec::new() };
    if result.native.is_some() && artifact.text_path.is_none() {
        return Vec::new();
    }
    let published = artifact.name.as_deref();
    let native = artifact.uri.as_ref().filter(|uri| Some(*uri) != artifact.text_uri.as_ref());
    let link = |uri: &str, name: &str, mime_type: &str| json!({"type": "resource_link", "uri": uri, "name": name, "mimeType": mime_type});
    let text = artifact.text_uri.as_deref().map(|uri| link(uri, "all of the text", "text/plain"));
    let native = native.map(|uri| {
        let mut link = link(uri, published.unwrap_or("the native result"), &artifact.mime_type);
        link["size"] = artifact.size_bytes.into();
        link
    });
    text.into_iter().chain(native).collect()
}

/// Gives a result the form of its era.
pub(super) fn for_era(wire: &mut Map<String, Value>, era: Era) {
    match era {
        Era::Modern => {
            wire.entry("resultType").or_insert_with(|| "complete".into());
            meta_of(wire).insert(
                SERVER_KEY.to_owned(),
                json!({"name": SERVER_NAME, "version": env!("CARGO_PKG_VERSION")}),
            );
        }
        Era::Legacy => {
            wire.shift_remove("resultType");
            meta_of(wire).shift_remove(SERVER_KEY);
        }
    }
}

fn meta_of(wire: &mut Map<String, Value>) -> &mut Map<String, Value> {
    let meta = wire.entry("_meta").or_insert_with(|| json!({}));
    if !meta.is_object() {
        *meta = json!({});
    }
    match meta {
        Value::Object(meta) => meta,
        _ => unreachable!("made an object above"),
    }
}

fn block(block: Block) -> Value {
    match block {
        Block::Text(text) => json!({"type": "text", "text": text}),
        Block::Image(Image { mime_type, data, .. }) => {
            json!({"type": "image", "mimeType": mime_type, "data": data.as_ref()})
        }
    }
}

/// What we have to say about a result; only what there is to say.
fn remarks(result: &mut ToolResult, form: Form) -> Map<String, Value> {
    let mut remarks = Map::new();
    remarks.insert("call_id".to_owned(), result.call_id.as_str().into());
    if let Some(Failure { code, message: _, retryable, details }) = &mut result.error {
        remarks.insert("code".to_owned(), code.as_str().into());
        remarks.insert("retryable".to_owned(), (*retryable).into());
        insert_filled(&mut remarks, "details", details);
    }
    insert_filled(&mut remarks, "data", &mut result.data);
    if let Some(artifact) = &result.artifact {
        let is_whole = result.native.is_some() && artifact.text_path.is_none();
        remarks.insert("artifact".to_owned(), described(artifact, is_whole, form));
    }
    insert_filled(&mut remarks, "stats", &mut result.stats);
    insert_filled(&mut remarks, "metadata", &mut result.metadata);
    remarks
}

/// Describes a file; a client elsewhere gets its address in the place of its path.
///
/// Of a result that goes out whole there is no preview: it would be there twice.
fn described(artifact: &Artifact, is_whole: bool, form: Form) -> Value {
    let Artifact {
        path,
        uri,
        name: _,
        mime_type,
        size_bytes,
        preview,
        text_path,
        text_uri,
        note: _,
        hold: _,
    } = artifact;
    let shown = |path: Option<&String>, uri: &Option<String>| match uri {
        Some(uri) if !form.paths => Some(uri.clone()),
        _ => path.filter(|_| form.paths).cloned(),
    };
    json!({
        "path": shown(Some(path), uri),
        "mime_type": mime_type,
        "size_bytes": size_bytes,
        "preview": if is_whole { "" } else { preview.as_str() },
        "text_path": shown(text_path.as_ref(), text_uri),
        "uri": uri,
        "text_uri": text_uri,
    })
}

fn insert_filled(remarks: &mut Map<String, Value>, key: &str, members: &mut Map<String, Value>) {
    if !members.is_empty() {
        remarks.insert(key.to_owned(), Value::Object(std::mem::take(members)));
    }
}

/// Makes the error for a name that nothing callable has.
pub(super) fn unknown_tool(name: &str, unresolved: Unresolved) -> ErrorData {
    let Failure { code, message, details, .. } = unresolved.into_failure(name);
    let mut data = Map::from_iter([("code".to_owned(), code.as_str().into())]);
    data.extend(details);
    ErrorData::invalid_params(message, Some(Value::Object(data)))
}

/// Makes the reply that asks the client to come again with answers.
pub(super) fn input_required(questions: Map<String, Value>, state: String) -> Value {
    let mut wire = Map::new();
    wire.insert("resultType".to_owned(), "input_required".into());
    wire.insert("inputRequests".to_owned(), Value::Object(questions));
    wire.insert("requestState".to_owned(), state.into());
    for_era(&mut wire, Era::Modern);
    Value::Object(wire)
}

/// Makes the error for a retry whose state is not ours, not for this call, or not good any more.
pub(super) fn void_state() -> ErrorData {
    let message = "this request state does not hold: it was used, changed, has expired, or is for another call; \
                   make the call again without it";
    ErrorData::invalid_params(message, Some(json!({"code": REQUEST_STATE_INVALID})))
}

/// Makes the error for a request, other than a call, that was given up; it is read on our shutdown only.
pub(super) fn cancelled() -> ErrorData {
    ErrorData::internal_error("the call was cancelled", None)
}

#[cfg(test)]
mod tests;
