//! `publish_artifact`: a copy of a file, to be kept as it is now and read by the client.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Parts;
use super::on_thread::on_thread;
use super::reach::Reach;
use crate::artifact::{ArtifactStore, Owner};
use crate::tool::{
    CallContext, Capability, Failure, Retention, ToolDefinition, ToolError, ToolResult, TypedTool,
};
use crate::workspace::{FILE_NOT_FOUND, FileError, one_line};

const DESCRIPTION: &str = "\
Hands a file of the workspace over to the user: keeps a copy of it as it is now, under an address \
that the user's client can read. The file must exist; later changes to it don't change the copy.";

/// Publishes files.
#[derive(Debug)]
pub struct PublishArtifact {
    definition: ToolDefinition,
    parts: Parts,
}

/// The arguments of `publish_artifact`.
#[derive(Clone, Debug, Deserialize)]
pub struct Input {
    file_path: String,
}

impl PublishArtifact {
    /// Makes the tool over a workspace.
    pub fn new(parts: &Parts) -> Self {
        let mut definition =
            super::file_tool("publish_artifact", "Publish a file", DESCRIPTION, schema());
        definition.capabilities = [Capability::Read].into();
        definition.retention = Retention::Keep;
        Self { definition, parts: parts.clone() }
    }
}

#[async_trait]
impl TypedTool for PublishArtifact {
    type Input = Input;

    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn run(&self, input: &Input, cx: &CallContext) -> Result<ToolResult, ToolError> {
        let (reach, artifacts) = (Reach::of(&self.parts, cx), Arc::clone(&self.parts.artifacts));
        let (session, call_id) = (cx.session.clone(), cx.call_id.clone());
        let file_path = input.file_path.clone();
        on_thread(cx, move |_| {
            let owner = Owner { session: session.as_str(), call_id: call_id.as_str() };
            Ok(publish(&reach, &artifacts, owner, &file_path)?)
        })
        .await
    }
}

fn publish(
    reach: &Reach,
    artifacts: &ArtifactStore,
    owner: Owner<'_>,
    file_path: &str,
) -> Result<ToolResult, Failure> {
    let path = reach.resolve(file_path)?;
    let file = reach.workspace.open_file(&path).map_err(|error| match error {
        FileError::NotFound { .. } | FileError::NotAFile { .. } => Failure::new(
            FILE_NOT_FOUND,
            format!("only a file that is there can be published: {}", one_line(path.given())),
        ),
        error => error.into(),
    })?;
    let size = file.observation().size_bytes;
    let name = path.relative().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let saved = artifacts.copy(owner, &name, size, file)?;
    let mime_type = mime_guess::from_path(&name).first_or_octet_stream().essence_str().to_owned();
    let preview = format!("Published: {}", one_line(&name));
    let text = format!("{preview} ({mime_type}, {} bytes)", saved.size_bytes);
    let mut artifact = saved.artifact(&mime_type, preview);
    artifact.name = Some(name);
    Ok(ToolResult { artifact: Some(artifact), ..ToolResult::text(text) })
}

fn schema() -> Value {
    json!({
        "type": "object",
        "title": "PublishArtifactInput",
        "required": ["file_path"],
        "properties": {"file_path": {"title": "File Path", "type": "string"}},
    })
}

#[cfg(test)]
mod tests;
