//! Files that a command writes for a person: all of them, or none.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use super::CliError;
use super::terminal::say;

/// A file to write: its path from the folder, and its text.
pub(super) type File = (&'static str, &'static str);

/// Writes files into a folder, which is made if it is not there; nothing is overwritten.
pub(super) fn write(folder: &Path, files: &[File]) -> Result<(), CliError> {
    let wrong = |path: &Path, error: &io::Error| {
        CliError::Usage(format!("{} cannot be written: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| wrong(folder, &error))?;
    // All of them or none, as far as that can be known before.
    if let Some((name, _)) = files.iter().find(|(name, _)| is_there(&folder.join(name))) {
        let path = folder.join(name);
        let message = format!("{} is there already; name another folder", path.display());
        return Err(CliError::Usage(message));
    }
    for (name, text) in files {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|error| wrong(parent, &error))?;
        }
        // Somebody may have been faster; nothing of theirs is overwritten.
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| wrong(&path, &error))?;
        say(format!("wrote {}", path.display()));
    }
    Ok(())
}

/// Says whether something has this name, be it a link that leads nowhere.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
