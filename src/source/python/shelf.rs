//! Files that Python tools hand over, kept so that clients can read them.

use std::path::Path;
use std::sync::Arc;

use crate::artifact::{ArtifactStore, Owner, Saved};
use crate::tool::{Artifact, CallContext, Failure, ToolResult};
use crate::workspace::Workspace;

/// Where files are taken from, and where they are kept.
#[derive(Clone, Debug)]
pub struct Shelf {
    /// The workspace; nothing outside of it is handed over.
    pub workspace: Arc<Workspace>,
    /// Where copies are kept.
    pub artifacts: Arc<ArtifactStore>,
}

impl Shelf {
    /// Keeps a copy of the file that a result names, and gives it an address.
    ///
    /// A file that cannot be read, or is outside of the workspace, is told in the log; the result
    /// stays what the tool made.
    pub(super) async fn keep(&self, mut result: ToolResult, cx: &CallContext) -> ToolResult {
        let Some(artifact) = &mut result.artifact else { return result };
        if artifact.uri.is_some() {
            return result;
        }
        let (own, path) = (self.clone(), artifact.path.clone());
        let (session, call_id) = (cx.session.clone(), cx.call_id.clone());
        let copying = move || {
            let owner = Owner { session: session.as_str(), call_id: call_id.as_str() };
            own.copy(owner, &path)
        };
        match tokio::task::spawn_blocking(copying).await {
            Ok(Ok(saved)) => addressed(artifact, &saved),
            Ok(Err(failure)) => {
                tracing::warn!(%failure, "the file of a Python tool's result is not handed over");
            }
            Err(error) => tracing::error!(%error, "copying a file went wrong"),
        }
        result
    }

    fn copy(&self, owner: Owner<'_>, path: &str) -> Result<Saved, Failure> {
        let path = self.workspace.resolve(path)?;
        let file = self.workspace.open_file(&path)?;
        let size = file.observation().size_bytes;
        let name = path.relative().file_name().unwrap_or_default().to_string_lossy();
        Ok(self.artifacts.copy(owner, &name, size, file)?)
    }
}

/// Says by what address a client reads it; where it is stays what the tool says.
fn addressed(artifact: &mut Artifact, saved: &Saved) {
    let Artifact { uri, hold, .. } = saved.artifact(&artifact.mime_type, String::new());
    artifact.uri = uri;
    artifact.hold = hold;
    artifact.size_bytes = saved.size_bytes;
    let name = Path::new(&artifact.path).file_name();
    artifact.name = name.map(|name| name.to_string_lossy().into_owned());
}
