//! EX-8.14, and when a file may be written.

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::*;
use crate::source::builtin::bench::Bench;
use crate::source::builtin::make;
use crate::tool::{Capability, Retention, Tool};

fn tools(bench: &Bench) -> (Arc<dyn Tool>, Arc<dyn Tool>) {
    (make("file.write", &bench.parts).unwrap(), make("file.read", &bench.parts).unwrap())
}

async fn write(bench: &Bench, file_path: &str, content: &str) -> String {
    let (write, _) = tools(bench);
    bench.text(&*write, json!({"file_path": file_path, "content": content})).await
}

async fn read(bench: &Bench, file_path: &str) {
    let (_, read) = tools(bench);
    let text = bench.text(&*read, json!({"file_path": file_path, "limit": 0})).await;
    assert!(!text.starts_with("Error"), "{text}");
}

#[test]
fn the_definition_says_that_it_writes() {
    let bench = Bench::new();
    let (tool, _) = tools(&bench);
    let definition = tool.definition();
    assert_eq!((definition.name.as_str(), definition.group.as_str()), ("write_file", "file"));
    assert_eq!(definition.capabilities, [Capability::Write].into());
    assert_eq!(definition.retention, Retention::Keep);
    let traits = definition.traits();
    assert!(traits.destructive && !traits.read_only);
    assert_eq!(Value::Object(definition.input_schema.document().clone()), schema());
}

#[tokio::test]
async fn ex_8_14_a_file_is_written_with_its_folders() {
    let bench = Bench::new();
    let (tool, _) = tools(&bench);
    let arguments = json!({"file_path": "nested/notes.txt", "content": "new"});
    let result = bench.call(&*tool, arguments).await.unwrap();
    assert_eq!(result.model_content(), "WROTE: nested/notes.txt");
    assert!(result.data.is_empty());
    assert_eq!(fs::read_to_string(bench.path("nested/notes.txt")).unwrap(), "new");
    assert_eq!(write(&bench, "./nested/../a", "").await, "WROTE: a");
    let absolute = bench.path("b").to_str().unwrap().to_owned();
    assert_eq!(write(&bench, &absolute, "a\r\n\u{feff}\0中").await, "WROTE: b");
    assert_eq!(fs::read_to_string(bench.path("b")).unwrap(), "a\r\n\u{feff}\0中");
    assert_eq!(write(&bench, "two\nlines", "").await, "WROTE: two\\nlines");
}

#[tokio::test]
async fn t14_an_existing_file_must_be_read_first_and_be_as_it_was() {
    let bench = Bench::new();
    bench.write("a", "old");
    let unread = "Error[FILE_NOT_READ]: an existing file must be read before it is changed: a";
    assert_eq!(write(&bench, "a", "new").await, unread);
    read(&bench, "a").await;
    let file = fs::File::options().write(true).open(bench.path("a")).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(1)).unwrap();
    let stale = "Error[STALE_FILE_STATE]: the file changed after it was read; read it again: a";
    assert_eq!(write(&bench, "a", "new").await, stale);
    assert_eq!(fs::read_to_string(bench.path("a")).unwrap(), "old");
    read(&bench, "a").await;
    for content in ["new", "newer", ""] {
        assert_eq!(write(&bench, "a", content).await, "WROTE: a");
        assert_eq!(fs::read_to_string(bench.path("a")).unwrap(), content);
    }
    assert_eq!(write(&bench, "fresh", "1").await, "WROTE: fresh");
    assert_eq!(write(&bench, "fresh", "2").await, "WROTE: fresh", "its writer knows it");
    fs::remove_file(bench.path("fresh")).unwrap();
    assert_eq!(write(&bench, "fresh", "3").await, "WROTE: fresh", "it is new again");
}

#[tokio::test]
async fn what_is_read_in_one_session_is_not_read_in_another() {
    let mut bench = Bench::new();
    bench.write("a", "old");
    read(&bench, "a").await;
    bench.cx.session = crate::tool::SessionId::new("other");
    assert!(write(&bench, "a", "new").await.starts_with("Error[FILE_NOT_READ]"));
}

#[tokio::test]
async fn paths_out_and_things_that_are_no_files_are_refused_at_once() {
    let bench = Bench::new();
    let begun = Instant::now();
    fs::write(bench.outside("secret"), "secret").unwrap();
    mkfifo(&bench.path("pipe"), Mode::S_IRWXU).unwrap();
    let secret = bench.outside("secret").to_str().unwrap().to_owned();
    for path in ["../secret", "../new", "d/../../secret", &secret] {
        let text = write(&bench, path, "x").await;
        assert!(text.starts_with("Error[VALIDATION_ERROR]: PATH_OUTSIDE_WORKSPACE"), "{text}");
    }
    assert!(write(&bench, "a\0b", "x").await.starts_with("Error[VALIDATION_ERROR]"));
    for path in ["", ".", "pipe"] {
        assert!(write(&bench, path, "x").await.starts_with("Error[FILE_NOT_FOUND]"), "{path}");
    }
    assert_eq!(fs::read_to_string(bench.outside("secret")).unwrap(), "secret");
    assert_eq!(fs::read_dir(bench.path("")).unwrap().count(), 1);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_cancelled_call_changes_nothing() {
    let bench = Bench::new();
    let (tool, _) = tools(&bench);
    let path = bench.parts.workspace.resolve("a").unwrap();
    let held = bench.parts.workspace.lock(path).await;
    let call = bench.call(&*tool, json!({"file_path": "a", "content": "x"}));
    let cancel = async {
        tokio::task::yield_now().await;
        bench.cx.cancelled.cancel();
    };
    let (called, ()) = tokio::join!(call, cancel);
    assert!(called.is_err() || called.unwrap().is_error());
    drop(held);
    assert!(!bench.path("a").exists());
}

#[tokio::test]
async fn arguments_are_checked() {
    let bench = Bench::new();
    let (tool, _) = tools(&bench);
    for arguments in [json!({}), json!({"file_path": "a"}), json!({"file_path": "a", "content": 1})]
    {
        let text = bench.text(&*tool, arguments).await;
        assert!(
            text.starts_with("Error[VALIDATION_ERROR]: invalid arguments for write_file"),
            "{text}"
        );
    }
}
