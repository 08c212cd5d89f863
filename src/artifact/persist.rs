//! Texts too long for a model: saved whole, and replaced by a part and the way to the rest.

use std::fmt::Write as _;
use std::path::Path;

use super::preview::{head, preview};
use super::{ArtifactStore, Owner, StoreError};
use crate::tool::{Artifact, Block, ToolDefinition, ToolResult, Turn};

/// What a host should know of files in its workspace.
const HINT: &str = "add .iris/ to .gitignore";

/// How many characters are left of a text that could not be saved.
const BEGAN: usize = 8_000;

/// A text that could not be saved.
#[derive(Debug)]
pub struct Unsaved {
    /// Why.
    pub error: StoreError,
    /// How it begins.
    pub began: String,
}

impl ArtifactStore {
    /// Saves the text of a result and leaves a part of it; blocks.
    ///
    /// What is left, the words about the rest included, is at most the tool's limit. Images stay
    /// where they are. Only for a result whose text is longer than that limit.
    pub fn persist(
        &self,
        mut result: ToolResult,
        definition: &ToolDefinition,
        session: &str,
        turn: Option<&Turn>,
    ) -> Result<ToolResult, Unsaved> {
        let limit = definition.max_result_chars;
        let text = result.take_model_content();
        let unsaved = |error| Unsaved { error, began: head(&text, BEGAN).to_owned() };
        let native = result.artifact.take();
        let suffix = if native.is_some() { ".model.txt" } else { ".txt" };
        let owner = Owner { session, call_id: &result.call_id };
        let saved = self.save_parts(owner, suffix, &[entries(&result).as_bytes(), text.as_bytes()]);
        let saved = saved.map_err(unsaved)?;
        let uri = saved.key.uri();
        let rest = words(&result.tool_name, turn, &uri, native.as_ref());
        let prefix = result.error.as_ref().map_or(0, |failure| {
            failure.to_string().chars().count() - failure.message.chars().count()
        });
        let room = limit.checked_sub(rest.chars().count() + prefix);
        let Some(room) = room else { return Err(unsaved(StoreError::NoRoom { limit })) };
        // The prefix comes back by itself when the failure is shown.
        let body = text.char_indices().nth(prefix).map_or("", |(start, _)| &text[start..]);
        let shown = definition.preview_chars.min(room);
        let message = preview(body, shown, definition.preview_mode) + &rest;
        let mut artifact = native.unwrap_or_else(|| {
            let short = preview(&text, definition.preview_chars, definition.preview_mode);
            saved.artifact("text/plain", short)
        });
        artifact.text_path = Some(saved.path.to_string_lossy().into_owned());
        artifact.text_uri = Some(uri);
        artifact.hold.push(saved.hold);
        let in_workspace = self.in_workspace(Path::new(&saved.path)).is_some();
        if in_workspace {
            result.metadata.insert("gitignore_hint".to_owned(), HINT.into());
        }
        result.artifact = Some(artifact);
        if let Some(failure) = &mut result.error {
            failure.message.clone_from(&message);
        }
        result.content = replaced(std::mem::take(&mut result.content), message);
        // It is in what was saved, and counted.
        result.hook_feedback.clear();
        Ok(result)
    }
}

/// Returns what stands before the text and only names the images.
fn entries(result: &ToolResult) -> String {
    let entries: Vec<String> = result
        .content
        .iter()
        .filter_map(|block| match block {
            Block::Image(image) => Some(image.entry()),
            Block::Text(_) => None,
        })
        .collect();
    if entries.is_empty() { String::new() } else { entries.join("\n") + "\n\n" }
}

/// Says where the rest is; the reference comes first, since every model can follow it.
fn words(tool: &str, turn: Option<&Turn>, uri: &str, native: Option<&Artifact>) -> String {
    let by_reference =
        turn.map(|turn| format!("context_read {}, or ", turn.reference())).unwrap_or_default();
    let mut words = format!(
        "\n\n[The result of {tool} was cut. All of its text: {by_reference}resource {uri}]"
    );
    if let Some(uri) = native.and_then(|native| native.uri.as_deref()) {
        let raw = turn.map(|_| "context_read with representation raw, or ").unwrap_or_default();
        // Writing to a string cannot fail.
        _ = write!(words, "\n[Native result: {raw}resource {uri}]");
    }
    words
}

/// Puts a text in the place of all texts: where the first one was, else before everything.
fn replaced(content: Vec<Block>, message: String) -> Vec<Block> {
    let at = content.iter().position(|block| matches!(block, Block::Text(_))).unwrap_or(0);
    let mut blocks: Vec<Block> = Vec::with_capacity(content.len());
    let mut message = Some(Block::Text(message));
    for (index, block) in content.into_iter().enumerate() {
        if index == at {
            blocks.extend(message.take());
        }
        if matches!(block, Block::Image(_)) {
            blocks.push(block);
        }
    }
    blocks.extend(message);
    blocks
}
