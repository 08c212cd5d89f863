//! Real servers, listed, read and listened to by a real client.

use serde_json::{Value, json};

use super::{MESSAGE, UPDATED, wait_for};
use crate::binary::{exe, peer};
use crate::fixture::{Home, script};
use crate::peers::{Client, Mode};
use crate::remote::real::Peer;
use crate::session::Session;

const CLIENTS: [Client; 2] = [Client::Python(Mode::Legacy), Client::Python(Mode::Auto)];

/// Serves a server under the name `up`, by its MCP file.
fn home(up: Value) -> Home {
    let home = Home::new();
    home.serve(json!({ "up": up }));
    home
}

fn everything() -> Value {
    let package = "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    json!({"command": peer("npm/node"), "args": [peer(package), "stdio"]})
}

/// Lets a client take steps, and returns what came of each.
#[track_caller]
fn drive(client: Client, home: &Home, more: &[&str], steps: &Value) -> Value {
    let mut line = vec![exe().to_owned(), "serve".to_owned(), "--stdio".to_owned()];
    line.extend(home.arguments());
    line.extend(more.iter().map(|word| (*word).to_owned()));
    client.answering(&json!({"command": line}), steps, None)["steps"].take()
}

fn text_of(step: &Value) -> &str {
    step["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {step}"))
}

#[track_caller]
fn tour_of_everything(home: &Home) {
    let document = "demo://resource/static/document/features.md";
    let template = "demo://resource/dynamic/text/{resourceId}";
    for client in CLIENTS {
        let seen = drive(client, home, &[], &json!([{"op": "prompts"}]));
        let names = seen[0]["result"]["prompts"].as_array().unwrap().iter();
        let names: Vec<&str> = names.map(|prompt| prompt["name"].as_str().unwrap()).collect();
        let find = |part: &str| {
            let found = names.iter().find(|name| name.contains(part));
            (*found.unwrap_or_else(|| panic!("no {part} in {names:?}"))).to_owned()
        };
        let (simple, team) = (find("simple_prompt"), find("completable_prompt"));
        let seen = drive(
            client,
            home,
            &[],
            &json!([
                {"op": "prompt", "name": simple},
                {"op": "resources"},
                {"op": "templates"},
                {"op": "read", "uri": document},
                {"op": "read", "uri": "demo://resource/dynamic/text/7"},
                {"op": "read", "uri": "demo://nowhere"},
                {"op": "complete", "ref": {"type": "ref/prompt", "name": team},
                 "argument": {"name": "department", "value": "Eng"}},
                {"op": "complete", "ref": {"type": "ref/resource", "uri": template},
                 "argument": {"name": "resourceId", "value": "5"}},
            ]),
        );
        let prompt = &seen[0]["result"]["messages"][0]["content"];
        assert_eq!(prompt["text"], "This is a simple prompt without arguments.", "{seen}");
        let resources = seen[1]["resources"].as_array().unwrap();
        assert!(resources.iter().any(|uri| uri == document), "{resources:?}");
        let templates = seen[2]["result"]["resourceTemplates"].to_string();
        assert!(templates.contains(template), "{templates}");
        assert!(text_of(&seen[3]).contains("# Everything"), "{}", seen[3]);
        assert!(text_of(&seen[4]).contains("Resource 7"), "{}", seen[4]);
        assert!(seen[5]["error"]["code"].is_i64(), "{}", seen[5]);
        assert_eq!(seen[6]["result"]["completion"]["values"], json!(["Engineering"]));
        assert_eq!(seen[7]["result"]["completion"]["values"], json!(["5"]));
    }
}

#[test]
fn everything_over_stdio() {
    tour_of_everything(&home(everything()));
}

#[test]
fn everything_over_http() {
    let served = Peer::everything("streamableHttp");
    tour_of_everything(&home(json!({"url": served.url("/mcp")})));
}

#[test]
fn everything_tells_of_resources_and_logs() {
    let (served, older) = (Peer::everything("streamableHttp"), Peer::everything("sse"));
    for up in [
        everything(),
        json!({"url": served.url("/mcp")}),
        json!({"type": "sse", "url": older.url("/sse")}),
    ] {
        let home = home(up);
        let mut session = Session::start(&home.arguments());
        session.initialize();
        let tools = session.tools();
        let named = |part: &str| tools.iter().find(|name| name.contains(part)).unwrap().clone();
        let uri = json!({"uri": "demo://resource/dynamic/text/1"});
        let set = session.request("logging/setLevel", &json!({"level": "debug"}));
        assert_eq!(set["result"], json!({}));
        assert_eq!(session.request("resources/subscribe", &uri)["result"], json!({}));
        // It says that it was subscribed to.
        let message = wait_for(&mut session, MESSAGE);
        assert_eq!(message["params"]["logger"], "up");
        assert!(message["params"]["data"].as_str().unwrap().contains("Subscribe"), "{message}");
        session.call(&named("toggle_subscriber_updates"), &json!({}));
        assert_eq!(wait_for(&mut session, UPDATED)["params"], uri);
        session.call(&named("toggle_simulated_logging"), &json!({}));
        let message = wait_for(&mut session, MESSAGE);
        assert!(message["params"]["level"].is_string(), "{message}");
    }
}

#[test]
fn fastmcp_of_both_eras_over_both_transports() {
    let served = Peer::fastmcp("http");
    let command = json!({
        "command": peer("fastmcp/bin/python"),
        "args": [script("fastmcp_server.py"), "stdio", "0"],
    });
    for up in [command, json!({"url": served.url("/mcp")})] {
        for protocol in ["legacy", "modern"] {
            let home = home(up.clone());
            let settings = format!("[upstream.up]\nprotocol = \"{protocol}\"\n");
            let settings = home.write("server.toml", &settings);
            for client in CLIENTS {
                let seen = drive(
                    client,
                    &home,
                    &["--config", &settings],
                    &json!([
                        {"op": "prompts"},
                        {"op": "prompt", "name": "mcp__up__greet", "arguments": {"name": "Ada"}},
                        {"op": "resources"},
                        {"op": "read", "uri": "note://one"},
                        {"op": "read", "uri": "note://7/data"},
                        {"op": "read", "uri": "note://none/at/all"},
                    ]),
                );
                let prompts = &seen[0]["result"]["prompts"];
                assert_eq!(prompts[0]["name"], "mcp__up__greet", "{protocol} {client:?}");
                let said = &seen[1]["result"]["messages"][0]["content"]["text"];
                assert_eq!(said, "Greet Ada", "{protocol} {client:?}");
                assert_eq!(seen[2]["resources"], json!(["note://one"]));
                assert_eq!(text_of(&seen[3]), "the first note");
                assert_eq!(text_of(&seen[4]), "note 7");
                assert!(seen[5]["error"]["code"].is_i64(), "{}", seen[5]);
            }
        }
    }
}
