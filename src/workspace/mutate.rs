//! Changing files: all of a change or nothing of it, and never without having seen what was there.
//!
//! A change happens under the locks of [`lock`](super::lock). Everything in it starts at the
//! handle of the folder that the file is in, reached from the root without leaving it, and names
//! nothing but entries of that folder; so whatever is exchanged on the way meanwhile, nothing
//! outside is touched. The new content is written to a temporary file beside the old one, made
//! durable, and put in its place by one rename. Whatever goes wrong before that takes the
//! temporary file and the folders made for it away again; only a process that is killed in
//! between leaves the temporary file, `.iris-….tmp`, behind.
//!
//! What a rename implies: of a file with several hard links only this name gets the new content,
//! and it belongs to whoever writes. The permissions stay; set-user-ID and set-group-ID do not.

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::{File, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, RenameFlags, renameat2};
use nix::unistd::{AccessFlags, faccessat};
use tokio_util::sync::CancellationToken;

use super::lock::{LockedFile, lock_folder};
use crate::tool::result::EXECUTION_ERROR;
use crate::tool::{ErrorCode, Failure};
use crate::workspace::{
    FileError, Observation, OpenFile, ReadState, ResolvedPath, STALE_FILE_STATE, Workspace,
    beneath, one_line,
};

/// A change that was cancelled before it began.
pub const FILE_OPERATION_CANCELLED: ErrorCode = ErrorCode::new("FILE_OPERATION_CANCELLED");

/// How much is written between two looks whether the call was cancelled, in bytes.
const CHUNK_BYTES: usize = 1 << 20;
/// What a new file may be, less the process's umask.
const NEW_MODE: u32 = 0o666;
/// What a temporary file is until it gets the permissions of the file it replaces.
const PRIVATE_MODE: u32 = 0o600;
/// The permissions that are kept.
const KEPT_MODE: u32 = 0o777;

impl Workspace {
    /// Waits until nobody else in this process changes a file.
    pub async fn lock(&self, path: ResolvedPath) -> LockedFile {
        self.locks.lock(path).await
    }

    /// Writes a file, with the folders it needs; one that exists must have been read.
    pub fn write_file(
        &self,
        file: &LockedFile,
        seen: &ReadState,
        content: &[u8],
        stop: &CancellationToken,
    ) -> Result<(), Failure> {
        not_cancelled(stop)?;
        let path = file.path();
        let mut made = Made { root: &self.directory, folders: Vec::new() };
        let place = Place::make(self, path, &mut made)?;
        let _lock = lock_folder(&place.folder, path, stop)?;
        not_cancelled(stop)?;
        let current = place.current()?;
        if let Some(current) = &current {
            seen.check_fresh(path, current.observation())?;
        }
        let observation = place.put(content, current.as_ref(), stop)?;
        seen.record(path, observation);
        made.folders.clear();
        Ok(())
    }

    /// Makes new content of a file that was read, from what is in it now.
    pub fn edit_file<F>(
        &self,
        file: &LockedFile,
        seen: &ReadState,
        edit: F,
        stop: &CancellationToken,
    ) -> Result<(), Failure>
    where
        F: FnOnce(&mut OpenFile) -> Result<String, Failure>,
    {
        not_cancelled(stop)?;
        let path = file.path();
        let place = Place::find(self, path)?;
        let _lock = lock_folder(&place.folder, path, stop)?;
        not_cancelled(stop)?;
        let Some(mut current) = place.current()? else { return Err(missing(path)) };
        seen.check_fresh(path, current.observation())?;
        let content = edit(&mut current)?;
        let observation = place.put(content.as_bytes(), Some(&current), stop)?;
        seen.record(path, observation);
        Ok(())
    }
}

/// A name in a folder, where a file is or is to be.
struct Place<'a> {
    path: &'a ResolvedPath,
    name: &'a OsStr,
    folder: Dir,
}

impl<'a> Place<'a> {
    /// Finds the place of a file that should be there.
    fn find(workspace: &Workspace, path: &'a ResolvedPath) -> Result<Self, Failure> {
        let (parent, name) = parts(path)?;
        match workspace.directory.open_dir(beneath(parent)) {
            Ok(folder) => Ok(Self { path, name, folder }),
            Err(error) => Err(workspace.failed(path, error).into()),
        }
    }

    /// Finds the place of a file, and makes the folders that are missing.
    fn make(
        workspace: &Workspace,
        path: &'a ResolvedPath,
        made: &mut Made<'_>,
    ) -> Result<Self, Failure> {
        let (parent, name) = parts(path)?;
        let root = &workspace.directory;
        let failed = |error| match workspace.failed(path, error) {
            outside @ FileError::Outside(_) => outside.into(),
            FileError::Unreadable { source, .. } => unwritable(path, source),
            FileError::NotFound { .. } | FileError::NotAFile { .. } => {
                unwritable(path, "what should be its folder is none")
            }
        };
        let folder = match root.open_dir(beneath(parent)) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                made.make(parent).and_then(|()| root.open_dir(parent))
            }
            opened => opened,
        };
        Ok(Self { path, name, folder: folder.map_err(failed)? })
    }

    /// Opens the file that is there now, if there is one, and sees that it may be replaced.
    fn current(&self) -> Result<Option<OpenFile>, Failure> {
        let not_a_file = || FileError::NotAFile { path: self.path.given().to_owned() };
        let Some(metadata) = self.metadata()? else { return Ok(None) };
        if metadata.is_symlink() {
            return Err(changed(self.path));
        }
        if !metadata.is_file() {
            return Err(not_a_file().into());
        }
        let writable = faccessat(&self.folder, self.name, AccessFlags::W_OK, AtFlags::AT_EACCESS);
        writable.map_err(|errno| unwritable(self.path, io::Error::from(errno)))?;
        let mut options = OpenOptions::new();
        let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_NOFOLLOW;
        options.read(true).custom_flags(flags.bits());
        let file = match self.folder.open_with(self.name, &options) {
            Ok(file) => file.into_std(),
            // It was there a moment ago, and no link.
            Err(error) if is_gone(&error) => return Err(changed(self.path)),
            Err(error) => return Err(unwritable(self.path, error)),
        };
        let metadata = file.metadata().map_err(|error| unwritable(self.path, error))?;
        if !metadata.is_file() {
            return Err(not_a_file().into());
        }
        Ok(Some(OpenFile { observation: Observation::of(&metadata), file }))
    }

    /// Puts new content in the place, where `current` must still be what is there.
    fn put(
        &self,
        content: &[u8],
        current: Option<&OpenFile>,
        stop: &CancellationToken,
    ) -> Result<Observation, Failure> {
        let failed = |error: io::Error| unwritable(self.path, error);
        let mut new = Temporary::create(&self.folder, current.is_some()).map_err(failed)?;
        for chunk in content.chunks(CHUNK_BYTES) {
            not_cancelled(stop)?;
            new.file.write_all(chunk).map_err(failed)?;
        }
        if let Some(current) = current {
            let mode = current.file.metadata().map_err(failed)?.mode() & KEPT_MODE;
            new.file.set_permissions(Permissions::from_mode(mode)).map_err(failed)?;
        }
        new.file.sync_all().map_err(failed)?;
        let observation = Observation::of(&new.file.metadata().map_err(failed)?);
        not_cancelled(stop)?;
        match current {
            Some(current) => self.replace(&mut new, current)?,
            None => self.add(&mut new)?,
        }
        Ok(observation)
    }

    /// Renames over the file that was opened. Who doesn't know our locks may still have changed
    /// it, so it is looked at once more at the last moment.
    fn replace(&self, new: &mut Temporary<'_>, current: &OpenFile) -> Result<(), Failure> {
        let failed = |error: io::Error| unwritable(self.path, error);
        let opened = current.file.metadata().map_err(failed)?;
        let same = self.metadata()?.is_some_and(|now| {
            (now.dev(), now.ino()) == (opened.dev(), opened.ino()) && now.is_file()
        });
        if !same || Observation::of(&opened) != current.observation {
            return Err(changed(self.path));
        }
        self.folder.rename(&new.name, &self.folder, self.name).map_err(failed)?;
        new.placed = true;
        Ok(())
    }

    /// Renames to a name that was free, and must be so still.
    fn add(&self, new: &mut Temporary<'_>) -> Result<(), Failure> {
        let failed = |error: io::Error| unwritable(self.path, error);
        let (folder, flags) = (&self.folder, RenameFlags::RENAME_NOREPLACE);
        match renameat2(folder, new.name.as_str(), folder, self.name, flags) {
            Ok(()) => {}
            Err(Errno::EEXIST) => return Err(changed(self.path)),
            // Not every file system can make sure of it.
            Err(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP) => {
                if self.metadata()?.is_some() {
                    return Err(changed(self.path));
                }
                folder.rename(&new.name, folder, self.name).map_err(failed)?;
            }
            Err(errno) => return Err(failed(io::Error::from(errno))),
        }
        new.placed = true;
        Ok(())
    }

    fn metadata(&self) -> Result<Option<Metadata>, Failure> {
        match self.folder.symlink_metadata(self.name) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unwritable(self.path, error)),
        }
    }
}

/// Folders made for a file; taken away again unless it came to be.
struct Made<'a> {
    root: &'a Dir,
    folders: Vec<PathBuf>,
}

impl Made<'_> {
    fn make(&mut self, folder: &Path) -> io::Result<()> {
        let mut path = PathBuf::new();
        for part in folder {
            path.push(part);
            match self.root.create_dir(&path) {
                Ok(()) => self.folders.push(path.clone()),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        for folder in self.folders.iter().rev() {
            // One that is in use by now stays.
            drop(self.root.remove_dir(folder));
        }
    }
}

/// A file under a name of its own; taken away again unless it was put in its place.
struct Temporary<'a> {
    folder: &'a Dir,
    name: String,
    file: File,
    placed: bool,
}

impl<'a> Temporary<'a> {
    fn create(folder: &'a Dir, private: bool) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let mode = if private { PRIVATE_MODE } else { NEW_MODE };
        options.write(true).create_new(true).mode(mode);
        loop {
            let name = format!(".iris-{:016x}.tmp", rand::random::<u64>());
            match folder.open_with(&name, &options) {
                Ok(file) => {
                    return Ok(Self { folder, name, file: file.into_std(), placed: false });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.placed
            && let Err(error) = self.folder.remove_file(&self.name)
        {
            tracing::warn!(%error, name = %self.name, "a temporary file could not be removed");
        }
    }
}

/// Ends a change that was cancelled while nothing has been changed.
pub(super) fn not_cancelled(stop: &CancellationToken) -> Result<(), Failure> {
    if stop.is_cancelled() { Err(cancelled()) } else { Ok(()) }
}

/// Makes the failure of a change that was cancelled before it began.
pub fn cancelled() -> Failure {
    let message = "the change was cancelled before it began; the file is as it was";
    Failure::new(FILE_OPERATION_CANCELLED, message)
}

/// Makes the failure of a file that the system keeps from being written.
pub(super) fn unwritable(path: &ResolvedPath, source: impl Display) -> Failure {
    Failure::new(EXECUTION_ERROR, format!("cannot write {}: {source}", one_line(path.given())))
}

fn missing(path: &ResolvedPath) -> Failure {
    FileError::NotFound { path: path.given().to_owned() }.into()
}

fn changed(path: &ResolvedPath) -> Failure {
    let name = one_line(path.given());
    Failure::new(
        STALE_FILE_STATE,
        format!("the file was changed by somebody else meanwhile; read it again: {name}"),
    )
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(Errno::ELOOP as i32)
}

/// Returns the folder and the name of a file; the root itself has neither.
fn parts(path: &ResolvedPath) -> Result<(&Path, &OsStr), Failure> {
    let relative = path.relative();
    match (relative.parent(), relative.file_name()) {
        (Some(parent), Some(name)) => Ok((parent, name)),
        _ => Err(FileError::NotAFile { path: path.given().to_owned() }.into()),
    }
}

#[cfg(test)]
mod tests;
