//! Results too long for a model, native results, images and published files, kept as files.
//!
//! An artifact belongs to one session and is only ever found through it. It is written under a
//! name of its own and given the one it is found by when it is whole, so nothing half-written is
//! ever found. What is kept is bounded in size and age; the oldest goes first, and never while
//! somebody writes or reads it, in this process or another one.

pub mod image;
pub mod json;
pub mod name;
pub mod page;
pub mod persist;
mod place;
pub mod preview;
pub mod quota;
mod room;

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek as _, SeekFrom, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use lru::LruCache;

pub use self::name::{Area, Key};
pub use self::page::Page;
pub use self::place::Place;
pub use self::quota::Quota;

use self::page::Marks;
use crate::tool::{Artifact, ErrorCode, Failure, Hold};
use crate::workspace::Workspace;
use crate::workspace::folder::Folder;

/// A result that could not be kept.
pub const ARTIFACT_ERROR: ErrorCode = ErrorCode::new("ARTIFACT_ERROR");

/// The folder in a workspace.
const FOLDER: &str = ".iris";
/// What a file is called while it is written.
const UNFINISHED: &str = ".part";
/// For how many files it is remembered where their pages begin.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(256).expect("not zero");
/// How many bytes are copied at once.
const CHUNK: usize = 1 << 20;
/// How often to make the folder again that another process has just found empty.
const TRIES: usize = 3;

/// Where artifacts are kept, and how many.
#[derive(Clone, Debug)]
pub struct Config {
    /// The folder; without one it is `.iris` of the workspace.
    pub folder: Option<Place>,
    /// Where to go if the workspace cannot be written.
    pub fallback: Option<PathBuf>,
    /// How much is kept, and for how long.
    pub quota: Quota,
}

/// Keeps artifacts; one for the whole program.
#[derive(Debug)]
pub struct ArtifactStore {
    config: Config,
    workspace: Arc<Workspace>,
    /// Opened when the first artifact is kept: a run that keeps none makes no folder.
    root: Mutex<Option<Arc<Folder>>>,
    /// What is known to be kept, in bytes, and since when.
    used: Mutex<Option<(u64, Instant)>>,
    marks: Mutex<LruCache<(String, Key), Arc<Marks>>>,
}

/// Whose result is kept.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// The session that will find it.
    pub session: &'a str,
    /// The call it is named after.
    pub call_id: &'a str,
}

/// An artifact that was just kept.
#[derive(Debug)]
pub struct Saved {
    /// What it is found by, in its session.
    pub key: Key,
    /// Where it is; for programs on this machine.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Keeps it while somebody is still to be told of it.
    pub hold: Hold,
}

/// An artifact as a session lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What it is found by.
    pub key: Key,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// When it was written or last read.
    pub used: SystemTime,
}

/// Why something could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is nowhere to keep it: the folders that were tried, and what the system said.
    #[error("{}; artifacts.dir says where else", place::unusable(.0))]
    Folder(Vec<(PathBuf, io::Error)>),
    /// It could not be written.
    #[error("the artifact could not be written in {}: {error}", folder.display())]
    Write {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It is more than all artifacts together may be.
    #[error("it has {size} bytes, and artifacts.max_bytes is {max}")]
    TooLarge {
        /// Its size.
        size: u64,
        /// The most.
        max: u64,
    },
    /// The tool's limit for results has no room for the words that say where the rest is.
    #[error(
        "the tool's limit of {limit} characters for a result is too small to say where the rest is"
    )]
    NoRoom {
        /// The limit.
        limit: usize,
    },
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(ARTIFACT_ERROR, error.to_string())
    }
}

impl Saved {
    /// Makes what a result says of it.
    pub fn artifact(&self, mime_type: &str, preview: String) -> Artifact {
        Artifact {
            path: self.path.to_string_lossy().into_owned(),
            uri: Some(self.key.uri()),
            mime_type: mime_type.to_owned(),
            size_bytes: self.size_bytes,
            preview,
            name: None,
            text_path: None,
            text_uri: None,
            note: None,
            hold: vec![self.hold.clone()],
        }
    }
}

impl ArtifactStore {
    /// Makes a store; it touches nothing before there is something to keep.
    pub fn new(config: Config, workspace: Arc<Workspace>) -> Self {
        let marks = Mutex::new(LruCache::new(REMEMBERED));
        Self { config, workspace, root: Mutex::default(), used: Mutex::default(), marks }
    }

    /// Keeps a text, or anything else; blocks.
    pub fn save(&self, owner: Owner<'_>, suffix: &str, bytes: &[u8]) -> Result<Saved, StoreError> {
        self.save_parts(owner, suffix, &[bytes])
    }

    /// Keeps a text that is given in parts; blocks.
    pub fn save_parts(
        &self,
        owner: Owner<'_>,
        suffix: &str,
        parts: &[&[u8]],
    ) -> Result<Saved, StoreError> {
        let key = Key::result(owner.call_id, suffix);
        let size: usize = parts.iter().map(|part| part.len()).sum();
        self.write(owner.session, key, size as u64, |file| {
            parts.iter().try_for_each(|part| file.write_all(part))
        })
    }

    /// Keeps a copy of what is read from a file of this name and `size` bytes; blocks.
    pub fn copy(
        &self,
        owner: Owner<'_>,
        name: &str,
        size: u64,
        mut source: impl Read,
    ) -> Result<Saved, StoreError> {
        let key = Key::result(owner.call_id, &name::ending(name));
        let max = self.config.quota.max_bytes;
        let mut buffer = vec![0; CHUNK];
        self.write(owner.session, key, size, |file| {
            let mut copied = 0u64;
            loop {
                let read = match source.read(&mut buffer) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    read => read?,
                };
                if read == 0 {
                    return Ok(());
                }
                // It may have grown since its size was asked.
                copied += read as u64;
                if copied > max {
                    return Err(io::Error::other("it grows beyond artifacts.max_bytes"));
                }
                file.write_all(&buffer[..read])?;
            }
        })
    }

    /// Keeps an image as it came; blocks.
    pub fn save_image(
        &self,
        session: &str,
        extension: &str,
        bytes: &[u8],
    ) -> Result<Saved, StoreError> {
        let key = Key::image(extension);
        self.write(session, key, bytes.len() as u64, |file| file.write_all(bytes))
    }

    /// Keeps the form of an image that a model gets, beside the one that came; blocks.
    pub fn save_model(
        &self,
        session: &str,
        original: &Key,
        extension: &str,
        bytes: &[u8],
    ) -> Result<Saved, StoreError> {
        let key = original.model(extension);
        self.write(session, key, bytes.len() as u64, |file| file.write_all(bytes))
    }

    /// Opens an artifact of a session for reading; blocks. While it is open it is not removed.
    ///
    /// Reading it makes it young again: pages of one text are asked for one after another.
    pub fn open(&self, session: &str, key: &Key) -> io::Result<File> {
        let root = self.root().map_err(|error| io::Error::other(error.to_string()))?;
        let folder = root.existing(&place(session, key.area()))?.ok_or(ErrorKind::NotFound)?;
        let file = folder.open(key.file())?;
        // Should it be removed this very moment, what we hold stays readable all the same.
        in_use(&file, key);
        if let Err(error) = file.set_modified(SystemTime::now()) {
            tracing::debug!(%error, %key, "an artifact keeps its age");
        }
        Ok(file)
    }

    /// Opens the folder that was named for artifacts, so that one that cannot be used is known
    /// before it is needed.
    pub fn check(&self) -> Result<(), StoreError> {
        match &self.config.folder {
            Some(Place::Named(_)) => self.root().map(drop),
            Some(Place::Usual(_)) | None => Ok(()),
        }
    }

    /// Reads a page of characters of an artifact of a session; blocks.
    pub fn page(&self, session: &str, key: &Key, offset: u64, limit: usize) -> io::Result<Page> {
        let mut file = self.open(session, key)?;
        let marks = {
            let mut all = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.get_or_insert_mut((session.to_owned(), key.clone()), Arc::default))
        };
        marks.page(&mut file, offset, limit)
    }

    /// Reads bytes of an artifact of a session, and says how many it has; blocks.
    pub fn bytes(
        &self,
        session: &str,
        key: &Key,
        offset: u64,
        limit: u64,
    ) -> io::Result<(Vec<u8>, u64)> {
        let mut file = self.open(session, key)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.take(limit).read_to_end(&mut bytes)?;
        Ok((bytes, size))
    }

    /// Lists the artifacts of a session, the youngest first; blocks.
    pub fn list(&self, session: &str) -> io::Result<Vec<Listed>> {
        let root = self.root().map_err(|error| io::Error::other(error.to_string()))?;
        let mut listed = Vec::new();
        for area in Area::ALL {
            let Some(folder) = root.existing(&place(session, area))? else { continue };
            listed.extend(
                folder.entries()?.into_iter().filter(|entry| !entry.is_folder).filter_map(
                    |entry| {
                        let key = Key::of_file(area, &entry.name)?;
                        Some(Listed { key, size_bytes: entry.size, used: entry.modified })
                    },
                ),
            );
        }
        listed.sort_by(|one, other| {
            other.used.cmp(&one.used).then_with(|| one.key.file().cmp(other.key.file()))
        });
        Ok(listed)
    }

    /// Returns where files are that are kept for sessions, as it is now.
    pub fn private(&self) -> Private {
        let opened = self.root.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = opened.as_ref().map(|root| root.path().to_owned());
        let named = match &self.config.folder {
            Some(place) => place.path().to_owned(),
            None => self.workspace.root().join(FOLDER),
        };
        // Paths of the workspace have no links in them any more.
        let roots = [opened, named.canonicalize().ok(), Some(named)];
        let areas = roots
            .into_iter()
            .flatten()
            .flat_map(|root| Area::ALL.map(|area| root.join(area.folder())));
        Private(areas.collect())
    }

    /// Returns where a file is from the workspace, if it is in there: file tools can read it.
    pub fn in_workspace(&self, path: &Path) -> Option<String> {
        let relative = path.strip_prefix(self.workspace.root()).ok()?;
        Some(relative.to_string_lossy().into_owned())
    }

    fn write(
        &self,
        session: &str,
        key: Key,
        size: u64,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<Saved, StoreError> {
        let max = self.config.quota.max_bytes;
        if size > max {
            return Err(StoreError::TooLarge { size, max });
        }
        let root = self.root()?;
        self.make_room(&root, size);
        let failed = |error| StoreError::Write { folder: root.path().to_owned(), error };
        let relative = place(session, key.area());
        let unfinished = format!(".{}{UNFINISHED}", key.file());
        let (folder, mut out) = create(&root, &relative, &unfinished).map_err(failed)?;
        let mut unfinished = Unfinished { folder: &folder, name: Some(unfinished) };
        in_use(&out, &key);
        let written = fill(&mut out).and_then(|()| unfinished.finish(key.file()));
        written.map_err(failed)?;
        let size_bytes = out.metadata().map_err(failed)?.len();
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((used, _)) = used.as_mut() {
            *used = used.saturating_add(size_bytes);
        }
        drop(used);
        let path = folder.path().join(key.file());
        Ok(Saved { key, path, size_bytes, hold: Hold::new(out) })
    }

    /// Opens the folder of artifacts, made where it is missing.
    fn root(&self) -> Result<Arc<Folder>, StoreError> {
        let mut root = self.root.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(root) = &*root {
            return Ok(Arc::clone(root));
        }
        let opened = match (&self.config.folder, &self.config.fallback) {
            (Some(place), _) => place::open(place.path())?,
            (None, fallback) => self.in_workspace_or(fallback.as_deref())?,
        };
        let opened = Arc::new(opened);
        *root = Some(Arc::clone(&opened));
        Ok(opened)
    }

    fn in_workspace_or(&self, fallback: Option<&Path>) -> Result<Folder, StoreError> {
        let writable = self.workspace.folder(Path::new(FOLDER)).and_then(|folder| {
            folder.folder(Path::new(Area::Results.folder()))?;
            Ok(folder)
        });
        let ours = self.workspace.root().join(FOLDER);
        let error = match (writable, fallback) {
            (Ok(folder), _) => return Ok(folder),
            (Err(error), None) => error,
            (Err(error), Some(fallback)) => {
                let folder = fallback.display().to_string();
                tracing::info!(%error, folder, "the workspace cannot be written; artifacts go elsewhere");
                return place::open(fallback).map_err(|other| match other {
                    StoreError::Folder(mut tried) => {
                        tried.insert(0, (ours, error));
                        StoreError::Folder(tried)
                    }
                    other => other,
                });
            }
        };
        Err(StoreError::Folder(vec![(ours, error)]))
    }
}

/// Where files are that are kept for sessions.
#[derive(Clone, Debug)]
pub struct Private(Vec<PathBuf>);

impl Private {
    /// Says whether a path belongs to what is kept for a session: another one's than the one
    /// given, or anybody's if none is.
    pub fn holds(&self, path: &Path, session: Option<&str>) -> bool {
        self.0.iter().any(|area| {
            let Ok(rest) = path.strip_prefix(area) else { return false };
            match (rest.components().next(), session) {
                (None, session) => session.is_none(),
                (Some(_), None) => true,
                (Some(folder), Some(session)) => {
                    folder.as_os_str() != name::session_folder(session).as_str()
                }
            }
        })
    }
}

/// A file that is being written; removed unless it was finished.
struct Unfinished<'a> {
    folder: &'a Folder,
    name: Option<String>,
}

impl Unfinished<'_> {
    fn finish(&mut self, name: &str) -> io::Result<()> {
        if let Some(unfinished) = &self.name {
            self.folder.rename(unfinished, name)?;
        }
        self.name = None;
        Ok(())
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name
            && let Err(error) = self.folder.remove(name)
        {
            tracing::warn!(%error, name, "an unfinished artifact could not be removed");
        }
    }
}

/// Says that a file is in use, until it is closed; where locks don't work, nothing says so.
fn in_use(file: &File, key: &Key) {
    if let Err(error) = file.try_lock_shared() {
        tracing::debug!(%error, %key, "an artifact is used without a lock");
    }
}

/// Returns where artifacts of a session are in the folder of all.
fn place(session: &str, area: Area) -> PathBuf {
    Path::new(area.folder()).join(name::session_folder(session))
}

fn create(root: &Folder, relative: &Path, name: &str) -> io::Result<(Folder, File)> {
    let mut tries = 0;
    loop {
        tries += 1;
        let made = root.folder(relative).and_then(|folder| {
            let file = folder.create(name)?;
            Ok((folder, file))
        });
        if made.is_ok()
            && let Some(area) = relative.parent()
            && let Ok(area) = root.folder(area)
        {
            ignore(&area);
        }
        match made {
            Err(error) if error.kind() == ErrorKind::NotFound && tries < TRIES => {}
            made => return made,
        }
    }
}

/// Keeps what is kept out of the user's version control.
fn ignore(area: &Folder) {
    let written = area.create(".gitignore").and_then(|mut file| file.write_all(b"*\n"));
    if let Err(error) = written
        && error.kind() != ErrorKind::AlreadyExists
    {
        tracing::debug!(%error, "a folder of artifacts could not be hidden from version control");
    }
}

#[cfg(test)]
mod tests;
