//! Where a path really leads, whether or not anything is there.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// How many symbolic links one path may run through; the kernel's own limit.
const MAX_LINKS: usize = 40;

/// Why a path leads nowhere.
#[derive(Debug)]
pub(super) enum RealPathError {
    /// It runs through too many symbolic links.
    Loop {
        /// The link at which that was noticed.
        at: PathBuf,
    },
}

/// Resolves a path component by component: links are followed, `..` goes up from where they led,
/// and what does not exist or cannot be looked at is taken as an ordinary name.
///
/// `start` is where a relative path begins; it is absolute and has no links.
pub(super) fn real_path(start: &Path, path: &Path) -> Result<PathBuf, RealPathError> {
    let mut current = start.to_owned();
    let mut links = 0;
    // What is still to do, last first.
    let mut pending = Vec::new();
    queue(&mut pending, path);
    while let Some(step) = pending.pop() {
        match step {
            Step::Root => current = PathBuf::from("/"),
            Step::Up => _ = current.pop(),
            Step::Into(name) => {
                current.push(&name);
                let Ok(target) = fs::read_link(&current) else { continue };
                links += 1;
                if links > MAX_LINKS {
                    return Err(RealPathError::Loop { at: current });
                }
                current.pop();
                queue(&mut pending, &target);
            }
        }
    }
    Ok(current)
}

enum Step {
    Root,
    Up,
    Into(OsString),
}

fn queue(pending: &mut Vec<Step>, path: &Path) {
    pending.extend(path.components().rev().filter_map(|component| match component {
        Component::RootDir | Component::Prefix(_) => Some(Step::Root),
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => Some(Step::Into(OsStr::to_owned(name))),
        Component::CurDir => None,
    }));
}
