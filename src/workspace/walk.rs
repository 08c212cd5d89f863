//! Every file below a directory, in the order the system gives.
//!
//! A directory's own files come first, then its subdirectories one by one in the order they were
//! met, each with all that is below it. Nothing is sorted, nothing is left out for being hidden,
//! and a symbolic link is never descended into: it counts as a file, and is one if it leads to a
//! regular file of the workspace.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use cap_std::fs::{DirEntry, FileType, ReadDir};

use crate::workspace::{Kind, ResolvedPath, Workspace, beneath};

/// A walk under way.
#[derive(Debug)]
pub struct Walk<'a> {
    workspace: &'a Workspace,
    /// Where the walk began, from the workspace's root.
    base: PathBuf,
    /// Directories still to visit, last first; from the base.
    waiting: Vec<PathBuf>,
    current: Option<Current>,
    is_pruned: Option<fn(&OsStr) -> bool>,
}

/// One step of a walk.
#[derive(Debug)]
pub enum Found {
    /// A file, or a link that may lead to one.
    File(Candidate),
    /// Something that is no file; told so that a caller can stop between any two steps.
    Other,
    /// A directory, or the rest of one, that could not be read.
    Unreadable(Unreadable),
}

/// A file as the walk met it.
#[derive(Debug)]
pub struct Candidate {
    relative: PathBuf,
    link: bool,
}

/// What could not be read, and why.
#[derive(Debug)]
pub struct Unreadable {
    /// The path from the workspace's root.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

#[derive(Debug)]
struct Current {
    entries: ReadDir,
    directory: PathBuf,
    subdirectories: Vec<PathBuf>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(workspace: &'a Workspace, directory: &ResolvedPath) -> Self {
        Self {
            workspace,
            base: directory.relative().to_owned(),
            waiting: vec![PathBuf::new()],
            current: None,
            is_pruned: None,
        }
    }

    /// Leaves out every directory of such a name, except the one the walk begins at.
    #[must_use]
    pub fn without(mut self, is_pruned: fn(&OsStr) -> bool) -> Self {
        self.is_pruned = Some(is_pruned);
        self
    }

    /// Returns the workspace that is walked through.
    pub fn workspace(&self) -> &'a Workspace {
        self.workspace
    }

    /// Returns the regular file that a candidate is or leads to, if it is one of the workspace.
    pub fn resolve(&self, candidate: &Candidate) -> Option<ResolvedPath> {
        let relative = self.base.join(&candidate.relative);
        if candidate.link {
            let path = self.workspace.resolve_from(&self.workspace.root, &relative).ok()?;
            return matches!(self.workspace.kind(&path), Ok(Some(Kind::File))).then_some(path);
        }
        let given = relative.to_string_lossy().into_owned();
        let absolute = self.workspace.root.join(&relative);
        Some(ResolvedPath { given, relative, absolute })
    }

    fn enter(&mut self, directory: PathBuf) -> Found {
        let path = self.base.join(&directory);
        match self.workspace.directory.read_dir(beneath(&path)) {
            Ok(entries) => {
                self.current = Some(Current { entries, directory, subdirectories: Vec::new() });
                Found::Other
            }
            Err(source) => unreadable(path, source),
        }
    }

    fn leave(&mut self) {
        if let Some(current) = self.current.take() {
            self.waiting.extend(current.subdirectories.into_iter().rev());
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        let Some(current) = &mut self.current else {
            let directory = self.waiting.pop()?;
            return Some(self.enter(directory));
        };
        let is_pruned = self.is_pruned;
        match current.entries.next() {
            Some(Ok(entry)) => Some(current.meet(&entry, is_pruned)),
            Some(Err(source)) => {
                let path = self.base.join(&current.directory);
                self.leave();
                Some(unreadable(path, source))
            }
            None => {
                self.leave();
                Some(Found::Other)
            }
        }
    }
}

impl Current {
    fn meet(&mut self, entry: &DirEntry, is_pruned: Option<fn(&OsStr) -> bool>) -> Found {
        let name = entry.file_name();
        let Some(file_type) = file_type(entry) else { return Found::Other };
        let relative = self.directory.join(&name);
        if file_type.is_dir() {
            if is_pruned.is_none_or(|is_pruned| !is_pruned(&name)) {
                self.subdirectories.push(relative);
            }
            return Found::Other;
        }
        let link = file_type.is_symlink();
        if link || file_type.is_file() {
            Found::File(Candidate { relative, link })
        } else {
            Found::Other
        }
    }
}

impl Candidate {
    /// Returns the path from where the walk began.
    pub fn relative(&self) -> &Path {
        &self.relative
    }
}

/// Returns an entry's type, asking the file where the directory does not tell.
pub(super) fn file_type(entry: &DirEntry) -> Option<FileType> {
    let told = entry.file_type().ok()?;
    if told == FileType::unknown() {
        return entry.metadata().ok().map(|metadata| metadata.file_type());
    }
    Some(told)
}

/// Says that something could not be read, unless it is merely gone.
fn unreadable(path: PathBuf, source: io::Error) -> Found {
    match source.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Found::Other,
        _ => Found::Unreadable(Unreadable { path, source }),
    }
}
