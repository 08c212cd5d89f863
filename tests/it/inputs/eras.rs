//! Clients and servers of every era over every transport, and how often a server is started.

use std::thread;

use serde_json::{Value, json};

use super::{begin_with, rough};
use crate::binary::Gateway;
use crate::fixture::{Home, session};
use crate::remote::Served;
use crate::session::{hello, names, text};
use crate::web::Web;

const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Lists the tools of all servers and calls one of each.
#[track_caller]
fn check(of: &str, servers: &[&str], mut request: impl FnMut(&str, &Value) -> Value) {
    let list = request("tools/list", &json!({}));
    let expected: Vec<String> = servers.iter().map(|name| format!("mcp__{name}__echo")).collect();
    assert_eq!(names(&list["result"]), expected, "{of}");
    for name in &expected {
        let answer = request("tools/call", &json!({"name": name, "arguments": {"text": "heard"}}));
        let heard = text(&answer["result"]);
        // The old transport's fixture has one answer for everything.
        assert!(heard == "heard" || heard == "this is echo", "{of}: {name}: {answer}");
    }
}

#[test]
fn every_era_of_clients_reaches_every_era_of_servers_over_every_transport() {
    let home = Home::new();
    let older = Served::start(&home, json!({"tools": ["echo"]}));
    let newer = Served::start(&home, json!({"tools": ["echo"], "era": "modern"}));
    let oldest = Served::start(&home, json!({"tools": ["echo"], "transport": "sse"}));
    home.serve(json!({
        "http_newer": {"url": newer.url("/mcp")},
        "http_older": {"url": older.url("/mcp")},
        "sse": {"type": "sse", "url": oldest.url("/sse")},
        "stdio_newer": home.server(json!({"tools": ["echo"], "era": "modern"})),
        "stdio_older": home.server(json!({"tools": ["echo"]})),
    }));
    let servers = ["http_newer", "http_older", "sse", "stdio_newer", "stdio_older"];
    let gateway = Gateway::start(&home.arguments().iter().map(String::as_str).collect::<Vec<_>>());
    for version in VERSIONS {
        let mut web = Web::new(&gateway.url);
        web.initialize_as(&hello(version));
        web = web.header("mcp-protocol-version", version);
        check(&format!("{version} over HTTP"), &servers, |method, params| {
            web.request(method, params)
        });
    }
    let mut web = Web::new(&gateway.url);
    let about = web.modern("server/discover", &json!({}))["result"].take();
    assert!(about["supportedVersions"].to_string().contains("2026-07-28"), "{about}");
    check("2026-07-28 over HTTP", &servers, |method, params| web.modern(method, params));
    let mut older = session(&home, &[]);
    check("2025-11-25 over streams", &servers, |method, params| older.request(method, params));
    let mut newer = crate::session::Session::start(&home.arguments());
    newer.modern("server/discover", &json!({}));
    check("2026-07-28 over streams", &servers, |method, params| newer.modern(method, params));
}

#[test]
fn a_server_is_started_once_however_many_calls_and_clients_there_are() {
    let home = Home::new();
    home.serve(json!({
        "one": rough(&home, json!({"name": "one", "tools": ["a"]})),
        "two": rough(&home, json!({"name": "two", "tools": ["b"], "era": "modern"})),
    }));
    let gateway = Gateway::start(&home.arguments().iter().map(String::as_str).collect::<Vec<_>>());
    thread::scope(|scope| {
        for client in 0..6 {
            let url = &gateway.url;
            scope.spawn(move || {
                let mut web = Web::new(url);
                if client % 2 == 0 {
                    web.initialize();
                }
                for call in 0..5 {
                    let name = ["mcp__one__a", "mcp__two__b"][call % 2];
                    let params = json!({"name": name, "arguments": {}});
                    let answer = match client % 2 {
                        0 => web.request("tools/call", &params),
                        _ => web.modern("tools/call", &params),
                    };
                    assert_ne!(answer["result"]["isError"], true, "{answer}");
                    assert!(answer["result"]["content"].is_array(), "{answer}");
                }
            });
        }
    });
    assert_eq!((home.noted("start one"), home.noted("start two")), (1, 1));
    // One of the newer era is listed again once its stream of news is there.
    assert!(begin_with(&home, "list") <= 3, "nor are its tools listed for each client");
}
