//! Paths that start from the workspace and must not lead out of it.

use std::path::{Component, Path};

use super::text::Text;
use crate::document::{Document, DocumentError};

/// Refuses a relative path that leads out of the workspace by its letters alone.
pub(super) fn check(document: &Document, key: &str, path: &Text) -> Result<(), DocumentError> {
    let mut depth = 0_i64;
    for component in Path::new(path.as_str()).components() {
        match component {
            // Where an absolute path leads is seen when there is a workspace.
            Component::RootDir | Component::Prefix(_) => return Ok(()),
            Component::CurDir => {}
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
        }
        if depth < 0 {
            let error = document.error_in(key, "the path leads out of the workspace");
            return Err(error.with_hint("it starts from `permissions.workspace`".to_owned()));
        }
    }
    Ok(())
}
