//! Three gateways in a row: what comes through them is what came through one.
//!
//! The outermost is the one a client talks to, the innermost has a fixture behind it. They are
//! reached over standard streams or over HTTP, and speak either era to each other and to the
//! client; `names` has what the tools are called.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::binary::Gateway;
use crate::fixture::Home;
use crate::session::{Session, hello, modern, text};
use crate::web::{Reply, Web};

const TOOLS: [&str; 9] =
    ["answer", "echo", "fail", "refuse", "odd", "large", "steps", "slow", "ask"];
const PROGRESS: &str = "notifications/progress";
const CANCELLED: &str = "notifications/cancelled";
const CAN: &str = "io.modelcontextprotocol/clientCapabilities";

/// How the links of a chain are made.
#[derive(Clone, Copy, Debug)]
struct Kind {
    over_http: bool,
    /// What the gateways speak to each other.
    links: &'static str,
    /// What the client speaks.
    is_modern: bool,
}

/// A client before three gateways, and the folders of these, the innermost first.
struct Chain {
    kind: Kind,
    client: Client,
    homes: [Home; 3],
    _gateways: Vec<Gateway>,
}

enum Client {
    Stdio(Box<Session>),
    Http(Box<Web>),
}

/// Makes a chain of each kind, and does something with it.
fn everywhere(test: impl Fn(&mut Chain)) {
    for over_http in [false, true] {
        for links in ["legacy", "modern"] {
            for is_modern in [false, true] {
                test(&mut Chain::new(Kind { over_http, links, is_modern }));
            }
        }
    }
}

impl Chain {
    fn new(kind: Kind) -> Self {
        let homes = [Home::new(), Home::new(), Home::new()];
        let mut up = homes[0].server(json!({"tools": TOOLS}));
        let mut gateways = Vec::new();
        for home in &homes[..2] {
            let arguments = serving(home, &up, kind);
            up = if kind.over_http {
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                gateways.push(Gateway::start(&arguments));
                json!({"url": gateways.last().unwrap().url})
            } else {
                let line = [&["serve".to_owned(), "--stdio".to_owned()][..], &arguments].concat();
                json!({"command": "${IRIS_MCP_EXE}", "args": line})
            };
        }
        let arguments = serving(&homes[2], &up, kind);
        let mut client = if kind.over_http {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            gateways.push(Gateway::start(&arguments));
            Client::Http(Box::new(Web::new(&gateways.last().unwrap().url)))
        } else {
            Client::Stdio(Box::new(Session::start(&arguments)))
        };
        if !kind.is_modern {
            client.initialize();
        }
        Self { kind, client, homes, _gateways: gateways }
    }

    fn params(&self, tool: &str, arguments: &Value) -> Value {
        let name = format!("mcp__up__mcp__up__mcp__up__{tool}");
        let params = json!({"name": name, "arguments": arguments, "_meta": {"progressToken": "p"}});
        if !self.kind.is_modern {
            return params;
        }
        let mut params = modern(params);
        params["_meta"][CAN] = json!({"elicitation": {}});
        params
    }

    /// Calls a tool; returns the answer and what came before it.
    #[track_caller]
    fn call(&mut self, tool: &str, arguments: &Value) -> (Value, Vec<Value>) {
        let params = self.params(tool, arguments);
        self.client.request("tools/call", &params, self.kind.is_modern)
    }

    /// Calls a tool that has a result, and returns that without what each gateway says of itself.
    #[track_caller]
    fn result(&mut self, tool: &str, arguments: &Value) -> Value {
        let (mut answer, _) = self.call(tool, arguments);
        assert!(answer["result"].is_object(), "{:?} {answer}", self.kind);
        let mut result = answer["result"].take();
        self.is_nested(&result["_meta"]["iris/result"]);
        let meta = result["_meta"].as_object_mut().unwrap();
        meta.retain(|key, _| key.starts_with("vendor/"));
        if meta.is_empty() {
            result.as_object_mut().unwrap().shift_remove("_meta");
        }
        let kind = result.as_object_mut().unwrap().shift_remove("resultType");
        assert_eq!(kind.is_some(), self.kind.is_modern, "{result}");
        result
    }

    /// Checks that each gateway says who it is once: ours is outermost, theirs within.
    #[track_caller]
    fn is_nested(&self, said: &Value) {
        let middle = &said["upstream"];
        let inner = &middle["upstream"];
        let ids = [said, middle, inner].map(|said| said["call_id"].as_str().unwrap_or_default());
        assert!(ids.iter().all(|id| id.len() == 32), "{:?} {said}", self.kind);
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{said}");
        for (said, depth) in [(said, 3), (middle, 2), (inner, 1)] {
            if let Some(name) = said["metadata"]["context_tool_name"].as_str() {
                assert_eq!(name.matches("mcp__up__").count(), depth, "{said}");
            }
        }
    }
}

impl Client {
    #[track_caller]
    fn initialize(&mut self) {
        let mut hello = hello("2025-11-25");
        hello["capabilities"] = json!({"elicitation": {}});
        match self {
            Self::Stdio(session) => {
                session.request("initialize", &hello);
                session.notify("notifications/initialized", &json!({}));
            }
            Self::Http(web) => drop(web.initialize_as(&hello)),
        }
    }

    #[track_caller]
    fn request(&mut self, method: &str, params: &Value, is_modern: bool) -> (Value, Vec<Value>) {
        match self {
            Self::Stdio(session) => {
                session.aside.clear();
                let answer = session.request(method, params);
                (answer, std::mem::take(&mut session.aside))
            }
            Self::Http(web) => {
                let reply =
                    if is_modern { web.ask_as(method, params) } else { web.ask(method, params).1 };
                let mut messages = reply.messages();
                (messages.pop().expect("an answer"), messages)
            }
        }
    }
}

/// Makes the files of a gateway before a server, and returns its arguments.
fn serving(home: &Home, up: &Value, kind: Kind) -> Vec<String> {
    home.serve(json!({ "up": up }));
    // The fixture is of the older era; it stands before the first gateway only.
    let is_first = up["command"] == "python3";
    let protocol = if is_first { "legacy" } else { kind.links };
    let config = format!("[upstream.up]\nprotocol = \"{protocol}\"\n");
    let config = home.write("server.toml", &config);
    let mut arguments = home.arguments();
    arguments.extend(["--config", &config, "--approval", "client"].map(str::to_owned));
    arguments
}

fn image() -> String {
    BASE64_STANDARD.encode((0..=255).cycle().take(3_001).collect::<Vec<u8>>())
}

/// What the innermost server answers, and what the client gets of it.
fn results() -> Vec<Value> {
    let image = json!({"type": "image", "data": image(), "mimeType": "image/x-any", "novel": 1});
    let link = json!({"type": "resource_link", "uri": "x://y", "name": "l", "size": 7, "novel": 1});
    vec![
        json!({"content": [{"type": "text", "text": "Köln ☃\n"}]}),
        json!({"content": [{"type": "text", "text": "it failed"}], "isError": true}),
        json!({"content": [image]}),
        json!({"content": [link, {"type": "text", "text": "beside a link"}]}),
        json!({
            "content": [{"type": "text", "text": "{}"}],
            "structuredContent": {"zulu": 1, "alpha": {"n": [3, 2.5, null]}},
        }),
        json!({
            "content": [{"type": "text", "text": "t"}, image, link],
            "structuredContent": {"b": 1, "a": 2},
            "isError": true,
            "_meta": {"vendor/key": {"z": 1, "a": 2}},
            "novel": {"y": 1, "x": [2]},
        }),
    ]
}

#[test]
fn a_result_comes_through_as_it_is() {
    everywhere(|chain| {
        for expected in results() {
            let result = chain.result("answer", &json!({ "result": expected }));
            // Compared as text: the order of keys counts too, but for those that we look into.
            assert_eq!(result["content"].to_string(), expected["content"].to_string());
            let structured = &result["structuredContent"];
            assert_eq!(structured.to_string(), expected["structuredContent"].to_string());
            assert_eq!(result, expected, "{:?}", chain.kind);
        }
        // The one that cuts a long text is the one that says so.
        let long = chain.result("large", &json!({"lines": 60_000}));
        assert_eq!(text(&long).matches(" was cut. ").count(), 1, "{:?} {long}", chain.kind);
        assert_eq!(text(&long).matches("iris-artifact://").count(), 2, "{:?} {long}", chain.kind);
        assert_eq!(long["content"].as_array().unwrap().len(), 3, "a text and two links: {long}");
    });
}

#[test]
fn a_failure_is_told_once() {
    everywhere(|chain| {
        for (error, said) in [
            (
                json!({"code": -32602, "message": "not these", "data": {"hint": 1}}),
                "Error[MCP_CALL_FAILED]: up refused the call: not these (-32602)",
            ),
            (
                json!({"code": -32000, "message": "broken"}),
                "Error[TOOL_OUTCOME_UNKNOWN]: the call to up was sent and its outcome is unknown: \
                 it answered with the error -32000 broken",
            ),
        ] {
            let result = chain.result("answer", &json!({ "error": error }));
            assert_eq!((&result["isError"], text(&result)), (&true.into(), said));
            assert_eq!(result["content"].as_array().unwrap().len(), 1, "{result}");
        }
        // What is wrong before anybody is asked is the outermost's to say.
        let (answer, _) = chain.call("none", &json!({}));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    });
}

#[test]
fn what_a_client_lacks_is_told_in_the_servers_words() {
    everywhere(|chain| {
        let data = json!({"requiredCapabilities": {"sampling": {}}});
        let error = json!({"code": -32021, "message": "I must sample", "data": data});
        let (answer, _) = chain.call("answer", &json!({ "error": error }));
        if chain.kind.is_modern && chain.kind.links == "modern" {
            assert_eq!(answer["error"], error);
        } else {
            let said = "Error[MCP_CALL_FAILED]: up refused the call: I must sample (-32021)";
            assert_eq!(text(&answer["result"]), said, "{:?}", chain.kind);
        }
    });
}

#[test]
fn progress_comes_through_under_the_clients_token() {
    everywhere(|chain| {
        let (_, before) = chain.call("steps", &json!({}));
        let reports = before.iter().filter(|message| message["method"] == PROGRESS);
        let reports: Vec<String> = reports
            .map(|message| {
                let params = &message["params"];
                assert_eq!(params["progressToken"], "p", "{:?}", chain.kind);
                let number = |key: &str| params[key].as_f64().unwrap();
                format!("{} of {}: {}", number("progress"), number("total"), params["message"])
            })
            .collect();
        let expected = [1, 2, 3].map(|step| format!("{step} of 3: \"step {step}\""));
        assert_eq!(reports, expected, "{:?}", chain.kind);
    });
}

#[test]
fn a_call_is_cancelled_at_the_innermost_server() {
    everywhere(|chain| {
        let params = chain.params("slow", &json!({}));
        match &mut chain.client {
            Client::Stdio(session) => {
                let id = session.ask("tools/call", &params);
                chain.homes[0].wait_for("slow");
                session.notify(CANCELLED, &json!({"requestId": id}));
            }
            Client::Http(web) if chain.kind.is_modern => {
                let mut params = params;
                params["_meta"][CAN] = json!({});
                let open = web.begin_modern("tools/call", &params);
                chain.homes[0].wait_for("slow");
                // Whoever closes the stream does not want it any more.
                drop(open);
            }
            Client::Http(web) => {
                let open = web.begin("tools/call", &params);
                chain.homes[0].wait_for("slow");
                let id = web.last();
                web.notify(CANCELLED, &json!({"requestId": id}));
                drop(open);
            }
        }
        chain.homes[0].wait_for("cancelled slow");
        assert_eq!(chain.homes[0].noted("slow"), 1);
        let result = chain.result("echo", &json!({"text": "still here"}));
        assert_eq!(text(&result), "still here", "{:?}", chain.kind);
    });
}

/// What the innermost server asks, and what the person says.
fn question() -> Value {
    json!({
        "message": "„Köln“?\nOr not? ☃", "novel": {"z": 1, "a": 2},
        "requestedSchema": {
            "type": "object",
            "properties": {"ok": {"type": "boolean", "title": "Ja?"}, "n": {"type": "integer"}},
        },
    })
}

fn answer() -> Value {
    json!({"action": "accept", "content": {"ok": true, "n": 7}})
}

/// Checks a question that has come.
#[track_caller]
fn is_the_question(asked: &Value) {
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    for (key, value) in question().as_object().unwrap() {
        assert_eq!(asked["params"][key].to_string(), value.to_string(), "{asked}");
    }
}

/// Answers an older client's question, which must be the only one.
#[track_caller]
fn answered(asked: &Value) -> Value {
    is_the_question(asked);
    json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer()})
}

/// Reads up to the next request or answer.
#[track_caller]
fn next(reply: &mut Reply) -> Value {
    loop {
        let event = reply.event().expect("an open stream");
        if event.get("id").is_some() {
            return event;
        }
    }
}

#[test]
fn a_person_is_asked_once_and_in_the_servers_words() {
    everywhere(|chain| {
        let asks = json!([{"method": "elicitation/create", "params": question()}]);
        let mut params = chain.params("ask", &json!({ "asks": asks }));
        let is_modern = chain.kind.is_modern;
        let result = match &mut chain.client {
            client if is_modern => {
                let (asked, _) = client.request("tools/call", &params, true);
                let questions = asked["result"]["inputRequests"].as_object();
                let questions = questions.unwrap_or_else(|| panic!("{asked}"));
                let [(key, question)] = questions.iter().collect::<Vec<_>>()[..] else {
                    panic!("one question: {asked}");
                };
                is_the_question(question);
                params["inputResponses"] = json!({ key: answer() });
                params["requestState"] = asked["result"]["requestState"].clone();
                client.request("tools/call", &params, true).0
            }
            Client::Stdio(session) => {
                let id = session.ask("tools/call", &params);
                let mut message = session.read();
                while message.get("id").is_none() {
                    message = session.read();
                }
                session.send(&answered(&message));
                session.answer(id)
            }
            Client::Http(web) => {
                let (id, mut reply) = web.ask("tools/call", &params);
                let asked = next(&mut reply);
                assert_eq!(web.post(&answered(&asked)).status, 202);
                let answer = next(&mut reply);
                assert_eq!(answer["id"], id, "asked once: {answer}");
                answer
            }
        };
        let heard: Value = serde_json::from_str(text(&result["result"])).unwrap();
        assert_eq!(heard, json!([{"result": answer()}]), "{:?}", chain.kind);
        assert_eq!(chain.homes[0].noted("ask"), 1);
    });
}

#[test]
fn what_gateways_keep_is_listed_by_the_one_that_has_it() {
    everywhere(|chain| {
        let image = json!({"type": "image", "data": image(), "mimeType": "image/x-any"});
        chain.result("answer", &json!({"result": {"content": [image]}}));
        let is_modern = chain.kind.is_modern;
        let mut ask = |method: &str, params: Value| {
            let params = if is_modern { modern(params) } else { params };
            chain.client.request(method, &params, is_modern).0["result"].take()
        };
        let templates = ask("resources/templates/list", json!({}));
        assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 1, "{templates}");
        let listed = ask("resources/list", json!({}));
        for resource in listed["resources"].as_array().unwrap() {
            let read = ask("resources/read", json!({"uri": resource["uri"]}));
            assert!(read["contents"].is_array(), "{:?} {resource} {read}", chain.kind);
        }
        for home in &chain.homes {
            let kept = home.file("workspace").join(".iris");
            assert!(kept.is_dir(), "each keeps what came through");
        }
    });
}

#[test]
fn a_long_text_is_cut_once_and_the_client_reads_all_of_it() {
    everywhere(|chain| {
        let result = chain.result("large", &json!({"lines": 12_000}));
        let said = text(&result);
        assert_eq!(said.matches("[The result of").count(), 1, "{:?} {said}", chain.kind);
        let content = result["content"].as_array().unwrap();
        let link = content.iter().find(|block| block["type"] == "resource_link").unwrap();
        let mut whole = String::new();
        let mut next = Some(link["uri"].as_str().unwrap().to_owned());
        while let Some(uri) = next {
            let params = json!({"uri": uri});
            let params = if chain.kind.is_modern { modern(params) } else { params };
            let (page, _) = chain.client.request("resources/read", &params, chain.kind.is_modern);
            let contents = &page["result"]["contents"][0];
            whole.push_str(contents["text"].as_str().unwrap_or_else(|| panic!("{page}")));
            next = contents["_meta"]["iris/page"]["next"].as_str().map(str::to_owned);
        }
        let lines: Vec<String> =
            (0..12_000).map(|number| format!("line {number:07} é☃ of many")).collect();
        assert!(whole == lines.join("\n"), "{:?}: {} characters", chain.kind, whole.len());
    });
}
