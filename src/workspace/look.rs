//! Looking around without opening files: what is in a folder, and whether a file is still the same.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};

use cap_std::fs::MetadataExt as _;

use super::walk::file_type;
use super::{PathError, ResolvedPath, Workspace};

/// Something in a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// Its name.
    pub name: OsString,
    /// What it is, links not followed.
    pub is: Is,
}

/// What an entry of a folder is by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Is {
    /// A folder.
    Folder,
    /// A symbolic link, whatever it leads to.
    Link,
    /// Anything else.
    Other,
}

/// What changes with every change of a file or of the names in a folder.
///
/// Times alone can be set back; the time of the last change of the inode cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Returns that of an open file.
    pub(super) fn of(found: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl Workspace {
    /// Resolves a name, or a relative path, that starts in a folder of the workspace.
    pub fn resolve_in(
        &self,
        folder: &ResolvedPath,
        name: &OsStr,
    ) -> Result<ResolvedPath, PathError> {
        self.resolve_from(folder.absolute(), name.as_ref())
    }

    /// Returns what is in a folder, by name, and whether there is more than `most`.
    pub fn seen(&self, folder: &ResolvedPath, most: usize) -> io::Result<(Vec<Seen>, bool)> {
        let mut seen = Vec::new();
        for entry in self.directory.read_dir(folder.beneath())? {
            let entry = entry?;
            if seen.len() == most {
                return Ok((seen, true));
            }
            // One that is gone meanwhile was not seen.
            let Some(told) = file_type(&entry) else { continue };
            let is = if told.is_dir() {
                Is::Folder
            } else if told.is_symlink() {
                Is::Link
            } else {
                Is::Other
            };
            seen.push(Seen { name: entry.file_name(), is });
        }
        seen.sort();
        Ok((seen, false))
    }

    /// Says whether a folder has an entry of exactly this name, also where the file system takes
    /// upper and lower case for the same.
    pub fn has_entry(&self, folder: &ResolvedPath, name: &str) -> io::Result<bool> {
        for entry in self.directory.read_dir(folder.beneath())? {
            if entry?.file_name() == name {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the stamp of what a path leads to, or nothing where nothing is.
    pub fn stamp(&self, path: &ResolvedPath) -> io::Result<Option<Stamp>> {
        match self.directory.metadata(path.beneath()) {
            Ok(found) => Ok(Some(Stamp {
                device: found.dev(),
                inode: found.ino(),
                size: found.len(),
                modified: (found.mtime(), found.mtime_nsec()),
                changed: (found.ctime(), found.ctime_nsec()),
            })),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_is_listed_by_name_and_its_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("b")).unwrap();
        std::fs::write(root.path().join("c"), "").unwrap();
        symlink("/", root.path().join("a")).unwrap();
        let workspace = Workspace::open(root.path()).unwrap();
        let top = workspace.resolve("").unwrap();
        let (seen, more) = workspace.seen(&top, 3).unwrap();
        let seen: Vec<_> = seen.iter().map(|seen| (seen.name.to_str().unwrap(), seen.is)).collect();
        assert_eq!(seen, [("a", Is::Link), ("b", Is::Folder), ("c", Is::Other)]);
        assert!(!more);
        assert!(workspace.seen(&top, 2).unwrap().1);
        assert!(workspace.has_entry(&top, "c").unwrap());
        assert!(!workspace.has_entry(&top, "C").unwrap());
        workspace.resolve_in(&top, "a".as_ref()).unwrap_err();
    }

    #[test]
    fn a_stamp_tells_a_file_from_its_like() {
        let root = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(root.path()).unwrap();
        let path = workspace.resolve("a").unwrap();
        assert_eq!(workspace.stamp(&path).unwrap(), None);
        std::fs::write(root.path().join("a"), "one").unwrap();
        let first = workspace.stamp(&path).unwrap();
        assert_eq!(workspace.stamp(&path).unwrap(), first);
        assert_eq!(first.unwrap().size(), 3);
        // The same size and the same time, as a copy has that keeps them.
        let time = std::fs::metadata(root.path().join("a")).unwrap().modified().unwrap();
        std::fs::write(root.path().join("b"), "two").unwrap();
        let like = std::fs::File::options().write(true).open(root.path().join("b")).unwrap();
        like.set_modified(time).unwrap();
        std::fs::rename(root.path().join("b"), root.path().join("a")).unwrap();
        assert_ne!(workspace.stamp(&path).unwrap(), first);
    }
}
