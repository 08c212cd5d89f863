//! A workspace in a temporary folder, to try tools on.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tempfile::TempDir;

use super::Parts;
use crate::artifact::{self, ArtifactStore, Quota};
use crate::session::Sessions;
use crate::tool::{CallContext, Interrupt, SessionId, Tool, ToolResult, fixture};
use crate::workspace::Workspace;

/// A folder with a workspace in it and room beside it.
pub(super) struct Bench {
    folder: TempDir,
    pub(super) parts: Parts,
    pub(super) cx: CallContext,
}

impl Bench {
    /// Makes an empty workspace.
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("ws");
        fs::create_dir(&root).unwrap();
        let workspace = Arc::new(Workspace::open(&root).unwrap());
        let cx = CallContext {
            session: SessionId::new("session"),
            workspace: Arc::new(workspace.root().to_owned()),
            ..fixture::context()
        };
        let quota = Quota { max_bytes: 1 << 30, max_age: Duration::from_mins(1) };
        let config = artifact::Config { folder: None, fallback: None, quota };
        let artifacts = Arc::new(ArtifactStore::new(config, Arc::clone(&workspace)));
        let parts = Parts { workspace, sessions: Arc::new(Sessions::default()), artifacts };
        Self { folder, parts, cx }
    }

    /// Returns a path beside the workspace.
    pub(super) fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a path in the workspace.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.parts.workspace.root().join(name)
    }

    /// Writes a file in the workspace, with the folders it needs.
    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Calls a tool the way the executor does: validation first.
    pub(super) async fn call(
        &self,
        tool: &dyn Tool,
        arguments: Value,
    ) -> Result<ToolResult, Interrupt> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        match tool.validate(Map::from_iter(arguments), &self.cx).await {
            Ok(valid) => tool.run(&valid, &self.cx).await,
            Err(failure) => Ok(failure.into()),
        }
    }

    /// Calls a tool and returns what a model gets.
    pub(super) async fn text(&self, tool: &dyn Tool, arguments: Value) -> String {
        self.call(tool, arguments).await.unwrap().model_content()
    }
}
