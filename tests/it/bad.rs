//! Bad input of clients and upstreams, as tables: bytes in, what comes of them, and life after.
//!
//! In the tables `\xNN` is a byte and `<x*N>` is `x` so many times, so that what is long or no text
//! can be written down.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::binary::Gateway;
use crate::fixture::{Home, script};
use crate::session::{Session, hello, modern};
use crate::web::Web;

/// How many rows of a table are tried at once.
const LANES: usize = 4;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table<Row> {
    row: Vec<Row>,
}

/// What a client writes to our standard input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lines {
    what: String,
    /// What was said before: nothing, or the handshake of an era.
    #[serde(default)]
    from: From,
    send: Vec<String>,
    /// The answers, in any order: an id, then `ok`, a code of JSON-RPC, or one of ours.
    #[serde(default)]
    get: Vec<String>,
    /// What one of the answers says.
    #[serde(default)]
    says: String,
    #[serde(default)]
    arguments: Vec<String>,
    /// Nothing can come after it.
    #[serde(default)]
    last: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum From {
    #[default]
    Fresh,
    Legacy,
    Modern,
}

/// A request over HTTP.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    what: String,
    #[serde(default)]
    from: From,
    #[serde(default = "post")]
    method: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: String,
    status: u16,
    /// The code of JSON-RPC, or `ok`.
    #[serde(default)]
    get: String,
    #[serde(default)]
    says: String,
}

fn post() -> String {
    "POST".to_owned()
}

/// What an upstream answers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    what: String,
    /// The method that is answered so.
    on: String,
    write: Vec<String>,
    #[serde(default)]
    then: String,
    /// What the call of the tool `bad` comes to: `ok`, or a code.
    get: String,
    #[serde(default)]
    says: String,
    /// How often the server was started when all is done.
    #[serde(default = "once")]
    starts: usize,
    /// How often it was called; never more than once.
    #[serde(default = "once")]
    calls: usize,
}

fn once() -> usize {
    1
}

fn table<Row: DeserializeOwned>(text: &str) -> Vec<Row> {
    let table: Table<Row> = toml::from_str(text).unwrap_or_else(|error| panic!("{error}"));
    table.row
}

/// Makes bytes of what a table says.
fn expand(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '<']) {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at..];
        let byte =
            rest.strip_prefix("\\x").and_then(|hex| u8::from_str_radix(hex.get(..2)?, 16).ok());
        let repeated = rest.strip_prefix('<').and_then(|inner| {
            let (inner, after) = inner.split_once('>')?;
            let (text, count) = inner.rsplit_once('*')?;
            Some((expand(text).repeat(count.parse().ok()?), after))
        });
        match (byte, repeated) {
            (Some(byte), _) => {
                bytes.push(byte);
                rest = &rest[4..];
            }
            (None, Some((text, after))) => {
                bytes.extend_from_slice(&text);
                rest = after;
            }
            (None, None) => {
                bytes.push(rest.as_bytes()[0]);
                rest = &rest[1..];
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// Says what an answer is: its id and how it went.
fn told(message: &Value) -> String {
    let outcome = match (message.get("error"), &message["result"]) {
        (Some(error), _) => error["code"].to_string(),
        (None, result) if result["isError"] == true => {
            result["_meta"]["iris/result"]["code"].as_str().unwrap_or("isError").to_owned()
        }
        (None, _) => "ok".to_owned(),
    };
    format!("{} {outcome}", message["id"])
}

/// Collects what is wrong with the rows of a table, so that all of it is seen at once.
#[derive(Default)]
struct Wrong(String);

impl Wrong {
    fn check(&mut self, what: &str, name: &str, found: &str, expected: &str) {
        if found != expected {
            writeln!(self.0, "{what}: {name}\n  is        {found}\n  should be {expected}")
                .expect("to a string");
        }
    }

    fn says(&mut self, what: &str, found: &str, words: &str) {
        if !found.contains(words) {
            writeln!(self.0, "{what}\n  says     {found}\n  and not {words}").expect("to a string");
        }
    }
}

impl Drop for Wrong {
    fn drop(&mut self) {
        assert!(std::thread::panicking() || self.0.is_empty(), "\n{}", self.0);
    }
}

/// Runs rows that wait more than they work, a few at a time.
fn side_by_side<Row: Sync>(rows: Vec<Row>, run: fn(&Row, &mut Wrong)) {
    let rows = &rows;
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            scope.spawn(move || {
                let mut wrong = Wrong::default();
                for row in rows.iter().skip(lane).step_by(LANES) {
                    run(row, &mut wrong);
                }
            });
        }
    });
}

fn run_lines(row: &Lines, wrong: &mut Wrong) {
    let home = Home::new();
    std::fs::create_dir_all(home.file("workspace")).expect("made");
    std::fs::write(home.file("workspace/a.txt"), "one\n").expect("written");
    let workspace = home.path("workspace");
    let base = ["--workspace", &workspace, "--log", "off"].map(str::to_owned);
    let mut session = Session::start(&[&base[..], &row.arguments].concat());
    match row.from {
        From::Fresh => {}
        From::Legacy => drop(session.initialize()),
        From::Modern => drop(session.modern("server/discover", &json!({}))),
    }
    for line in &row.send {
        session.bytes(&[&expand(line)[..], b"\n"].concat());
    }
    let mut got = Vec::new();
    if row.last {
        session.close();
    } else {
        let (method, params) = match row.from {
            From::Fresh => ("initialize", hello("2025-11-25")),
            From::Legacy => ("ping", json!({})),
            From::Modern => ("server/discover", modern(json!({}))),
        };
        session.send(&json!({"jsonrpc": "2.0", "id": "alive", "method": method, "params": params}));
        while got.len() <= row.get.len() || !got.iter().any(|it: &Value| it["id"] == "alive") {
            let Some(message) = session.heard() else {
                wrong.check(&row.what, "nothing more came after", &json!(got).to_string(), "");
                break;
            };
            got.push(message);
        }
        session.close();
    }
    let (exit, _, rest) = session.end();
    got.extend(rest);
    let alive = got.iter().position(|message| message["id"] == "alive");
    let alive = alive.map(|at| got.remove(at));
    wrong.check(&row.what, "exit", &format!("{exit:?}"), "Some(0)");
    if !row.last {
        let alive = alive.as_ref().map(told).unwrap_or_default();
        wrong.check(&row.what, "the next request", &alive, "\"alive\" ok");
    }
    let mut found: Vec<String> = got.iter().map(told).collect();
    let expand = |text: &String| String::from_utf8(expand(text)).expect("text");
    let mut expected: Vec<String> = row.get.iter().map(expand).collect();
    found.sort();
    expected.sort();
    wrong.check(&row.what, "answers", &found.join(" | "), &expected.join(" | "));
    wrong.says(&row.what, &json!(got).to_string(), &row.says);
    wrong.check(&row.what, "standard error", session.said().trim(), "");
}

#[test]
fn whatever_a_client_writes_is_answered_and_the_next_request_is_served() {
    side_by_side(table(include_str!("bad/lines.toml")), run_lines);
}

#[test]
fn whatever_a_client_posts_is_answered_and_the_next_request_is_served() {
    let rows: Vec<Request> = table(include_str!("bad/requests.toml"));
    let home = Home::new();
    std::fs::create_dir_all(home.file("workspace")).expect("made");
    let gateway =
        Gateway::start(&["--workspace", &home.path("workspace"), "--max-message-bytes", "100000"]);
    let mut wrong = Wrong::default();
    let mut legacy = Web::new(&gateway.url);
    legacy.initialize();
    for row in &rows {
        let mut web = match row.from {
            From::Fresh => Web::new(&gateway.url),
            From::Legacy => legacy.clone(),
            From::Modern => Web::new(&gateway.url).header("mcp-protocol-version", "2026-07-28"),
        };
        for (name, value) in &row.headers {
            web = web.header(name, value);
        }
        if !row.path.is_empty() {
            web = web.at(&row.path);
        }
        let reply = web.open_bytes(&row.method, &expand(&row.body));
        wrong.check(&row.what, "status", &reply.status.to_string(), &row.status.to_string());
        let body = reply.text();
        wrong.says(&row.what, &body, &row.says);
        if !row.get.is_empty() {
            let message = body.lines().find_map(|line| {
                let line = line.strip_prefix("data:").unwrap_or(line).trim();
                serde_json::from_str::<Value>(line).ok().filter(Value::is_object)
            });
            let outcome = message.as_ref().map_or_else(|| body.clone(), told);
            let outcome = outcome.split_once(' ').map_or(outcome.as_str(), |(_, outcome)| outcome);
            wrong.check(&row.what, "answer", outcome, &row.get);
        }
        let next = Web::new(&gateway.url).modern("tools/list", &json!({}));
        wrong.check(&row.what, "the next request", &told(&next), "1 ok");
        let next = legacy.request("tools/list", &json!({}));
        wrong.says(&row.what, &told(&next), " ok");
    }
}

fn run_answer(row: &Answer, wrong: &mut Wrong) {
    let home = Home::new();
    let options = json!({
        "on": row.on, "write": row.write, "then": row.then, "ledger": home.path("raw"),
    });
    let raw = json!({
        "command": "python3", "args": [script("raw.py"), options.to_string()],
        "tool_timeout_sec": 3, "startup_timeout_sec": 5
    });
    let other = home.server(json!({"tools": ["echo"]}));
    home.serve(json!({"raw": raw, "other": other}));
    let arguments =
        [home.arguments(), vec!["--max-message-bytes".into(), "100000".into()]].concat();
    let mut session = Session::start(&arguments);
    session.initialize();
    let bad = json!({"name": "mcp__raw__bad", "arguments": {}});
    let answer = session.request("tools/call", &bad);
    let outcome = told(&answer);
    let outcome = outcome.split_once(' ').map_or("", |(_, outcome)| outcome);
    wrong.check(&row.what, "the call", outcome, &row.get);
    let all = format!("{answer} {}", session.said());
    wrong.says(&row.what, &all, &row.says);
    let other = session.call("mcp__other__echo", &json!({"text": "other"}));
    wrong.check(&row.what, "another server", crate::session::text(&other), "other");
    if row.get != "-32602" {
        let good = session.call("mcp__raw__good", &json!({}));
        wrong.check(&row.what, "the next call", crate::session::text(&good), "good");
    }
    let ledger = std::fs::read_to_string(home.file("raw")).unwrap_or_default();
    let noted = |line: &str| ledger.lines().filter(|noted| *noted == line).count().to_string();
    wrong.check(&row.what, "starts", &noted("start"), &row.starts.to_string());
    wrong.check(&row.what, "calls", &noted("call bad"), &row.calls.to_string());
    session.close();
    wrong.check(&row.what, "exit", &format!("{:?}", session.end().0), "Some(0)");
}

#[test]
fn whatever_an_upstream_answers_its_call_ends_and_the_next_one_works() {
    side_by_side(table(include_str!("bad/answers.toml")), run_answer);
}
