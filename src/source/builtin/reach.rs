//! What file tools of one session reach: the workspace, but not what is kept there for others.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Parts;
use super::on_thread::on_thread;
use crate::artifact::Private;
use crate::tool::result::VALIDATION_ERROR;
use crate::tool::{CallContext, Failure, ToolError, ToolResult};
use crate::workspace::{ResolvedPath, Workspace, one_line};

/// The workspace as one session's file tools see it.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    pub(super) workspace: Arc<Workspace>,
    private: Private,
    session: String,
}

impl Reach {
    pub(super) fn of(parts: &Parts, cx: &CallContext) -> Self {
        Self {
            workspace: Arc::clone(&parts.workspace),
            private: parts.artifacts.private(),
            session: cx.session.as_str().to_owned(),
        }
    }

    /// Runs a search on a thread; one for no results looks at nothing.
    pub(super) async fn search(
        parts: &Parts,
        max_results: usize,
        cx: &CallContext,
        work: impl FnOnce(&Self, &CancellationToken) -> Result<String, ToolError> + Send + 'static,
    ) -> Result<ToolResult, ToolError> {
        if max_results == 0 {
            return Ok(ToolResult::default());
        }
        let reach = Self::of(parts, cx);
        let text = on_thread(cx, move |stop| work(&reach, stop)).await?;
        Ok(ToolResult::text(text))
    }

    /// Resolves a path that is to be read.
    pub(super) fn resolve(&self, path: &str) -> Result<ResolvedPath, Failure> {
        let path = self.workspace.resolve(path)?;
        if self.may_see(&path) { Ok(path) } else { Err(private(&path)) }
    }

    /// Resolves a path that is to be changed; what is kept for a session is not changed at all.
    pub(super) fn resolve_to_change(&self, path: &str) -> Result<ResolvedPath, Failure> {
        let path = self.workspace.resolve(path)?;
        if self.private.holds(path.absolute(), None) { Err(private(&path)) } else { Ok(path) }
    }

    /// Returns whether a path is none that is kept for another session.
    pub(super) fn may_see(&self, path: &ResolvedPath) -> bool {
        !self.private.holds(path.absolute(), Some(&self.session))
    }
}

fn private(path: &ResolvedPath) -> Failure {
    let name = one_line(path.given());
    let message = format!(
        "results that are kept are read with context_read or as resources, and not changed: {name}"
    );
    Failure::new(VALIDATION_ERROR, message)
}
