//! EX-L2.1 to EX-L2.14, and what `context_read` finds beyond them.

use serde_json::json;

use super::*;
use crate::artifact::Owner;
use crate::session::record::{Message, Part};
use crate::source::builtin::bench::Bench;
use crate::tool::{Artifact, SessionId};

const CONF: &str = "port = 8080\n\n\n[read_file: offset=0, column=0; next_offset=1, next_column=0; has_more=false]";

fn user(text: &str) -> Message {
    Message { role: "user", sender: "user", blocks: vec![Part::Text(text.to_owned())] }
}

fn assistant(blocks: Vec<Part>) -> Message {
    Message { role: "assistant", sender: "assistant", blocks }
}

fn result(name: &str, text: &str, artifact: Option<Artifact>) -> Message {
    let (id, name) = ("c1".to_owned(), name.to_owned());
    let artifact = artifact.map(Box::new);
    let part = Part::Result { id, name, is_error: false, text: text.to_owned(), artifact };
    Message { role: "user", sender: "", blocks: vec![part] }
}

/// The session of the worked examples.
fn s1() -> Bench {
    let bench = Bench::new();
    let input = json!({"file_path": "conf.ini"}).as_object().unwrap().clone();
    let call = Part::Use { id: "c1".to_owned(), name: "read_file".to_owned(), input };
    fill(
        &bench,
        [
            user("Find the port"),
            assistant(vec![Part::Text("Reading.".to_owned()), call]),
            result("read_file", CONF, None),
            assistant(vec![Part::Text("It is 8080.".to_owned())]),
        ],
    );
    bench
}

fn fill(bench: &Bench, messages: impl IntoIterator<Item = Message>) {
    let record = bench.parts.sessions.get(&bench.cx.session).record(&bench.cx.client);
    record.fill(messages);
}

async fn read(bench: &Bench, arguments: Value) -> String {
    let [tool, _] = tools(&bench.parts, Presence::Always);
    bench.text(&*tool, arguments).await
}

async fn search(bench: &Bench, arguments: Value) -> String {
    let [_, tool] = tools(&bench.parts, Presence::Always);
    bench.text(&*tool, arguments).await
}

#[tokio::test]
async fn ex_l2_1_to_l2_5_a_reference_is_read_in_pages() {
    let bench = s1();
    for (arguments, expected) in [
        (
            json!({"ref": "message:0"}),
            "message:0 text offset=0 next_offset=50 has_more=false\nrole=user sender=user\n[block 0 text]\nFind the port".to_owned(),
        ),
        (
            json!({"ref": "message:1"}),
            "message:1 text offset=0 next_offset=121 has_more=false\nrole=assistant sender=assistant\n[block 0 text]\nReading.\n[block 1 tool_use]\nread_file call_id=c1\n{\"file_path\": \"conf.ini\"}".to_owned(),
        ),
        (
            json!({"ref": "message:2"}),
            format!("message:2 text offset=0 next_offset=167 has_more=false\nrole=user sender=\n[block 0 tool_result]\nread_file call_id=c1 is_error=False\n{CONF}"),
        ),
        (
            json!({"ref": "result:2:0", "limit": 11}),
            "result:2:0 text offset=0 next_offset=11 has_more=true\nport = 8080".to_owned(),
        ),
        (
            json!({"ref": "message:3", "offset": 500, "limit": 9}),
            "message:3 text offset=500 next_offset=500 has_more=false\n".to_owned(),
        ),
        (
            json!({"ref": "message:0003", "offset": "42", "limit": 8.0}),
            "message:0003 text offset=42 next_offset=50 has_more=true\next]\nIt ".to_owned(),
        ),
    ] {
        assert_eq!(read(&bench, arguments.clone()).await, expected, "{arguments}");
    }
    let [tool, _] = tools(&bench.parts, Presence::Always);
    let result = bench.call(&*tool, json!({"ref": "result:2:0", "limit": 4})).await.unwrap();
    assert_eq!(
        Value::Object(result.data),
        json!({"ref": "result:2:0", "representation": "text", "offset": 0, "next_offset": 4,
            "has_more": true, "content": "port"})
    );
}

#[tokio::test]
async fn ex_l2_6_what_cannot_be_read_says_why() {
    let bench = s1();
    for (arguments, expected) in [
        (
            json!({"ref": "result:2:0", "representation": "raw"}),
            "Error[CONTEXT_REPRESENTATION_UNAVAILABLE]: this result has no native artifact",
        ),
        (
            json!({"ref": "message:2", "representation": "raw"}),
            "Error[CONTEXT_REPRESENTATION_UNAVAILABLE]: a message reference has no raw form",
        ),
        (
            json!({"ref": "result:1:0"}),
            "Error[CONTEXT_SOURCE_UNAVAILABLE]: the reference does not lead to a tool result",
        ),
        (
            json!({"ref": "result:2:1"}),
            "Error[CONTEXT_SOURCE_UNAVAILABLE]: the reference does not lead to a tool result",
        ),
        (
            json!({"ref": "message:9"}),
            "Error[CONTEXT_SOURCE_UNAVAILABLE]: the reference is not in this session, or not any more",
        ),
        (
            json!({"ref": "message:99999999999999999999999"}),
            "Error[CONTEXT_SOURCE_UNAVAILABLE]: the reference is not in this session, or not any more",
        ),
    ] {
        assert_eq!(read(&bench, arguments.clone()).await, expected, "{arguments}");
    }
    for arguments in [
        json!({"ref": "result:2"}),
        json!({"ref": " message:2"}),
        json!({"ref": "message:2\n"}),
        json!({"ref": "message:2", "limit": 8001}),
        json!({"ref": "message:2", "limit": 0}),
        json!({"ref": "message:2", "offset": -1}),
        json!({"ref": "message:2", "offset": 8.5}),
        json!({"ref": "message:2", "other": 1}),
        json!({"ref": "message:2", "representation": "both"}),
        json!({"ref": "message:2", "pattern": "("}),
        json!({}),
    ] {
        let text = read(&bench, arguments.clone()).await;
        assert!(text.starts_with("Error[VALIDATION_ERROR]: "), "{arguments}: {text}");
    }
}

#[tokio::test]
async fn ex_l2_7_to_l2_9_a_text_is_found_and_the_search_goes_on() {
    let bench = s1();
    for (arguments, expected) in [
        (
            json!({"query": "8080"}),
            format!("next_after=4 has_more=false\nresult:2:0 user read_file\n{CONF}\nmessage:3 assistant \nIt is 8080."),
        ),
        (
            json!({"query": "conf", "limit": 1}),
            "next_after=2 has_more=true\nmessage:1 assistant read_file\n{\"file_path\": \"conf.ini\"}".to_owned(),
        ),
        (json!({"query": "conf", "after": 2}), "next_after=4 has_more=false\n".to_owned()),
        (json!({"query": "x", "after": 9}), "next_after=9 has_more=false\n".to_owned()),
    ] {
        assert_eq!(search(&bench, arguments.clone()).await, expected, "{arguments}");
    }
    for arguments in [json!({"query": " "}), json!({"query": "x", "limit": 21}), json!({})] {
        let text = search(&bench, arguments.clone()).await;
        assert!(text.starts_with("Error[VALIDATION_ERROR]: "), "{arguments}: {text}");
    }
}

#[tokio::test]
async fn ex_l2_11_two_hundred_messages_are_looked_at_in_one_call() {
    let bench = Bench::new();
    fill(&bench, (0..200).map(|_| user("nothing")));
    fill(&bench, [result("t", "Straße", None)]);
    let [_, tool] = tools(&bench.parts, Presence::Always);
    let first = bench.call(&*tool, json!({"query": "STRASSE"})).await.unwrap();
    assert_eq!(
        Value::Object(first.data),
        json!({"matches": [], "next_after": 200, "has_more": true})
    );
    let second = bench.call(&*tool, json!({"query": "STRASSE", "after": 200})).await.unwrap();
    assert_eq!(
        Value::Object(second.data),
        json!({"matches": [{"ref": "result:200:0", "role": "user", "tool_name": "t", "snippet": "Straße"}],
            "next_after": 201, "has_more": false})
    );
}

#[tokio::test]
async fn ex_17_1_a_page_says_where_the_next_one_is() {
    let bench = Bench::new();
    fill(&bench, [user("0"), user("1"), user("2"), result("t", "hello, world", None)]);
    assert_eq!(
        read(&bench, json!({"ref": "result:3:0", "limit": 5})).await,
        "result:3:0 text offset=0 next_offset=5 has_more=true\nhello"
    );
}

#[tokio::test]
async fn ex_l2_12_blocks_are_joined_by_line_feeds() {
    let bench = Bench::new();
    fill(&bench, [result("t", "first\nlast", None)]);
    assert_eq!(
        read(&bench, json!({"ref": "result:0:0", "offset": 4, "limit": 4})).await,
        "result:0:0 text offset=4 next_offset=8 has_more=true\nt\nla"
    );
}

/// A result whose text and native form are kept in files.
fn kept(bench: &Bench, text: &str, native: &str) -> Artifact {
    let store = &bench.parts.artifacts;
    let owner = Owner { session: bench.cx.session.as_str(), call_id: "c1" };
    let native = store.save(owner, ".mcp.json", native.as_bytes()).unwrap();
    let text = store.save(owner, ".model.txt", text.as_bytes()).unwrap();
    let mut artifact = native.artifact("application/json", String::new());
    artifact.text_path = Some(text.path.to_string_lossy().into_owned());
    artifact.text_uri = Some(text.key.uri());
    artifact
}

#[tokio::test]
async fn ex_l2_13_the_whole_of_a_cut_result_is_read_from_its_files() {
    let bench = Bench::new();
    let whole: String = "añb\r\n".repeat(30_000);
    let artifact = kept(&bench, &whole, "{\"raw\": \"source\"}");
    fill(&bench, [result("t", "añb (cut)", Some(artifact.clone()))]);
    let [tool, _] = tools(&bench.parts, Presence::Always);
    let (mut text, mut offset) = (String::new(), 0);
    loop {
        let arguments = json!({"ref": "result:0:0", "offset": offset, "limit": 8000});
        let page = bench.call(&*tool, arguments).await.unwrap().data;
        text.push_str(page["content"].as_str().unwrap());
        offset = page["next_offset"].as_u64().unwrap();
        if page["has_more"] == false {
            break;
        }
    }
    assert!(text == whole, "all pages are the whole text, line ends as they are");
    assert_eq!(
        read(&bench, json!({"ref": "result:0:0", "representation": "raw"})).await,
        "result:0:0 raw offset=0 next_offset=17 has_more=false\n{\"raw\": \"source\"}"
    );
    std::fs::remove_file(artifact.text_path.unwrap()).unwrap();
    assert_eq!(
        read(&bench, json!({"ref": "result:0:0"})).await,
        "Error[CONTEXT_SOURCE_UNAVAILABLE]: the saved result cannot be read: it is not there any more"
    );
}

#[tokio::test]
async fn ex_l2_14_no_other_session_can_be_read() {
    let mut bench = s1();
    bench.cx.session = SessionId::new("two");
    assert_eq!(
        read(&bench, json!({"ref": "message:0"})).await,
        "Error[CONTEXT_SOURCE_UNAVAILABLE]: the reference is not in this session, or not any more"
    );
    let mut bench = s1();
    bench.cx.client.name = "another".into();
    assert!(read(&bench, json!({"ref": "message:0"})).await.starts_with("Error[CONTEXT_SOURCE"));
}

#[tokio::test]
async fn a_file_that_is_no_text_is_read_as_a_resource() {
    let bench = Bench::new();
    let owner = Owner { session: bench.cx.session.as_str(), call_id: "c" };
    let saved = bench.parts.artifacts.save(owner, ".bin", b"a\xff").unwrap();
    let artifact = saved.artifact("application/octet-stream", String::new());
    fill(&bench, [result("publish_artifact", "Published", Some(artifact))]);
    assert_eq!(
        read(&bench, json!({"ref": "result:0:0", "representation": "raw"})).await,
        "Error[CONTEXT_SOURCE_UNAVAILABLE]: the saved result cannot be read: it is no text; read it as a resource"
    );
    // Its text is what the tool said.
    assert_eq!(
        read(&bench, json!({"ref": "result:0:0"})).await,
        "result:0:0 text offset=0 next_offset=9 has_more=false\nPublished"
    );
}

#[tokio::test]
async fn a_pattern_lists_the_places_it_matches() {
    let bench = Bench::new();
    let text = format!("one\ntwo 12\n{}x7\r\nlast 3", "é".repeat(300));
    fill(&bench, [result("t", &text, None)]);
    assert_eq!(
        read(&bench, json!({"ref": "result:0:0", "pattern": r"\d+"})).await,
        format!(
            "result:0:0 text offset=0 next_offset=321 has_more=false\n8: two 12\n312: {}x7\n320: last 3",
            "é".repeat(39)
        )
    );
    // Where there is no room for the next one, the search goes on with it.
    assert_eq!(
        read(&bench, json!({"ref": "result:0:0", "pattern": r"\d+", "limit": 12})).await,
        "result:0:0 text offset=0 next_offset=312 has_more=true\n8: two 12"
    );
    assert_eq!(
        read(&bench, json!({"ref": "result:0:0", "pattern": "^last", "offset": 312})).await,
        "result:0:0 text offset=312 next_offset=321 has_more=false\n315: last 3"
    );
    assert_eq!(
        read(&bench, json!({"ref": "result:0:0", "pattern": "none"})).await,
        "result:0:0 text offset=0 next_offset=321 has_more=false\n"
    );
}

#[tokio::test]
async fn a_pattern_finds_its_way_through_one_long_line() {
    let bench = Bench::new();
    let mut long = String::new();
    let mut places = Vec::new();
    for number in 0..3_000 {
        long.push_str(&"é,".repeat(100 + number % 7));
        if number % 500 == 499 {
            places.push(long.chars().count());
            long.push_str("needle");
        }
    }
    let artifact = kept(&bench, &long, "{}");
    fill(&bench, [result("t", "cut", Some(artifact))]);
    for pattern in ["needle", r"(?<=,)needle(?=é|$)"] {
        let text = read(&bench, json!({"ref": "result:0:0", "pattern": pattern})).await;
        let found: Vec<usize> =
            text.lines().skip(1).filter_map(|line| line.split_once(": ")?.0.parse().ok()).collect();
        assert_eq!(found, places, "{pattern}");
    }
}

#[tokio::test]
async fn a_line_of_any_length_is_one_line_to_a_pattern() {
    let bench = Bench::new();
    let long = format!("{}Q{}Z{}", "a".repeat(63_000), "b".repeat(3_000), "c".repeat(100_000));
    fill(&bench, [result("t", &long, None)]);
    for (pattern, expected) in [
        ("Qb+Z", vec![63_000]),
        ("Q[^Z]*Z", vec![63_000]),
        ("^c", vec![]),
        (r"\bc", vec![]),
        ("^a", vec![0]),
        ("c$", vec![166_001]),
        ("(?<!a)a", vec![0]),
        ("(?<=a)Q", vec![63_000]),
        ("(?<!b)Z", vec![]),
        ("Z(?=c)", vec![66_001]),
    ] {
        let mut places = Vec::new();
        let mut offset = 0;
        loop {
            let arguments = json!({"ref": "result:0:0", "pattern": pattern, "offset": offset});
            let [tool, _] = tools(&bench.parts, Presence::Always);
            let page = bench.call(&*tool, arguments).await.unwrap().data;
            let lines = page["content"].as_str().unwrap().lines();
            places.extend(lines.filter_map(|line| line.split_once(": ")?.0.parse::<u64>().ok()));
            offset = page["next_offset"].as_u64().unwrap();
            if page["has_more"] == false {
                break;
            }
        }
        assert_eq!(places, expected, "{pattern}");
    }
    let text = read(&bench, json!({"ref": "result:0:0", "pattern": "(?<=a)Q"})).await;
    assert!(text.contains("\n[lines of more than 4,096 bytes were searched in parts"), "{text}");
    let text = read(&bench, json!({"ref": "result:0:0", "pattern": "Q"})).await;
    assert!(!text.contains("in parts"), "{text}");
}

#[tokio::test]
async fn a_pointer_takes_a_value_out_of_json() {
    let bench = Bench::new();
    let native = json!({"structuredContent": {"items": [{"name": "añb"}, {"n": [1, 2]}]}});
    let artifact = kept(&bench, "text", &native.to_string());
    fill(&bench, [result("t", "cut", Some(artifact)), result("t", "{\"a/b\": {\"~\": 5}}", None)]);
    let raw =
        |pointer: &str| json!({"ref": "result:0:0", "representation": "raw", "pointer": pointer});
    for (arguments, expected) in [
        (
            raw("/structuredContent/items/0/name"),
            "result:0:0 raw offset=0 next_offset=3 has_more=false\nañb",
        ),
        (
            raw("/structuredContent/items/1"),
            "result:0:0 raw offset=0 next_offset=13 has_more=false\n{\"n\": [1, 2]}",
        ),
        (
            raw("/structuredContent/items/1"),
            "result:0:0 raw offset=0 next_offset=13 has_more=false\n{\"n\": [1, 2]}",
        ),
        (
            json!({"ref": "result:1:0", "pointer": "/a~1b/~0"}),
            "result:1:0 text offset=0 next_offset=1 has_more=false\n5",
        ),
        (
            raw("/structuredContent/items/7"),
            "Error[CONTEXT_REPRESENTATION_UNAVAILABLE]: the pointer leads to nothing; at /structuredContent/items is an array of 2 items",
        ),
        (
            raw("/structured"),
            "Error[CONTEXT_REPRESENTATION_UNAVAILABLE]: the pointer leads to nothing; at the top is an object with structuredContent",
        ),
        (
            raw("items"),
            "Error[CONTEXT_REPRESENTATION_UNAVAILABLE]: a pointer is empty or begins with `/`, such as /items/0/name",
        ),
    ] {
        assert_eq!(read(&bench, arguments.clone()).await, expected, "{arguments}");
    }
    let text = read(&bench, json!({"ref": "result:0:0", "pointer": ""})).await;
    assert!(
        text.starts_with(
            "Error[CONTEXT_REPRESENTATION_UNAVAILABLE]: a pointer leads into JSON, and this is none"
        ),
        "{text}"
    );
}

#[test]
fn both_are_read_only_and_never_ask() {
    let bench = Bench::new();
    for tool in tools(&bench.parts, Presence::Always) {
        let definition = tool.definition();
        assert_eq!(definition.group, "context");
        assert_eq!(definition.max_result_chars, 12_000);
        assert!(definition.traits().read_only);
        assert_eq!(definition.capabilities, [Capability::Read].into());
    }
}
