//! A change is whole, of what was seen, and inside, whatever happens meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use nix::fcntl::{AT_FDCWD, Flock, FlockArg};
use nix::sys::stat::Mode;
use nix::unistd::{geteuid, mkfifo};
use tempfile::TempDir;

use super::*;

/// A workspace `ws` beside a folder `out`, and the session of a client.
struct Bench {
    folder: TempDir,
    workspace: Workspace,
    seen: ReadState,
    stop: CancellationToken,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["ws", "out"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("out/secret"), "secret").unwrap();
        let workspace = Workspace::open(&folder.path().join("ws")).unwrap();
        Self { folder, workspace, seen: ReadState::default(), stop: CancellationToken::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("ws").join(name)
    }

    fn lock(&self, name: &str) -> LockedFile {
        let path = self.workspace.resolve(name).unwrap();
        futures_util::FutureExt::now_or_never(self.workspace.lock(path)).unwrap()
    }

    fn read(&self, name: &str) {
        let path = self.workspace.resolve(name).unwrap();
        self.seen.record(&path, self.workspace.open_file(&path).unwrap().observation());
    }

    fn write(&self, name: &str, content: &str) -> Result<(), String> {
        let file = self.lock(name);
        let written = self.workspace.write_file(&file, &self.seen, content.as_bytes(), &self.stop);
        written.map_err(|failure| failure.to_string())
    }

    fn edit(
        &self,
        name: &str,
        edit: impl FnOnce(&mut OpenFile) -> Result<String, Failure>,
    ) -> Result<(), String> {
        let file = self.lock(name);
        let edited = self.workspace.edit_file(&file, &self.seen, edit, &self.stop);
        edited.map_err(|failure| failure.to_string())
    }

    /// Writes or edits a file, whose content must not be that of the one outside.
    fn change(&self, file: &LockedFile, writes: bool) -> Result<(), Failure> {
        if writes {
            return self.workspace.write_file(file, &self.seen, b"written", &self.stop);
        }
        let edit = |current: &mut OpenFile| {
            let mut text = String::new();
            io::Read::read_to_string(current, &mut text).unwrap();
            assert_ne!(text, "secret", "read from outside");
            Ok("edited".to_owned())
        };
        self.workspace.edit_file(file, &self.seen, edit, &self.stop)
    }

    /// Returns everything below the folder of both, and what is in the files.
    fn tree(&self) -> BTreeMap<String, String> {
        let mut tree = BTreeMap::new();
        let mut waiting = vec![self.folder.path().to_owned()];
        while let Some(folder) = waiting.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let metadata = path.symlink_metadata().unwrap();
                let content = if metadata.is_dir() {
                    waiting.push(path.clone());
                    continue;
                } else if metadata.is_file() {
                    fs::read_to_string(&path).unwrap_or_default()
                } else {
                    String::new()
                };
                let name = path.strip_prefix(self.folder.path()).unwrap();
                tree.insert(name.to_str().unwrap().to_owned(), content);
            }
        }
        tree
    }

    #[track_caller]
    fn holds(&self, files: &[(&str, &str)]) {
        let mut expected = BTreeMap::from([("out/secret".to_owned(), "secret".to_owned())]);
        expected.extend(
            files.iter().map(|(name, content)| (format!("ws/{name}"), (*content).to_owned())),
        );
        assert_eq!(self.tree(), expected);
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_new_file_gets_the_folders_it_needs() {
    let bench = Bench::new();
    assert_eq!(bench.write("a", "1"), Ok(()));
    assert_eq!(bench.write("d/e/b", "2"), Ok(()));
    assert_eq!(bench.write("d/./x/../c", ""), Ok(()));
    bench.holds(&[("a", "1"), ("d/e/b", "2"), ("d/c", "")]);
    fs::write(bench.path("plain"), "").unwrap();
    assert_eq!(mode(&bench.path("a")), mode(&bench.path("plain")));
}

#[test]
fn a_file_is_replaced_with_its_permissions_and_only_under_its_name() {
    let bench = Bench::new();
    for bits in [0o600, 0o644, 0o751, 0o777] {
        fs::write(bench.path("a"), "old").unwrap();
        fs::set_permissions(bench.path("a"), Permissions::from_mode(bits)).unwrap();
        bench.read("a");
        assert_eq!(bench.write("a", "new"), Ok(()));
        assert_eq!(mode(&bench.path("a")), bits, "{bits:o}");
    }
    fs::set_permissions(bench.path("a"), Permissions::from_mode(0o4755)).unwrap();
    fs::hard_link(bench.path("a"), bench.path("b")).unwrap();
    bench.read("a");
    assert_eq!(bench.write("a", "again"), Ok(()));
    assert_eq!(mode(&bench.path("a")), 0o755, "whoever writes is the owner now");
    bench.holds(&[("a", "again"), ("b", "new")]);
}

#[test]
fn a_link_is_followed_and_stays() {
    let bench = Bench::new();
    fs::create_dir(bench.path("d")).unwrap();
    fs::write(bench.path("d/a"), "old").unwrap();
    symlink("d/a", bench.path("link")).unwrap();
    symlink("d/none", bench.path("dangling")).unwrap();
    bench.read("link");
    assert_eq!(bench.write("link", "new"), Ok(()));
    assert_eq!(bench.write("dangling", "made"), Ok(()));
    bench.holds(&[("d/a", "new"), ("d/none", "made"), ("link", ""), ("dangling", "")]);
    assert!(bench.path("link").is_symlink() && bench.path("dangling").is_symlink());
}

#[test]
fn what_is_no_file_is_refused_and_nothing_is_left() {
    let bench = Bench::new();
    fs::create_dir(bench.path("d")).unwrap();
    fs::write(bench.path("a"), "a").unwrap();
    mkfifo(&bench.path("pipe"), Mode::S_IRWXU).unwrap();
    let long = "n".repeat(256);
    let deep_long = format!("new/folders/{long}");
    let no_file = |name| format!("Error[FILE_NOT_FOUND]: the path is not a regular file: {name}");
    let cannot = |name: &str, why| format!("Error[EXECUTION_ERROR]: cannot write {name}: {why}");
    let too_long = "File name too long (os error 36)";
    for (name, expected) in [
        ("", no_file("")),
        ("d", no_file("d")),
        ("pipe", no_file("pipe")),
        ("a/b", cannot("a/b", "what should be its folder is none")),
        ("a/b/c", cannot("a/b/c", "what should be its folder is none")),
        (&long, cannot(&long, too_long)),
        (&deep_long, cannot(&deep_long, too_long)),
    ] {
        assert_eq!(bench.write(name, "x"), Err(expected), "{name}");
    }
    let none = |name| format!("Error[FILE_NOT_FOUND]: the file does not exist: {name}");
    for (name, expected) in [
        ("", no_file("")),
        ("d", no_file("d")),
        ("pipe", no_file("pipe")),
        ("none", none("none")),
        ("a/b", none("a/b")),
        ("new/none", none("new/none")),
    ] {
        assert_eq!(bench.edit(name, |_| unreachable!()), Err(expected), "{name}");
    }
    bench.holds(&[("a", "a"), ("pipe", "")]);
    assert!(!bench.path("new").exists());
    let devices = Workspace::open(Path::new("/dev")).unwrap();
    let null = devices.resolve("null").unwrap();
    let null = futures_util::FutureExt::now_or_never(devices.lock(null)).unwrap();
    let failure = devices.write_file(&null, &bench.seen, b"x", &bench.stop).unwrap_err();
    assert_eq!(failure.to_string(), no_file("null"));
}

#[test]
fn what_may_not_be_written_says_why() {
    let bench = Bench::new();
    fs::create_dir(bench.path("d")).unwrap();
    fs::write(bench.path("d/a"), "a").unwrap();
    bench.read("d/a");
    let denied = |name| {
        Err(format!("Error[EXECUTION_ERROR]: cannot write {name}: Permission denied (os error 13)"))
    };
    for (path, bits, name) in [("d/a", 0o444, "d/a"), ("d", 0o555, "d/a"), ("d", 0o555, "d/new")] {
        let before = mode(&bench.path(path));
        fs::set_permissions(bench.path(path), Permissions::from_mode(bits)).unwrap();
        // Nothing is forbidden to root.
        let expected = if geteuid().is_root() { Ok(()) } else { denied(name) };
        assert_eq!(bench.write(name, "a"), expected, "{path} {bits:o} {name}");
        fs::set_permissions(bench.path(path), Permissions::from_mode(before)).unwrap();
    }
    if !geteuid().is_root() {
        bench.holds(&[("d/a", "a")]);
    }
}

#[test]
fn a_file_must_have_been_seen_as_it_is() {
    let bench = Bench::new();
    fs::write(bench.path("a"), "old").unwrap();
    let code = |done: Result<(), String>| done.unwrap_err().split(']').next().unwrap().to_owned();
    assert_eq!(code(bench.write("a", "x")), "Error[FILE_NOT_READ");
    assert_eq!(code(bench.edit("a", |_| unreachable!())), "Error[FILE_NOT_READ");
    bench.read("a");
    fs::write(bench.path("a"), "longer").unwrap();
    assert_eq!(code(bench.write("a", "x")), "Error[STALE_FILE_STATE");
    assert_eq!(code(bench.edit("a", |_| unreachable!())), "Error[STALE_FILE_STATE");
    bench.read("a");
    for content in ["one", "two", "three"] {
        assert_eq!(bench.write("a", content), Ok(()), "without reading it again");
        assert_eq!(bench.edit("a", |_| Ok(format!("{content}!"))), Ok(()));
    }
    bench.holds(&[("a", "three!")]);
}

#[test]
fn who_comes_between_look_and_rename_is_not_overwritten() {
    let bench = Bench::new();
    fs::write(bench.path("a"), "old").unwrap();
    bench.read("a");
    for between in [
        &|| fs::write(bench.path("a"), "theirs").unwrap() as _,
        &|| fs::remove_file(bench.path("a")).unwrap(),
        &|| {
            fs::remove_file(bench.path("a")).unwrap();
            symlink("b", bench.path("a")).unwrap();
        },
    ] as [&dyn Fn(); 3]
    {
        let edited = bench.edit("a", |_| {
            between();
            Ok("ours".to_owned())
        });
        assert_eq!(
            edited.unwrap_err(),
            "Error[STALE_FILE_STATE]: the file was changed by somebody else meanwhile; read it again: a"
        );
        drop(fs::remove_file(bench.path("a")));
        fs::write(bench.path("a"), "old").unwrap();
        bench.read("a");
    }
    bench.holds(&[("a", "old")]);
}

#[test]
fn a_failed_or_cancelled_change_leaves_nothing_behind() {
    let bench = Bench::new();
    fs::write(bench.path("a"), "old").unwrap();
    bench.read("a");
    let refused = Failure::new(EXECUTION_ERROR, "no");
    assert_eq!(bench.edit("a", |_| Err(refused.clone())), Err(refused.to_string()));
    let cancelled = Err("Error[FILE_OPERATION_CANCELLED]: the change was cancelled before it \
                         began; the file is as it was"
        .to_owned());
    let late = bench.edit("a", |_| {
        bench.stop.cancel();
        Ok("new".to_owned())
    });
    assert_eq!(late, cancelled);
    assert_eq!(bench.write("a", "new"), cancelled);
    assert_eq!(bench.edit("a", |_| unreachable!()), cancelled);
    assert_eq!(bench.write("b/c", "new"), cancelled);
    bench.holds(&[("a", "old")]);
    assert!(!bench.path("b").exists());
}

#[test]
fn locks_are_for_one_file_and_forgotten_when_unused() {
    let bench = Bench::new();
    let lock = |name: &str| bench.workspace.lock(bench.workspace.resolve(name).unwrap());
    let held = bench.lock("a");
    let other = bench.lock("b");
    assert_eq!(bench.workspace.locks.len(), 2);
    let mut waiting = Box::pin(lock("./x/../a"));
    let mut given_up = Box::pin(lock("a"));
    assert!(futures_util::FutureExt::now_or_never(waiting.as_mut()).is_none());
    assert!(futures_util::FutureExt::now_or_never(given_up.as_mut()).is_none());
    drop((held, given_up, other));
    let held = futures_util::FutureExt::now_or_never(waiting).unwrap();
    assert_eq!(bench.workspace.locks.len(), 1);
    drop(held);
    assert_eq!(bench.workspace.locks.len(), 0);
}

#[test]
fn another_holder_of_the_folder_is_waited_for_until_cancelled() {
    let bench = Bench::new();
    let folder = File::open(bench.path("")).unwrap();
    let lock = Flock::lock(folder, FlockArg::LockExclusive).unwrap();
    thread::scope(|scope| {
        let writing = scope.spawn(|| bench.write("a", "x"));
        bench.stop.cancel();
        assert!(writing.join().unwrap().unwrap_err().contains("FILE_OPERATION_CANCELLED"));
    });
    bench.holds(&[]);
    let bench = Bench { stop: CancellationToken::new(), ..bench };
    thread::scope(|scope| {
        let writing = scope.spawn(|| bench.write("a", "x"));
        drop(lock);
        assert_eq!(writing.join().unwrap(), Ok(()));
    });
    bench.holds(&[("a", "x")]);
}

#[test]
fn two_workspaces_over_one_folder_lose_no_change() {
    const EACH: usize = 50;
    let bench = Bench::new();
    fs::write(bench.path("a"), "").unwrap();
    let both = Arc::new(Barrier::new(2));
    thread::scope(|scope| {
        for name in ["x", "y"] {
            let (both, root) = (Arc::clone(&both), bench.path(""));
            scope.spawn(move || {
                let workspace = Workspace::open(&root).unwrap();
                let (seen, stop) = (ReadState::default(), CancellationToken::new());
                let path = workspace.resolve("a").unwrap();
                both.wait();
                let mut done = 0;
                while done < EACH {
                    let now = workspace.open_file(&path).unwrap().observation();
                    seen.record(&path, now);
                    let file = futures_util::FutureExt::now_or_never(workspace.lock(path.clone()))
                        .unwrap();
                    let edited = workspace.edit_file(
                        &file,
                        &seen,
                        |current| {
                            let mut text = String::new();
                            io::Read::read_to_string(current, &mut text).unwrap();
                            Ok(text + name)
                        },
                        &stop,
                    );
                    match edited {
                        Ok(()) => done += 1,
                        Err(failure) => assert_eq!(failure.code, STALE_FILE_STATE),
                    }
                }
            });
        }
    });
    let text = fs::read_to_string(bench.path("a")).unwrap();
    for name in ["x", "y"] {
        assert_eq!(text.matches(name).count(), EACH, "{text}");
    }
    assert_eq!(bench.tree().len(), 2, "{:?}", bench.tree());
}

#[test]
fn a_folder_swapped_for_a_link_never_leads_a_change_out() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("swap")).unwrap();
    fs::write(bench.path("swap/secret"), "inside").unwrap();
    symlink(bench.folder.path().join("out"), bench.path("link")).unwrap();
    let over = AtomicBool::new(false);
    let (mut inside, mut refused) = (0, 0);
    let allowed = [
        "PATH_OUTSIDE_WORKSPACE",
        "STALE_FILE_STATE",
        "FILE_NOT_READ",
        "FILE_NOT_FOUND",
        "No such file",
        "is none",
    ];
    thread::scope(|scope| {
        scope.spawn(|| {
            let (one, other) = (bench.path("swap"), bench.path("link"));
            for _ in 0..10_000 {
                renameat2(AT_FDCWD, &one, AT_FDCWD, &other, RenameFlags::RENAME_EXCHANGE).unwrap();
                thread::yield_now();
            }
            over.store(true, Ordering::Relaxed);
        });
        for round in 0.. {
            if over.load(Ordering::Relaxed) {
                break;
            }
            for name in ["swap/secret", &format!("swap/new{round}"), &format!("swap/d{round}/e/f")]
            {
                let Ok(path) = bench.workspace.resolve(name) else {
                    refused += 1;
                    continue;
                };
                if let Ok(file) = bench.workspace.open_file(&path) {
                    bench.seen.record(&path, file.observation());
                }
                let file =
                    futures_util::FutureExt::now_or_never(bench.workspace.lock(path)).unwrap();
                match bench.change(&file, round % 2 == 0) {
                    Ok(()) => inside += 1,
                    Err(failure) => {
                        let text = failure.to_string();
                        assert!(allowed.iter().any(|why| text.contains(why)), "{text}");
                        refused += 1;
                    }
                }
            }
        }
    });
    assert!(inside > 0 && refused > 0, "{inside} inside, {refused} refused");
    let tree = bench.tree();
    let outside: Vec<_> = tree.iter().filter(|(name, _)| name.starts_with("out/")).collect();
    assert_eq!(outside, [(&"out/secret".to_owned(), &"secret".to_owned())]);
    assert!(tree.keys().all(|name| !name.contains(".tmp")), "{tree:?}");
    assert_eq!(fs::read_dir(bench.folder.path().join("out")).unwrap().count(), 1);
}
