//! The one folder that file tools may touch, and the only way into it.
//!
//! A path from a caller becomes a [`ResolvedPath`] or is refused; only this module makes one.
//! Resolving follows symbolic links the way a person would expect and decides by the result.
//! That alone would leave a gap, since a folder can be swapped for a link in the meantime. So
//! nothing is ever opened by the resolved name: every access starts at the handle of the root
//! folder and the kernel refuses to leave it (`openat2` with `RESOLVE_BENEATH`, or a walk by
//! handles where that is missing). What was read is observed on the very handle it was read from.

pub mod folder;
pub mod look;
pub mod mutate;
pub mod read_state;
pub mod walk;

mod lock;
mod real_path;
mod unlinked;

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};
use nix::fcntl::OFlag;

pub use self::lock::LockedFile;
pub use self::look::{Is, Seen, Stamp};
pub use self::mutate::FILE_OPERATION_CANCELLED;
pub use self::read_state::{FILE_NOT_READ, Observation, ReadState, STALE_FILE_STATE};
pub use self::walk::{Candidate, Found, Unreadable, Walk};

use self::lock::Locks;
use self::real_path::RealPathError;
use crate::tool::printed::printed;
use crate::tool::result::{EXECUTION_ERROR, VALIDATION_ERROR};
use crate::tool::{ErrorCode, Failure};

/// A path with nothing to read at it.
pub const FILE_NOT_FOUND: ErrorCode = ErrorCode::new("FILE_NOT_FOUND");

/// The longest path a caller may give, in bytes; the kernel takes no longer one either.
pub const MAX_PATH_BYTES: usize = 4096;

/// A folder, opened, with the rules for what lies in it.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    directory: Dir,
    locks: Locks,
}

/// A path that was inside the workspace when it was resolved.
///
/// It has no `..`, no `.` and, at that time, ran through no symbolic link. Whether anything is
/// there is another question.
#[derive(Clone, Debug)]
pub struct ResolvedPath {
    given: String,
    relative: PathBuf,
    absolute: PathBuf,
}

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Something that cannot be read to its end: a device, a pipe, a socket.
    Other,
}

/// A regular file, opened for reading, and what was seen of it at that moment.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    observation: Observation,
}

/// Why a path is not one of the workspace.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// It leads outside.
    #[error("{}", printed(
        "PATH_OUTSIDE_WORKSPACE: the path is outside the workspace",
        &[("path", path), ("workspace_root", root)],
    ))]
    Outside {
        /// The path as the caller gave it.
        path: String,
        /// The workspace's root.
        root: String,
    },
    /// It has a NUL byte, which no file name can have.
    #[error("{}", printed("the path contains a NUL byte", &[("path", path)]))]
    Nul {
        /// The path as the caller gave it.
        path: String,
    },
    /// It is longer than any path can be.
    #[error("the path has {bytes} bytes; at most {MAX_PATH_BYTES} are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It runs through symbolic links without an end.
    #[error("{}", printed("the path runs through too many symbolic links", &[("path", path)]))]
    Loop {
        /// The path as the caller gave it.
        path: String,
    },
    /// The workspace's root cannot be opened.
    #[error("cannot open the workspace {}: {source}", root.display())]
    Root {
        /// The root as it was given.
        root: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Why a file of the workspace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// There is nothing at the path.
    #[error("the file does not exist: {}", one_line(path))]
    NotFound {
        /// The path as the caller gave it.
        path: String,
    },
    /// There is something at the path, but no regular file.
    #[error("the path is not a regular file: {}", one_line(path))]
    NotAFile {
        /// The path as the caller gave it.
        path: String,
    },
    /// The path led outside when it was used, though it did not when it was resolved.
    #[error(transparent)]
    Outside(PathError),
    /// The system refused.
    #[error("cannot read {}: {source}", one_line(path))]
    Unreadable {
        /// The path as the caller gave it.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

impl Workspace {
    /// Opens a folder as a workspace.
    pub fn open(root: &Path) -> Result<Self, PathError> {
        let failed = |source| PathError::Root { root: root.to_owned(), source };
        let canonical = root.canonicalize().map_err(failed)?;
        let directory = Dir::open_ambient_dir(&canonical, ambient_authority()).map_err(failed)?;
        Ok(Self { root: canonical, directory, locks: Locks::default() })
    }

    /// Returns the root, absolute and without symbolic links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Resolves a caller's path, relative to the root unless it is absolute.
    ///
    /// Symbolic links are followed, `..` applies to what they lead to, and a tail that does not
    /// exist is kept. An empty path is the root; `~` is an ordinary name.
    pub fn resolve(&self, path: &str) -> Result<ResolvedPath, PathError> {
        if path.contains('\0') {
            return Err(PathError::Nul { path: path.to_owned() });
        }
        if path.len() > MAX_PATH_BYTES {
            return Err(PathError::TooLong { bytes: path.len() });
        }
        self.resolve_from(&self.root, Path::new(path))
    }

    /// Returns what stands at a path, or `None` if nothing does.
    pub fn kind(&self, path: &ResolvedPath) -> Result<Option<Kind>, FileError> {
        let metadata = match self.directory.metadata(path.beneath()) {
            Ok(metadata) => metadata,
            Err(error) => {
                return match self.failed(path, error) {
                    FileError::NotFound { .. } => Ok(None),
                    error => Err(error),
                };
            }
        };
        Ok(Some(if metadata.is_file() {
            Kind::File
        } else if metadata.is_dir() {
            Kind::Directory
        } else {
            Kind::Other
        }))
    }

    /// Opens a regular file for reading; never waits, whatever stands at the path.
    pub fn open_file(&self, path: &ResolvedPath) -> Result<OpenFile, FileError> {
        let not_a_file = || FileError::NotAFile { path: path.given.clone() };
        // Asked first, since for some devices being opened is already an action.
        match self.kind(path)? {
            Some(Kind::File) => {}
            Some(Kind::Directory | Kind::Other) => return Err(not_a_file()),
            None => return Err(FileError::NotFound { path: path.given.clone() }),
        }
        let mut options = OpenOptions::new();
        // Should a pipe have taken the file's place since, opening it must not wait for a writer.
        options.read(true).custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits());
        let opened = self.directory.open_with(path.beneath(), &options);
        let file = opened.map_err(|error| self.failed(path, error))?.into_std();
        let metadata = file.metadata().map_err(|error| self.failed(path, error))?;
        if !metadata.is_file() {
            return Err(not_a_file());
        }
        Ok(OpenFile { file, observation: Observation::of(&metadata) })
    }

    /// Walks the files below a directory.
    pub fn walk(&self, directory: &ResolvedPath) -> Walk<'_> {
        Walk::new(self, directory)
    }

    fn resolve_from(&self, start: &Path, path: &Path) -> Result<ResolvedPath, PathError> {
        let given = || path.to_string_lossy().into_owned();
        let outside =
            || PathError::Outside { path: given(), root: self.root.to_string_lossy().into_owned() };
        let absolute = match real_path::real_path(start, path) {
            Ok(absolute) => absolute,
            // Of what lies outside, not even the shape is told.
            Err(RealPathError::Loop { at }) if at.starts_with(&self.root) => {
                return Err(PathError::Loop { path: given() });
            }
            Err(RealPathError::Loop { .. }) => return Err(outside()),
        };
        match absolute.strip_prefix(&self.root) {
            Ok(relative) => {
                Ok(ResolvedPath { given: given(), relative: relative.to_owned(), absolute })
            }
            Err(_) => Err(outside()),
        }
    }

    fn failed(&self, path: &ResolvedPath, source: io::Error) -> FileError {
        let given = path.given.clone();
        match source.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => FileError::NotFound { path: given },
            // The sandbox's own refusal; the system's has a number.
            ErrorKind::PermissionDenied if source.raw_os_error().is_none() => {
                let root = self.root.to_string_lossy().into_owned();
                FileError::Outside(PathError::Outside { path: given, root })
            }
            _ => FileError::Unreadable { path: given, source },
        }
    }
}

impl ResolvedPath {
    /// Returns the path as the caller gave it.
    pub fn given(&self) -> &str {
        &self.given
    }

    /// Returns the path from the workspace's root; empty for the root itself.
    pub fn relative(&self) -> &Path {
        &self.relative
    }

    /// Returns the whole path; for keys and messages, never for opening.
    pub fn absolute(&self) -> &Path {
        &self.absolute
    }

    /// Returns the path to open from the root's handle.
    fn beneath(&self) -> &Path {
        beneath(&self.relative)
    }
}

impl OpenFile {
    /// Returns what was seen of the file when it was opened.
    pub fn observation(&self) -> Observation {
        self.observation
    }

    /// Returns the stamp of the very file that is open, as it is now.
    pub fn stamp(&self) -> io::Result<Stamp> {
        Ok(Stamp::of(&self.file.metadata()?))
    }
}

impl Read for OpenFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

impl Seek for OpenFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Observation {
    fn of(metadata: &Metadata) -> Self {
        let seconds = i128::from(metadata.mtime()) * 1_000_000_000;
        Self { mtime_ns: seconds + i128::from(metadata.mtime_nsec()), size_bytes: metadata.len() }
    }
}

impl From<PathError> for Failure {
    fn from(error: PathError) -> Self {
        let code = match &error {
            PathError::Outside { .. } | PathError::Nul { .. } | PathError::TooLong { .. } => {
                VALIDATION_ERROR
            }
            PathError::Loop { .. } | PathError::Root { .. } => EXECUTION_ERROR,
        };
        Self::new(code, error.to_string())
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        match error {
            FileError::NotFound { .. } | FileError::NotAFile { .. } => {
                Self::new(FILE_NOT_FOUND, error.to_string())
            }
            FileError::Outside(error) => error.into(),
            FileError::Unreadable { .. } => Self::new(EXECUTION_ERROR, error.to_string()),
        }
    }
}

/// Returns a text with its control characters escaped, so that a message stays one line.
pub fn one_line(text: &str) -> String {
    text.chars()
        .flat_map(|character| {
            let escaped = character.is_control().then(|| character.escape_default());
            let plain = escaped.is_none().then_some(character);
            escaped.into_iter().flatten().chain(plain)
        })
        .collect()
}

fn beneath(relative: &Path) -> &Path {
    if relative.as_os_str().is_empty() { Path::new(".") } else { relative }
}

#[cfg(test)]
mod tests;
