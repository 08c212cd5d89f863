//! What upstream servers offer besides tools, as clients of both eras get it.

mod real;

use serde_json::{Value, json};

use crate::binary::Gateway;
use crate::fixture::{Home, eventually};
use crate::session::{Session, modern, text};
use crate::web::{Reply, Web};

const ERAS: [&str; 2] = ["legacy", "modern"];
const UPDATED: &str = "notifications/resources/updated";
const MESSAGE: &str = "notifications/message";

/// A client of an era, over a transport.
pub(crate) enum Client {
    Stdio(Session, bool),
    Http(Web, bool),
}

impl Client {
    /// Starts one of each kind before the same servers.
    pub(crate) fn all(arguments: &[String], gateway: &Gateway) -> [Self; 4] {
        let mut legacy = Session::start(arguments);
        legacy.initialize();
        let mut web = Web::new(&gateway.url);
        web.initialize();
        [
            Self::Stdio(legacy, false),
            Self::Stdio(Session::start(arguments), true),
            Self::Http(web, false),
            Self::Http(Web::new(&gateway.url), true),
        ]
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        match self {
            Self::Stdio(session, false) => session.request(method, params),
            Self::Stdio(session, true) => session.modern(method, params),
            Self::Http(web, false) => web.request(method, params),
            Self::Http(web, true) => web.modern(method, params),
        }
    }

    #[track_caller]
    pub(crate) fn get(&mut self, method: &str, params: &Value) -> Value {
        let mut answer = self.ask(method, params);
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].take()
    }

    pub(crate) fn is_modern(&self) -> bool {
        matches!(self, Self::Stdio(_, true) | Self::Http(_, true))
    }
}

fn serve(home: &Home) -> Gateway {
    let arguments = home.arguments();
    Gateway::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

fn rich(era: &str) -> Value {
    json!({
        "era": era,
        "tools": ["echo", "touch", "log", "add", "crash"],
        "prompts": [
            {"zeta": 1, "name": "plain", "icons": [{"src": "x", "novel": 1.50}], "arguments": "odd"},
            {"name": "odd name", "_meta": {"b": 1, "a": 2}},
            {"name": "refused"}, {"name": "slow"}, {"name": "steps"},
        ],
        "resources": [
            {"novel": {"z": 1, "a": 2}, "uri": "a://host/1", "annotations": {"audience": ["martian"], "priority": "high"}},
            {"uri": "ui://app/index.html", "name": "app", "_meta": {"ui": {"csp": []}}},
        ],
        "templates": [{"uriTemplate": "t://{id}/data", "name": "t", "odd": [1]}],
        "hidden": ["hidden://x"],
        "completes": true,
        "logs": true,
    })
}

/// Serves one server with everything, and one that has nothing but a tool.
fn home(era: &str) -> Home {
    let home = Home::new();
    let (up, bare) = (home.server(rich(era)), home.server(json!({"tools": ["echo"]})));
    home.serve(json!({"bare": bare, "up": up}));
    home
}

/// Does something as each kind of client before a server of each era.
fn everywhere(test: impl Fn(&Home, &mut Client, &str)) {
    for era in ERAS {
        let home = home(era);
        let gateway = serve(&home);
        for mut client in Client::all(&home.arguments(), &gateway) {
            test(&home, &mut client, era);
        }
    }
}

// ---- Lists ----------------------------------------------------------------------------------

#[test]
fn lists_come_through_as_they_are() {
    everywhere(|_, client, era| {
        let prompts = client.get("prompts/list", &json!({}));
        let mut expected = rich(era)["prompts"].take();
        let names = prompts["prompts"].as_array().unwrap().iter();
        let names: Vec<&str> = names.map(|prompt| prompt["name"].as_str().unwrap()).collect();
        assert_eq!(names[0], "mcp__up__plain");
        assert!(names[1].starts_with("mcp__up__odd_name__"), "{names:?}");
        for (index, name) in names.iter().enumerate() {
            expected[index]["name"] = (*name).into();
        }
        // Compared as text: the order of keys counts too.
        assert_eq!(prompts["prompts"].to_string(), expected.to_string());
        let resources = client.get("resources/list", &json!({}));
        assert_eq!(resources["resources"].to_string(), rich(era)["resources"].to_string());
        let templates = client.get("resources/templates/list", &json!({}));
        let theirs = &templates["resourceTemplates"].as_array().unwrap()[1..];
        assert_eq!(json!(theirs).to_string(), rich(era)["templates"].to_string());
        for list in [prompts, resources, templates] {
            assert_eq!(list.get("ttlMs").is_some(), client.is_modern(), "{list}");
            assert_eq!(list.get("resultType").is_some(), client.is_modern(), "{list}");
        }
    });
}

#[test]
fn long_lists_have_pages_on_both_sides() {
    let prompts: Vec<Value> = (0..2_500).map(|n| json!({"name": format!("p{n}")})).collect();
    let home = Home::with_up(json!({"prompts": prompts, "page": 1000}));
    let mut session = Session::start(&home.arguments());
    session.initialize();
    let first = session.request("prompts/list", &json!({}))["result"].take();
    assert_eq!(first["prompts"].as_array().unwrap().len(), 2_000);
    let rest = session.request("prompts/list", &json!({"cursor": first["nextCursor"]}));
    assert_eq!(rest["result"]["prompts"][499]["name"], "mcp__up__p2499");
    assert_eq!(rest["result"].get("nextCursor"), None);
    assert_eq!(home.noted("prompts 2000"), 1);
    for method in ["prompts/list", "resources/list", "resources/templates/list"] {
        let wrong = session.request(method, &json!({"cursor": "no such"}));
        assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    }
}

#[test]
fn a_list_that_fails_costs_no_other_one() {
    let home = Home::new();
    let mut options = rich("legacy");
    options["ails"] = json!(["prompts/list"]);
    options["resources"].as_array_mut().unwrap().push(json!({"name": "no address"}));
    home.serve(json!({"up": home.server(options)}));
    let mut session = Session::start(&home.arguments());
    session.initialize();
    assert_eq!(session.tools().len(), 5);
    let prompts = session.request("prompts/list", &json!({}));
    assert_eq!(prompts["result"]["prompts"], json!([]));
    let resources = session.request("resources/list", &json!({}));
    assert_eq!(resources["result"]["resources"].as_array().unwrap().len(), 2);
    let said = session.said();
    assert!(said.contains("prompts/list failed: prompts/list is ill (-32000)"), "{said}");
    assert!(said.contains("an entry of resources/list has no uri"), "{said}");
}

#[test]
fn a_list_that_changes_is_listed_anew_and_announced() {
    for era in ERAS {
        let home = home(era);
        let mut session = Session::start(&home.arguments());
        session.initialize();
        session.tools();
        session.request("prompts/list", &json!({}));
        let listening = Session::start(&home.arguments());
        let mut listening = listening_for(
            listening,
            &json!({"promptsListChanged": true, "resourcesListChanged": true}),
        );
        if era == "modern" {
            // Both gateways' servers have been told what to tell.
            eventually("both listen", || {
                home.ledger().iter().filter(|line| line.starts_with("listen")).count() == 2
            });
        }
        for (kind, method) in [("prompts", "prompts/list"), ("resources", "resources/list")] {
            let changed = format!("notifications/{kind}/list_changed");
            session.call("mcp__up__add", &json!({"kind": kind}));
            // The first news may be that the server is there at all.
            loop {
                wait_for(&mut session, &changed);
                let listed = session.request(method, &json!({}));
                if listed.to_string().contains("another") {
                    break;
                }
            }
            call_modern(&mut listening, "mcp__up__add", json!({"kind": kind}));
            let news = wait_for(&mut listening, &changed);
            assert_eq!(news["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
        }
    }
}

/// Opens a stream of changes, which has the id 1.
pub(crate) fn listening_for(mut session: Session, wanted: &Value) -> Session {
    let id = session.ask("subscriptions/listen", &modern(json!({"notifications": wanted})));
    assert_eq!(id, 1);
    let ack = wait_for(&mut session, "notifications/subscriptions/acknowledged");
    assert_eq!(&ack["params"]["notifications"], wanted);
    session.modern("tools/list", &json!({}));
    session
}

#[track_caller]
fn call_modern(session: &mut Session, name: &str, arguments: Value) -> Value {
    session.modern("tools/call", &json!({"name": name, "arguments": arguments}))
}

/// Returns the next message with a method, whether it has come already or not.
#[track_caller]
pub(crate) fn wait_for(session: &mut Session, method: &str) -> Value {
    if let Some(found) = session.aside.iter().position(|message| message["method"] == method) {
        return session.aside.remove(found);
    }
    loop {
        let message = session.read();
        if message["method"] == method {
            return message;
        }
        session.aside.push(message);
    }
}

// ---- Requests -------------------------------------------------------------------------------

#[test]
fn a_prompt_comes_through_as_it_is() {
    everywhere(|_, client, era| {
        let arguments = json!({"b": "1", "a": "2"});
        let meta = json!({"vendor/mine": {"z": 1, "a": 2}});
        let params = json!({"name": "mcp__up__plain", "arguments": arguments, "_meta": meta});
        let mut result = client.get("prompts/get", &params);
        let saw = result["_meta"]["vendor/saw"].take();
        assert_eq!((&saw["name"], &saw["arguments"]), (&json!("plain"), &arguments));
        assert_eq!(saw["_meta"]["vendor/mine"], meta["vendor/mine"], "{era}");
        assert_eq!(result["zeta"].to_string(), r#"{"b":1,"a":2}"#);
        let content = r#"{"type":"hologram","beams":[{"z":1,"a":2.5}]}"#;
        let message = format!(r#"[{{"role":"martian","content":{content},"novel":true}}]"#);
        assert_eq!(result["messages"].to_string(), message);
        assert_eq!(result.get("resultType").is_some(), client.is_modern(), "{result}");
    });
}

#[test]
fn an_error_comes_through_as_it_is() {
    everywhere(|_, client, _| {
        let refused = client.ask("prompts/get", &json!({"name": "mcp__up__refused"}));
        let expected = json!({"code": -32099, "message": "not this one", "data": {"hint": 1}});
        assert_eq!(refused["error"], expected);
        let unknown = client.ask("prompts/get", &json!({"name": "plain"}));
        assert_eq!(unknown["error"]["code"], -32602);
        assert_eq!(unknown["error"]["data"]["code"], "NOT_FOUND");
        let wrong = client.ask("prompts/get", &json!({"name": 7}));
        assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    });
}

#[test]
fn a_resource_is_read_where_it_is() {
    everywhere(|home, client, era| {
        // Listed; of a template; and known to nobody but its server.
        for uri in ["a://host/1", "ui://app/index.html", "t://7/data", "hidden://x"] {
            let result = client.get("resources/read", &json!({"uri": uri}));
            let content = json!({"uri": uri, "text": format!("text of {uri}"), "novel": [1, {"z": 1, "a": 2}]});
            assert_eq!(result["contents"], json!([content]), "{era}");
            assert!(result.get("odd").is_some_and(Value::is_null), "{result}");
            if client.is_modern() {
                assert_eq!(result["cacheScope"], "private");
                assert!(result["ttlMs"].is_u64(), "{result}");
            }
        }
        let missing = client.ask("resources/read", &json!({"uri": "a://host/2"}));
        let code = if client.is_modern() { -32602 } else { -32002 };
        assert_eq!(missing["error"]["code"], code, "{missing}");
        assert_eq!(missing["error"]["data"]["uri"], "a://host/2");
        // What is ours is asked of nobody else.
        let ours = "iris-artifact://results/none.txt";
        let missing = client.ask("resources/read", &json!({"uri": ours}));
        assert_eq!(missing["error"]["code"], code, "{missing}");
        assert_eq!(home.noted(&format!("read {ours}")), 0);
    });
}

#[test]
fn the_first_of_two_servers_has_the_address() {
    let home = Home::new();
    let both = json!([{"uri": "a://x", "name": "n"}]);
    let one =
        home.server(json!({"tools": ["echo"], "resources": both, "ails": ["resources/read"]}));
    let other = home.server(json!({"tools": ["echo"], "resources": both}));
    home.serve(json!({"a_first": one, "b_second": other}));
    let mut session = Session::start(&home.arguments());
    session.initialize();
    let listed = session.request("resources/list", &json!({}));
    assert_eq!(listed["result"]["resources"].as_array().unwrap().len(), 1);
    let read = session.request("resources/read", &json!({"uri": "a://x"}));
    let ill = json!({"code": -32000, "message": "resources/read is ill", "data": {"pulse": 180}});
    assert_eq!(read["error"], ill);
    let said = session.said();
    assert!(said.contains("b_second: a://x: a_first lists this address too"), "{said}");
}

#[test]
fn arguments_are_completed_where_they_belong() {
    everywhere(|_, client, _| {
        for (reference, theirs) in [
            (
                json!({"type": "ref/prompt", "name": "mcp__up__plain"}),
                json!({"type": "ref/prompt", "name": "plain"}),
            ),
            (
                json!({"type": "ref/resource", "uri": "t://{id}/data"}),
                json!({"type": "ref/resource", "uri": "t://{id}/data"}),
            ),
        ] {
            let argument = json!({"name": "id", "value": "x"});
            let params = json!({"ref": reference, "argument": argument});
            let result = client.get("completion/complete", &params);
            let completion = json!({"values": ["id=x!"], "hasMore": false, "novel": 1});
            assert_eq!(result["completion"], completion);
            assert_eq!(result["_meta"]["vendor/ref"], theirs);
        }
    });
}

#[test]
fn a_request_is_cancelled_reported_and_timed_like_a_call() {
    let home = Home::new();
    let mut up = home.server(rich("legacy"));
    up["tool_timeout_sec"] = json!(1);
    home.serve(json!({"up": up}));
    let mut session = Session::start(&home.arguments());
    session.initialize();
    session.tools();
    let params = json!({"name": "mcp__up__steps", "_meta": {"progressToken": "mine"}});
    session.request("prompts/get", &params);
    let news = wait_for(&mut session, "notifications/progress");
    assert_eq!(news["params"]["progressToken"], "mine");
    let id = session.ask("prompts/get", &json!({"name": "mcp__up__slow"}));
    home.wait_for("prompt slow");
    session.notify("notifications/cancelled", &json!({"requestId": id}));
    home.wait_for("cancelled slow");
    let late = session.request("prompts/get", &json!({"name": "mcp__up__slow"}));
    assert_eq!(late["error"]["code"], -32603, "{late}");
    assert_eq!(late["error"]["data"], json!({"code": "MCP_CALL_FAILED", "upstream": "up"}));
    eventually("both are given up", || home.noted("cancelled slow") == 2);
}

// ---- What upstreams say by themselves -------------------------------------------------------

#[test]
fn news_of_a_resource_go_to_those_who_want_them() {
    for era in ERAS {
        let home = home(era);
        let gateway = serve(&home);
        let mut one = Web::new(&gateway.url);
        one.initialize();
        one.request("tools/list", &json!({}));
        let mut other = one.clone();
        other = other.header("mcp-session-id", "").header("mcp-protocol-version", "");
        other.initialize();
        let (mut of_one, mut of_other) = (one.get(), other.get());
        let uri = json!({"uri": "a://host/1"});
        assert_eq!(one.request("resources/subscribe", &uri)["result"], json!({}));
        let ui = json!({"uri": "ui://app/index.html"});
        assert_eq!(other.request("resources/subscribe", &ui)["result"], json!({}));
        for uri in [&uri, &ui] {
            one.request("tools/call", &json!({"name": "mcp__up__touch", "arguments": uri}));
        }
        assert_eq!(update(&mut of_one), uri, "{era}");
        assert_eq!(update(&mut of_other), ui, "{era}");
        assert_eq!(one.request("resources/unsubscribe", &uri)["result"], json!({}));
        assert_eq!(one.request("resources/subscribe", &ui)["result"], json!({}));
        if era == "legacy" {
            home.wait_for("resources/unsubscribe a://host/1");
            assert_eq!(home.noted("resources/subscribe ui://app/index.html"), 1);
        }
        for uri in [&uri, &ui] {
            one.request("tools/call", &json!({"name": "mcp__up__touch", "arguments": uri}));
        }
        assert_eq!(update(&mut of_one), ui, "{era}");
        let nobody = json!({"uri": "iris-artifact://results/none.txt"});
        assert_eq!(one.request("resources/subscribe", &nobody)["result"], json!({}));
        if era == "legacy" {
            // What is wanted ends with who wanted it.
            one.open("DELETE", "");
            other.open("DELETE", "");
            home.wait_for("resources/unsubscribe ui://app/index.html");
        }
    }
}

/// Returns what the next news of a resource say.
#[track_caller]
fn update(stream: &mut Reply) -> Value {
    loop {
        let mut event = stream.event().expect("an open stream");
        if event["method"] == UPDATED {
            return event["params"].take();
        }
    }
}

#[test]
fn a_stream_of_the_newer_era_has_news_of_resources() {
    for era in ERAS {
        let home = home(era);
        let session = Session::start(&home.arguments());
        let wanted = json!({"resourceSubscriptions": ["a://host/1"]});
        let mut session = listening_for(session, &wanted);
        eventually("it is told so", || {
            home.ledger().iter().any(|line| {
                line.contains("listen") && line.contains("a://host/1")
                    || line == "resources/subscribe a://host/1"
            })
        });
        for uri in ["ui://app/index.html", "a://host/1"] {
            call_modern(&mut session, "mcp__up__touch", json!({"uri": uri}));
        }
        let news = wait_for(&mut session, UPDATED);
        assert_eq!(news["params"]["uri"], "a://host/1", "{era}");
        assert_eq!(news["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
        assert!(!session.aside.iter().any(|message| message["method"] == UPDATED));
    }
}

#[test]
fn a_server_that_starts_again_is_told_again_what_is_wanted() {
    for era in ERAS {
        let home = home(era);
        let mut session = Session::start(&home.arguments());
        session.initialize();
        session.tools();
        session.request("logging/setLevel", &json!({"level": "notice"}));
        let uri = json!({"uri": "a://host/1"});
        let subscribed = session.request("resources/subscribe", &uri);
        assert_eq!(subscribed["result"], json!({}), "{era}");
        session.call("mcp__up__crash", &json!({}));
        let told = || {
            let ledger = home.ledger();
            let is_news = |line: &&String| match era {
                "modern" => line.starts_with("listen") && line.contains("a://host/1"),
                _ => *line == "resources/subscribe a://host/1",
            };
            ledger.iter().filter(is_news).count()
        };
        eventually("it is told again", || told() == 2);
        session.call("mcp__up__touch", &uri);
        assert_eq!(wait_for(&mut session, UPDATED)["params"], uri, "{era}");
        if era == "legacy" {
            assert_eq!(home.noted("level notice"), 2);
        }
    }
}

#[test]
fn a_server_without_tools_is_served() {
    let home = Home::with_up(json!({"resources": [{"uri": "a://x"}]}));
    let mut session = Session::start(&home.arguments());
    session.initialize();
    let read = session.request("resources/read", &json!({"uri": "a://x"}));
    assert_eq!(read["result"]["contents"][0]["text"], "text of a://x");
    // It does not have these, and says so.
    let asked = json!({"ref": {"type": "ref/resource", "uri": "a://x"}, "argument": {"name": "n", "value": "v"}});
    let completed = session.request("completion/complete", &asked);
    assert_eq!(completed["result"]["completion"]["values"], json!([]));
}

#[test]
fn logs_go_to_those_who_set_a_level() {
    for era in ERAS {
        let home = home(era);
        let mut session = Session::start(&home.arguments());
        session.initialize();
        let log = |session: &mut Session, level: &str, word: &str| {
            let arguments = json!({"level": level, "data": word, "logger": "engine"});
            let result = session.call("mcp__up__log", &arguments);
            assert_eq!(text(&result), "logged");
        };
        log(&mut session, "emergency", "before");
        let set = session.request("logging/setLevel", &json!({"level": "warning"}));
        assert_eq!(set["result"], json!({}), "{era}");
        log(&mut session, "info", "too little");
        log(&mut session, "error", "enough");
        let message = wait_for(&mut session, MESSAGE);
        assert_eq!(
            message["params"],
            json!({"level": "error", "data": "enough", "logger": "up/engine", "novel": {"z": 1, "a": 2}})
        );
        assert!(!session.aside.iter().any(|message| message["method"] == MESSAGE), "{era}");
        let wrong = session.request("logging/setLevel", &json!({"level": "loud"}));
        assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    }
}

#[test]
fn logs_of_the_newer_era_belong_to_a_request() {
    for era in ERAS {
        let home = home(era);
        let gateway = serve(&home);
        let mut web = Web::new(&gateway.url);
        let mut call = |level: Option<&str>| {
            let arguments = json!({"level": "notice", "data": {"n": 1}});
            let mut params = json!({"name": "mcp__up__log", "arguments": arguments});
            if let Some(level) = level {
                params["_meta"] = json!({"io.modelcontextprotocol/logLevel": level});
            }
            let messages = web.ask_modern("tools/call", &params).messages();
            let logs = messages.iter().filter(|message| message["method"] == MESSAGE);
            logs.map(|message| message["params"]["logger"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(call(None), [] as [Value; 0], "{era}");
        assert_eq!(call(Some("warning")), [] as [Value; 0], "{era}");
        assert_eq!(call(Some("info")), ["up"], "{era}");
    }
}

#[test]
fn what_there_can_be_is_said_at_once() {
    let home = home("legacy");
    let mut session = Session::start(&home.arguments());
    let about = session.initialize();
    for (key, value) in [
        ("completions", json!({})),
        ("logging", json!({})),
        ("prompts", json!({"listChanged": true})),
        ("resources", json!({"listChanged": true, "subscribe": true})),
        ("tools", json!({"listChanged": true})),
    ] {
        assert_eq!(about["capabilities"][key], value);
    }
}
