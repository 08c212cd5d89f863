//! The files under `tests/mcp-files`, overrides, and several files together.
//!
//! A file there is a case: beside it stands what it comes to, or the message it is refused with.

use std::fs;

use expect_test::expect_file;

use super::*;

fn cases(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp-files").join(folder);
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|suffix| suffix != "txt"));
    files.sort();
    files
}

/// Loads a file as if the current folder were its own.
fn load_case(file: &Path) -> Result<Loaded, String> {
    let shown = |error: LoadError| {
        error.to_string().replace(&format!("{}/", file.parent().unwrap().display()), "")
    };
    load(&[file.to_owned()], &Overrides::new(), OnError::Fail).map_err(shown)
}

fn expected(file: &Path) -> PathBuf {
    file.with_extension(format!("{}.txt", file.extension().unwrap().display()))
}

fn pairs(pairs: &[(String, Secret)]) -> String {
    let pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{name}={}", value.expose())).collect();
    pairs.join(" ")
}

fn render(loaded: &Loaded) -> String {
    let mut lines = Vec::new();
    for server in &loaded.servers {
        let Server {
            name,
            position,
            transport,
            required,
            startup_timeout,
            tool_timeout,
            filter,
            ..
        } = server;
        lines.push(format!("{name} at {position}, required: {required}, start: {startup_timeout:?}, call: {tool_timeout:?}"));
        match transport {
            Transport::Stdio(stdio) => {
                let Stdio { command, args, cwd, env, env_vars, env_file } = stdio;
                lines.push(format!("  stdio {command} {args:?} cwd: {cwd:?}, file: {env_file:?}, inherits: {env_vars:?}, env: {}", pairs(env)));
            }
            Transport::Http(http) | Transport::Sse(http) => {
                let kind = if matches!(transport, Transport::Sse(_)) { "sse" } else { "http" };
                let Http { url, headers, env_http_headers, bearer_token_env_var } = http;
                lines.push(format!("  {kind} {url} headers: {}, from env: {env_http_headers:?}, bearer: {bearer_token_env_var:?}", pairs(headers)));
            }
        }
        lines.push(format!("  tools: {:?} without {:?}", filter.enabled, filter.disabled));
    }
    lines.push(format!("off: {:?}", loaded.disabled));
    for diagnostic in &loaded.diagnostics {
        lines.push(serde_json::to_string(diagnostic).unwrap());
    }
    lines.join("\n") + "\n"
}

#[test]
fn t20_every_invalid_file_is_refused_with_the_message_beside_it() {
    let files = cases("invalid");
    assert!(files.len() >= 40);
    for file in files {
        let error =
            load_case(&file).map(|loaded| render(&loaded)).expect_err(&file.display().to_string());
        for secret in ["sk-secret", "npx", "8080", "websocket", "example"] {
            assert!(!error.contains(secret), "{error}");
        }
        expect_file![expected(&file)].assert_eq(&format!("{error}\n"));
    }
}

#[test]
fn t20_every_valid_file_comes_to_what_stands_beside_it() {
    for file in cases("valid") {
        let folder = file.parent().unwrap().display().to_string();
        let loaded = load_case(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let shown = render(&loaded).replace(&format!("{folder}/"), "");
        expect_file![expected(&file)].assert_eq(&shown);
        assert!(loaded.servers.iter().all(|server| server.directory == Path::new(&folder)));
        assert!(!format!("{loaded:?}").contains("sk-secret"));
    }
}

fn document(path: &str, text: &str) -> Document {
    Document::parse(path, Format::Json5, text).unwrap()
}

fn overrides(text: &str) -> Overrides {
    Document::parse("agent.yaml", Format::Yaml, text).unwrap().decode().unwrap()
}

#[track_caller]
fn check_override(text: &str, expected: &str) {
    let document = Document::parse("agent.yaml", Format::Yaml, text).unwrap();
    let error = document.decode::<Overrides>().expect_err(text);
    assert_eq!(error.to_string(), expected, "{text}");
}

#[test]
fn an_override_wins_and_null_keeps_what_is_declared() {
    let files = [document(
        "mcp.json",
        "{servers: {a: {command: 'run', tool_timeout_sec: 7, required: false}, b: {command: 'run'}}}",
    )];
    let text = "a: {required: true, trust_annotations: true, tool_timeout_sec: null, startup_timeout_sec: 0.5}";
    let loaded = read(&files, &overrides(text), OnError::Fail).unwrap();
    let [a, b] = loaded.servers.as_slice() else { panic!("{loaded:?}") };
    assert!(a.required && a.trust_annotations);
    assert_eq!(a.tool_timeout, Duration::from_secs(7));
    assert_eq!(a.startup_timeout, Duration::from_millis(500));
    assert!(b.required && !b.trust_annotations);
    assert_eq!((b.tool_timeout, b.startup_timeout), (DEFAULT_TIMEOUT, DEFAULT_TIMEOUT));
}

#[test]
fn a_file_with_comments_and_its_overrides() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp-files/valid/lazy.jsonc");
    let changes = overrides("clock: {trust_annotations: true, tool_timeout_sec: 5}");
    let loaded = load(&[file], &changes, OnError::Fail).unwrap();
    let [clock] = loaded.servers.as_slice() else { panic!("{loaded:?}") };
    assert!(clock.trust_annotations);
    assert_eq!(clock.tool_timeout, Duration::from_secs(5));
}

#[test]
fn overrides_are_strict() {
    check_override(
        "a: {tool_timeout_sec: '30'}",
        "agent.yaml:1:23: a.tool_timeout_sec: expected a number, found a string; write it without quotes",
    );
    check_override(
        "a: {tool_timeout_sec: 0}",
        "agent.yaml:1:23: a.tool_timeout_sec: a time limit is a number above 0",
    );
    check_override(
        "a: {required: 1}",
        "agent.yaml:1:15: a.required: expected a boolean, found an integer; write `true` or `false`, without quotes",
    );
    check_override(
        "a: {trust: true}",
        "agent.yaml:1:5: a.trust: unknown key; known are `required`, `trust_annotations`, `startup_timeout_sec` and `tool_timeout_sec`",
    );
}

#[test]
fn t20_an_override_of_an_unknown_server_is_an_error() {
    let files =
        [document("mcp.json", "{servers: {clock: {command: 'run'}, off: {disabled: true}}}")];
    let error = |text| read(&files, &overrides(text), OnError::Skip).unwrap_err().to_string();
    assert_eq!(
        error("{zoo: {}, clok: {}}"),
        "no MCP file has the server `clok` that is overridden; did you mean `clock`?"
    );
    assert_eq!(
        error("{nope: {required: false}}"),
        "no MCP file has the server `nope` that is overridden"
    );
    assert!(read(&files, &overrides("{off: {required: true}}"), OnError::Fail).is_ok());
}

#[test]
fn a_server_in_two_files_is_an_error() {
    let files = [
        document("one.json", "{servers: {a: {command: 'run'}, b: {command: 'run'}}}"),
        document("two.json", "{mcpServers: {c: {command: 'run'},\n b: {disabled: true}}}"),
    ];
    let error = read(&files, &Overrides::new(), OnError::Skip).unwrap_err();
    assert_eq!(
        error.to_string(),
        "two.json:2:2: mcpServers.b: this server is already in one.json:1:33"
    );
    let loaded = read(&files[..1], &Overrides::new(), OnError::Skip).unwrap();
    assert_eq!(loaded.servers.len(), 2);
}

#[test]
fn servers_of_several_files_come_by_name() {
    let files = [
        document("one.json", "{servers: {m: {command: 'run'}, Z: {command: 'run'}}}"),
        document("two.json", "{servers: {b: {command: 'run'}}}"),
    ];
    let loaded = read(&files, &Overrides::new(), OnError::Fail).unwrap();
    let names: Vec<&str> = loaded.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["Z", "b", "m"]);
}

#[test]
fn t20_who_is_required_decides_what_a_mistake_does() {
    let read_with = |required: &str, changes: &str, on_error| {
        let text = format!("{{servers: {{a: {{comand: 'run'{required}}}}}}}");
        read(&[document("mcp.json", &text)], &overrides(changes), on_error)
    };
    let fails = |required, changes| read_with(required, changes, OnError::Fail).is_err();
    assert!(fails("", "{}"));
    assert!(fails(", required: true", "{}"));
    assert!(fails(", required: 'false'", "{}"));
    assert!(!fails(", required: false", "{}"));
    assert!(fails(", required: false", "a: {required: true}"));
    assert!(!fails("", "a: {required: false}"));
    let loaded = read_with("", "{}", OnError::Skip).unwrap();
    let [diagnostic] = loaded.diagnostics.as_slice() else { panic!("{loaded:?}") };
    assert_eq!(
        serde_json::to_value(diagnostic).unwrap(),
        serde_json::json!({
            "server_id": "a", "stage": "config", "code": "MCP_CONFIG_INVALID", "severity": "error",
            "field": "comand", "message": "servers.a.comand: unknown key; did you mean `command`?"
        })
    );
    assert_eq!(
        diagnostic.to_string(),
        "a: servers.a.comand: unknown key; did you mean `command`? (mcp.json:1:16)"
    );
}

#[test]
fn a_broken_entry_is_fatal_unless_failures_are_skipped() {
    for entry in
        ["5", "{command: 'run', enabled: 1}", "{required: false, enabled: true, disabled: true}"]
    {
        let files =
            [document("mcp.json", &format!("{{servers: {{a: {entry}, b: {{command: 'run'}}}}}}"))];
        assert!(
            read(&files, &overrides("a: {required: false}"), OnError::Fail).is_err(),
            "{entry}"
        );
        let loaded = read(&files, &Overrides::new(), OnError::Skip).unwrap();
        assert_eq!((loaded.servers.len(), loaded.diagnostics.len()), (1, 1), "{entry}");
    }
}

#[test]
fn exclusion_beats_inclusion() {
    let filter = |enabled: Option<&[&str]>, disabled: &[&str]| Filter {
        enabled: enabled.map(|names| names.iter().map(|&name| name.to_owned()).collect()),
        disabled: disabled.iter().map(|&name| name.to_owned()).collect(),
    };
    assert!(filter(None, &[]).admits("x"));
    assert!(!filter(None, &["x"]).admits("x"));
    assert!(!filter(Some(&[]), &[]).admits("x"));
    assert!(filter(Some(&["x"]), &["y"]).admits("x"));
    assert!(!filter(Some(&["x"]), &["x"]).admits("x"));
}

#[test]
fn a_type_is_known_in_every_spelling_that_clients_use() {
    for (name, is_http) in [
        ("http", true),
        ("streamableHttp", true),
        ("streamable-http", true),
        ("streamable_http", true),
        ("StreamableHTTP", true),
        ("sse", false),
        ("SSE", false),
    ] {
        let text = format!("{{servers: {{a: {{type: '{name}', url: 'http://x'}}}}}}");
        let files = [document("mcp.json", &text)];
        let loaded = read(&files, &Overrides::new(), OnError::Fail).unwrap();
        assert_eq!(matches!(loaded.servers[0].transport, Transport::Http(_)), is_http, "{name}");
    }
}
