//! Upstreams whose clients are kept apart: a connection for each, for as long as it is there.

use serde_json::{Value, json};

use crate::binary::{Gateway, command, exe, run};
use crate::fixture::{Home, eventually};
use crate::process::traces::Mark;
use crate::remote::Served;
use crate::session::{Session, code, text};
use crate::web::{Reply, Web};

const ERAS: [&str; 2] = ["legacy", "modern"];
const COUNT: &str = "mcp__up__count";
const URI: &str = "a://host/1";

/// What a gateway has before it, and whose processes carry the mark.
struct Kept {
    home: Home,
    mark: Mark,
}

impl Kept {
    /// Describes a server whose clients are kept apart, with more about it in the settings.
    fn new(era: &str, more: &str) -> Self {
        let (home, mark) = (Home::new(), Mark::new());
        let tools = ["count", "slow", "crash", "touch"];
        let resources = json!([{"uri": URI, "name": "one"}]);
        let options = json!({"era": era, "tools": tools, "resources": resources, "prompts": [{"name": "plain"}]});
        let mut up = home.server(options);
        up["env"] = json!({"MARK": mark.to_string()});
        home.serve(json!({"up": up}));
        home.write("server.toml", &format!("[upstream.up]\nscope = 'per_client'\n{more}\n"));
        Self { home, mark }
    }

    fn arguments(&self) -> Vec<String> {
        let config = ["--config".to_owned(), self.home.path("server.toml")];
        self.home.arguments().into_iter().chain(config).collect()
    }

    fn gateway(&self, more: &[&str]) -> Gateway {
        let arguments = self.arguments();
        let arguments = arguments.iter().map(String::as_str);
        Gateway::start(&arguments.chain(more.iter().copied()).collect::<Vec<_>>())
    }

    /// Waits until so many processes of the server run.
    #[track_caller]
    fn has(&self, processes: usize) {
        eventually(&format!("{processes} processes"), || self.running() == processes);
    }

    fn running(&self) -> usize {
        let is_server = |pid: &i32| {
            let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.contains("upstream.py") && !line.contains("__guard")
        };
        self.mark.bearers().iter().filter(|pid| is_server(pid)).count()
    }
}

/// A client of the older era, with a session of its own.
fn older(gateway: &Gateway) -> Web {
    let mut web = Web::new(&gateway.url);
    web.initialize();
    web
}

fn of(tool: &str) -> Value {
    json!({"name": tool, "arguments": {}})
}

#[track_caller]
fn counts(answer: &Value) -> u64 {
    text(&answer["result"]).parse().unwrap_or_else(|_| panic!("no number: {answer}"))
}

/// Returns how many clients the server has, as the gateway says.
fn clients(gateway: &Gateway) -> (Value, Value) {
    let report = Web::new(&gateway.url).at("/healthz").get().json();
    let sources = report["sources"].as_array().expect("a list").iter();
    let up = sources.into_iter().find(|source| source["name"] == "up").expect("there");
    (up["clients"].clone(), up["max_clients"].clone())
}

#[test]
fn each_session_has_a_server_of_its_own_which_ends_with_it() {
    for era in ERAS {
        let kept = Kept::new(era, "");
        let gateway = kept.gateway(&[]);
        let (mut one, mut other) = (older(&gateway), older(&gateway));
        assert_eq!(one.request("tools/list", &json!({}))["result"]["tools"][0]["name"], COUNT);
        // What is listed is so once for all.
        assert_eq!(kept.running(), 1, "{era}");
        assert_eq!(clients(&gateway), (json!(0), json!(16)));
        for expected in [1, 2] {
            assert_eq!(counts(&one.request("tools/call", &of(COUNT))), expected, "{era}");
        }
        assert_eq!(counts(&other.request("tools/call", &of(COUNT))), 1, "{era}");
        let mut newer = Web::new(&gateway.url);
        assert_eq!(counts(&newer.modern("tools/call", &of(COUNT))), 1, "{era}");
        assert_eq!(counts(&one.request("tools/call", &of(COUNT))), 3, "{era}");
        assert_eq!(kept.running(), 4, "{era}");
        assert_eq!(clients(&gateway), (json!(3), json!(16)));
        assert_eq!(one.open("DELETE", "").status, 202);
        kept.has(3);
        assert_eq!(clients(&gateway), (json!(2), json!(16)));
        assert_eq!(counts(&other.request("tools/call", &of(COUNT))), 2, "{era}");
        drop(gateway);
        kept.has(0);
    }
}

#[test]
fn a_client_over_standard_streams_has_its_own_and_takes_it_along() {
    for modern in [false, true] {
        let kept = Kept::new("legacy", "");
        let mut arguments = kept.arguments();
        arguments.extend(["--http".to_owned(), "127.0.0.1:0".to_owned()]);
        let mut session = Session::start(&arguments);
        if !modern {
            session.initialize();
        }
        for expected in [1, 2] {
            let answer = if modern {
                session.modern("tools/call", &of(COUNT))
            } else {
                session.request("tools/call", &of(COUNT))
            };
            assert_eq!(counts(&answer), expected);
        }
        assert_eq!(kept.running(), 2);
        // Over HTTP the gateway goes on.
        session.close();
        kept.has(1);
        session.signal(nix::sys::signal::Signal::SIGTERM);
        assert_eq!(session.end().0, Some(0));
        kept.has(0);
    }
}

#[test]
fn principals_of_the_newer_era_are_kept_apart() {
    let kept = Kept::new("modern", "");
    // Each hash is that of the name, which is the token.
    let tokens = kept.home.write(
        "tokens",
        "alice sha256:2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90\n\
         bob sha256:81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd9ec58ce9\n",
    );
    let gateway = kept.gateway(&["--token-file", &tokens]);
    let client = |name| Web::new(&gateway.url).bearer(name);
    for (name, expected) in [("alice", 1), ("alice", 2), ("bob", 1), ("alice", 3)] {
        assert_eq!(counts(&client(name).modern("tools/call", &of(COUNT))), expected, "{name}");
    }
    assert_eq!(kept.running(), 3);
}

#[test]
fn no_more_clients_than_may_have_one_of_their_own() {
    let kept = Kept::new("legacy", "max_clients = 1");
    let gateway = kept.gateway(&[]);
    let (mut one, mut other) = (older(&gateway), older(&gateway));
    assert_eq!(counts(&one.request("tools/call", &of(COUNT))), 1);
    let refused = other.request("tools/call", &of(COUNT));
    assert_eq!(code(&refused["result"]), "MCP_CALL_FAILED");
    let why =
        "1 clients have a connection of their own to it, and no more may (upstream.up.max_clients)";
    assert!(text(&refused["result"]).contains(why), "{refused}");
    let refused = other.request("prompts/get", &json!({"name": "mcp__up__plain"}));
    assert!(refused["error"]["message"].as_str().expect("text").contains(why), "{refused}");
    // The list is everybody's.
    assert!(other.request("tools/list", &json!({}))["result"]["tools"].is_array());
    assert_eq!(one.open("DELETE", "").status, 202);
    eventually("there is room", || clients(&gateway).0 == 0);
    assert_eq!(counts(&other.request("tools/call", &of(COUNT))), 1);
}

#[test]
fn a_connection_that_is_not_used_is_ended_and_made_again() {
    let kept = Kept::new("modern", "client_idle_seconds = 0.3");
    let gateway = kept.gateway(&[]);
    let mut web = older(&gateway);
    assert_eq!(counts(&web.request("tools/call", &of(COUNT))), 1);
    kept.has(1);
    assert_eq!(clients(&gateway).0, 0);
    // A call that takes longer is use.
    let slow = json!({"name": "mcp__up__slow", "arguments": {"seconds": 1}});
    assert_eq!(text(&web.request("tools/call", &slow)["result"]), "slow, but done");
    assert_eq!(counts(&web.request("tools/call", &of(COUNT))), 1);
    kept.has(1);
    // And so is a resource that is watched.
    web.request("resources/subscribe", &json!({"uri": URI}));
    assert_eq!(text(&web.request("tools/call", &slow)["result"]), "slow, but done");
    assert_eq!(clients(&gateway).0, 1);
    web.request("resources/unsubscribe", &json!({"uri": URI}));
    kept.has(1);
}

#[test]
fn one_that_dies_takes_its_own_clients_calls_and_no_others() {
    let kept = Kept::new("legacy", "");
    let gateway = kept.gateway(&[]);
    let (mut one, mut other) = (older(&gateway), older(&gateway));
    assert_eq!(counts(&other.request("tools/call", &of(COUNT))), 1);
    let slow = one.begin("tools/call", &of("mcp__up__slow"));
    kept.home.wait_for("slow");
    let crashed = one.request("tools/call", &of("mcp__up__crash"));
    assert_eq!(code(&crashed["result"]), "TOOL_OUTCOME_UNKNOWN");
    let answer = Reply::begin(slow).answer();
    assert_eq!(code(&answer["result"]), "TOOL_OUTCOME_UNKNOWN");
    assert_eq!(counts(&one.request("tools/call", &of(COUNT))), 1);
    assert_eq!(counts(&other.request("tools/call", &of(COUNT))), 2);
    assert_eq!(kept.running(), 3);
}

#[test]
fn a_session_that_ends_leaves_no_call_behind() {
    let kept = Kept::new("legacy", "");
    let gateway = kept.gateway(&[]);
    let mut web = older(&gateway);
    let slow = web.begin("tools/call", &of("mcp__up__slow"));
    kept.home.wait_for("slow");
    assert_eq!(web.open("DELETE", "").status, 202);
    kept.has(1);
    assert_eq!(clients(&gateway).0, 0);
    drop(slow);
}

fn is_change(news: &Value) -> bool {
    news["method"] == "notifications/resources/updated"
}

#[test]
fn a_change_of_a_resource_is_heard_by_the_client_whose_it_is() {
    for era in ERAS {
        let kept = Kept::new(era, "");
        let gateway = kept.gateway(&[]);
        let touch = json!({"name": "mcp__up__touch", "arguments": {"uri": URI}});
        let mut clients = [older(&gateway), older(&gateway)];
        let mut streams = clients.each_ref().map(Web::get);
        for client in &mut clients {
            client.request("resources/subscribe", &json!({"uri": URI}));
        }
        // Each hears of its own change first, and would have heard of the other's before.
        for (client, stream) in clients.iter_mut().zip(&mut streams) {
            assert_eq!(text(&client.request("tools/call", &touch)["result"]), "touched");
            assert!(std::iter::from_fn(|| stream.event()).any(|news| is_change(&news)), "{era}");
        }
        for (client, stream) in clients.iter_mut().zip(&mut streams) {
            client.request("resources/unsubscribe", &json!({"uri": URI}));
            // What comes next on the stream is no second change.
            client.open("DELETE", "");
            let rest: Vec<Value> = std::iter::from_fn(|| stream.event()).collect();
            assert!(!rest.iter().any(is_change), "{era}: {rest:?}");
        }
    }
}

#[test]
fn a_server_by_url_has_a_session_for_each_client() {
    let home = Home::new();
    let served = Served::start(&home, json!({"tools": ["headers"]}));
    home.serve(json!({"up": {"url": served.url("/mcp")}}));
    let config = home.write("server.toml", "[upstream.up]\nscope = 'per_client'\n");
    let mut arguments = home.arguments();
    arguments.extend(["--config".to_owned(), config]);
    let gateway = Gateway::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let session = |web: &mut Web| {
        let answer = web.request("tools/call", &of("mcp__up__headers"));
        let headers: Value = serde_json::from_str(text(&answer["result"])).expect("JSON");
        headers["mcp-session-id"].as_str().expect("a session").to_owned()
    };
    let (mut one, mut other) = (older(&gateway), older(&gateway));
    let (ones, others) = (session(&mut one), session(&mut other));
    assert_ne!(ones, others);
    assert_eq!(session(&mut one), ones);
    assert_eq!((home.noted("session"), home.noted("delete")), (3, 0));
    one.open("DELETE", "");
    home.wait_for("delete");
    assert_eq!(session(&mut other), others);
    // In the newer era there are no sessions to be kept apart by, and calls work all the same.
    let home = Home::new();
    let served = Served::start(&home, json!({"era": "modern"}));
    home.serve(json!({"up": {"url": served.url("/mcp")}}));
    let config = home.write("server.toml", "[upstream.up]\nscope = 'per_client'\n");
    let mut arguments = home.arguments();
    arguments.extend(["--config".to_owned(), config]);
    let mut session = Session::start(&arguments);
    session.initialize();
    let result = session.call("mcp__up__echo", &json!({"text": "heard"}));
    assert_eq!(text(&result), "heard");
}

#[test]
fn check_says_who_shares_a_server() {
    let kept = Kept::new("legacy", "");
    let check = |more: &[&str]| {
        let mut command = command(exe());
        command.arg("check").args(kept.arguments()).args(more);
        run(command, std::time::Duration::from_secs(30)).stdout
    };
    assert!(check(&[]).contains("2025-11-25 (legacy); python3"), "{}", check(&[]));
    assert!(check(&[]).contains("; per client\n"), "{}", check(&[]));
    let json: Value = serde_json::from_str(&check(&["--json"])).expect("JSON");
    assert_eq!(json["servers"][0]["scope"], "per_client");
    kept.has(0);
}

#[test]
fn x10_a_session_of_the_newer_era_ends_when_it_is_not_used_and_an_older_one_does_not() {
    let kept = Kept::new("modern", "[limits]\nsession_idle_seconds = 0.4\n");
    let gateway = kept.gateway(&[]);
    let mut web = Web::new(&gateway.url);
    let count = json!({"name": COUNT, "arguments": {}});
    assert_eq!(counts(&web.modern("tools/call", &count)), 1);
    assert_eq!(counts(&web.modern("tools/call", &count)), 2);
    // One is nobody's: the tools are listed over it.
    kept.has(2);
    kept.has(1);
    assert_eq!(counts(&web.modern("tools/call", &count)), 1);
    // Whoever is being answered is there.
    let slow = json!({"name": "mcp__up__slow", "arguments": {}});
    let stream = web.begin_modern("tools/call", &slow);
    kept.home.wait_for("slow");
    std::thread::sleep(std::time::Duration::from_millis(1200));
    assert_eq!(counts(&web.modern("tools/call", &count)), 2);
    drop(stream);

    web.initialize();
    assert_eq!(counts(&web.request("tools/call", &count)), 1);
    let mut session = Session::start(&kept.arguments());
    session.initialize();
    assert_eq!(text(&session.call(COUNT, &json!({}))), "1");
    std::thread::sleep(std::time::Duration::from_millis(1200));
    assert_eq!(counts(&web.request("tools/call", &count)), 2);
    assert_eq!(text(&session.call(COUNT, &json!({}))), "2");
}
