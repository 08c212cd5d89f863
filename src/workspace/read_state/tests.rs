//! When a file may be changed.

use std::fs;
use std::time::{Duration, SystemTime};

use super::*;
use crate::workspace::Workspace;

#[test]
fn a_file_must_have_been_read_and_be_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "one").unwrap();
    let workspace = Workspace::open(folder.path()).unwrap();
    let path = workspace.resolve("a.txt").unwrap();
    let now = || workspace.open_file(&path).unwrap().observation();
    let state = ReadState::default();
    let check = || state.check_fresh(&path, now()).map_err(|failure| failure.to_string());

    assert_eq!(state.get(&path), None);
    assert_eq!(
        check(),
        Err("Error[FILE_NOT_READ]: an existing file must be read before it is changed: a.txt"
            .to_owned())
    );

    state.record(&path, now());
    assert_eq!(state.get(&path), Some(now()));
    assert_eq!(check(), Ok(()));
    let other_spelling = workspace.resolve("./x/../a.txt").unwrap();
    assert_eq!(state.check_fresh(&other_spelling, now()), Ok(()));

    let changed =
        Err("Error[STALE_FILE_STATE]: the file changed after it was read; read it again: a.txt"
            .to_owned());
    let file = fs::File::options().write(true).open(path.absolute()).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(1)).unwrap();
    assert_eq!(check(), changed, "only the time changed");
    state.record(&path, now());
    assert_eq!(check(), Ok(()));

    let modified = file.metadata().unwrap().modified().unwrap();
    file.set_len(1).unwrap();
    file.set_modified(modified).unwrap();
    assert_eq!(check(), changed, "only the size changed");
}
