//! Tests of finding a program.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use tempfile::TempDir;

use super::{SpawnError, resolve_program};

fn file(folder: &TempDir, name: &str, mode: u32) -> PathBuf {
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

fn resolve(program: &str, path: Option<&str>, cwd: &Path) -> Result<PathBuf, SpawnError> {
    let env: BTreeMap<_, _> =
        path.map(|path| ("PATH".to_owned(), path.to_owned())).into_iter().collect();
    resolve_program(program.as_ref(), &env, Some(cwd))
}

#[test]
fn the_first_executable_in_the_path_of_the_child_wins() {
    let folder = TempDir::new().unwrap();
    file(&folder, "a/tool", 0o644);
    let wanted = file(&folder, "b/tool", 0o755);
    file(&folder, "c/tool", 0o755);
    fs::create_dir_all(folder.path().join("d/tool")).unwrap();
    let path = ["a", "missing", "d", "b", "c"]
        .map(|one| folder.path().join(one).display().to_string())
        .join(":");
    assert_eq!(resolve("tool", Some(&path), folder.path()).unwrap(), wanted);
}

#[test]
fn relative_names_and_path_entries_are_relative_to_the_folder_of_the_child() {
    let folder = TempDir::new().unwrap();
    let wanted = file(&folder, "bin/tool", 0o755);
    assert_eq!(resolve("bin/tool", None, folder.path()).unwrap(), wanted);
    assert_eq!(resolve("tool", Some("bin"), folder.path()).unwrap(), wanted);
}

#[test]
fn without_a_path_the_usual_folders_are_searched() {
    let found = resolve("sh", None, Path::new("/")).unwrap();
    assert!(found.ends_with("bin/sh"), "{found:?}");
}

#[test]
fn what_is_missing_is_named_and_the_path_that_was_searched_is_known() {
    let error = resolve("no-such", Some("/one:/two"), Path::new("/")).unwrap_err();
    assert_eq!(error.to_string(), "`no-such` was not found in PATH");
    assert_eq!(error.searched(), Some("/one:/two"));
    let error = resolve("/nonexistent/cmd", Some("/bin"), Path::new("/")).unwrap_err();
    assert_eq!(error.to_string(), "`/nonexistent/cmd` does not exist");
    assert!(matches!(resolve("", None, Path::new("/")), Err(SpawnError::NotFound { .. })));
}

#[test]
fn a_file_without_permission_and_a_folder_are_not_executable() {
    let folder = TempDir::new().unwrap();
    let plain = file(&folder, "bin/plain", 0o644);
    for (program, path) in [("plain", Some("bin")), ("bin/plain", None)] {
        let error = resolve(program, path, folder.path()).unwrap_err();
        assert!(matches!(error, SpawnError::NotExecutable { program } if program == plain));
    }
    assert!(matches!(resolve("./bin", None, folder.path()), Err(SpawnError::NotExecutable { .. })));
    assert!(matches!(resolve("bin", Some("."), folder.path()), Err(SpawnError::NotFound { .. })));
}

#[test]
fn a_bad_working_directory_is_named() {
    let folder = TempDir::new().unwrap();
    let plain = file(&folder, "plain", 0o644);
    for cwd in [folder.path().join("missing"), plain] {
        let error = resolve("sh", None, &cwd).unwrap_err();
        assert!(matches!(error, SpawnError::BadCwd { cwd: named, .. } if named == cwd));
    }
}

#[test]
fn an_errno_of_exec_becomes_a_reason() {
    let of = |errno: Errno| SpawnError::not_executed("/x".into(), errno as i32);
    assert!(matches!(of(Errno::ENOEXEC), SpawnError::WrongFormat { .. }));
    assert!(matches!(of(Errno::ENOENT), SpawnError::NoInterpreter { .. }));
    assert!(matches!(of(Errno::EACCES), SpawnError::NotExecutable { .. }));
    assert!(matches!(of(Errno::E2BIG), SpawnError::Io { .. }));
}

#[test]
fn a_command_line_is_no_program_and_that_is_said() {
    let folder = TempDir::new().unwrap();
    let tool = file(&folder, "bin/tool", 0o755);
    let told =
        |program: &str| resolve(program, Some("bin"), folder.path()).unwrap_err().to_string();
    let alone = |program: &str| {
        format!(
            "the command has arguments in it: `{program}` alone is the `command`, the rest goes to `args`"
        )
    };
    assert_eq!(told("tool -y --key s3cret"), alone("tool"));
    assert_eq!(told("./bin/tool --x"), alone("./bin/tool"));
    let absolute = tool.display().to_string();
    assert_eq!(told(&format!("{absolute} server.py")), alone(&absolute));
    let cure = "the program alone is the `command`, the rest goes to `args`";
    assert_eq!(told("npxx -y s3cret"), format!("`npxx …` was not found in PATH; {cure}"));
    assert_eq!(told("/my tools/x"), format!("`/my …` does not exist; {cure}"));
    assert_eq!(
        told("KEY=s3cret OTHER=s3cret tool x"),
        "the command has variables in it: `tool` alone is the `command`, the rest goes to `args`, and each variable to `env`"
    );
    assert_eq!(
        told("KEY=s3cret npxx s3cret"),
        format!("`KEY=*** npxx …` was not found in PATH; {cure}, and each variable to `env`")
    );
    assert_eq!(told("KEY=s3cret"), "`KEY=***` was not found in PATH");
    // A file may have such a name.
    let spaced = file(&folder, "bin/tool two", 0o755);
    assert_eq!(resolve("tool two", Some("bin"), folder.path()).unwrap(), spaced);
}
