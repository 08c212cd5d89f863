//! What is kept, what is shown of it, and what has to go.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use std::time::Duration;

use super::*;
use crate::tool::{
    Block, Image, InputSchema, PreviewMode, ToolDefinition, ToolName, ToolResult, Turn,
};

const SESSION: &str = "session_1";

struct Bench {
    root: tempfile::TempDir,
    store: ArtifactStore,
}

impl Bench {
    fn new() -> Self {
        Self::keeping(u64::MAX)
    }

    fn keeping(max_bytes: u64) -> Self {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path(), None, max_bytes);
        Self { root, store }
    }

    fn results(&self) -> PathBuf {
        self.root.path().join(".iris/tool-results/id_73657373696f6e5f31")
    }

    fn files(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.results()) else { return Vec::new() };
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn store(root: &Path, fallback: Option<PathBuf>, max_bytes: u64) -> ArtifactStore {
    let quota = Quota { max_bytes, max_age: Duration::from_hours(1) };
    let workspace = Arc::new(Workspace::open(root).unwrap());
    ArtifactStore::new(Config { folder: None, fallback, quota }, workspace)
}

fn owner<'a>(session: &'a str, call_id: &'a str) -> Owner<'a> {
    Owner { session, call_id }
}

fn definition(max_result_chars: usize, preview_chars: usize) -> ToolDefinition {
    let name = ToolName::parse("big").unwrap();
    let mut definition = ToolDefinition::new(name, "says much", InputSchema::object()).unwrap();
    definition.max_result_chars = max_result_chars;
    definition.preview_chars = preview_chars;
    definition
}

fn result(text: &str) -> ToolResult {
    ToolResult { call_id: "call_1".into(), tool_name: "big".into(), ..ToolResult::text(text) }
}

#[test]
fn t17_what_is_left_of_a_long_result_says_where_the_rest_is() {
    let bench = Bench::new();
    let text = "0123456789é".repeat(100);
    let turn = Turn::default();
    let kept =
        bench.store.persist(result(&text), &definition(400, 30), SESSION, Some(&turn)).unwrap();
    let artifact = kept.artifact.as_ref().unwrap();
    let uri = artifact.text_uri.clone().unwrap();
    assert_eq!(
        kept.model_content(),
        format!(
            "{}\n\n[The result of big was cut. All of its text: context_read result:1:0, or resource {uri}]",
            &text.chars().take(30).collect::<String>()
        )
    );
    assert!(kept.model_chars() <= 400);
    assert_eq!(artifact.text_path.as_ref(), Some(&artifact.path));
    assert_eq!(artifact.uri, artifact.text_uri);
    assert_eq!(fs::read_to_string(&artifact.path).unwrap(), text);
    assert_eq!(artifact.size_bytes, text.len() as u64);
    assert_eq!(artifact.mime_type, "text/plain");
    assert_eq!(kept.metadata["gitignore_hint"], "add .iris/ to .gitignore");
    let name = Path::new(&artifact.path).file_name().unwrap().to_str().unwrap();
    let random = name.strip_prefix("id_63616c6c5f31-").unwrap().strip_suffix(".txt").unwrap();
    assert_eq!(random.len(), 32);
    let mode = fs::metadata(&artifact.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Without a record there is nothing to refer to.
    let kept = bench.store.persist(result(&text), &definition(400, 30), SESSION, None).unwrap();
    assert!(!kept.model_content().contains("context_read"));
}

#[test]
fn t18_a_limit_without_room_for_the_way_to_the_rest_is_an_error() {
    let bench = Bench::new();
    let turn = Turn::default();
    let error = bench
        .store
        .persist(result(&"x".repeat(200)), &definition(100, 30), SESSION, Some(&turn))
        .unwrap_err()
        .error;
    assert!(matches!(error, StoreError::NoRoom { limit: 100 }), "{error}");
    assert_eq!(Failure::from(error).code, ARTIFACT_ERROR);
}

#[test]
fn t18_an_error_keeps_its_code_within_the_limit() {
    let bench = Bench::new();
    let mut long = result("");
    long.error = Some(Failure::new(ErrorCode::new("E1"), "no ".repeat(300)));
    let whole = long.model_content();
    let kept = bench.store.persist(long, &definition(300, 100), SESSION, None).unwrap();
    let content = kept.model_content();
    assert!(content.starts_with("Error[E1]: no no "), "{content}");
    assert!(content.ends_with(']') && content.chars().count() <= 300, "{content}");
    let path = kept.artifact.unwrap().text_path.unwrap();
    assert_eq!(fs::read_to_string(path).unwrap(), whole);
}

#[test]
fn a_native_result_stays_what_the_artifact_is() {
    let bench = Bench::new();
    let native = bench.store.save(owner(SESSION, "call_1"), ".mcp.json", b"{}").unwrap();
    let mut long = result(&"x".repeat(900));
    long.artifact = Some(native.artifact("application/json", "xx".to_owned()));
    let turn = Turn::default();
    let kept = bench.store.persist(long, &definition(800, 100), SESSION, Some(&turn)).unwrap();
    let artifact = kept.artifact.as_ref().unwrap();
    assert_eq!(artifact.uri, Some(native.key.uri()));
    assert!(artifact.path.ends_with(".mcp.json"));
    assert!(artifact.text_path.as_ref().unwrap().ends_with(".model.txt"));
    assert!(kept.model_content().ends_with(&format!(
        "\n[Native result: context_read with representation raw, or resource {}]",
        native.key
    )));
}

#[test]
fn ex_l9_2_images_are_named_before_the_text_and_stay_where_they_are() {
    let bench = Bench::new();
    let image = |data: &str| Block::Image(Image::new("image/png", data));
    let mut long = result("");
    long.content = vec![image("AA=="), Block::Text("y".repeat(500)), image("AB==")];
    let kept = bench.store.persist(long, &definition(300, 100), SESSION, None).unwrap();
    let path = kept.artifact.as_ref().unwrap().text_path.clone().unwrap();
    assert_eq!(
        fs::read_to_string(path).unwrap(),
        format!("[image unnamed] (image/png)\n[image unnamed] (image/png)\n\n{}", "y".repeat(500))
    );
    assert!(matches!(&kept.content[..], [Block::Image(one), Block::Text(_), Block::Image(other)]
        if &*one.data == "AA==" && &*other.data == "AB=="));
    // Without a text of its own it comes first.
    let mut feedback = result("");
    feedback.content = vec![image("AA==")];
    feedback.hook_feedback = vec!["z".repeat(500)];
    let kept = bench.store.persist(feedback, &definition(300, 100), SESSION, None).unwrap();
    assert!(matches!(&kept.content[..], [Block::Text(_), Block::Image(_)]));
    assert!(kept.hook_feedback.is_empty());
}

#[test]
fn the_end_of_a_result_can_be_shown_too() {
    let bench = Bench::new();
    let mut tail = definition(300, 31);
    tail.preview_mode = PreviewMode::HeadTail;
    let text = format!("{}END", "x".repeat(500));
    let kept = bench.store.persist(result(&text), &tail, SESSION, None).unwrap();
    let content = kept.model_content();
    assert!(content.starts_with("xxxxxxxxxx\n[omitted]\nxxxxxxxEND\n\n["), "{content}");
}

#[test]
fn an_artifact_is_read_in_its_own_session_only() {
    let bench = Bench::new();
    let saved = bench.store.save(owner(SESSION, "c"), ".txt", "añb".as_bytes()).unwrap();
    let page = bench.store.page(SESSION, &saved.key, 1, 1).unwrap();
    assert_eq!((page.content.as_str(), page.next_offset, page.has_more), ("ñ", 2, true));
    assert_eq!(bench.store.bytes(SESSION, &saved.key, 3, 9).unwrap(), (b"b".to_vec(), 4));
    assert_eq!(bench.store.bytes(SESSION, &saved.key, 9, 9).unwrap(), (Vec::new(), 4));
    assert_eq!(bench.store.list(SESSION).unwrap().len(), 1);
    let missing = bench.store.page("session_2", &saved.key, 0, 1).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(bench.store.list("session_2").unwrap().is_empty());
}

#[test]
fn the_oldest_goes_and_never_what_is_in_use() {
    let bench = Bench::keeping(1_000);
    let save =
        |name: &str, size: usize| bench.store.save(owner(SESSION, name), ".txt", &vec![b'x'; size]);
    let (first, second) = (save("1", 300).unwrap(), save("2", 300).unwrap());
    let age = |path: &Path, seconds| {
        let file = File::open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
    };
    age(&first.path, 20);
    age(&second.path, 10);
    // Both belong to calls that are not over: there is too much, and nothing is lost.
    let third = save("3", 500).unwrap();
    let exist = |saved: [&PathBuf; 3]| saved.map(|path| path.exists());
    let [first, second, third] =
        [first, second, third].map(|Saved { path, key, hold, .. }| (path, key, Some(hold)));
    assert_eq!(exist([&first.0, &second.0, &third.0]), [true; 3]);
    drop((first.2, third.2));
    let reading = bench.store.open(SESSION, &third.1).unwrap();
    age(&third.0, 30);
    let Saved { path: fourth, hold, .. } = save("4", 300).unwrap();
    assert!(!first.0.exists(), "the oldest that nobody uses");
    assert_eq!(exist([&second.0, &third.0, &fourth]), [true; 3]);
    drop((reading, second.2, hold));
    // Having been read makes young again.
    bench.store.bytes(SESSION, &third.1, 0, 1).unwrap();
    age(&second.0, 20);
    age(&fourth, 30);
    drop(save("5", 10).unwrap());
    assert_eq!(exist([&second.0, &third.0, &fourth]), [true, true, false]);
    age(&second.0, 30);
    drop(save("6", 300).unwrap());
    assert_eq!(exist([&second.0, &third.0, &fourth]), [false, true, false]);
    let error = save("7", 1_001).unwrap_err();
    assert_eq!(error.to_string(), "it has 1001 bytes, and artifacts.max_bytes is 1000");
}

#[test]
fn another_process_sees_what_is_in_use() {
    let bench = Bench::keeping(1_000);
    let saved = bench.store.save(owner(SESSION, "1"), ".txt", &[b'x'; 900]).unwrap();
    // Another store is another process: they share nothing but the folder.
    let other = store(bench.root.path(), None, 1_000);
    other.save(owner("session_2", "1"), ".txt", &[b'x'; 900]).unwrap();
    assert!(saved.path.exists());
    drop(saved.hold);
    let third = store(bench.root.path(), None, 1_000);
    third.save(owner("session_3", "1"), ".txt", &[b'x'; 900]).unwrap();
    assert!(!saved.path.exists());
}

#[test]
fn what_cannot_be_written_leaves_nothing() {
    let bench = Bench::new();
    let broken = io::Cursor::new(b"abc").chain(Broken);
    let error = bench.store.copy(owner(SESSION, "1"), "a.bin", 3, broken).unwrap_err();
    assert!(error.to_string().ends_with("told to"), "{error}");
    assert!(bench.files().is_empty());
    let growing = io::repeat(b'x').take(2_000);
    let small = store(bench.root.path(), None, 1_000);
    small.copy(owner(SESSION, "1"), "a.bin", 3, growing).unwrap_err();
    assert!(bench.files().is_empty());
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("told to"))
    }
}

#[test]
fn what_is_too_old_or_was_never_finished_is_swept_away() {
    let bench = Bench::new();
    bench.store.sweep();
    assert!(!bench.root.path().join(".iris").exists(), "there was nothing to sweep");
    let age = |path: &Path, hours| {
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_hours(hours)).unwrap();
    };
    let Saved { path: old, .. } = bench.store.save(owner(SESSION, "1"), ".txt", b"x").unwrap();
    let Saved { path: young, .. } = bench.store.save(owner(SESSION, "2"), ".txt", b"x").unwrap();
    let unfinished = bench.results().join(".id_33-0.txt.part");
    fs::write(&unfinished, "x").unwrap();
    let writing = bench.results().join(".id_34-0.txt.part");
    fs::write(&writing, "x").unwrap();
    age(&old, 2);
    let file = File::options().write(true).open(&unfinished).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_mins(2)).unwrap();
    store(bench.root.path(), None, u64::MAX).sweep();
    assert_eq!(
        [&old, &young, &unfinished, &writing].map(|path| path.exists()),
        [false, true, false, true]
    );
}

#[test]
fn where_the_workspace_cannot_be_written_artifacts_go_elsewhere() {
    let root = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    // Even root cannot make a folder in the place of a file.
    fs::write(root.path().join(".iris"), "in the way").unwrap();
    let fallback = elsewhere.path().join("state/iris-mcp");
    let saved = store(root.path(), Some(fallback.clone()), 100)
        .save(owner("s", "c"), ".txt", b"x")
        .unwrap();
    assert!(saved.path.starts_with(fallback.canonicalize().unwrap()));
    let error = store(root.path(), None, 100).save(owner("s", "c"), ".txt", b"x").unwrap_err();
    assert!(error.to_string().contains("artifacts.dir says where else"), "{error}");
}

#[test]
fn a_link_in_the_workspace_leads_no_artifact_outside() {
    let root = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), root.path().join(".iris")).unwrap();
    store(root.path(), None, 100).save(owner("s", "c"), ".txt", b"x").unwrap_err();
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}
