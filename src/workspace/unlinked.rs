//! Opening a file at the very path that was resolved, through no link at all.
//!
//! Opening by the handle of the workspace's root keeps inside the workspace, which is enough for a
//! tool that may read all of it. Whoever decided by a resolved path that a file is in some folder
//! of the workspace must not be led out of that folder by a link that was put there since. A
//! resolved path has no links, so one that is met now is new, and what it leads to was not judged.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, SFlag, fstatat};

use super::{FileError, Observation, OpenFile, ResolvedPath, Workspace};

impl Workspace {
    /// Opens a regular file for reading as [`open_file`](Self::open_file) does, but follows no
    /// link on the way: where one stands by now there is no file.
    pub fn open_unlinked(&self, path: &ResolvedPath) -> Result<OpenFile, FileError> {
        let not_a_file = || FileError::NotAFile { path: path.given.clone() };
        let opened = self.regular(path).map_err(|error| self.failed(path, error))?;
        let file = opened.ok_or_else(not_a_file)?;
        let metadata = file.metadata().map_err(|error| self.failed(path, error))?;
        if !metadata.is_file() {
            return Err(not_a_file());
        }
        Ok(OpenFile { file, observation: Observation::of(&metadata) })
    }

    fn regular(&self, path: &ResolvedPath) -> io::Result<Option<File>> {
        let mut names: Vec<_> = path.relative.iter().collect();
        let Some(name) = names.pop() else { return Ok(None) };
        let through = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut folder: Option<OwnedFd> = None;
        for name in names {
            let at = folder.as_ref().map_or_else(|| self.directory.as_fd(), OwnedFd::as_fd);
            folder = Some(openat(at, name, through, Mode::empty())?);
        }
        let at = folder.as_ref().map_or_else(|| self.directory.as_fd(), OwnedFd::as_fd);
        // Asked first, since for some devices being opened is already an action.
        let found = fstatat(at, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        if SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT != SFlag::S_IFREG {
            return Ok(None);
        }
        // Should a pipe have taken its place since, opening it must not wait for a writer.
        let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        match openat(at, name, OFlag::O_RDONLY | flags, Mode::empty()) {
            Ok(opened) => Ok(Some(File::from(opened))),
            Err(Errno::ELOOP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_opened_where_it_was_resolved_and_through_no_link() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        std::fs::create_dir_all(at("in/sub")).unwrap();
        std::fs::write(at("in/sub/a"), "fine").unwrap();
        std::fs::create_dir(at("other")).unwrap();
        std::fs::write(at("other/a"), "secret").unwrap();
        let workspace = Workspace::open(root.path()).unwrap();
        let path = workspace.resolve("in/sub/a").unwrap();
        let mut text = String::new();
        workspace.open_unlinked(&path).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "fine");
        for nothing in ["", "in", "in/sub"] {
            let path = workspace.resolve(nothing).unwrap();
            let error = workspace.open_unlinked(&path).unwrap_err();
            assert!(matches!(error, FileError::NotAFile { .. }), "{nothing}: {error:?}");
        }
        // A link in the place of the file, and of each folder on the way, inside the workspace.
        std::fs::remove_file(at("in/sub/a")).unwrap();
        symlink("../../other/a", at("in/sub/a")).unwrap();
        let error = workspace.open_unlinked(&path).unwrap_err();
        assert!(matches!(error, FileError::NotAFile { .. }), "{error:?}");
        std::fs::remove_dir_all(at("in/sub")).unwrap();
        symlink("../other", at("in/sub")).unwrap();
        let error = workspace.open_unlinked(&path).unwrap_err();
        assert!(matches!(error, FileError::NotFound { .. }), "{error:?}");
        assert!(workspace.open_file(&path).is_ok(), "it is in the workspace");
        std::fs::remove_file(at("in/sub")).unwrap();
        let error = workspace.open_unlinked(&path).unwrap_err();
        assert!(matches!(error, FileError::NotFound { .. }), "{error:?}");
    }
}
