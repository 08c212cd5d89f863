//! Servers that cannot be used, were restarted, or are down for a while; and what it costs others.

use std::time::Duration;

use serde_json::{Value, json};

use super::rough;
use crate::binary::{Gateway, command, exe, run};
use crate::fixture::{Home, eventually, session};
use crate::remote::Served;
use crate::session::{Session, code, names, text};
use crate::web::Web;

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Servers that cannot be used, each for another reason, and what is said of it.
fn unusable(home: &Home, locked: &Served) -> Vec<(&'static str, Value, &'static str)> {
    let mut mute = home.server(json!({"tools": [], "mute": true}));
    mute["startup_timeout_sec"] = 1.into();
    let dies = home.server(json!({"last_words": ["no database"]}));
    let bare = home.write("bare", "#!/bin/sh\n");
    vec![
        ("absent", json!({"command": "/nonexistent/cmd"}), "`/nonexistent/cmd` does not exist"),
        ("unknown", json!({"command": "no-such-cmd"}), "`no-such-cmd` was not found in PATH"),
        ("bare", json!({"command": bare}), "is not an executable file"),
        ("nowhere", json!({"command": "cat", "cwd": "/none"}), "`/none` cannot be used"),
        ("dies", dies, "no database"),
        ("mute", mute, "1 s (startup_timeout_sec)"),
        ("complains", home.server(json!({"complaint": ["", "usage: up ROOT"]})), "usage: up ROOT"),
        (
            "hasty",
            json!({"command": "sh", "args": ["-c", "echo usage: hasty; exit 2"]}),
            "usage: hasty",
        ),
        ("line", json!({"command": "/bin/sh -c s3cret"}), "`/bin/sh` alone is the `command`"),
        ("home", json!({"command": "~/bin/x"}), "the `~` in `command` is not expanded"),
        ("bare_url", json!({"url": "localhost:3000"}), "write `http://localhost:3000`"),
        ("refused", json!({"url": "http://127.0.0.1:1/mcp"}), "Connection refused"),
        ("locked", json!({"url": locked.url("/mcp")}), "HTTP 401: it wants a token"),
        ("unset", json!({"command": "cat", "args": ["${NO_SUCH}"]}), "`NO_SUCH` is not set"),
        ("misspelt", json!({"comand": "cat"}), "did you mean `command`?"),
        ("mixed", json!({"command": "cat", "url": "http://x"}), "url"),
    ]
}

#[test]
fn one_server_that_cannot_be_used_costs_no_other_and_is_named_with_its_cause() {
    let home = Home::new();
    let locked = Served::start(&home, json!({"token": "Bearer right"}));
    let unusable = unusable(&home, &locked);
    let servers = unusable.iter().map(|(name, entry, _)| ((*name).to_owned(), entry.clone()));
    let one = home.server(json!({"tools": ["echo"]}));
    home.serve(Value::Object(servers.chain([("one".to_owned(), one)]).collect()));
    let gateway = Gateway::start(&home.arguments().iter().map(String::as_str).collect::<Vec<_>>());
    let (mut older, mut newer) = (Web::new(&gateway.url), Web::new(&gateway.url));
    older.initialize();
    let echo = json!({"name": "mcp__one__echo", "arguments": {"text": "heard"}});
    let lists = [
        older.request("tools/list", &json!({})),
        newer.modern("tools/list", &json!({})),
        session(&home, &[]).request("tools/list", &json!({})),
    ];
    for list in &lists {
        assert_eq!(names(&list["result"]), ["mcp__one__echo"]);
    }
    assert_eq!(text(&older.request("tools/call", &echo)["result"]), "heard");
    assert_eq!(text(&newer.modern("tools/call", &echo)["result"]), "heard");
    assert_eq!(text(&session(&home, &[]).call("mcp__one__echo", &echo["arguments"])), "heard");
    let health = Web::new(&gateway.url).at("/healthz").get().json();
    let said = newer.modern("server/discover", &json!({}))["result"]["instructions"].take();
    let mut check = command(exe());
    check.args(["check", "--json"]).args(home.arguments());
    let check = run(check, LIMIT);
    assert_eq!(check.code, Some(1), "{check:?}");
    let check: Value = serde_json::from_str(&check.stdout).unwrap();
    let of = |report: &Value, name: &str| {
        let found = report.as_array().unwrap().iter().find(|source| source["name"] == name);
        found.unwrap_or_else(|| panic!("{name}: {report}")).clone()
    };
    for (name, _, words) in &unusable {
        let source = of(&health["sources"], name);
        assert_eq!(source["state"], "failed", "{source}");
        assert!(source["error"].as_str().unwrap().contains(words), "{words}: {source}");
        let server = of(&check["servers"], name);
        assert_eq!(server["state"], "failed", "{server}");
        assert!(server.to_string().contains(&words.replace('"', "\\\"")), "{words}: {server}");
        assert!(said.as_str().unwrap().contains(&format!("{name}: not available")), "{said}");
    }
    // What is for the operator alone: `check` has it, and clients don't.
    let (path, file) = (std::env::var("PATH").unwrap(), home.path("mcp.json"));
    for (name, detail) in
        [("unknown", &path), ("unset", &file), ("bare_url", &file), ("misspelt", &file)]
    {
        let error = of(&check["servers"], name)["error"].to_string();
        assert!(error.contains(detail.as_str()), "{name}: {error}");
        for told in [said.to_string(), health.to_string()] {
            assert!(!told.contains(detail.as_str()), "{name}: {told}");
        }
    }
}

#[test]
fn a_call_of_a_tool_whose_server_failed_says_so_and_why() {
    let home = Home::new();
    home.serve(json!({
        "my-db": {"command": "no-such-cmd"},
        "one": home.server(json!({"tools": ["echo"]})),
    }));
    let why = "unknown tool: mcp__my_db__query; the server my-db failed, so its tools are not there: \
               `no-such-cmd` was not found in PATH";
    let call = json!({"name": "mcp__my_db__query", "arguments": {}});
    let mut client = session(&home, &["--defer", "always"]);
    for answer in [client.request("tools/call", &call), client.modern("tools/call", &call)] {
        let error = &answer["error"];
        assert_eq!((&error["code"], &error["message"]), (&json!(-32602), &json!(why)));
        assert_eq!(error["data"]["code"], "NOT_FOUND");
        assert_eq!(error["data"]["upstream"], "my-db");
    }
    let through = client.call("call_tool", &json!({"name": "mcp__my_db__query"}));
    assert_eq!(text(&through), format!("Error[NOT_FOUND]: {why}"));
    let mut ours = command(exe());
    ours.args(["call", "mcp__my_db__query"]).args(home.arguments());
    let ended = run(ours, LIMIT);
    assert_eq!((ended.code, ended.stdout), (Some(1), format!("Error[NOT_FOUND]: {why}\n")));
}

#[test]
fn a_log_of_more_has_nothing_of_libraries_that_are_not_named() {
    let home = Home::with_up(json!({"tools": ["echo"]}));
    for (filter, has_theirs) in [("trace", false), ("info,rmcp=trace", true)] {
        let mut session = session(&home, &["--log", filter]);
        assert_eq!(text(&session.call("mcp__up__echo", &json!({"text": "heard"}))), "heard");
        session.close();
        session.end();
        let said = session.said();
        assert!(said.contains("iris_mcp::"), "{filter}: {said}");
        assert_eq!(said.contains("rmcp::"), has_theirs, "{filter}: {said}");
    }
}

#[test]
fn a_server_that_is_still_starting_holds_up_no_call_of_another() {
    let home = Home::new();
    let one = home.server(json!({"tools": ["echo"]}));
    let late = home.server(json!({"tools": ["late"], "gate": home.path("gate")}));
    home.serve(json!({"late": late, "one": one}));
    let gateway = Gateway::start(&home.arguments().iter().map(String::as_str).collect::<Vec<_>>());
    let health = || Web::new(&gateway.url).at("/healthz").get().json();
    eventually("one is ready", || {
        let sources = health()["sources"].take();
        sources
            .as_array()
            .unwrap()
            .iter()
            .any(|source| source["name"] == "one" && source["state"] == "ready")
    });
    let mut web = Web::new(&gateway.url);
    let echo = json!({"name": "mcp__one__echo", "arguments": {"text": "heard"}});
    assert_eq!(text(&web.modern("tools/call", &echo)["result"]), "heard");
    assert_eq!(health()["status"], "starting", "the other one is not there yet");
    home.write("gate", "");
    assert_eq!(names(&web.modern("tools/list", &json!({}))["result"]).len(), 2);
}

#[test]
fn a_name_that_a_starting_server_may_claim_waits_for_it() {
    let home = Home::new();
    // Both tools would be `mcp__late__a__b`, and the first of the servers has it.
    let late = home.server(json!({"tools": ["a__b"], "gate": home.path("gate")}));
    home.serve(json!({
        "late": late,
        "late__a": rough(&home, json!({"tools": ["b", "c"]})),
        "one": home.server(json!({"tools": ["echo"]})),
    }));
    let mut session = session(&home, &[]);
    let call = |name: &str| json!({"name": name, "arguments": {"text": "heard"}});
    let claimed = session.ask("tools/call", &call("mcp__late__a__b"));
    let unknown = session.ask("tools/call", &call("mcp__one__nothing"));
    assert_eq!(text(&session.call("mcp__one__echo", &json!({"text": "heard"}))), "heard");
    assert!(session.aside.is_empty(), "{:?}", session.aside);
    home.write("gate", "");
    assert!(text(&session.answer(claimed)["result"]).starts_with("this is a__b"));
    assert_eq!(session.answer(unknown)["error"]["data"]["code"], "NOT_FOUND");
    assert_eq!(session.tools().len(), 4);
}

#[test]
fn t20_what_is_wrong_with_a_server_is_told_without_its_values() {
    let home = Home::new();
    let url = "http://me:s3cret@127.0.0.1:1/mcp?key=s3cret";
    home.serve(json!({
        "clash": {"url": url, "headers": {"X-Key": "${KEY}"}, "http_headers": {"x-key": "s3cret-2"}, "required": false},
        "misspelt": {"comand": "s3cret", "env": {"K": "s3cret"}, "required": false},
        "mixed": {"command": "s3cret", "headers": {"K": "s3cret"}, "required": false},
        "off": {"disabled": true, "command": 5, "nonsense": {"s3cret": []}, "required": "no"},
        "one": home.server(json!({"tools": ["echo"]})),
    }));
    let agent = "permissions: {workspace: workspace}\nmcp: {path: mcp.json}\n";
    let agent = home.write("agent.yaml", agent);
    let told = |subcommand: &str, more: &[&str]| {
        let mut command = command(exe());
        command.arg(subcommand).args(["--agent", &agent]).args(more).env("KEY", "s3cret-1");
        run(command, LIMIT)
    };
    let check = told("check", &[]);
    for words in [
        "clash: http://127.0.0.1:1/mcp; ",
        "x-key: the header is given twice, with different values",
        "misspelt.comand: unknown key; did you mean `command`?",
        "switched off: off",
        "one: 1 tool",
    ] {
        assert!(check.stdout.contains(words), "{words}: {check:?}");
    }
    let call = told("call", &["mcp__one__echo", r#"{"text": "heard"}"#, "--yes"]);
    assert_eq!((call.code, call.stdout.as_str()), (Some(0), "heard\n"), "{call:?}");
    home.write("agent.yaml", "mcp: {path: mcp.json, overrides: {onne: {required: false}}}\n");
    let overridden = told("check", &[]);
    assert_eq!(overridden.code, Some(2), "{overridden:?}");
    assert!(
        overridden.stderr.contains(
            "mcp.overrides.onne: no MCP file has a server of this name; did you mean `one`?"
        ),
        "{overridden:?}"
    );
    home.write("agent.yaml", "mcp: {path: mcp.json}\n");
    home.write(
        "mcp.json",
        r#"{"mcpServers": {"a": {"command": "x", "env": {"A": "s3cret"}}}, "servers": {}}"#,
    );
    let twice = told("check", &[]);
    assert_eq!(twice.code, Some(2), "{twice:?}");
    for ended in [check, call, overridden, twice] {
        assert!(!(ended.stdout + &ended.stderr).contains("s3cret"), "a value is shown");
    }
}

#[test]
fn a_banner_on_standard_output_is_skipped_and_said_once() {
    for era in ["legacy", "modern"] {
        let home = Home::with_up(json!({"tools": ["noise", "echo"], "banner": true, "era": era}));
        let mut session = session(&home, &["--log", "warn"]);
        for _ in 0..3 {
            assert_eq!(text(&session.call("mcp__up__noise", &json!({}))), "was noisy");
            assert_eq!(text(&session.call("mcp__up__echo", &json!({"text": "heard"}))), "heard");
        }
        session.close();
        session.end();
        let said = session.said();
        let lines: Vec<&str> = said.lines().filter(|line| line.contains("no message")).collect();
        let [line] = lines.as_slice() else { panic!("{era}: {said}") };
        assert!(line.contains("*** Welcome to the fixture! ***") && line.contains("up"), "{line}");
    }
}

#[test]
fn a_server_that_was_restarted_is_called_as_if_nothing_had_been() {
    let kinds = [
        json!({"era": "legacy"}),
        json!({"era": "legacy", "oddly": true}),
        json!({"era": "legacy", "standing": true}),
        json!({"era": "modern"}),
        json!({"transport": "sse"}),
    ];
    for mut options in kinds {
        let home = Home::new();
        options["tools"] = json!(["echo"]);
        let mut served = Served::start(&home, options.clone());
        let kind = if options["transport"] == "sse" { "sse" } else { "http" };
        home.serve(json!({"up": {"type": kind, "url": served.url("/mcp")}}));
        let mut session = session(&home, &[]);
        options["port"] = served.port.into();
        for round in 0..3 {
            let result = session.call("mcp__up__echo", &json!({"text": "heard"}));
            assert_ne!(result["isError"], true, "{options} {round}: {result}");
            assert_eq!(home.noted("echo"), round + 1, "{options}");
            served.stop();
            served = Served::start(&home, options.clone());
        }
    }
}

#[test]
fn a_session_that_is_not_ours_is_answered_with_404_whatever_is_sent() {
    let home = Home::with_up(json!({"tools": ["echo"]}));
    let start = || Gateway::start(&home.arguments().iter().map(String::as_str).collect::<Vec<_>>());
    let gateway = start();
    let mut before = Web::new(&gateway.url);
    before.initialize();
    drop(gateway);
    let gateway = start();
    let address = gateway.url.strip_prefix("http://").unwrap().split('/').next().unwrap();
    // One that nobody has ever had, one of the gateway before, and one that was ended.
    let mut ended = Web::new(&gateway.url);
    ended.initialize();
    assert!(ended.open("DELETE", "").status < 300);
    let strangers = [
        Web::new(&gateway.url).header("mcp-session-id", "deadbeef"),
        before.at_address(address),
        ended,
    ];
    let echo = json!({"name": "mcp__up__echo", "arguments": {"text": "x"}});
    let of = |method: &str, params: &Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    for mut stranger in strangers {
        let messages = [
            of("ping", &json!({})),
            of("tools/list", &json!({})),
            of("tools/call", &echo),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
        ];
        for message in &messages {
            assert_eq!(stranger.post(message).status, 404, "{message}");
        }
        assert_eq!([stranger.get().status, stranger.open("DELETE", "").status], [404, 404]);
        // A client that begins anew is served.
        stranger = stranger.header("mcp-session-id", "");
        stranger.initialize();
        assert_eq!(text(&stranger.request("tools/call", &echo)["result"]), "x");
    }
}

#[test]
fn a_breaker_lets_calls_pass_again_when_the_server_is_back() {
    let home = Home::new();
    let mut served = Served::start(&home, json!({}));
    let port = served.port;
    home.serve(json!({"up": {"url": served.url("/mcp")}}));
    let breaker = "[breaker]\nfailure_threshold = 2\ncooldown_seconds = 1\n";
    let config = home.write("server.toml", breaker);
    let mut session = session(&home, &["--config", &config]);
    let call = |session: &mut Session| session.call("mcp__up__echo", &json!({"text": "heard"}));
    assert_eq!(text(&call(&mut session)), "heard");
    served.stop();
    for expected in ["MCP_CALL_FAILED", "MCP_CALL_FAILED", "CIRCUIT_OPEN"] {
        assert_eq!(code(&call(&mut session)), expected);
    }
    let _served = Served::start(&home, json!({"port": port}));
    // The first call that it lets pass makes the connection anew.
    let mut result = Value::Null;
    eventually("calls pass again", || {
        result = call(&mut session);
        result["isError"] != true || code(&result) != "CIRCUIT_OPEN"
    });
    assert_eq!(text(&result), "heard");
    assert_eq!(text(&call(&mut session)), "heard");
}

#[test]
fn a_program_is_looked_for_where_its_server_would_look() {
    let home = Home::new();
    std::fs::create_dir(home.file("bin")).unwrap();
    let python = "#!/bin/sh\nexec python3 \"$@\"\n";
    let program = home.write("bin/their-own-python", python);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    let server = |home: &Home| {
        let mut server = rough(home, json!({"tools": ["echo"]}));
        server["command"] = "their-own-python".into();
        server
    };
    let mut found = server(&home);
    found["env"] = json!({"PATH": "${BIN}:${PATH}"});
    home.serve(json!({"found": found, "lost": server(&home)}));
    let mut check = command(exe());
    check.arg("check").args(home.arguments()).env("BIN", home.path("bin"));
    let check = run(check, LIMIT);
    let shown = format!("their-own-python ({program})");
    assert!(check.stdout.contains(&shown), "{check:?}");
    assert!(check.stdout.contains("ready  found: 1 tool"), "{check:?}");
    let path = std::env::var("PATH").unwrap();
    let lost = format!("`their-own-python` was not found in PATH ({}:1:", home.path("mcp.json"));
    assert!(check.stdout.contains(&lost), "{check:?}");
    assert!(check.stdout.contains(&format!("; PATH is {path})")), "{check:?}");
}
