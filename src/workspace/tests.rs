//! What a path may lead to, however it is written and whatever happens meanwhile.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::sys::stat::Mode;
use nix::unistd::{geteuid, mkfifo};
use proptest::prelude::{Just, Strategy as _, any, prop, prop_oneof};
use proptest::test_runner::{Config, TestRunner};
use tempfile::TempDir;

use super::*;

/// A workspace `ws` with a folder `out` beside it, and links between them.
fn folders() -> (TempDir, Workspace) {
    let folder = tempfile::tempdir().unwrap();
    let ws = folder.path().join("ws");
    for name in ["ws/d/e", "out", "ws2"] {
        fs::create_dir_all(folder.path().join(name)).unwrap();
    }
    for (name, content) in
        [("ws/a.txt", "a"), ("ws/d/b.txt", "b"), ("out/secret", "secret"), ("ws2/x", "x")]
    {
        fs::write(folder.path().join(name), content).unwrap();
    }
    for (link, target) in [
        ("out", "../out"),
        ("secret", "../out/secret"),
        ("absolute", "/etc"),
        ("in", "d/e"),
        ("chain", "in"),
        ("self", "self"),
        ("dangling", "d/none"),
        ("d/up", ".."),
    ] {
        symlink(target, ws.join(link)).unwrap();
    }
    symlink(&ws, folder.path().join("out/back")).unwrap();
    let workspace = Workspace::open(&ws).unwrap();
    (folder, workspace)
}

#[track_caller]
fn check(workspace: &Workspace, path: &str, expected: Option<&str>) {
    match (workspace.resolve(path), expected) {
        (Ok(resolved), Some(relative)) => {
            assert_eq!(resolved.relative(), Path::new(relative), "{path}");
            let absolute = workspace.root().join(relative);
            assert_eq!(resolved.absolute(), absolute.components().collect::<PathBuf>(), "{path}");
        }
        (Err(PathError::Outside { .. }), None) => {}
        (other, expected) => panic!("{path}: {other:?} instead of {expected:?}"),
    }
}

#[test]
fn ex_6_1_a_path_is_resolved_and_must_stay_inside() {
    let (folder, workspace) = folders();
    let root = workspace.root().to_str().unwrap().to_owned();
    for (path, expected) in [
        ("a.txt", Some("a.txt")),
        ("./d/../a.txt", Some("a.txt")),
        ("d//b.txt/", Some("d/b.txt")),
        (&format!("{root}/a.txt"), Some("a.txt")),
        (&format!("{root}/../ws/a.txt"), Some("a.txt")),
        (".", Some("")),
        ("", Some("")),
        (&root, Some("")),
        ("~", Some("~")),
        ("none/deep/er", Some("none/deep/er")),
        ("none/../a.txt", Some("a.txt")),
        ("a.txt/../d", Some("d")),
        ("in", Some("d/e")),
        ("in/none", Some("d/e/none")),
        ("chain/../b.txt", Some("d/b.txt")),
        ("dangling", Some("d/none")),
        ("d/up/a.txt", Some("a.txt")),
        ("out/back/a.txt", Some("a.txt")),
        ("../x", None),
        ("..", None),
        ("d/../..", None),
        ("d/up/../x", None),
        ("out/../a.txt", None),
        ("/", None),
        ("/etc/passwd", None),
        ("/none", None),
    ] {
        check(&workspace, path, expected);
    }
    drop(folder);
}

#[test]
fn t13_links_and_siblings_do_not_lead_out() {
    let (_folder, workspace) = folders();
    let sibling = format!("{}2/x", workspace.root().to_str().unwrap());
    for path in ["secret", "out", "out/secret", "out/none", "absolute/passwd", &sibling, "../ws2/x"]
    {
        check(&workspace, path, None);
    }
}

#[test]
fn a_root_that_is_a_link_is_the_folder_it_leads_to() {
    let (folder, _) = folders();
    let link = folder.path().join("link");
    symlink("ws", &link).unwrap();
    let workspace = Workspace::open(&link).unwrap();
    assert_eq!(workspace.root(), folder.path().canonicalize().unwrap().join("ws"));
    let through_link = format!("{}/a.txt", link.to_str().unwrap());
    check(&workspace, &through_link, Some("a.txt"));
}

#[test]
fn a_root_must_be_a_folder() {
    let (folder, _) = folders();
    for name in ["none", "ws/a.txt"] {
        let error = Workspace::open(&folder.path().join(name)).unwrap_err();
        assert!(matches!(error, PathError::Root { .. }), "{error:?}");
    }
}

#[test]
fn what_cannot_be_a_path_is_refused_with_a_reason() {
    let (_folder, workspace) = folders();
    let failure = |path: &str| Failure::from(workspace.resolve(path).unwrap_err()).to_string();
    let root = workspace.root().display().to_string();
    assert_eq!(
        failure("../x"),
        format!(
            "Error[VALIDATION_ERROR]: PATH_OUTSIDE_WORKSPACE: the path is outside the workspace \
             (Context: path='../x', workspace_root='{root}')"
        )
    );
    assert_eq!(
        failure("a\0b"),
        "Error[VALIDATION_ERROR]: the path contains a NUL byte (Context: path='a\\x00b')"
    );
    assert_eq!(
        failure(&"a/".repeat(3000)),
        "Error[VALIDATION_ERROR]: the path has 6000 bytes; at most 4096 are allowed"
    );
    assert_eq!(
        failure("self/x"),
        "Error[EXECUTION_ERROR]: the path runs through too many symbolic links (Context: path='self/x')"
    );
}

#[test]
fn a_loop_outside_is_told_as_outside() {
    let (folder, workspace) = folders();
    symlink("loop", folder.path().join("out/loop")).unwrap();
    check(&workspace, "out/loop", None);
}

fn open(workspace: &Workspace, path: &str) -> Result<String, FileError> {
    let mut file = workspace.open_file(&workspace.resolve(path).unwrap())?;
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    Ok(text)
}

#[test]
fn only_regular_files_are_opened_and_nothing_waits() {
    let (folder, workspace) = folders();
    let ws = workspace.root();
    fs::write(ws.join("empty"), "").unwrap();
    fs::hard_link(folder.path().join("out/secret"), ws.join("hard")).unwrap();
    mkfifo(&ws.join("pipe"), Mode::S_IRWXU).unwrap();
    let _listener = UnixListener::bind(ws.join("socket")).unwrap();
    assert_eq!(open(&workspace, "a.txt").unwrap(), "a");
    assert_eq!(open(&workspace, "d/up/a.txt").unwrap(), "a");
    assert_eq!(open(&workspace, "empty").unwrap(), "");
    assert_eq!(open(&workspace, "hard").unwrap(), "secret");
    for path in ["d", ".", "pipe", "socket"] {
        let error = open(&workspace, path).unwrap_err();
        assert!(matches!(error, FileError::NotAFile { .. }), "{path}: {error:?}");
    }
    for path in ["none", "dangling", "a.txt/x"] {
        let error = open(&workspace, path).unwrap_err();
        assert!(matches!(error, FileError::NotFound { .. }), "{path}: {error:?}");
    }
    let devices = Workspace::open(Path::new("/dev")).unwrap();
    for path in ["null", "zero"] {
        let error = open(&devices, path).unwrap_err();
        assert!(matches!(error, FileError::NotAFile { .. }), "{path}: {error:?}");
    }
    assert_eq!(
        Failure::from(open(&workspace, "no\nne").unwrap_err()).to_string(),
        "Error[FILE_NOT_FOUND]: the file does not exist: no\\nne"
    );
}

#[test]
fn an_unreadable_file_says_why() {
    let (_folder, workspace) = folders();
    let path = workspace.root().join("a.txt");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o0)).unwrap();
    match open(&workspace, "a.txt") {
        // Nothing is unreadable to root.
        Ok(text) => assert!(geteuid().is_root() && text == "a"),
        Err(error) => assert_eq!(
            Failure::from(error).to_string(),
            "Error[EXECUTION_ERROR]: cannot read a.txt: Permission denied (os error 13)"
        ),
    }
}

#[test]
fn a_file_deleted_while_it_is_read_is_read_to_its_end() {
    let (_folder, workspace) = folders();
    let content = "x".repeat(100_000);
    let path = workspace.root().join("a.txt");
    fs::write(&path, &content).unwrap();
    let mut file = workspace.open_file(&workspace.resolve("a.txt").unwrap()).unwrap();
    let mut text = vec![0; 10];
    file.read_exact(&mut text).unwrap();
    fs::remove_file(&path).unwrap();
    file.read_to_end(&mut text).unwrap();
    assert_eq!(text.len(), content.len());
}

#[test]
fn the_observation_is_of_the_file_that_was_opened() {
    let (_folder, workspace) = folders();
    let path = workspace.resolve("a.txt").unwrap();
    let file = workspace.open_file(&path).unwrap();
    let before = fs::metadata(path.absolute()).unwrap();
    fs::write(workspace.root().join("new"), "longer").unwrap();
    fs::rename(workspace.root().join("new"), path.absolute()).unwrap();
    assert_eq!(file.observation(), Observation::of(&before));
    assert_eq!(file.observation().size_bytes, 1);
    let nanoseconds = before.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(file.observation().mtime_ns, i128::try_from(nanoseconds.as_nanos()).unwrap());
}

#[test]
fn a_path_that_leads_out_by_now_is_not_opened() {
    let (folder, workspace) = folders();
    let ws = workspace.root();
    fs::write(ws.join("d/secret"), "inside").unwrap();
    let (file, directory) =
        (workspace.resolve("d/secret").unwrap(), workspace.resolve("d").unwrap());
    fs::rename(ws.join("d"), ws.join("moved")).unwrap();
    for target in [folder.path().join("out"), "../out".into()] {
        symlink(&target, ws.join("d")).unwrap();
        for error in [workspace.open_file(&file).unwrap_err(), workspace.kind(&file).unwrap_err()] {
            assert!(matches!(error, FileError::Outside(_)), "{error:?}");
            assert!(Failure::from(error).message.starts_with("PATH_OUTSIDE_WORKSPACE: "));
        }
        let found: Vec<Found> = workspace.walk(&directory).collect();
        assert!(matches!(found[..], [Found::Unreadable(_)]), "{found:?}");
        fs::remove_file(ws.join("d")).unwrap();
    }
}

/// Swaps two names again and again while `attempt` runs again and again.
fn race(one: &Path, other: &Path, rounds: usize, mut attempt: impl FnMut()) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..rounds {
                renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE).unwrap();
            }
            over.store(true, Ordering::Relaxed);
        });
        while !over.load(Ordering::Relaxed) {
            attempt();
        }
    });
}

#[test]
fn a_folder_swapped_for_a_link_never_leads_out() {
    let (folder, workspace) = folders();
    let ws = workspace.root();
    fs::create_dir(ws.join("swap")).unwrap();
    fs::write(ws.join("swap/secret"), "inside").unwrap();
    symlink(folder.path().join("out"), ws.join("link")).unwrap();
    let (mut inside, mut refused) = (0, 0);
    race(&ws.join("swap"), &ws.join("link"), 10_000, || {
        let Ok(path) = workspace.resolve("swap/secret") else {
            refused += 1;
            return;
        };
        match workspace.open_file(&path) {
            Ok(mut file) => {
                let mut text = String::new();
                file.read_to_string(&mut text).unwrap();
                assert_eq!(text, "inside");
                inside += 1;
            }
            Err(FileError::Outside(_)) => refused += 1,
            Err(error) => panic!("{error:?}"),
        }
        for found in workspace.walk(&workspace.resolve(".").unwrap()) {
            if let Found::File(candidate) = found {
                assert_ne!(candidate.relative(), Path::new("swap/back"));
            }
        }
    });
    assert!(inside > 0 && refused > 0, "{inside} inside, {refused} refused");
}

#[test]
fn a_file_swapped_for_a_link_never_leads_out() {
    let (folder, workspace) = folders();
    let ws = workspace.root();
    symlink(folder.path().join("out/secret"), ws.join("link")).unwrap();
    race(&ws.join("a.txt"), &ws.join("link"), 10_000, || {
        let Ok(path) = workspace.resolve("a.txt") else { return };
        if let Ok(mut file) = workspace.open_file(&path) {
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "a");
        }
    });
}

#[test]
fn a_file_swapped_for_a_pipe_never_waits() {
    let (_folder, workspace) = folders();
    let ws = workspace.root();
    mkfifo(&ws.join("pipe"), Mode::S_IRWXU).unwrap();
    let path = workspace.resolve("a.txt").unwrap();
    race(&ws.join("a.txt"), &ws.join("pipe"), 10_000, || match workspace.open_file(&path) {
        Ok(_) | Err(FileError::NotAFile { .. }) => {}
        Err(error) => panic!("{error:?}"),
    });
}

#[test]
fn a_walk_gives_files_then_folders_and_does_not_follow_links() {
    let (_folder, workspace) = folders();
    let ws = workspace.root();
    fs::create_dir_all(ws.join("d/.iris")).unwrap();
    fs::create_dir_all(ws.join(".iris")).unwrap();
    for name in ["d/.iris/x", ".iris/y", ".hidden"] {
        fs::write(ws.join(name), "").unwrap();
    }
    mkfifo(&ws.join("pipe"), Mode::S_IRWXU).unwrap();
    symlink("d/b.txt", ws.join("link.txt")).unwrap();
    let files = |mut walk: Walk<'_>| {
        let mut files = Vec::new();
        while let Some(found) = walk.next() {
            if let Found::File(candidate) = found
                && let Some(path) = walk.resolve(&candidate)
            {
                files.push(path.relative().to_str().unwrap().to_owned());
            }
        }
        files
    };
    let root = workspace.resolve("").unwrap();
    let all = files(workspace.walk(&root));
    let names: HashSet<&str> = all.iter().map(String::as_str).collect();
    assert_eq!(names, HashSet::from(["a.txt", ".hidden", "d/b.txt", ".iris/y", "d/.iris/x"]));
    // The link counts as its target, and the root's files come before those of its folders.
    assert_eq!(all.iter().filter(|name| *name == "d/b.txt").count(), 2);
    let first_deep = all.iter().rposition(|name| name == "a.txt" || name == ".hidden").unwrap();
    assert!(first_deep < 3, "{all:?}");
    let pruned = files(workspace.walk(&root).without(|name| name == ".iris"));
    assert!(pruned.iter().all(|name| !name.contains(".iris")), "{pruned:?}");
    assert_eq!(
        files(workspace.walk(&workspace.resolve("d").unwrap()).without(|name| name == "d")),
        {
            let mut below = files(workspace.walk(&workspace.resolve("d").unwrap()));
            below.retain(|name| name.starts_with("d/"));
            below
        }
    );
}

#[test]
fn a_very_deep_tree_is_walked_as_deep_as_a_path_can_name() {
    let (_folder, workspace) = folders();
    let mut path = workspace.root().to_owned();
    for _ in 0..300 {
        path.push("n");
    }
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("deep"), "").unwrap();
    let walk = workspace.walk(&workspace.resolve("").unwrap());
    let deepest = walk.filter(
        |found| matches!(found, Found::File(candidate) if candidate.relative().ends_with("deep")),
    );
    assert_eq!(deepest.count(), 1);
}

#[test]
fn a_resolved_path_is_always_inside_and_where_the_system_says() {
    let (_folder, workspace) = folders();
    let part = prop_oneof![
        Just(".."),
        Just("."),
        Just("d"),
        Just("e"),
        Just("b.txt"),
        Just("none"),
        Just("in"),
        Just("chain"),
        Just("out"),
        Just("back"),
        Just("secret"),
        Just("up"),
        Just("absolute"),
        Just(""),
        Just("ws"),
        Just("self"),
    ];
    let paths = (any::<bool>(), prop::collection::vec(part, 0..8));
    let paths =
        paths.prop_map(
            |(absolute, parts)| {
                if absolute { format!("/{}", parts.join("/")) } else { parts.join("/") }
            },
        );
    let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&paths, |path| {
        let real = workspace.root().join(&path).canonicalize();
        match workspace.resolve(&path) {
            Ok(resolved) => {
                assert!(resolved.absolute().starts_with(workspace.root()));
                assert_eq!(resolved.absolute(), workspace.root().join(resolved.relative()));
                if let Ok(real) = real {
                    assert_eq!(resolved.absolute(), real);
                }
            }
            Err(PathError::Outside { .. }) => {
                assert!(!real.is_ok_and(|real| real.starts_with(workspace.root())));
            }
            Err(PathError::Loop { .. }) => assert!(path.contains("self")),
            Err(error) => panic!("{error:?}"),
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn any_text_at_all_is_resolved_or_refused() {
    let (_folder, workspace) = folders();
    let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&any::<String>(), |path| {
        if let Ok(resolved) = workspace.resolve(&path) {
            assert!(resolved.absolute().starts_with(workspace.root()));
            drop(workspace.open_file(&resolved));
        }
        Ok(())
    });
    outcome.unwrap();
}
