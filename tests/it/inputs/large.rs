//! Two million bytes of a result: what a client gets of it, and the rest byte for byte.

use serde_json::{Value, json};

use super::with_rough;
use crate::artifacts::pages;
use crate::fixture::session;
use crate::session::{Session, text};

const BYTES: usize = 2_000_000;
/// The most characters of text that a client gets at once.
const LIMIT: usize = 50_000;

fn remarks(result: &Value) -> &Value {
    &result["_meta"]["iris/result"]
}

/// Returns how many characters of text the content of a result has.
fn characters(result: &Value) -> usize {
    let blocks = result["content"].as_array().unwrap();
    blocks.iter().filter_map(|block| block["text"].as_str()).map(|text| text.chars().count()).sum()
}

/// Reads a resource to its end, in slices of this length.
fn slices(session: &mut Session, uri: &str, limit: usize) -> Vec<u8> {
    pages(|uri| session.request("resources/read", &json!({"uri": uri})), uri, limit)
}

/// Reads a reference from an offset on, as far as one answer goes.
fn context(session: &mut Session, reference: &str, offset: usize) -> String {
    let arguments = json!({"ref": reference, "offset": offset, "limit": 8000});
    let result = session.call("context_read", &arguments);
    remarks(&result)["data"]["content"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
}

/// Texts of two million bytes: of one line, of many, and JSON without and with line ends.
fn texts() -> [(&'static str, String); 4] {
    let padded = |mut text: String, end: &str| {
        text.push_str(&"p".repeat(BYTES - text.len() - end.len()));
        text + end
    };
    let needle = |at: usize| format!("{}needle{}", "x".repeat(at), "y".repeat(at));
    let lines: Vec<String> = (0..60_000).map(|n| format!("line {n:07} é☃ of many\n")).collect();
    let rows: Vec<Value> =
        (0..40_000).map(|n| json!({"row": n, "name": format!("ü{n}")})).collect();
    let rows = json!({"needle": true, "rows": rows});
    [
        ("one line", padded(needle(700_000), "")),
        ("many lines", padded(lines.concat() + "needle\n", "")),
        ("JSON", padded(rows.to_string(), "\n")),
        ("tall JSON", padded(serde_json::to_string_pretty(&json!({"needle": [1]})).unwrap(), "\n")),
    ]
}

#[test]
fn two_million_bytes_of_text_are_a_preview_and_slices_that_are_exact() {
    let home = with_rough(json!({"tools": ["say"]}));
    let mut session = session(&home, &["--context", "on"]);
    for (round, (kind, expected)) in texts().iter().enumerate() {
        assert_eq!(expected.len(), BYTES, "{kind}");
        let result = session.call("mcp__up__say", &json!({"text": expected}));
        assert!(characters(&result) <= LIMIT, "{kind}: {}", characters(&result));
        assert!(expected.starts_with(&text(&result)[..1_000]), "{kind}");
        let uri = remarks(&result)["artifact"]["text_uri"].as_str().unwrap().to_owned();
        for limit in [1_000_000, 77_777] {
            assert!(slices(&mut session, &uri, limit) == expected.as_bytes(), "{kind} by {limit}");
        }
        // The context tools are calls as well: each round has four messages before its result.
        let reference = format!("result:{}:0", 8 * round + 1);
        for offset in [0, 699_000, 1_400_000] {
            let part: String = expected.chars().skip(offset).take(8_000).collect();
            assert_eq!(context(&mut session, &reference, offset), part, "{kind} from {offset}");
        }
    }
}

#[test]
fn a_pattern_finds_its_place_in_two_million_bytes() {
    let home = with_rough(json!({"tools": ["say"]}));
    for (kind, whole) in texts() {
        let mut session = session(&home, &["--context", "on"]);
        session.call("mcp__up__say", &json!({"text": whole}));
        // One that has to go back sees long lines in parts.
        let patterns: &[&str] =
            if kind == "many lines" { &["needle", "needle(?!less)"] } else { &["needle"] };
        for pattern in patterns {
            let arguments = json!({"ref": "result:1:0", "pattern": pattern});
            let found = session.call("context_read", &arguments);
            let hit = text(&found).lines().nth(1).unwrap_or_else(|| panic!("{kind}: {found}"));
            let place: usize = hit.split(':').next().unwrap().trim().parse().unwrap();
            let from: String = whole.chars().skip(place).take(6).collect();
            assert_eq!(from, "needle", "{kind}: {hit:.200}");
            assert!(hit.contains("needle"), "{kind}: {hit:.200}");
        }
    }
}

#[test]
fn two_million_bytes_of_structured_content_are_kept_whole() {
    let object = json!({"type": "object"});
    let promise = json!({"name": "promise", "inputSchema": object, "outputSchema": object});
    let home = with_rough(json!({"tools": ["structure", promise]}));
    let mut session = session(&home, &["--context", "on"]);
    let rows: Vec<Value> = (0..20_000).map(|n| json!({"n": n, "text": "é".repeat(40)})).collect();
    let data = json!({ "rows": rows });
    assert!(data.to_string().len() > BYTES);
    let result = session.call("mcp__up__structure", &json!({"data": data}));
    assert!(characters(&result) <= LIMIT);
    assert!(result.to_string().len() < 2 * LIMIT, "no part of it is there in full");
    let uri = remarks(&result)["artifact"]["uri"].as_str().unwrap().to_owned();
    let native = slices(&mut session, &uri, 1_000_000);
    let native: Value = serde_json::from_slice(&native).unwrap();
    assert_eq!(native["structuredContent"], data);
    assert_eq!(native["content"][0]["text"], r#"["rough", "structure"]"#);
    let arguments = json!({"ref": "result:1:0", "representation": "raw", "pointer": "/structuredContent/rows/19999/n"});
    assert!(text(&session.call("context_read", &arguments)).ends_with("\n19999"));
    // What a tool promises by its schema cannot be left out.
    let result = session.call("mcp__up__promise", &json!({"data": data}));
    assert_eq!(result["structuredContent"], data);
    assert!(characters(&result) <= LIMIT);
}
