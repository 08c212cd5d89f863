//! `write_file`: a whole file, new or in place of one that was read.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Parts;
use super::list_files::printed;
use super::on_thread::{on_thread, to_the_end};
use super::reach::Reach;
use crate::tool::{CallContext, Failure, ToolDefinition, ToolError, ToolResult, TypedTool};
use crate::workspace::mutate::cancelled;
use crate::workspace::{FILE_NOT_FOUND, LockedFile, one_line};

const DESCRIPTION: &str = "\
Writes a text file of the workspace: a new one, with the folders it needs, or the whole content of \
an existing one. An existing file must have been read with read_file before, and again if it has \
changed since; after a write or edit of yours it counts as read. The content is written exactly as \
given, as UTF-8; nothing is added at its end. The file is replaced at once or not at all, and keeps \
its permissions. To change a part of a file, edit_file is safer and shorter.";

/// Writes whole files.
#[derive(Debug)]
pub struct WriteFile {
    definition: ToolDefinition,
    parts: Parts,
}

/// The arguments of `write_file`.
#[derive(Clone, Debug, Deserialize)]
pub struct Input {
    file_path: String,
    content: String,
}

impl WriteFile {
    /// Makes the tool over a workspace.
    pub fn new(parts: &Parts) -> Self {
        let definition = super::writing("write_file", "Write a file", DESCRIPTION, schema());
        Self { definition, parts: parts.clone() }
    }
}

#[async_trait]
impl TypedTool for WriteFile {
    type Input = Input;

    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn run(&self, input: &Input, cx: &CallContext) -> Result<ToolResult, ToolError> {
        let file = lock(&self.parts, &input.file_path, cx).await?;
        let workspace = Arc::clone(&self.parts.workspace);
        let session = self.parts.sessions.get(&cx.session);
        let content = input.content.clone();
        to_the_end(cx, move |stop| {
            workspace.write_file(&file, session.read_state(), content.as_bytes(), stop)?;
            let name = printed(file.path().relative());
            Ok(ToolResult::text(format!("WROTE: {}", one_line(&name))))
        })
        .await
    }
}

/// Resolves a path and waits for the right to change the file at it.
pub(super) async fn lock(
    parts: &Parts,
    file_path: &str,
    cx: &CallContext,
) -> Result<LockedFile, ToolError> {
    let (reach, workspace) = (Reach::of(parts, cx), &parts.workspace);
    if file_path.ends_with('/') {
        let message = format!("a path with `/` at its end is a folder's: {}", one_line(file_path));
        return Err(Failure::new(FILE_NOT_FOUND, message).into());
    }
    let file_path = file_path.to_owned();
    let path = on_thread(cx, move |_| Ok(reach.resolve_to_change(&file_path)?)).await?;
    tokio::select! {
        file = workspace.lock(path) => Ok(file),
        () = cx.cancelled.cancelled() => Err(cancelled().into()),
    }
}

fn schema() -> Value {
    json!({
        "type": "object",
        "title": "WriteFileInput",
        "required": ["file_path", "content"],
        "properties": {
            "file_path": {"title": "File Path", "type": "string"},
            "content": {"title": "Content", "type": "string"},
        },
    })
}

#[cfg(test)]
mod tests;
