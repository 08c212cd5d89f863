//! EX-8.1 to EX-8.10, and files that are anything but text.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::*;
use crate::source::builtin::bench::Bench;
use crate::tool::Typed;
use crate::tool::{Capability, Retention};

const NAME: &str = "f.txt";

fn tool(bench: &Bench, budget: usize) -> Typed<ReadFile> {
    let mut tool = ReadFile::new(&bench.parts);
    tool.definition.max_result_chars = budget;
    Typed(tool)
}

/// Reads a file of this content and returns what a model gets.
async fn read_with(budget: usize, content: &[u8], mut arguments: Value) -> String {
    let bench = Bench::new();
    bench.write(NAME, content);
    arguments["file_path"] = NAME.into();
    bench.text(&tool(&bench, budget), arguments).await
}

fn page(body: &str, at: (usize, usize), next: (usize, usize), more: bool) -> String {
    format!(
        "{body}\n\n[read_file: offset={}, column={}; next_offset={}, next_column={}; has_more={more}]",
        at.0, at.1, next.0, next.1
    )
}

const OUT_OF_RANGE: &str =
    "Error[COLUMN_OUT_OF_RANGE]: the column is beyond the last character of the first line";

#[tokio::test]
async fn ex_8_1_and_following_pages_of_a_small_file() {
    for (content, arguments, expected) in [
        // EX-8.1
        ("alpha\nbeta\n", json!({}), page("alpha\nbeta\n", (0, 0), (2, 0), false)),
        // EX-8.2
        (
            "alpha\nbeta\n",
            json!({"with_line_numbers": true}),
            page("L0001 | alpha\nL0002 | beta\n", (0, 0), (2, 0), false),
        ),
        // EX-8.3
        (
            "alpha\nbeta\ngamma",
            json!({"offset": 1, "limit": 1}),
            page("beta\n", (1, 0), (2, 0), true),
        ),
        // EX-8.4
        ("alpha\nbeta", json!({"limit": 0}), page("", (0, 0), (0, 0), true)),
        // EX-8.5
        ("", json!({}), page("", (0, 0), (0, 0), false)),
        // EX-8.6
        ("alpha\nbeta", json!({"offset": 7}), page("", (7, 0), (7, 0), false)),
        // EX-8.7
        ("alpha\nbeta", json!({"column": 2, "limit": 1}), page("pha\n", (0, 2), (1, 0), true)),
        // EX-8.9
        ("abc\n", json!({"column": 3}), page("\n", (0, 3), (1, 0), false)),
        ("abc\n", json!({"column": 4}), OUT_OF_RANGE.to_owned()),
        ("abc", json!({"column": 3}), page("", (0, 3), (0, 3), false)),
        ("abc", json!({"column": 4}), OUT_OF_RANGE.to_owned()),
        // EX-8.10
        ("one\n", json!({"offset": 1, "column": 1}), OUT_OF_RANGE.to_owned()),
        // Line ends, characters, and arguments as clients send them.
        ("a\r\nb\rc", json!({}), page("a\nb\nc", (0, 0), (2, 1), false)),
        ("a\r\n", json!({"limit": 1}), page("a\n", (0, 0), (1, 0), false)),
        ("a\r\nb", json!({"column": 1}), page("\nb", (0, 1), (1, 1), false)),
        ("a\r\n\r\n", json!({"offset": 1}), page("\n", (1, 0), (2, 0), false)),
        ("\u{feff}x", json!({}), page("\u{feff}x", (0, 0), (0, 2), false)),
        ("中文\n行", json!({"column": 1}), page("文\n行", (0, 1), (1, 1), false)),
        ("x\n", json!({"offset": null, "limit": null}), page("x\n", (0, 0), (1, 0), false)),
        ("x\ny", json!({"offset": "1"}), page("y", (1, 0), (1, 1), false)),
    ] {
        let text = read_with(50_000, content.as_bytes(), arguments.clone()).await;
        assert_eq!(text, expected, "{content:?} {arguments}");
    }
}

#[tokio::test]
async fn ex_8_8_a_page_keeps_within_the_result_limit() {
    let text = read_with(120, "x".repeat(200).as_bytes(), json!({})).await;
    assert_eq!(text, page(&"x".repeat(36), (0, 0), (0, 36), true));
    assert_eq!(text.chars().count(), 115);
}

#[tokio::test]
async fn a_limit_that_cannot_hold_a_character_is_an_error() {
    let message = "Error[READ_BUDGET_TOO_SMALL]: the result limit cannot hold any text together \
                   with the footer for reading on";
    // The longest footer has 83 characters here, a numbered line's prefix 8.
    assert_eq!(read_with(83, b"x", json!({})).await, message);
    assert_eq!(read_with(84, b"x", json!({})).await, page("x", (0, 0), (0, 1), false));
    assert_eq!(read_with(80, b"x", json!({"limit": 0})).await, page("", (0, 0), (0, 0), true));
    assert_eq!(read_with(79, b"x", json!({"limit": 0})).await, message);
    let numbered = json!({"with_line_numbers": true});
    assert_eq!(read_with(91, b"x", numbered.clone()).await, message);
    let text = read_with(92, b"xy", numbered).await;
    assert_eq!(text, page("L0001 | x", (0, 0), (0, 1), true));
}

#[tokio::test]
async fn numbers_count_in_the_page_and_come_back_on_the_next_one() {
    let content = format!("{}\nend\n", "y".repeat(40));
    let numbered = json!({"with_line_numbers": true});
    let text = read_with(120, content.as_bytes(), numbered).await;
    assert_eq!(text, page(&format!("L0001 | {}", "y".repeat(28)), (0, 0), (0, 28), true));
    let next = json!({"with_line_numbers": true, "column": 28});
    let text = read_with(120, content.as_bytes(), next).await;
    assert_eq!(
        text,
        page(&format!("L0001 | {}\nL0002 | end\n", "y".repeat(12)), (0, 28), (2, 0), false)
    );
    let far = json!({"with_line_numbers": true, "offset": 9_999});
    let text = read_with(500, "\n".repeat(10_000).as_bytes(), far).await;
    assert_eq!(text, page("L10000 | \n", (9_999, 0), (10_000, 0), false));
}

#[tokio::test]
async fn a_page_has_at_most_a_thousand_lines() {
    let text = read_with(50_000, "z\n".repeat(1_500).as_bytes(), json!({})).await;
    assert_eq!(text, page(&"z\n".repeat(1_000), (0, 0), (1_000, 0), true));
    let refused = read_with(50_000, b"", json!({"limit": 1_001})).await;
    assert!(refused.starts_with("Error[VALIDATION_ERROR]"), "{refused}");
    let refused = read_with(50_000, b"", json!({"offset": -1})).await;
    assert!(refused.starts_with("Error[VALIDATION_ERROR]"), "{refused}");
}

#[tokio::test]
async fn the_footers_lead_through_the_whole_file() {
    let bench = Bench::new();
    let content: String =
        (0..60).flat_map(|n| ["w".repeat(n * 7 % 150), "é\r\n".to_owned()]).collect();
    bench.write(NAME, &content);
    let tool = tool(&bench, 200);
    let (mut whole, mut offset, mut column) = (String::new(), 0, 0);
    loop {
        let arguments = json!({"file_path": NAME, "offset": offset, "column": column});
        let text = bench.text(&tool, arguments).await;
        assert!(text.chars().count() <= 200);
        let (body, footer) = text.rsplit_once("\n\n[read_file: ").unwrap();
        whole.push_str(body);
        let number = |key: &str| {
            let digits = footer.split(key).nth(1).unwrap();
            digits.split([',', ';', ']']).next().unwrap().parse::<usize>().unwrap()
        };
        (offset, column) = (number("next_offset="), number("next_column="));
        if footer.ends_with("has_more=false]") {
            break;
        }
    }
    assert_eq!(whole, content.replace("\r\n", "\n"));
}

#[tokio::test]
async fn a_file_that_is_no_text_says_where() {
    assert_eq!(
        read_with(50_000, b"ab\nc\xffd", json!({})).await,
        "Error[EXECUTION_ERROR]: cannot read f.txt: it is not UTF-8 text: \
         the byte at offset 4 is invalid"
    );
    // What comes before can be read.
    let text = read_with(50_000, b"ab\nc\xffd", json!({"limit": 1})).await;
    assert_eq!(text, page("ab\n", (0, 0), (1, 0), true));
    let text = read_with(50_000, b"ab\n\xff", json!({"limit": 1})).await;
    assert_eq!(text, page("ab\n", (0, 0), (1, 0), true));
}

#[tokio::test]
async fn an_image_that_cannot_be_read_is_known_by_its_content() {
    for content in
        [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], b"\xff\xd8\xff\xe0", b"RIFF\x10\0\0\0WEBPVP8 "]
    {
        let text = read_with(50_000, content, json!({})).await;
        let message = "Error[EXECUTION_ERROR]: cannot read the image f.txt: ";
        assert!(text.starts_with(message), "{text}");
    }
    let text = read_with(50_000, b"RIFF0000WAVE", json!({})).await;
    assert!(text.starts_with("RIFF0000WAVE\n\n["), "{text}");
}

#[tokio::test]
async fn what_is_not_there_or_not_inside_is_refused() {
    let bench = Bench::new();
    fs::create_dir(bench.path("d")).unwrap();
    fs::write(bench.outside("secret"), "s").unwrap();
    symlink("../secret", bench.path("link")).unwrap();
    mkfifo(&bench.path("pipe"), Mode::S_IRWXU).unwrap();
    let tool = tool(&bench, 50_000);
    let root = bench.parts.workspace.root().display().to_string();
    let outside = |path: &str| {
        format!(
            "Error[VALIDATION_ERROR]: PATH_OUTSIDE_WORKSPACE: the path is outside the workspace \
             (Context: path='{path}', workspace_root='{root}')"
        )
    };
    for (path, expected) in [
        ("none", "Error[FILE_NOT_FOUND]: the file does not exist: none".to_owned()),
        ("d", "Error[FILE_NOT_FOUND]: the path is not a regular file: d".to_owned()),
        ("pipe", "Error[FILE_NOT_FOUND]: the path is not a regular file: pipe".to_owned()),
        ("../secret", outside("../secret")),
        ("link", outside("link")),
        ("/etc/passwd", outside("/etc/passwd")),
    ] {
        assert_eq!(bench.text(&tool, json!({"file_path": path})).await, expected);
    }
}

#[tokio::test]
async fn only_a_text_that_was_read_is_remembered() {
    let bench = Bench::new();
    bench.write("a.txt", "a");
    bench.write("bad", b"\xff");
    bench.write("image", b"\xff\xd8\xff");
    let tool = tool(&bench, 50_000);
    let session = bench.parts.sessions.get(&bench.cx.session);
    let seen = |name: &str| {
        let path = bench.parts.workspace.resolve(name).unwrap();
        session.read_state().get(&path).map(|seen| seen.size_bytes)
    };
    for (path, size) in [("bad", None), ("image", None), ("none", None), ("a.txt", Some(1))] {
        drop(bench.text(&tool, json!({"file_path": path})).await);
        assert_eq!(seen(path), size, "{path}");
    }
    bench.write("b.txt", "bb");
    drop(bench.text(&tool, json!({"file_path": "b.txt", "column": 9})).await);
    assert_eq!(seen("b.txt"), None, "a failed read is none");
    drop(bench.text(&tool, json!({"file_path": "b.txt", "limit": 0})).await);
    assert_eq!(seen("b.txt"), Some(2));
}

#[tokio::test]
async fn a_huge_file_of_one_line_costs_no_more_than_its_page() {
    let bench = Bench::new();
    fs::File::create(bench.path("huge")).unwrap().set_len(10 << 30).unwrap();
    let tool = tool(&bench, 1_000);
    let text = bench.text(&tool, json!({"file_path": "huge", "column": 5_000})).await;
    // The widest footer has 88 characters.
    assert_eq!(text, page(&"\0".repeat(912), (0, 5_000), (0, 5_912), true));
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once_and_leaves_no_thread() {
    let bench = Bench::new();
    fs::File::create(bench.path("huge")).unwrap().set_len(100 << 30).unwrap();
    let tool = tool(&bench, 1_000);
    let arguments = json!({"file_path": "huge", "offset": 1});
    let call = bench.call(&tool, arguments.clone());
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        bench.cx.cancelled.cancel();
        Instant::now()
    };
    let (result, cancelled_at) = tokio::join!(call, cancel);
    assert_eq!(result.unwrap_err(), Interrupt::Cancelled);
    assert!(cancelled_at.elapsed() < Duration::from_millis(500));
    // The runtime waits for its threads: if one went on, this test would never end.
}

#[tokio::test]
async fn a_call_nobody_waits_for_leaves_no_thread() {
    let bench = Bench::new();
    fs::File::create(bench.path("huge")).unwrap().set_len(100 << 30).unwrap();
    let tool = tool(&bench, 1_000);
    let call = bench.call(&tool, json!({"file_path": "huge", "offset": 1}));
    assert!(tokio::time::timeout(Duration::from_millis(50), call).await.is_err());
}

#[test]
fn the_definition_is_the_contract() {
    let bench = Bench::new();
    let definition = tool(&bench, 50_000).0.definition;
    assert_eq!(definition.name.as_str(), "read_file");
    assert_eq!(definition.group, "file");
    assert_eq!(definition.retention, Retention::Observation);
    assert!(definition.capabilities.read_only() && definition.capabilities.has(Capability::Read));
    assert_eq!(Value::Object(definition.input_schema.document().clone()), schema());
}

fn png(width: u32, height: u32) -> Vec<u8> {
    let image = ::image::RgbImage::from_pixel(width, height, ::image::Rgb([200, 10, 10]));
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, ::image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

fn shown(result: &ToolResult) -> &crate::tool::Image {
    match &result.content[..] {
        [crate::tool::Block::Text(entry), crate::tool::Block::Image(image)] => {
            assert_eq!(*entry, image.entry());
            image
        }
        other => panic!("a line and an image: {other:?}"),
    }
}

#[tokio::test]
async fn an_image_is_kept_and_shown() {
    let bench = Bench::new();
    let bytes = png(3, 2);
    bench.write("d/shot.png", &bytes);
    let arguments = json!({"file_path": "d/shot.png", "offset": 7, "limit": 1});
    let result = bench.call(&tool(&bench, 50_000), arguments).await.unwrap();
    let image = shown(&result);
    assert_eq!(image.mime_type, "image/png");
    let entry = image.entry();
    assert!(entry.starts_with("[image shot.png] original=.iris/image-cache/id_"), "{entry}");
    assert!(entry.ends_with(".original.png (image/png, 3x2)"), "{entry}");
    let (original, model) = &**image.files.as_ref().unwrap();
    assert_eq!(original, model);
    assert_eq!(fs::read(bench.path(&original.place)).unwrap(), bytes);
    // One of ours is shown from where it is.
    let again =
        bench.call(&tool(&bench, 50_000), json!({"file_path": original.place})).await.unwrap();
    assert_eq!(shown(&again).files.as_ref().unwrap().0.place, original.place);
    let folder = bench.path(&original.place);
    assert_eq!(fs::read_dir(folder.parent().unwrap()).unwrap().count(), 1);
}

#[tokio::test]
async fn an_image_too_large_for_a_model_is_made_smaller() {
    let bench = Bench::new();
    bench.write("wide.png", png(2_400, 12));
    let result = bench.call(&tool(&bench, 50_000), json!({"file_path": "wide.png"})).await.unwrap();
    let (original, model) = &**shown(&result).files.as_ref().unwrap();
    assert_eq!((original.width, original.height), (2_400, 12));
    assert_eq!((model.width, model.height), (2_000, 10));
    let stem = original.place.strip_suffix(".original.png").unwrap();
    assert_eq!(model.place, format!("{stem}.model.png"));
}
