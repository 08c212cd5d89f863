//! Folders outside of the workspace.

use std::path::{Path, PathBuf};

use super::StoreError;
use crate::workspace::folder::Folder;

/// A folder outside of the workspace.
#[derive(Clone, Debug)]
pub enum Place {
    /// Somebody named it, so it must be there from the start.
    Named(PathBuf),
    /// It is the usual one: one that cannot be used is in nobody's way until it is needed.
    Usual(PathBuf),
}

impl Place {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Named(path) | Self::Usual(path) => path,
        }
    }
}

/// Opens such a folder, made where it is missing.
pub(super) fn open(folder: &Path) -> Result<Folder, StoreError> {
    Folder::ambient(folder).map_err(|error| StoreError::Folder { folder: folder.to_owned(), error })
}
