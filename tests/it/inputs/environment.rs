//! Expressions wherever they may stand, and what of our environment a server gets to see.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::binary::{command, exe, run};
use crate::fixture::{Home, script};
use crate::remote::Served;
use crate::session::{Session, text};

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Expressions and what they come to; `NEST` holds one itself.
const EXPRESSIONS: [(&str, &str); 12] = [
    ("${A}", "a b"),
    ("${env:A}", "a b"),
    ("${A:-d}", "a b"),
    ("${env:A:-d}", "a b"),
    ("${NONE:-d}", "d"),
    ("${env:NONE:-d}", "d"),
    ("${EMPTY:-d}", "d"),
    ("<${EMPTY}>", "<>"),
    ("${NEST}", "${A}"),
    ("$$", "$$"),
    ("$${A}", "$a b"),
    ("$A ${A", "$A ${A"),
];

/// What the gateway finds in its environment.
fn host(command: &mut std::process::Command, home: &Home) {
    command.env("A", "a b").env("EMPTY", "").env("NEST", "${A}").env_remove("NONE");
    command.env("FOLDER", home.path("")).env("SECRET_TOKEN", "s3cret");
    command.env("AWS_SECRET_ACCESS_KEY", "s3cret").env("HTTPS_PROXY", "http://me:s3cret@proxy");
}

/// Starts the gateway, which says all it has to say.
fn start(home: &Home, more: &[&str]) -> Session {
    let mut arguments = home.arguments();
    arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
    let mut session = Session::start_with(&arguments, |command| {
        host(command, home);
        command.env("IRIS_MCP_LOG", "trace");
    });
    session.initialize();
    session
}

/// Returns the environment, arguments and folder that a server was started with.
#[track_caller]
fn seen(session: &mut Session, server: &str) -> [Value; 3] {
    let result = session.call(&format!("mcp__{server}__environment"), &json!({}));
    serde_json::from_str(text(&result)).unwrap_or_else(|_| panic!("{result}"))
}

#[test]
fn ex_9_1_every_form_is_replaced_in_all_that_starts_a_server() {
    let home = Home::new();
    for folder in ["a b", "$$"] {
        fs::create_dir(home.file(folder)).unwrap();
        let program = home.write(&format!("{folder}/python"), "#!/bin/sh\nexec python3 \"$@\"\n");
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let lines = EXPRESSIONS.iter().enumerate();
    let dotenv: Vec<String> =
        lines.map(|(number, (written, _))| format!("FILE{number}='{written}'\n")).collect();
    home.write("a b/vars", &dotenv.concat());
    let mut servers = Map::new();
    let commands =
        ["${FOLDER}${A}/python", "${env:FOLDER}${NONE:-a b}/python", "${FOLDER}$$/python"];
    for (number, program) in commands.iter().enumerate() {
        let mut up = home.server(json!({"tools": ["environment"]}));
        up["command"] = (*program).into();
        let args = up["args"].as_array_mut().unwrap();
        args.extend(EXPRESSIONS.iter().map(|(written, _)| Value::from(*written)));
        let env = EXPRESSIONS.iter().enumerate();
        up["env"] = env
            .map(|(number, (written, _))| (format!("ENV{number}"), Value::from(*written)))
            .collect();
        up["envFile"] = "${A}/${NONE:-vars}".into();
        up["cwd"] = ["${A}", "${FOLDER}a b", "./$$"][number].into();
        servers.insert(format!("s{number}"), up);
    }
    home.serve(Value::Object(servers));
    let mut session = start(&home, &[]);
    for (number, folder) in ["a b", "a b", "$$"].into_iter().enumerate() {
        let [environment, arguments, cwd] = seen(&mut session, &format!("s{number}"));
        let expected: Vec<&str> = EXPRESSIONS.iter().map(|(_, expected)| *expected).collect();
        assert_eq!(arguments, json!(expected));
        assert_eq!(cwd, home.path(folder));
        for (number, (written, expected)) in EXPRESSIONS.iter().enumerate() {
            assert_eq!(environment[format!("ENV{number}")], *expected, "env: {written}");
            assert_eq!(environment[format!("FILE{number}")], *expected, "envFile: {written}");
        }
    }
}

#[test]
fn ex_9_1_every_form_is_replaced_in_urls_and_headers() {
    let home = Home::new();
    let served = Served::start(&home, json!({"tools": ["headers"]}));
    let port = served.port;
    let urls = [
        (format!("http://127.0.0.1:{port}/${{EMPTY:-d}}"), "/d"),
        (format!("${{NONE:-http://127.0.0.1:{port}/x}}"), "/x"),
        (format!("http://127.0.0.1:{port}/?a=${{env:A}}&b=$$"), "/?a=a%20b&b=$$"),
    ];
    for (url, path) in urls {
        let headers = EXPRESSIONS.iter().enumerate();
        let headers: Map<String, Value> = headers
            .map(|(number, (written, _))| {
                (format!("X-{number}"), Value::from(format!("<{written}>")))
            })
            .collect();
        home.serve(json!({"up": {"url": url, "headers": headers}}));
        let mut session = start(&home, &[]);
        let result = session.call("mcp__up__headers", &json!({}));
        let sent: Value = serde_json::from_str(text(&result)).unwrap();
        assert_eq!(sent[":path"], path, "{url}");
        for (number, (written, expected)) in EXPRESSIONS.iter().enumerate() {
            assert_eq!(sent[format!("x-{number}")], format!("<{expected}>"), "{written}");
        }
    }
}

#[test]
fn ex_9_1_a_variable_that_is_not_set_is_an_error_that_names_it_wherever_it_stands() {
    let home = Home::new();
    let url = "http://127.0.0.1:1/mcp";
    let places = [
        ("command", json!({"command": "${NONE}"})),
        ("args[1]", json!({"command": "cat", "args": ["x", "${NONE}"]})),
        ("cwd", json!({"command": "cat", "cwd": "${NONE}/x"})),
        ("env.K", json!({"command": "cat", "env": {"K": "${env:NONE}"}})),
        ("env_vars[0]", json!({"command": "cat", "env_vars": ["NONE"]})),
        ("envFile", json!({"command": "cat", "envFile": "${NONE}"})),
        ("envFile.K", json!({"command": "cat", "envFile": home.write("vars", "K=${NONE}\n")})),
        ("url", json!({"url": "${NONE}"})),
        ("headers.K", json!({"url": url, "headers": {"K": "x${NONE}"}})),
        ("env_http_headers.K", json!({"url": url, "env_http_headers": {"K": "NONE"}})),
        ("bearer_token_env_var", json!({"url": url, "bearer_token_env_var": "NONE"})),
    ];
    let entries = places.iter().enumerate();
    let servers = entries.map(|(number, (_, entry))| (format!("s{number}"), entry.clone()));
    home.serve(Value::Object(servers.collect()));
    let mut check = command(exe());
    check.args(["check", "--json"]).args(home.arguments());
    host(&mut check, &home);
    let check = run(check, LIMIT);
    assert_eq!(check.code, Some(1), "{check:?}");
    let report: Value = serde_json::from_str(&check.stdout).unwrap();
    for (server, (place, _)) in report["servers"].as_array().unwrap().iter().zip(numbered(&places))
    {
        assert_eq!(server["state"], "failed", "{server}");
        let words = format!("{place}: the environment variable `NONE` is not set");
        assert!(server.to_string().contains(&words), "{words}: {server}");
    }
}

/// Puts entries into the order that servers called by their numbers have.
fn numbered<T>(entries: &[T]) -> Vec<&T> {
    let mut numbers: Vec<usize> = (0..entries.len()).collect();
    numbers.sort_by_key(|number| format!("s{number}"));
    numbers.into_iter().map(|number| &entries[number]).collect()
}

#[test]
fn no_secret_of_ours_reaches_a_server_unless_it_is_declared() {
    let home = Home::new();
    let server = || json!({"command": "python3", "args": [script("upstream.py"), r#"{"tools": ["environment"]}"#]});
    let mut declared = server();
    declared["env_vars"] = json!(["SECRET_TOKEN"]);
    home.serve(json!({"plain": server(), "declared": declared, "inherits": server()}));
    let config = home.write("server.toml", "[upstream.inherits]\ninherit_env = ['SECRET_TOKEN']\n");
    let mut session = start(&home, &["--config", &config]);
    let [plain, ..] = seen(&mut session, "plain");
    assert!(!plain.to_string().contains("s3cret"), "{plain}");
    for name in ["A", "NEST", "FOLDER", "IRIS_MCP_LOG", "HTTPS_PROXY"] {
        assert!(plain.get(name).is_none(), "{name}: {plain}");
    }
    // What it cannot do without; a launcher of Python may put more before the path.
    let of = |name: &str| plain[name].as_str().unwrap();
    assert_eq!(of("HOME"), std::env::var("HOME").unwrap());
    assert!(of("PATH").ends_with(&std::env::var("PATH").unwrap()), "{plain}");
    for name in ["declared", "inherits"] {
        let [environment, ..] = seen(&mut session, name);
        assert_eq!(environment["SECRET_TOKEN"], "s3cret", "{name}");
        assert!(environment.get("AWS_SECRET_ACCESS_KEY").is_none(), "{name}");
    }
    // A trace of messages shows what a tool answered, and nothing else does.
    let said = session.said();
    let line =
        said.lines().find(|line| line.contains("s3cret") && !line.contains("SECRET_TOKEN\\"));
    assert!(line.is_none(), "{line:?}");
}
