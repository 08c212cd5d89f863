//! What file tools of one session reach: the workspace, but not what is kept there for others.

use std::sync::Arc;

use super::Parts;
use crate::artifact::ArtifactStore;
use crate::tool::result::VALIDATION_ERROR;
use crate::tool::{CallContext, Failure};
use crate::workspace::{ResolvedPath, Workspace, one_line};

/// The workspace as one session's file tools see it.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    pub(super) workspace: Arc<Workspace>,
    artifacts: Arc<ArtifactStore>,
    session: String,
}

impl Reach {
    pub(super) fn of(parts: &Parts, cx: &CallContext) -> Self {
        Self {
            workspace: Arc::clone(&parts.workspace),
            artifacts: Arc::clone(&parts.artifacts),
            session: cx.session.as_str().to_owned(),
        }
    }

    /// Resolves a path that is to be read.
    pub(super) fn resolve(&self, path: &str) -> Result<ResolvedPath, Failure> {
        let path = self.workspace.resolve(path)?;
        if self.may_see(&path) { Ok(path) } else { Err(private(&path)) }
    }

    /// Resolves a path that is to be changed; what is kept for a session is not changed at all.
    pub(super) fn resolve_to_change(&self, path: &str) -> Result<ResolvedPath, Failure> {
        let path = self.workspace.resolve(path)?;
        if self.artifacts.is_private(path.absolute(), None) {
            Err(private(&path))
        } else {
            Ok(path)
        }
    }

    /// Returns whether a path is none that is kept for another session.
    pub(super) fn may_see(&self, path: &ResolvedPath) -> bool {
        !self.artifacts.is_private(path.absolute(), Some(&self.session))
    }
}

fn private(path: &ResolvedPath) -> Failure {
    let name = one_line(path.given());
    let message = format!(
        "results that are kept are read with context_read or as resources, and not changed: {name}"
    );
    Failure::new(VALIDATION_ERROR, message)
}
