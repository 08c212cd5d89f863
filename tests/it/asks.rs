//! What an upstream asks in the middle of a call, asked of the client, in every pair of eras.

mod relayed;

use std::time::Duration;

use serde_json::{Value, json};

use crate::binary::Gateway;
use crate::fixture::{Home, eventually};
use crate::session::{Session, code, hello, modern, text};
use crate::web::Web;

const ASK: &str = "mcp__up__ask";

fn can() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})
}

/// A question of each kind, with what only its own kind has.
fn questions() -> Value {
    json!([
        {"method": "elicitation/create", "params": {
            "message": "ok?",
            "requestedSchema": {"type": "object", "properties": {"ok": {"type": "boolean", "novel": 1}}},
            "novel": {"z": 1, "a": 2},
        }},
        {"method": "elicitation/create", "params": {
            "mode": "url", "url": "https://example.com/", "elicitationId": "e-1", "message": "open?",
        }},
        {"method": "sampling/createMessage", "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "hi", "novel": true}}],
            "maxTokens": 5,
        }},
        {"method": "roots/list", "params": {}},
    ])
}

/// What a client answers to each.
fn answer_to(question: &Value) -> Value {
    match (question["method"].as_str(), question["params"]["mode"].as_str()) {
        (Some("elicitation/create"), Some("url")) => json!({"action": "accept"}),
        (Some("elicitation/create"), None) => json!({"action": "accept", "content": {"ok": true}}),
        (Some("sampling/createMessage"), None) => json!({
            "role": "assistant", "model": "m", "content": {"type": "text", "text": "sampled"},
        }),
        (Some("roots/list"), None) => json!({"roots": [{"uri": "file:///x", "name": "x"}]}),
        other => panic!("not a question of ours: {other:?}"),
    }
}

fn answers() -> Vec<Value> {
    questions().as_array().unwrap().iter().map(answer_to).collect()
}

/// Checks that what came is what the upstream asked.
#[track_caller]
fn is_asked(asked: &Value) {
    let same = |question: &&Value| {
        question["method"] == asked["method"]
            && question["params"]
                .as_object()
                .unwrap()
                .iter()
                .all(|(key, value)| asked["params"][key] == *value)
    };
    assert!(questions().as_array().unwrap().iter().any(|question| same(&question)), "{asked}");
}

fn home(era: &str) -> Home {
    Home::with_up(json!({"tools": ["ask"], "era": era}))
}

fn call() -> Value {
    json!({"name": ASK, "arguments": {"asks": questions()}})
}

/// Checks that the upstream's tool has every answer, and ran as often as it should.
#[track_caller]
fn is_answered(result: &Value, era: &str) {
    let heard: Value = serde_json::from_str(text(result)).unwrap();
    let heard: Vec<Value> = match heard {
        Value::Array(answers) => {
            answers.into_iter().map(|mut answer| answer["result"].take()).collect()
        }
        Value::Object(answers) => answers.into_iter().map(|(_, answer)| answer).collect(),
        other => panic!("no answers: {other}"),
    };
    assert_eq!(heard, answers(), "{era}");
}

/// What a server of the newer era is told where the client can be asked nothing.
const NOTHING_BUT_OURS: &str = r#"{"experimental": {"iris/whole-results": {}}}"#;

#[test]
fn an_older_client_is_asked_by_requests() {
    for era in ["legacy", "modern"] {
        let home = home(era);
        let mut session = Session::start(&home.arguments());
        let mut hello = hello("2025-11-25");
        hello["capabilities"] = can();
        session.request("initialize", &hello);
        session.notify("notifications/initialized", &json!({}));
        let id = session.ask("tools/call", &call());
        for _ in 0..4 {
            let asked = session.read();
            is_asked(&asked);
            session
                .send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer_to(&asked)}));
        }
        is_answered(&session.answer(id)["result"], era);
        let runs = if era == "legacy" { 1 } else { 2 };
        assert_eq!(home.noted("ask"), runs, "{era}");
    }
}

#[test]
fn an_older_client_is_asked_on_its_stream_over_http() {
    for era in ["legacy", "modern"] {
        let home = home(era);
        let gateway = gateway(&home, &[]);
        let mut web = Web::new(&gateway.url);
        let mut hello = hello("2025-11-25");
        hello["capabilities"] = can();
        web.initialize_as(&hello);
        let (id, mut reply) = web.ask("tools/call", &call());
        for _ in 0..4 {
            let asked = reply.event().expect("a question");
            is_asked(&asked);
            let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer_to(&asked)});
            assert_eq!(web.post(&answer).status, 202);
        }
        let answer = reply.event().expect("the answer");
        assert_eq!(answer["id"], id);
        is_answered(&answer["result"], era);
    }
}

/// Makes a request of the newer era as often as it asks for something; returns its result and how
/// often it was made.
#[track_caller]
fn go_on(params: Value, mut request: impl FnMut(&Value) -> Value) -> (Value, usize) {
    let mut params = modern(params);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = can();
    for times in 1.. {
        let answer = request(&params);
        let result = &answer["result"];
        if result["resultType"] != "input_required" {
            return (result.clone(), times);
        }
        let asked = result["inputRequests"].as_object().unwrap_or_else(|| panic!("{answer}"));
        let answers = asked.iter().map(|(key, asked)| {
            is_asked(asked);
            (key.clone(), answer_to(asked))
        });
        params["inputResponses"] = Value::Object(answers.collect());
        params["requestState"] = result["requestState"].clone();
    }
    unreachable!("it ends with an answer")
}

#[test]
fn a_newer_client_is_asked_by_the_answer_to_its_call() {
    for (era, expected) in [("legacy", 5), ("modern", 2)] {
        let home = home(era);
        let mut session = Session::start(&home.arguments());
        let (result, times) = go_on(call(), |params| session.request("tools/call", params));
        is_answered(&result, era);
        assert_eq!(times, expected, "{era}");
        // The older server's tool ran once, however often the call was made.
        assert_eq!(home.noted("ask"), if era == "legacy" { 1 } else { 2 }, "{era}");
    }
}

#[test]
fn a_newer_client_is_asked_over_http_too() {
    for era in ["legacy", "modern"] {
        let home = home(era);
        let gateway = gateway(&home, &[]);
        let mut web = Web::new(&gateway.url);
        let (result, _) = go_on(call(), |params| web.ask_as("tools/call", params).answer());
        is_answered(&result, era);
    }
}

fn gateway(home: &Home, more: &[&str]) -> Gateway {
    let arguments = home.arguments();
    let arguments: Vec<&str> =
        arguments.iter().map(String::as_str).chain(more.iter().copied()).collect();
    Gateway::start(&arguments)
}

#[test]
fn a_client_that_cannot_be_asked_declines() {
    let asks = json!([questions()[0], questions()[2]]);
    let home = home("legacy");
    let mut session = Session::start(&home.arguments());
    session.initialize();
    let result = session.call(ASK, &json!({"asks": asks}));
    let heard: Value = serde_json::from_str(text(&result)).unwrap();
    assert_eq!(heard[0]["result"], json!({"action": "decline"}));
    assert_eq!(heard[1]["error"]["code"], -32601, "{heard}");
    // A server of the newer era is told with the call what the client can be asked.
    let home = self::home("modern");
    let mut session = Session::start(&home.arguments());
    session.initialize();
    let result = session.call(ASK, &json!({"asks": asks}));
    assert_eq!(code(&result), "MCP_INTERACTION_UNSUPPORTED");
    home.wait_for(NOTHING_BUT_OURS);
    let result = session.call(ASK, &json!({"asks": [questions()[0]]}));
    assert_eq!(text(&result), r#"{"q0": {"action": "decline"}}"#);
}

/// Lets an older client that can do this answer one question of a server; returns what it was
/// asked, if it was, and what the server heard.
#[track_caller]
fn one_question(era: &str, can: &Value, question: &Value) -> (Option<Value>, Value) {
    let home = home(era);
    let mut session = Session::start(&home.arguments());
    let mut hello = hello("2025-11-25");
    hello["capabilities"] = can.clone();
    session.request("initialize", &hello);
    session.notify("notifications/initialized", &json!({}));
    let params = json!({"name": ASK, "arguments": {"asks": [question]}});
    let id = session.ask("tools/call", &params);
    let mut message = session.read();
    let asked = (message["id"] != id).then(|| {
        let asked = message.take();
        session.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer_to(&asked)}));
        message = session.answer(id);
        asked
    });
    (asked, serde_json::from_str(text(&message["result"])).unwrap())
}

#[test]
fn an_address_that_an_older_client_is_to_open_has_an_id() {
    let mut question = questions()[1].take();
    let (asked, _) = one_question("legacy", &can(), &question);
    assert_eq!(asked.unwrap()["params"]["elicitationId"], "e-1");
    // Servers of the newer era give it none.
    question["params"].as_object_mut().unwrap().remove("elicitationId");
    let (asked, heard) = one_question("modern", &can(), &question);
    assert!(asked.unwrap()["params"]["elicitationId"].is_string());
    assert_eq!(heard, json!({"q0": {"action": "accept"}}));
}

#[test]
fn a_client_is_shown_no_kind_of_elicitation_that_it_does_not_have() {
    let [form, address] = [0, 1].map(|index| questions()[index].take());
    for (modes, form_comes, address_comes) in [
        (json!({}), true, false),
        (json!({"form": {}}), true, false),
        (json!({"url": {}}), false, true),
        (json!({"form": {}, "url": {}}), true, true),
    ] {
        let can = json!({"elicitation": modes});
        for (question, comes) in [(&form, form_comes), (&address, address_comes)] {
            let (asked, heard) = one_question("legacy", &can, question);
            assert_eq!(asked.is_some(), comes, "{can}: {question}");
            if !comes {
                assert_eq!(heard[0]["result"], json!({"action": "decline"}), "{can}: {question}");
            }
        }
    }
}

/// A call of the newer era that has asked its first question.
fn parked(home: &Home, more: &[&str]) -> (Session, Value) {
    let mut arguments = home.arguments();
    arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
    let mut session = Session::start(&arguments);
    let mut params = modern(call());
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = can();
    let answer = session.request("tools/call", &params);
    params["requestState"] = answer["result"]["requestState"].clone();
    let asked = answer["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{answer}"));
    let answers = asked.iter().map(|(key, asked)| (key.clone(), answer_to(asked)));
    params["inputResponses"] = Value::Object(answers.collect());
    (session, params)
}

#[test]
fn a_state_of_a_call_that_waits_holds_once_and_for_its_own_arguments() {
    let home = home("legacy");
    let (mut session, params) = parked(&home, &[]);
    let mut other = params.clone();
    other["arguments"]["asks"] = json!([]);
    let refused = session.request("tools/call", &other);
    assert_eq!(refused["error"]["data"]["code"], "REQUEST_STATE_INVALID", "{refused}");
    // What is not answered is asked again.
    let mut silent = params.clone();
    silent["inputResponses"] = json!({});
    let again = session.request("tools/call", &silent);
    let asked = again["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(asked.len(), 1);
    is_asked(asked.values().next().unwrap());
    let replayed = session.request("tools/call", &params);
    assert_eq!(replayed["error"]["data"]["code"], "REQUEST_STATE_INVALID", "{replayed}");
    assert_eq!(home.noted("ask"), 1);
}

#[test]
fn a_call_that_nobody_comes_back_for_is_cancelled() {
    let home = home("legacy");
    let config = home.write("server.toml", "[approval]\ntimeout_seconds = 0.3\n");
    let (mut session, params) = parked(&home, &["--config", &config]);
    home.wait_for("cancelled ask");
    let late = session.request("tools/call", &params);
    assert_eq!(late["error"]["data"]["code"], "REQUEST_STATE_INVALID", "{late}");
    eventually("it is recorded", || session.said().contains("CANCELLED"));
    // Nothing waits for it at the end either.
    session.close();
    let (status, took, _) = session.end();
    assert_eq!(status, Some(0));
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn calls_that_wait_end_with_the_gateway() {
    let home = home("legacy");
    let (mut session, _) = parked(&home, &[]);
    session.close();
    let (status, took, _) = session.end();
    assert_eq!(status, Some(0));
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn the_time_a_person_takes_is_not_the_servers() {
    let home = Home::new();
    let mut up = home.server(json!({"tools": ["ask"]}));
    up["tool_timeout_sec"] = json!(1);
    home.serve(json!({"up": up}));
    let (mut session, params) = parked(&home, &[]);
    std::thread::sleep(Duration::from_millis(1_500));
    let next = session.request("tools/call", &params);
    assert_eq!(next["result"]["resultType"], "input_required", "{next}");
}

#[test]
fn nobody_is_asked_about_somebody_elses_call() {
    let home = Home::with_up(json!({"tools": ["ask", "slow"]}));
    let gateway = gateway(&home, &[]);
    let mut other = Web::new(&gateway.url);
    other.initialize();
    let slow = other.begin("tools/call", &json!({"name": "mcp__up__slow", "arguments": {}}));
    home.wait_for("slow");
    let mut web = Web::new(&gateway.url);
    let mut hello = hello("2025-11-25");
    hello["capabilities"] = can();
    web.initialize_as(&hello);
    let asks = json!({"name": ASK, "arguments": {"asks": [questions()[0]]}});
    let answer = web.request("tools/call", &asks);
    assert!(text(&answer["result"]).contains("calls of several clients are under way"), "{answer}");
    drop(slow);
}

#[test]
fn a_call_that_waits_for_a_person_keeps_nobody_from_the_server() {
    for era in ["legacy", "modern"] {
        let home = Home::with_up(json!({"tools": ["ask", "echo"], "era": era}));
        let config = home.write("server.toml", "[upstream.up]\nmax_concurrency = 1\n");
        let (mut session, params) = parked(&home, &["--config", &config]);
        let echo = json!({"name": "mcp__up__echo", "arguments": {"text": "heard"}});
        let answer = session.modern("tools/call", &echo);
        assert_eq!(text(&answer["result"]), "heard", "{era}");
        // And it takes its turn again.
        let next = session.request("tools/call", &params);
        assert!(next.get("error").is_none(), "{next}");
    }
}

#[test]
fn a_question_keeps_the_name_that_the_server_gives_it() {
    let home = home("modern");
    let mut session = Session::start(&home.arguments());
    let mut params = modern(call());
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = can();
    let answer = session.request("tools/call", &params);
    let asked = answer["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(asked.keys().collect::<Vec<_>>(), ["q0", "q1", "q2", "q3"]);
}
