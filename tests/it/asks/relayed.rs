//! What an upstream asks before it gives a prompt or a resource.

use serde_json::{Value, json};

use super::{NOTHING_BUT_OURS, answer_to, can, gateway, go_on, is_answered, is_asked, questions};
use crate::fixture::Home;
use crate::session::{Session, hello, modern};
use crate::web::Web;

const PROMPT: &str = "prompts/get";
const READ: &str = "resources/read";

fn home(era: &str, asks: Value) -> Home {
    Home::with_up(json!({
        "era": era,
        "prompts": [{"name": "curious"}, {"name": "plain"}],
        "resources": [{"uri": "ask://one", "name": "one"}, {"uri": "ask://two", "name": "two"}],
        "asks": asks,
    }))
}

fn prompt() -> Value {
    json!({"name": "mcp__up__curious"})
}

fn resource() -> Value {
    json!({"uri": "ask://one"})
}

/// What can be asked about in each era: over standard streams, one of the older has but one thread
/// to read with.
fn cases() -> [(&'static str, &'static str, Value); 3] {
    [("legacy", PROMPT, prompt()), ("modern", PROMPT, prompt()), ("modern", READ, resource())]
}

/// Starts a client of the older era that can be asked.
fn older(home: &Home) -> Session {
    let mut session = Session::start(&home.arguments());
    let mut hello = hello("2025-11-25");
    hello["capabilities"] = can();
    session.request("initialize", &hello);
    session.notify("notifications/initialized", &json!({}));
    session
}

#[test]
fn an_older_client_is_asked_by_requests() {
    for (era, method, params) in cases() {
        let home = home(era, questions());
        let mut session = older(&home);
        let id = session.ask(method, &params);
        for _ in 0..4 {
            let is_news = |message: &Value| message.get("id").is_none();
            let asked = std::iter::repeat_with(|| session.read()).find(|said| !is_news(said));
            let asked = asked.expect("endless");
            is_asked(&asked);
            let answer = answer_to(&asked);
            session.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}));
        }
        let answer = session.answer(id);
        is_answered(&answer["result"], &format!("{era} {method}"));
        assert!(answer["result"].get("resultType").is_none(), "{answer}");
    }
}

#[test]
fn a_newer_client_is_asked_by_the_answer_to_its_request() {
    for (era, method, params) in cases() {
        let home = home(era, questions());
        let gateway = gateway(&home, &[]);
        let mut web = Web::new(&gateway.url);
        let mut session = Session::start(&home.arguments());
        let expected = if era == "legacy" { 5 } else { 2 };
        let no_state_of_theirs = |answer: Value| {
            let state = answer["result"]["requestState"].as_str();
            assert!(state.is_none_or(|state| state != "sealed"), "{answer}");
            answer
        };
        let (result, times) =
            go_on(params.clone(), |params| no_state_of_theirs(session.request(method, params)));
        is_answered(&result, era);
        assert_eq!(
            (&result["resultType"], times),
            (&json!("complete"), expected),
            "{era} {method}"
        );
        let (result, _) =
            go_on(params, |params| no_state_of_theirs(web.ask_as(method, params).answer()));
        is_answered(&result, era);
    }
}

/// Makes a request of the newer era that asks, and returns what goes on with it.
#[track_caller]
fn parked(session: &mut Session, method: &str, params: Value) -> Value {
    let mut params = modern(params);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = can();
    let answer = session.request(method, &params);
    let asked = answer["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{answer}"));
    let answers = asked.iter().map(|(key, asked)| (key.clone(), answer_to(asked)));
    params["inputResponses"] = Value::Object(answers.collect());
    params["requestState"] = answer["result"]["requestState"].clone();
    params
}

#[test]
fn a_state_holds_once_and_for_its_own_request() {
    let home = home("modern", questions());
    let mut session = Session::start(&home.arguments());
    let void = |answer: Value| {
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert_eq!(answer["error"]["data"]["code"], "REQUEST_STATE_INVALID", "{answer}");
    };
    let params = parked(&mut session, READ, resource());
    let mut other = params.clone();
    other["uri"] = "ask://two".into();
    void(session.request(READ, &other));
    let mut theirs = params.clone();
    theirs["requestState"] = "sealed".into();
    void(session.request(READ, &theirs));
    // The state of a resource is none of a prompt.
    let mut other = modern(prompt());
    other["requestState"] = params["requestState"].clone();
    void(session.request(PROMPT, &other));
    is_answered(&session.request(READ, &params)["result"], READ);
    void(session.request(READ, &params));
    assert_eq!(home.noted("read ask://one"), 2, "{:?}", home.ledger());
    assert_eq!(home.noted("read ask://two"), 0);
}

#[test]
fn a_state_is_none_of_another_principals() {
    let home = home("modern", questions());
    // Each hash is that of `printf %s alice`, or `bob`, which is the token.
    let tokens = home.write(
        "tokens",
        "alice sha256:2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90\n\
         bob sha256:81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd9ec58ce9\n",
    );
    let gateway = gateway(&home, &["--token-file", &tokens]);
    let mut params = modern(resource());
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = can();
    let mut alice = Web::new(&gateway.url).bearer("alice");
    let mut bob = Web::new(&gateway.url).bearer("bob");
    let answer = alice.ask_as(READ, &params).answer();
    params["requestState"] = answer["result"]["requestState"].clone();
    let answer = bob.ask_as(READ, &params).answer();
    assert_eq!(answer["error"]["data"]["code"], "REQUEST_STATE_INVALID", "{answer}");
}

#[test]
fn a_client_that_cannot_be_asked_declines_or_gets_an_error() {
    let home = home("modern", json!([questions()[0]]));
    let mut session = Session::start(&home.arguments());
    session.initialize();
    let answer = session.request(PROMPT, &prompt());
    assert_eq!(answer["result"]["content"][0]["text"], r#"{"q0": {"action": "decline"}}"#);
    let home = self::home("modern", json!([questions()[2]]));
    let mut session = Session::start(&home.arguments());
    session.initialize();
    let answer = session.request(READ, &resource());
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    assert_eq!(answer["error"]["data"]["code"], "MCP_INTERACTION_UNSUPPORTED", "{answer}");
    // The server is told what its client can be asked.
    home.wait_for(NOTHING_BUT_OURS);
}

#[test]
fn one_that_nobody_comes_back_for_is_given_up() {
    let home = home("legacy", questions());
    let config = home.write("server.toml", "[approval]\ntimeout_seconds = 0.3\n");
    let mut arguments = home.arguments();
    arguments.extend(["--config".to_owned(), config]);
    let mut session = Session::start(&arguments);
    let params = parked(&mut session, PROMPT, prompt());
    home.wait_for("cancelled curious");
    let late = session.request(PROMPT, &params);
    assert_eq!(late["error"]["data"]["code"], "REQUEST_STATE_INVALID", "{late}");
}
