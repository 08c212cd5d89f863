//! Where the folder of artifacts can be, and whether it can be there.

use std::io;
use std::path::{Path, PathBuf};

use super::{Area, ArtifactStore, FOLDER, StoreError};
use crate::workspace::folder::Folder;

/// The file that is made to see whether one can be.
const PROBE: &str = ".probe";

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

impl ArtifactStore {
    /// Tries whether artifacts could be kept, for who asks before there are any; blocks.
    ///
    /// Folders that were made for that are removed again.
    pub fn probe(&self) -> Result<(), StoreError> {
        let ours = self.workspace.root().join(FOLDER).join(Area::Results.folder());
        let usual = self.config.folder.as_ref().map(|place| place.path().to_owned());
        let places = [usual, self.config.fallback.clone(), Some(ours)];
        let missing: Vec<PathBuf> =
            places.into_iter().flatten().flat_map(|place| missing(&place)).collect();
        let probed = self.root().and_then(|root| {
            let made = root.create(PROBE).and_then(|_| root.remove(PROBE));
            made.map_err(|error| StoreError::Folder(vec![(root.path().to_owned(), error)]))
        });
        for folder in missing {
            // It was never made, or somebody has begun to use it.
            if let Err(error) = std::fs::remove_dir(&folder) {
                tracing::debug!(%error, folder = %folder.display(), "not removed");
            }
        }
        probed
    }
}

/// Opens a folder outside of the workspace, made where it is missing.
pub(super) fn open(folder: &Path) -> Result<Folder, StoreError> {
    Folder::ambient(folder).map_err(|error| StoreError::Folder(vec![(folder.to_owned(), error)]))
}

/// Says of each folder that was tried why it cannot be used.
pub(super) fn unusable(tried: &[(PathBuf, io::Error)]) -> String {
    let one = |(folder, error): &(PathBuf, io::Error)| {
        format!("the artifact folder {} cannot be used: {error}", folder.display())
    };
    tried.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Returns what is missing of a path, the innermost first.
fn missing(path: &Path) -> Vec<PathBuf> {
    let is_missing = |path: &&Path| {
        let found = path.symlink_metadata();
        found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    path.ancestors().take_while(is_missing).map(Path::to_owned).collect()
}
