//! The results of upstreams, kept as they came beside what a model gets of them.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::convert::project;
use crate::artifact::image::identify;
use crate::artifact::preview::head;
use crate::artifact::{ARTIFACT_ERROR, ArtifactStore, Owner};
use crate::tool::{
    Block, CallContext, Failure, Image, ImageFile, Native, SessionId, ToolDefinition, ToolResult,
};

/// Which results are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Every one.
    #[default]
    Always,
    /// Those that hold more than a model gets of them.
    Rich,
}

/// Keeps results.
#[derive(Clone, Debug)]
pub(super) struct Natives {
    pub(super) keep: Keep,
    pub(super) artifacts: Arc<ArtifactStore>,
}

impl Natives {
    /// Makes the result of a call of what the upstream answered.
    ///
    /// What a client gets is still the upstream's own result; hooks, wrappers and the context
    /// tools see the projection, which says where the whole of it is. (EX-9.4)
    pub(super) async fn result(
        &self,
        native: Native,
        definition: &ToolDefinition,
        cx: &CallContext,
    ) -> ToolResult {
        let result = project(native);
        let is_kept = match self.keep {
            Keep::Always => true,
            Keep::Rich => {
                result.native.as_ref().is_some_and(|native| is_rich(native.members()))
                    || result.model_chars() > definition.max_result_chars
            }
        };
        if !is_kept {
            return result;
        }
        let (artifacts, session) = (Arc::clone(&self.artifacts), cx.session.clone());
        let (call_id, preview) = (cx.call_id.clone(), definition.preview_chars);
        let keeping = move || kept(result, &artifacts, &session, call_id.as_str(), preview);
        match tokio::task::spawn_blocking(keeping).await {
            Ok(result) => result,
            Err(error) => {
                tracing::error!(%error, "keeping a result went wrong");
                Failure::new(
                    ARTIFACT_ERROR,
                    "keeping the result went wrong; the log has the details",
                )
                .into()
            }
        }
    }
}

fn kept(
    mut result: ToolResult,
    artifacts: &ArtifactStore,
    session: &SessionId,
    call_id: &str,
    preview_chars: usize,
) -> ToolResult {
    let Some(native) = result.native.clone() else { return result };
    for block in &mut result.content {
        if let Block::Image(image) = block {
            keep_image(image, artifacts, session.as_str());
        }
    }
    let owner = Owner { session: session.as_str(), call_id };
    let saved = match artifacts.save_json(owner, ".mcp.json", &native.written()) {
        Ok(saved) => saved,
        // The client has all of it; only if it is too long to go out whole this is a failure.
        Err(error) => {
            tracing::error!(%error, call.id = call_id, "the result of an upstream could not be kept");
            return result;
        }
    };
    let preview = match &result.error {
        Some(failure) => head(&failure.message, preview_chars).to_owned(),
        None => began(&result, preview_chars),
    };
    let note = format!("[The whole MCP result: {}]", saved.key);
    annotate(&mut result, &note);
    let mut artifact = saved.artifact("application/json", preview);
    artifact.note = Some(note);
    result.artifact = Some(artifact);
    result
}

/// Returns the first characters of what a model gets; all of it may be a great deal.
fn began(result: &ToolResult, chars: usize) -> String {
    let mut began = String::new();
    for (number, text) in result.texts(|_| None).iter().enumerate() {
        let left = chars.saturating_sub(began.chars().count() + usize::from(number > 0));
        if number > 0 && left > 0 {
            began.push('\n');
        }
        began.push_str(head(text, left));
    }
    began
}

/// Says where the whole result is, after all else.
fn annotate(result: &mut ToolResult, note: &str) {
    if let Some(failure) = &mut result.error {
        failure.message = format!("{}\n\n{note}", failure.message);
    }
    let is_blank = !result.content.iter().any(|block| matches!(block, Block::Text(_)));
    let note = if is_blank { note.to_owned() } else { format!("\n{note}") };
    result.content.push(Block::Text(note));
}

/// Keeps an image as it came; one that is none of the kinds a model takes stays what it is.
fn keep_image(image: &mut Image, artifacts: &ArtifactStore, session: &str) {
    let bytes = match STANDARD.decode(image.data.as_bytes()) {
        Ok(bytes) => bytes,
        Err(error) => return tracing::debug!(%error, "an upstream's image is not base64"),
    };
    let form = match identify(&bytes) {
        Ok(form) => form,
        Err(error) => return tracing::debug!(%error, "an upstream's image is not kept apart"),
    };
    let saved = match artifacts.save_image(session, form.kind.extension(), &bytes) {
        Ok(saved) => saved,
        Err(error) => return tracing::warn!(%error, "an upstream's image could not be kept apart"),
    };
    let place = artifacts.in_workspace(&saved.path).unwrap_or_else(|| saved.key.uri());
    let mime_type = form.kind.mime_type().to_owned();
    let file = ImageFile { place, mime_type, width: form.width, height: form.height };
    image.files = Some(Arc::new((file.clone(), file)));
}

/// Says whether a result holds more than its texts and its structured content.
fn is_rich(native: &Map<String, Value>) -> bool {
    let plain = |block: &Value| {
        let Value::Object(block) = block else { return false };
        block.len() == 2 && block.get("type") == Some(&"text".into()) && block.contains_key("text")
    };
    let blocks = match native.get("content") {
        Some(Value::Array(blocks)) => !blocks.iter().all(plain),
        Some(_) => true,
        None => false,
    };
    let beside = native.iter().any(|(key, value)| match (key.as_str(), value) {
        ("content" | "structuredContent" | "isError" | "resultType", _) => false,
        // In the newer era every result names its server here.
        ("_meta", Value::Object(meta)) => {
            // And another gateway of ours adds what it has to say.
            let known = ["io.modelcontextprotocol/", "iris/"];
            meta.keys().any(|key| !known.iter().any(|known| key.starts_with(known)))
        }
        _ => true,
    });
    blocks || beside
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::artifact::{self, Quota};
    use crate::workspace::Workspace;

    #[test]
    fn a_result_is_rich_that_holds_more_than_a_model_gets() {
        let rich = |native: Value| is_rich(native.as_object().unwrap());
        let text = json!({"type": "text", "text": "t"});
        assert!(!rich(json!({"content": [text], "structuredContent": {}, "isError": false})));
        assert!(!rich(
            json!({"content": [], "_meta": {"io.modelcontextprotocol/serverInfo": {}, "iris/result": {}}})
        ));
        for native in [
            json!({"content": [text], "_meta": {"theirs": 1}}),
            json!({"content": [text], "ttlMs": 1}),
            json!({"content": [{"type": "text", "text": "t", "annotations": {}}]}),
            json!({"content": [text, {"type": "image", "data": "", "mimeType": "image/png"}]}),
            json!({"content": [{"type": "resource_link", "uri": "u:", "name": "n"}]}),
            json!({"content": "odd"}),
            json!({"content": ["odd"]}),
        ] {
            assert!(rich(native.clone()), "{native}");
        }
    }

    #[test]
    fn ex_9_4_what_says_where_the_whole_result_is_comes_last() {
        let root = tempfile::tempdir().unwrap();
        let workspace = Arc::new(Workspace::open(root.path()).unwrap());
        let quota = Quota { max_bytes: u64::MAX, max_age: Duration::from_hours(1) };
        let config = artifact::Config { folder: None, fallback: None, quota };
        let artifacts = ArtifactStore::new(config, workspace);
        let keep = |native: Value| {
            let result = project(Native::parse(native.to_string()).unwrap());
            kept(result, &artifacts, &SessionId::new("s"), "c", 100)
        };
        let text = json!([{"type": "text", "text": "ok"}]);
        let result = keep(json!({"content": text, "structuredContent": {"answer": 42}}));
        let note = result.artifact.as_ref().unwrap().note.clone().unwrap();
        assert!(note.starts_with("[The whole MCP result: iris-artifact://results/"), "{note}");
        let texts: Vec<String> = result
            .content
            .iter()
            .map(|block| match block {
                Block::Text(text) => text.clone(),
                Block::Image(_) => panic!("no image"),
            })
            .collect();
        assert_eq!(texts, ["ok".into(), "{\"answer\": 42}".into(), format!("\n{note}")]);
        assert_eq!(result.model_content(), format!("ok\n{{\"answer\": 42}}\n\n{note}"));
        // Where there is no text it begins with it; a failure has it in its message.
        let result = keep(json!({"content": []}));
        assert_eq!(result.model_content(), result.artifact.unwrap().note.unwrap());
        let result = keep(json!({"content": text, "isError": true}));
        let note = result.artifact.as_ref().unwrap().note.clone().unwrap();
        assert_eq!(result.error.unwrap().message, format!("ok\n\n{note}"));
    }
}
