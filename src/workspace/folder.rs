//! A folder of our own, for files nobody else names: made, filled and emptied without leaving it.
//!
//! Like everything in a workspace it is used by its handle, so that a link put in the place of
//! one of its parts leads nowhere. Files in it are private to whoever runs us.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt as _, OpenOptions, OpenOptionsExt as _};
use nix::fcntl::OFlag;

use super::Workspace;

/// What a folder of ours may be.
const FOLDER_MODE: u32 = 0o700;
/// What a file of ours may be.
const FILE_MODE: u32 = 0o600;

/// A folder, opened; it exists, whatever becomes of its name.
#[derive(Debug)]
pub struct Folder {
    directory: Dir,
    path: PathBuf,
}

/// What stands in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name; what has none in UTF-8 is not ours.
    pub name: String,
    /// Whether it is a folder itself.
    pub is_folder: bool,
    /// Its size in bytes.
    pub size: u64,
    /// When it was written or last used.
    pub modified: SystemTime,
}

impl Workspace {
    /// Opens a folder of the workspace, made where it is missing; never through a link that
    /// leads outside.
    pub fn folder(&self, relative: &Path) -> io::Result<Folder> {
        open(&self.directory, &self.root, relative)
    }
}

impl Folder {
    /// Opens a folder anywhere, made with its parents where it is missing.
    pub fn ambient(path: &Path) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)?;
        let path = path.canonicalize()?;
        let directory = Dir::open_ambient_dir(&path, ambient_authority())?;
        Ok(Self { directory, path })
    }

    /// Opens a folder in this one, made where it is missing.
    pub fn folder(&self, relative: &Path) -> io::Result<Self> {
        open(&self.directory, &self.path, relative)
    }

    /// Opens a folder in this one, if it is there.
    pub fn existing(&self, relative: &Path) -> io::Result<Option<Self>> {
        match self.directory.open_dir(relative) {
            Ok(directory) => Ok(Some(Self { directory, path: self.path.join(relative) })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns where the folder was when it was opened; for messages and programs of the user.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a file that was not there.
    pub fn create(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(FILE_MODE);
        Ok(self.directory.open_with(name, &options)?.into_std())
    }

    /// Opens a regular file for reading; anything else is not found, and nothing is waited for.
    pub fn open(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_NOFOLLOW;
        options.read(true).custom_flags(flags.bits());
        let file = self.directory.open_with(name, &options)?.into_std();
        if file.metadata()?.is_file() { Ok(file) } else { Err(ErrorKind::NotFound.into()) }
    }

    /// Gives a file of the folder another name.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.directory.rename(from, &self.directory, to)
    }

    /// Removes a file.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        self.directory.remove_file(name)
    }

    /// Removes a folder in this one, if it is empty.
    pub fn remove_empty(&self, name: &str) -> io::Result<()> {
        self.directory.remove_dir(name)
    }

    /// Lists what is there, without following links; what goes away meanwhile is left out.
    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in self.directory.entries()? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let Ok(metadata) = entry.metadata() else { continue };
            if !metadata.is_file() && !metadata.is_dir() {
                continue;
            }
            let modified = metadata
                .modified()
                .map_or(SystemTime::UNIX_EPOCH, cap_std::time::SystemTime::into_std);
            let is_folder = metadata.is_dir();
            entries.push(Entry { name, is_folder, size: metadata.len(), modified });
        }
        Ok(entries)
    }
}

fn open(root: &Dir, path: &Path, relative: &Path) -> io::Result<Folder> {
    let directory = match root.open_dir(relative) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let mut private = DirBuilder::new();
            private.recursive(true).mode(FOLDER_MODE);
            root.create_dir_with(relative, &private)?;
            root.open_dir(relative)
        }
        opened => opened,
    };
    let directory = directory?;
    let path = path.join(relative);
    // A link within is followed, and what it leads to is where we are.
    let path = path.canonicalize().unwrap_or(path);
    Ok(Folder { directory, path })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let root = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(root.path()).unwrap();
        (root, workspace)
    }

    #[test]
    fn a_folder_is_made_private_and_lists_its_files() {
        let (_root, workspace) = workspace();
        let folder = workspace.folder(Path::new(".iris/results")).unwrap();
        let mode = std::fs::metadata(folder.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let file = folder.create("a").unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(folder.create("a").unwrap_err().kind(), ErrorKind::AlreadyExists);
        drop(folder.folder(Path::new("b")).unwrap());
        let mut entries = folder.entries().unwrap();
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        let names: Vec<_> =
            entries.iter().map(|entry| (entry.name.as_str(), entry.is_folder)).collect();
        assert_eq!(names, [("a", false), ("b", true)]);
    }

    #[test]
    fn a_link_leads_nowhere() {
        let (root, workspace) = workspace();
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), root.path().join(".iris")).unwrap();
        workspace.folder(Path::new(".iris/results")).unwrap_err();
        workspace.folder(Path::new(".iris")).unwrap_err();
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
        let folder = workspace.folder(Path::new("ours")).unwrap();
        symlink("/etc/passwd", folder.path().join("link")).unwrap();
        folder.open("link").unwrap_err();
        nix::unistd::mkfifo(&folder.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(folder.open("pipe").unwrap_err().kind(), ErrorKind::NotFound);
    }
}
