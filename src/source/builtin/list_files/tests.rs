//! Which files are listed, and how.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use nix::unistd::geteuid;

use super::*;
use crate::source::builtin::bench::Bench;
use crate::tool::Typed;
use crate::tool::{Capability, Retention};

fn bench() -> (Bench, Typed<ListFiles>) {
    let bench = Bench::new();
    for name in ["a.py", "s/a.py", "s/t/a.py", "x/s/b.py", ".hidden", ".iris/log", "s/.git/c"] {
        bench.write(name, "");
    }
    let tool = Typed(ListFiles::new(&bench.parts));
    (bench, tool)
}

async fn list(bench: &Bench, tool: &Typed<ListFiles>, arguments: Value) -> BTreeSet<String> {
    let text = bench.text(tool, arguments).await;
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let set = BTreeSet::from_iter(lines.clone());
    assert_eq!(set.len(), lines.len(), "{text}");
    set
}

#[tokio::test]
async fn files_are_listed_from_the_workspace_root() {
    let (bench, tool) = bench();
    for (arguments, expected) in [
        (
            json!({}),
            &["a.py", "s/a.py", "s/t/a.py", "x/s/b.py", ".hidden", ".iris/log", "s/.git/c"][..],
        ),
        (
            json!({"pattern": ""}),
            &["a.py", "s/a.py", "s/t/a.py", "x/s/b.py", ".hidden", ".iris/log", "s/.git/c"],
        ),
        (json!({"pattern": "*.py"}), &["a.py", "s/a.py", "s/t/a.py", "x/s/b.py"]),
        (json!({"pattern": "s/*.py"}), &["s/a.py", "x/s/b.py"]),
        (json!({"pattern": "*.py/"}), &[]),
        (json!({"path": "s"}), &["s/a.py", "s/t/a.py", "s/.git/c"]),
        (json!({"path": "s", "pattern": "s/*"}), &[]),
        (json!({"path": "s/t/..", "pattern": "t/*"}), &["s/t/a.py"]),
        (json!({"path": "a.py", "pattern": "*.txt"}), &["a.py"]),
        (json!({"path": ".iris"}), &[".iris/log"]),
    ] {
        let expected = expected.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(list(&bench, &tool, arguments.clone()).await, expected, "{arguments}");
    }
}

#[tokio::test]
async fn a_listing_ends_at_its_limit() {
    let (bench, tool) = bench();
    assert_eq!(list(&bench, &tool, json!({"max_results": 3})).await.len(), 3);
    let refused = bench.text(&tool, json!({"max_results": 1001})).await;
    assert!(refused.starts_with("Error[VALIDATION_ERROR]"), "{refused}");
}

#[tokio::test]
async fn t15_nothing_wanted_is_nothing_looked_at() {
    let (bench, tool) = bench();
    let result = bench.call(&tool, json!({"path": "../..", "max_results": 0})).await.unwrap();
    assert!(!result.is_error() && result.content.is_empty());
}

#[tokio::test]
async fn a_root_must_exist_and_be_inside() {
    let (bench, tool) = bench();
    assert_eq!(
        bench.text(&tool, json!({"path": "none"})).await,
        "Error[FILE_NOT_FOUND]: the path does not exist: none"
    );
    let refused = bench.text(&tool, json!({"path": "../.."})).await;
    assert!(refused.starts_with("Error[VALIDATION_ERROR]: PATH_OUTSIDE_WORKSPACE"), "{refused}");
}

#[tokio::test]
async fn a_link_is_listed_as_the_file_it_leads_to() {
    let (bench, tool) = bench();
    fs::write(bench.outside("secret"), "").unwrap();
    fs::create_dir(bench.outside("folder")).unwrap();
    fs::write(bench.outside("folder/file"), "").unwrap();
    for (link, target) in [
        ("l/to_file", "../s/t/a.py"),
        ("l/to_folder", "../s"),
        ("l/out", "../../secret"),
        ("l/out_folder", "../../folder"),
        ("l/loop", "loop"),
        ("l/none", "none"),
    ] {
        fs::create_dir_all(bench.path("l")).unwrap();
        symlink(target, bench.path(link)).unwrap();
    }
    assert_eq!(bench.text(&tool, json!({"path": "l"})).await, "s/t/a.py");
    // It is matched by its own name.
    assert_eq!(bench.text(&tool, json!({"pattern": "to_file"})).await, "s/t/a.py");
    assert_eq!(
        bench.text(&tool, json!({"path": "l/to_folder", "pattern": "t/*"})).await,
        "s/t/a.py"
    );
}

#[tokio::test]
async fn a_folder_that_cannot_be_read_is_mentioned() {
    let (bench, tool) = bench();
    fs::set_permissions(bench.path("s/t"), fs::Permissions::from_mode(0o0)).unwrap();
    let text = bench.text(&tool, json!({"path": "s", "pattern": "*.py"})).await;
    fs::set_permissions(bench.path("s/t"), fs::Permissions::from_mode(0o755)).unwrap();
    if geteuid().is_root() {
        assert_eq!(text, "s/a.py\ns/t/a.py");
    } else {
        assert_eq!(text, "s/a.py\n[list_files: cannot read: Permission denied (os error 13): s/t]");
    }
}

#[tokio::test]
async fn a_name_with_odd_bytes_is_still_listed() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let (bench, tool) = bench();
    fs::create_dir(bench.path("odd")).unwrap();
    fs::write(bench.path("odd").join(OsStr::from_bytes(b"a\xffb")), "").unwrap();
    assert_eq!(bench.text(&tool, json!({"path": "odd", "pattern": "a?b"})).await, "odd/a\u{fffd}b");
}

#[test]
fn the_definition_is_the_contract() {
    let (_bench, tool) = bench();
    let definition = tool.0.definition;
    assert_eq!(definition.name.as_str(), "list_files");
    assert_eq!(definition.group, "file");
    assert_eq!(definition.retention, Retention::Observation);
    assert!(definition.capabilities.read_only() && definition.capabilities.has(Capability::Read));
    let mut expected = schema();
    expected["required"] = json!([]);
    assert_eq!(Value::Object(definition.input_schema.document().clone()), expected);
}
