//! Upstream servers that are reached by URL: good ones, bad ones, and real ones.

mod kept;
pub(crate) mod real;
mod secure;
mod suite;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::binary::{command, exe, run};
use crate::fixture::{Home, script, session};
use crate::session::{Session, code, text};

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(30);

/// A server over HTTP that ends with the test.
#[derive(Debug)]
pub(crate) struct Served {
    child: Child,
    pub(crate) port: u16,
}

impl Served {
    /// Starts the fixture, with its ledger in a folder.
    pub(crate) fn start(home: &Home, options: Value) -> Self {
        Self::run("web.py", home, options)
    }

    /// Starts a fixture that says on which port it listens.
    fn run(fixture: &str, home: &Home, mut options: Value) -> Self {
        options["ledger"] = home.path("ledger").into();
        let mut command = command("python3");
        command.arg(script(fixture)).arg(options.to_string()).stderr(Stdio::null());
        let mut child = command.spawn().expect("python3");
        let mut line = String::new();
        let pipe = child.stdout.take().expect("a pipe");
        BufReader::new(pipe).read_line(&mut line).expect("readable");
        let port = line.trim().parse().expect("a port");
        Self { child, port }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn stop(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Already gone is as good.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Starts a gateway before one fixture, whose tools are these.
fn up(era: &str, tools: &[&str]) -> (Home, Served, Session) {
    up_for(era, tools, 20)
}

/// Does so, with this many seconds for a call.
fn up_for(era: &str, tools: &[&str], limit: u64) -> (Home, Served, Session) {
    let home = Home::new();
    let served = Served::start(&home, json!({"era": era, "tools": tools}));
    home.serve(json!({"up": {"url": served.url("/mcp"), "tool_timeout_sec": limit}}));
    let session = session(&home, &["--max-message-bytes", "100000"]);
    (home, served, session)
}

const ERAS: [&str; 2] = ["legacy", "modern"];

/// Calls a tool that goes wrong; its failure says why, and the next call works.
#[track_caller]
fn goes_wrong(tool: &str, arguments: &Value, expected: (&str, &str)) {
    for era in ERAS {
        let (home, _served, mut session) = up(era, &[tool, "echo"]);
        let result = session.call(&format!("mcp__up__{tool}"), arguments);
        assert_eq!(code(&result), expected.0, "{era} {tool}: {result}");
        assert!(text(&result).contains(expected.1), "{era} {tool}: {result}");
        assert!(text(&result).contains("up"), "{era} {tool}: {result}");
        assert_eq!(home.noted(tool), 1, "{era} {tool}: never twice");
        let result = session.call("mcp__up__echo", &json!({"text": "heard"}));
        assert_eq!(text(&result), "heard", "{era} {tool}");
    }
}

const UNKNOWN: &str = "TOOL_OUTCOME_UNKNOWN";
const FAILED: &str = "MCP_CALL_FAILED";

#[test]
fn an_ordinary_call_works_in_both_eras() {
    for era in ERAS {
        let (home, _served, mut session) = up(era, &["echo", "steps", "text_id", "garbage"]);
        assert_eq!(session.tools().len(), 4);
        let result = session.call("mcp__up__echo", &json!({"text": "heard"}));
        assert_eq!(text(&result), "heard");
        for tool in ["text_id", "garbage"] {
            let result = session.call(&format!("mcp__up__{tool}"), &json!({}));
            assert_eq!(text(&result), format!("this is {tool}"), "{era}");
        }
        let id = session.ask(
            "tools/call",
            &json!({"name": "mcp__up__steps", "arguments": {}, "_meta": {"progressToken": "mine"}}),
        );
        session.answer(id);
        let step = |report: &Value| report["params"]["progress"].as_f64();
        let steps: Vec<Option<f64>> = session.aside.iter().map(step).collect();
        assert_eq!(steps, [Some(1.0), Some(2.0), Some(3.0)], "{era}");
        session.close();
        assert_eq!(session.end().0, Some(0));
        assert_eq!(home.noted("delete"), usize::from(era == "legacy"));
    }
}

#[test]
fn a_result_goes_out_as_it_came() {
    for era in ERAS {
        let (_home, _served, mut session) = up(era, &["odd"]);
        for stream in [true, false] {
            let mut result = session.call("mcp__up__odd", &json!({"stream": stream}));
            result.as_object_mut().expect("an object").shift_remove("_meta");
            let expected = r#"{"content":[{"type":"hologram","beams":3},{"type":"text","text":null}],"zeta":1,"alpha":2}"#;
            assert_eq!(result.to_string(), expected, "{era}");
        }
    }
}

#[test]
fn a_login_page_is_no_answer() {
    let words = "it answered with text/html instead of JSON or events; `url` seems to be that of a web page, perhaps one to log in at; it says: <html>\\n<h1>Log in</h1></html>";
    goes_wrong("html", &json!({}), (UNKNOWN, words));
}

#[test]
fn a_redirect_is_not_followed() {
    let words =
        "HTTP 302: it redirects, and redirects are not followed; put the final URL in `url`";
    goes_wrong("redirect", &json!({"to": "http://evil.example/?key=1"}), (FAILED, words));
    let pointed = "(it points to another host)";
    goes_wrong("redirect", &json!({"to": "http://evil.example/?key=1"}), (FAILED, pointed));
    goes_wrong("redirect", &json!({"to": "/other/mcp?key=1"}), (FAILED, "/other/mcp)"));
}

#[test]
fn each_status_is_told_in_plain_words() {
    let cases = [
        (
            401,
            FAILED,
            "HTTP 401: it wants a token, or does not know this one; check `bearer_token_env_var` and `headers`",
        ),
        (403, FAILED, "HTTP 403: it refuses; check what the token may do"),
        (
            405,
            FAILED,
            "HTTP 405: it takes no messages there; check the path of `url`, or set `type` to `sse`",
        ),
        (406, FAILED, "HTTP 406: it answers neither in JSON nor in events"),
        (413, FAILED, "HTTP 413: the message is too long for it"),
        (415, FAILED, "HTTP 415: it does not take JSON"),
        (429, FAILED, "HTTP 429: it is asked too often"),
        (418, FAILED, "HTTP 418: it does not accept the request"),
        (500, UNKNOWN, "HTTP 500: it failed; it says: of its own"),
        (502, UNKNOWN, "HTTP 502: a server behind it is not there"),
        (503, UNKNOWN, "HTTP 503: it, or a server behind it, is not there for now"),
    ];
    for era in ERAS {
        let (home, _served, mut session) = up(era, &["status"]);
        for (status, expected, words) in cases {
            let arguments = json!({"code": status, "body": "of its own"});
            let result = session.call("mcp__up__status", &arguments);
            assert_eq!(code(&result), expected, "{era} {status}: {result}");
            assert!(text(&result).contains(words), "{era} {status}: {result}");
        }
        assert_eq!(home.noted("status"), cases.len(), "{era}");
    }
}

#[test]
fn an_error_of_the_protocol_is_one_whatever_the_status() {
    let arguments = json!({"status": 400, "code": -32602});
    goes_wrong("error", &arguments, (FAILED, "refused the call: not like this (-32602)"));
    let arguments = json!({"status": 400, "code": -32020});
    goes_wrong(
        "error",
        &arguments,
        (FAILED, "HTTP 400: it does not accept the request; it says: not like this"),
    );
    let arguments = json!({"status": 500, "code": -32603});
    goes_wrong("error", &arguments, (UNKNOWN, "HTTP 500: it failed; it says: not like this"));
}

#[test]
fn a_stream_that_breaks_off_ends_the_call() {
    goes_wrong("half", &json!({}), (UNKNOWN, "the stream broke off before its answer"));
    goes_wrong("done_without", &json!({}), (UNKNOWN, "the stream broke off before its answer"));
    goes_wrong("cut", &json!({}), (UNKNOWN, "the connection broke"));
}

#[test]
fn an_answer_to_something_else_is_none() {
    let words = "it answered something else than what it was asked";
    goes_wrong("wrong_id", &json!({}), (UNKNOWN, words));
    goes_wrong("not_json", &json!({}), (UNKNOWN, "its answer is no JSON; it says: { not json }"));
    goes_wrong("accepted", &json!({}), (UNKNOWN, "it took the request and did not answer it"));
}

#[test]
fn an_answer_that_is_too_long_ends_the_call_at_once() {
    let words = "its answer is longer than the 100000 bytes of limits.max_message_bytes";
    goes_wrong("huge", &json!({"bytes": 100_000}), (UNKNOWN, words));
    goes_wrong("huge_event", &json!({"bytes": 100_000}), (UNKNOWN, words));
    goes_wrong("huge_event", &json!({"bytes": 30_000_000}), (UNKNOWN, words));
}

#[test]
fn a_server_that_does_not_answer_in_time_is_left() {
    for era in ERAS {
        for tool in ["mute", "hang", "endless", "drip"] {
            let (home, _served, mut session) = up_for(era, &[tool, "echo"], 1);
            let began = Instant::now();
            let result = session.call(&format!("mcp__up__{tool}"), &json!({}));
            assert!(
                began.elapsed() < Duration::from_secs(4),
                "{era} {tool}: {:?}",
                began.elapsed()
            );
            assert_eq!(code(&result), UNKNOWN, "{era} {tool}: {result}");
            assert!(text(&result).contains("it did not answer in time"), "{era} {tool}: {result}");
            assert_eq!(home.noted(tool), 1, "{era} {tool}");
            let told = home.noted("notifications/cancelled");
            assert_eq!(told, usize::from(era == "legacy"), "{era} {tool}");
            if tool != "mute" {
                home.wait_for(&format!("{tool} left"));
            }
            let result = session.call("mcp__up__echo", &json!({"text": "heard"}));
            assert_eq!(text(&result), "heard", "{era} {tool}");
        }
    }
}

#[test]
fn a_call_under_way_does_not_hold_up_the_end() {
    for era in ERAS {
        let (home, _served, mut session) = up(era, &["hang"]);
        session.ask("tools/call", &json!({"name": "mcp__up__hang", "arguments": {}}));
        home.wait_for("hang");
        session.signal(Signal::SIGTERM);
        let (code, took, _) = session.end();
        assert_eq!(code, Some(0));
        assert!(took < Duration::from_secs(3), "{era}: {took:?}");
        home.wait_for("hang left");
    }
}

#[test]
fn a_cancelled_call_is_left() {
    for era in ERAS {
        let (home, _served, mut session) = up(era, &["hang"]);
        let id = session.ask("tools/call", &json!({"name": "mcp__up__hang", "arguments": {}}));
        home.wait_for("hang");
        session.notify("notifications/cancelled", &json!({"requestId": id}));
        home.wait_for("hang left");
        assert_eq!(home.noted("notifications/cancelled"), usize::from(era == "legacy"));
    }
}

#[test]
fn what_a_server_asks_for_is_declined_and_the_call_goes_on() {
    let (_home, _served, mut session) = up("legacy", &["ask"]);
    let result = session.call("mcp__up__ask", &json!({}));
    let said = text(&result);
    assert!(said.contains("decline") || said.contains("-3260"), "{result}");
}

#[test]
fn a_server_with_a_result_for_everything_is_of_the_older_era() {
    let home = Home::new();
    let served = Served::start(&home, json!({"vague": true}));
    home.serve(json!({"up": {"url": served.url("/mcp")}}));
    assert_eq!(session(&home, &[]).tools(), ["mcp__up__echo"]);
}

#[test]
fn a_forgotten_session_is_begun_again_and_the_call_made_once_more() {
    for oddly in [false, true] {
        let home = Home::new();
        let served = Served::start(&home, json!({"tools": ["forget", "echo"], "oddly": oddly}));
        home.serve(json!({"up": {"url": served.url("/mcp")}}));
        let mut session = session(&home, &[]);
        let result = session.call("mcp__up__forget", &json!({}));
        assert_eq!(text(&result), "this is forget");
        for round in 0..2 {
            let result = session.call("mcp__up__echo", &json!({"text": "heard"}));
            assert_eq!(text(&result), "heard", "{round}");
        }
        assert_eq!(home.noted("echo"), 2);
        assert_eq!(home.noted("no session"), 1);
        assert_eq!(home.noted("session"), 2);
    }
}

#[test]
fn a_stream_that_can_be_taken_up_again_is() {
    let (home, _served, mut session) = up("legacy", &["resumed", "unresumed"]);
    let result = session.call("mcp__up__resumed", &json!({}));
    assert_eq!(text(&result), "after the break");
    let result = session.call("mcp__up__unresumed", &json!({}));
    assert_eq!(code(&result), UNKNOWN);
    assert!(text(&result).contains("could not be taken up again"), "{result}");
    let tries = home.ledger().iter().filter(|line| line.starts_with("get never")).count();
    assert_eq!(tries, 3);
    assert_eq!(home.noted("unresumed"), 1);
}

#[test]
fn headers_go_with_every_request_and_are_never_told() {
    let home = Home::new();
    let mirrored = json!({"name": "headers", "inputSchema": {"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
    }}});
    let wrong = json!({"name": "wrong", "inputSchema": {"type": "object", "properties": {
        "number": {"type": "number", "x-mcp-header": "N"},
    }}});
    let options =
        json!({"era": "modern", "tools": [mirrored, wrong], "token": "Bearer secret-token-1"});
    let served = Served::start(&home, options);
    home.serve(json!({"up": {
        "url": served.url("/mcp?key=secret-key"),
        "headers": {"X-Plain": "plain-${WORD}"},
        "env_http_headers": {"X-Env": "SECRET_HEADER"},
        "bearer_token_env_var": "SECRET_TOKEN",
    }}));
    let mut arguments = home.arguments();
    arguments.extend(["--log", "trace"].map(str::to_owned));
    let mut session = Session::start_with(&arguments, |command| {
        command.env("SECRET_TOKEN", "secret-token-1").env("SECRET_HEADER", "secret-header-1");
        command.env("WORD", "word");
    });
    session.initialize();
    assert_eq!(session.tools(), ["mcp__up__headers"]);
    let result = session.call("mcp__up__headers", &json!({"region": "zürich"}));
    let headers: Value = serde_json::from_str(text(&result)).expect("JSON");
    let expected = [
        ("authorization", "Bearer secret-token-1"),
        ("x-plain", "plain-word"),
        ("x-env", "secret-header-1"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "headers"),
        ("mcp-param-region", "=?base64?esO8cmljaA==?="),
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
    ];
    for (name, value) in expected {
        assert_eq!(headers[name], value, "{headers}");
    }
    assert!(headers.get("accept-encoding").is_none(), "{headers}");
    assert!(headers.get("cookie").is_none(), "{headers}");
    let said = session.said();
    assert!(said.contains("x-mcp-header of number is for no text, integer or boolean"), "{said}");
    for secret in ["secret-token", "secret-header", "secret-key"] {
        let line = said.lines().find(|line| line.contains(secret));
        // The answer of this tool is the headers, and a trace of messages has it.
        assert!(line.is_none_or(|line| line.contains("mcp-param-region")), "{line:?}");
    }
}

/// Starts a gateway before a server that goes wrong from the start, and returns what is said of it.
#[track_caller]
fn fails(options: Value, mut entry: Value) -> String {
    let home = Home::new();
    let served = Served::start(&home, options);
    entry["url"] = served.url("/mcp").into();
    home.serve(json!({ "up": entry }));
    let mut command = command(exe());
    command.arg("tools").args(home.arguments()).env("TOKEN", "not-the-right-one");
    let ended = run(command, LIMIT);
    assert!(!ended.stderr.contains("not-the-right-one"), "{}", ended.stderr);
    ended.stderr
}

#[track_caller]
fn says(said: &str, words: &str) {
    assert!(said.contains(words), "{said}");
}

#[test]
fn a_server_that_cannot_be_used_says_what_to_check() {
    let door = |status: u16, headers: Value, body: &str| json!({"door": {"status": status, "headers": headers, "body": body}});
    let html = json!({"content-type": "text/html"});
    let said = fails(door(200, html.clone(), "<title>Log in</title>"), json!({}));
    says(&said, "`url` seems to be that of a web page");
    let said = fails(door(302, json!({"location": "/login"}), ""), json!({}));
    says(&said, "HTTP 302: it redirects, and redirects are not followed");
    says(&said, "/login)");
    let said = fails(door(404, html.clone(), "<h1>Not found</h1>"), json!({}));
    says(&said, "HTTP 404: there is nothing; check the path of `url`");
    assert!(!said.contains("<h1>"), "{said}");
    let said = fails(door(502, html, "<h1>Bad gateway</h1>"), json!({}));
    says(&said, "HTTP 502: a server behind it is not there");
    let said = fails(door(429, json!({"retry-after": "17"}), ""), json!({}));
    says(&said, "HTTP 429: it is asked too often; try again in 17 s");
    let date = "Wed, 21 Oct 2026 07:28:00 GMT";
    let said = fails(door(503, json!({"retry-after": date}), ""), json!({}));
    says(&said, &format!("is not there for now; try again after {date}"));
    let said = fails(door(200, json!({"content-type": "application/json"}), "[]"), json!({}));
    says(&said, "it answered something else than what it was asked");
    let said = fails(door(200, json!({}), ""), json!({"type": "sse"}));
    says(&said, "it answered with something else than events");
    let said = fails(door(405, json!({}), ""), json!({}));
    says(&said, "set `type` to `sse`");
}

#[test]
fn a_wrong_token_is_refused_without_being_shown() {
    let said = fails(json!({"token": "Bearer right"}), json!({"bearer_token_env_var": "TOKEN"}));
    says(&said, "HTTP 401: it wants a token, or does not know this one");
    says(&said, "it says: who are you, Bearer [redacted]?\\u{1b}[31mxxx");
    assert!(!said.contains(&"x".repeat(200)), "{said}");
    let said = fails(
        json!({"door": {"status": 401, "headers": {"www-authenticate": "Bearer resource_metadata=\"x\""}}}),
        json!({}),
    );
    says(&said, "OAuth login, which is not available in this version");
}

#[test]
fn a_server_that_is_not_there_or_silent_is_told_in_time() {
    let home = Home::new();
    home.serve(json!({"up": {"url": "http://127.0.0.1:1/mcp?key=secret"}}));
    let mut tools = command(exe());
    tools.arg("tools").args(home.arguments());
    let ended = run(tools, LIMIT);
    says(&ended.stderr, "it cannot be reached: Connection refused");
    let served = Served::start(&home, json!({}));
    home.serve(json!({"up": {"url": served.url("/mcp").replace("http:", "https:")}}));
    let mut tools = command(exe());
    tools.arg("tools").args(home.arguments());
    says(&run(tools, LIMIT).stderr, "it cannot be reached: received corrupt message");
    assert!(!ended.stderr.contains("secret"), "{}", ended.stderr);
    let said = fails(json!({"silent": true}), json!({"startup_timeout_sec": 1}));
    says(&said, "it was not ready within 1 s (startup_timeout_sec)");
    let said = fails(json!({"era": "legacy"}), json!({"headers": {"Mcp-Session-Id": "5"}}));
    says(&said, "headers.Mcp-Session-Id: this header cannot be set, it belongs to the protocol");
}

#[test]
fn a_server_is_spoken_to_in_the_era_that_is_asked_for() {
    for (era, protocol, works) in [
        ("legacy", "legacy", true),
        ("modern", "modern", true),
        ("modern", "legacy", false),
        ("legacy", "modern", false),
    ] {
        let home = Home::new();
        let served = Served::start(&home, json!({"era": era}));
        home.serve(json!({"up": {"url": served.url("/mcp")}}));
        let settings =
            home.write("server.toml", &format!("[upstream.up]\nprotocol = \"{protocol}\"\n"));
        let mut tools = command(exe());
        tools.arg("tools").args(home.arguments()).args(["--config", &settings]);
        let ended = run(tools, LIMIT);
        assert_eq!(ended.stdout.contains("mcp__up__echo"), works, "{era} {protocol}: {ended:?}");
    }
}

#[test]
fn the_old_transport_works() {
    let home = Home::new();
    let options = json!({"transport": "sse", "tools": ["echo", "status", "hang", "huge", "cut"]});
    let served = Served::start(&home, options);
    home.serve(json!({"up": {"type": "sse", "url": served.url("/sse"), "tool_timeout_sec": 1}}));
    let mut session = session(&home, &["--max-message-bytes", "100000"]);
    assert_eq!(session.tools().len(), 5);
    let result = session.call("mcp__up__echo", &json!({}));
    assert_eq!(text(&result), "this is echo");
    let result = session.call("mcp__up__status", &json!({"code": 403}));
    assert_eq!(code(&result), FAILED);
    assert!(text(&result).contains("HTTP 403: it refuses"), "{result}");
    let result = session.call("mcp__up__hang", &json!({}));
    assert_eq!(code(&result), UNKNOWN);
    home.wait_for("notifications/cancelled");
    let result = session.call("mcp__up__huge", &json!({"bytes": 200_000}));
    assert!(text(&result).contains("limits.max_message_bytes"), "{result}");
    let result = session.call("mcp__up__cut", &json!({}));
    assert_eq!(code(&result), UNKNOWN);
    let result = session.call("mcp__up__echo", &json!({}));
    assert_eq!(text(&result), "this is echo");
    assert_eq!(home.noted("cut"), 1);
}

#[test]
fn an_endpoint_of_another_origin_is_refused() {
    let options = json!({"transport": "sse", "endpoint": "http://evil.example/m"});
    let said = fails(options, json!({"type": "sse"}));
    says(
        &said,
        "it named an endpoint of another origin, http://evil.example, which is not followed",
    );
}

#[test]
fn a_server_that_is_required_ends_the_start() {
    let home = Home::new();
    home.serve(json!({"up": {"type": "sse", "url": "http://127.0.0.1:1/sse"}}));
    home.write("agent.yaml", "name: a\nmcp: { path: mcp.json }\n");
    let mut serve = command(exe());
    serve.args(["serve", "--http", "127.0.0.1:0", "--agent", &home.path("agent.yaml")]);
    serve.args(["--workspace", &home.path("workspace")]);
    let ended = run(serve, LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    says(&ended.stderr, "the upstream server up failed: it cannot be reached");
}
