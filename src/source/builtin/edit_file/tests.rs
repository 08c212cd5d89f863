//! EX-8.15 and EX-8.16, and when a file may be edited.

use std::fs;
use std::time::{Duration, SystemTime};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tokio::task::JoinSet;

use super::*;
use crate::source::builtin::bench::Bench;
use crate::source::builtin::make;
use crate::tool::{Capability, Retention, SessionId, Tool};

async fn read(bench: &Bench, file_path: &str) {
    let tool = make("file.read", &bench.parts).unwrap();
    let text = bench.text(&*tool, json!({"file_path": file_path, "limit": 0})).await;
    assert!(!text.starts_with("Error"), "{text}");
}

async fn edit(bench: &Bench, file_path: &str, old: &str, new: &str) -> ToolResult {
    let tool = make("file.edit", &bench.parts).unwrap();
    let arguments = json!({"file_path": file_path, "old_string": old, "new_string": new});
    bench.call(&*tool, arguments).await.unwrap()
}

/// Edits a file of this content that was read, and returns what a model gets and what is there.
async fn edited(content: &[u8], old: &str, new: &str) -> (String, Vec<u8>) {
    let bench = Bench::new();
    bench.write("f", content);
    if str::from_utf8(content).is_ok() {
        read(&bench, "f").await;
    } else {
        let path = bench.parts.workspace.resolve("f").unwrap();
        let seen = bench.parts.workspace.open_file(&path).unwrap().observation();
        bench.parts.sessions.get(&bench.cx.session).read_state().record(&path, seen);
    }
    let text = edit(&bench, "f", old, new).await.model_content();
    assert_eq!(fs::read_dir(bench.path("")).unwrap().count(), 1);
    (text, fs::read(bench.path("f")).unwrap())
}

#[test]
fn the_definition_says_that_it_writes() {
    let bench = Bench::new();
    let tool = make("file.edit", &bench.parts).unwrap();
    let definition = tool.definition();
    assert_eq!((definition.name.as_str(), definition.group.as_str()), ("edit_file", "file"));
    assert_eq!(definition.capabilities, [Capability::Write].into());
    assert_eq!(definition.retention, Retention::Keep);
    assert_eq!(Value::Object(definition.input_schema.document().clone()), schema());
}

#[tokio::test]
async fn ex_8_15_and_8_16_the_change_is_told_as_a_diff() {
    let bench = Bench::new();
    for (name, content, old, new, patch) in [
        (
            "notes.txt",
            "hello old\n",
            "old",
            "new",
            "--- a/notes.txt\n+++ b/notes.txt\n@@ -1 +1 @@\n-hello old\n+hello new\n",
        ),
        (
            "n.txt",
            "a\nb\nc",
            "c",
            "d",
            "--- a/n.txt\n+++ b/n.txt\n@@ -1,3 +1,3 @@\n a\n b\n-c\n\\ No newline at end of file\n\
             +d\n\\ No newline at end of file\n",
        ),
        ("d/same", "x\n", "x", "x", ""),
    ] {
        bench.write(name, content);
        read(&bench, name).await;
        let result = edit(&bench, name, old, new).await;
        assert_eq!(result.model_content(), format!("EDITED: {name}"));
        let expected = json!({"file_change": {"file_path": name, "patch": patch}});
        assert_eq!(Value::Object(result.data), expected);
        assert_eq!(fs::read_to_string(bench.path(name)).unwrap(), content.replacen(old, new, 1));
    }
}

#[tokio::test]
async fn t14_the_text_must_be_there_once() {
    let not_found =
        "Error[MATCH_NOT_FOUND]: old_string does not occur in the file; read it again: f";
    let twice =
        "Error[AMBIGUOUS_MATCH]: old_string occurs 2 times; give more of what is around it: f";
    let done = "EDITED: f";
    for (content, old, new, text, after) in [
        ("a b a", "b", "", done, "a  a"),
        ("a b a", "a", "c", twice, "a b a"),
        ("a b a", "c", "d", not_found, "a b a"),
        ("", "c", "d", not_found, ""),
        ("aaa", "aa", "x", done, "xa"),
        ("aaaa", "aa", "b", twice, "aaaa"),
        ("a\r\nb\rc\n", "a\nb\nc", "x", done, "x\n"),
        ("a\r\nb\r\n", "b", "c", done, "a\nc\n"),
        ("a\r\nb\r\n", "a\r\n", "c", not_found, "a\r\nb\r\n"),
        ("a\n", "a", "b\r\n", done, "b\r\n\n"),
        ("\u{feff}a\n", "a", "b", done, "\u{feff}b\n"),
        ("中文\n", "文", "國", done, "中國\n"),
        ("a\0b", "\0", "-", done, "a-b"),
    ] {
        let (said, is) = edited(content.as_bytes(), old, new).await;
        assert_eq!((said.as_str(), str::from_utf8(&is).unwrap()), (text, after), "{content:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_edited_says_why_and_stays() {
    let (said, is) = edited(b"a\xff", "a", "b").await;
    assert_eq!(
        said,
        "Error[EXECUTION_ERROR]: cannot edit f: it is not UTF-8 text: the byte at offset 1 is invalid"
    );
    assert_eq!(is, b"a\xff");
    let bench = Bench::new();
    mkfifo(&bench.path("pipe"), Mode::S_IRWXU).unwrap();
    for (path, code) in [
        ("none", "FILE_NOT_FOUND"),
        ("none/none", "FILE_NOT_FOUND"),
        ("", "FILE_NOT_FOUND"),
        ("pipe", "FILE_NOT_FOUND"),
        ("../x", "VALIDATION_ERROR"),
        ("a\0", "VALIDATION_ERROR"),
    ] {
        let text = edit(&bench, path, "a", "b").await.model_content();
        assert!(text.starts_with(&format!("Error[{code}]: ")), "{path}: {text}");
    }
    fs::File::create(bench.path("large")).unwrap().set_len(LARGEST_EDITED + 1).unwrap();
    read(&bench, "large").await;
    assert_eq!(
        edit(&bench, "large", "a", "b").await.model_content(),
        "Error[EXECUTION_ERROR]: cannot edit large: it has 16777217 bytes; at most 16777216 are edited"
    );
    let text = edit(&bench, "none", "", "b").await.model_content();
    assert_eq!(
        text,
        "Error[VALIDATION_ERROR]: invalid arguments for edit_file: old_string must not be empty"
    );
}

#[tokio::test]
async fn t14_a_file_is_read_once_and_edited_often_until_it_changes() {
    let bench = Bench::new();
    bench.write("f", "0");
    let unread = edit(&bench, "f", "0", "1").await.model_content();
    assert_eq!(
        unread,
        "Error[FILE_NOT_READ]: an existing file must be read before it is changed: f"
    );
    read(&bench, "f").await;
    for (old, new) in [("0", "1"), ("1", "2"), ("2", "33")] {
        assert_eq!(edit(&bench, "f", old, new).await.model_content(), "EDITED: f");
    }
    let file = fs::File::options().write(true).open(bench.path("f")).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(1)).unwrap();
    let stale = edit(&bench, "f", "33", "4").await.model_content();
    assert_eq!(
        stale,
        "Error[STALE_FILE_STATE]: the file changed after it was read; read it again: f"
    );
    assert_eq!(fs::read_to_string(bench.path("f")).unwrap(), "33");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_edits_at_once_are_done_or_refused() {
    let bench = Bench::new();
    let lines: Vec<String> = (0..200).map(|number| format!("<{number}>\n")).collect();
    bench.write("f", lines.concat());
    let tool = make("file.edit", &bench.parts).unwrap();
    let reader = make("file.read", &bench.parts).unwrap();
    let bench = Arc::new(bench);
    let mut edits = JoinSet::new();
    for number in 0..200 {
        let (bench, tool, reader) = (Arc::clone(&bench), Arc::clone(&tool), Arc::clone(&reader));
        edits.spawn(async move {
            // A third share a session, as calls of one client do.
            let session = if number % 3 == 0 { 0 } else { number };
            let cx =
                CallContext { session: SessionId::new(session.to_string()), ..bench.cx.clone() };
            let call = async |tool: &Arc<dyn Tool>, arguments: Value| {
                let Value::Object(arguments) = arguments else { unreachable!() };
                let valid = tool.validate(arguments, &cx).await.unwrap();
                tool.run(&valid, &cx).await.unwrap()
            };
            call(&reader, json!({"file_path": "f", "limit": 0})).await;
            let (old, new) = (format!("<{number}>"), format!("[{number}]"));
            let arguments = json!({"file_path": "f", "old_string": old, "new_string": new});
            (number, call(&tool, arguments).await.error)
        });
    }
    let mut done = 0;
    for (number, error) in edits.join_all().await {
        let text = fs::read_to_string(bench.path("f")).unwrap();
        let applied = text.contains(&format!("[{number}]\n"));
        match error {
            None => {
                assert!(applied, "{number} was lost");
                done += 1;
            }
            Some(failure) => {
                assert_eq!(failure.code.as_str(), "STALE_FILE_STATE");
                assert!(!applied, "{number} was done and refused");
            }
        }
    }
    assert!(done > 0);
    assert_eq!(fs::read_dir(bench.path("")).unwrap().count(), 1);
}
