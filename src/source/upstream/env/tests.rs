//! EX-9.1, EX-9.2, and the environment of a child.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::document::{Document, Format, Kind, Node, Position};
use crate::source::upstream::config::Filter;

fn variables() -> BTreeMap<String, String> {
    let pairs =
        [("TOKEN", "abc"), ("EMPTY", ""), ("NEST", "${TOKEN}"), ("env", "e"), ("OTHER", "o")];
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(expand(text, &variables()).as_deref(), Ok(expected), "{text}");
}

#[track_caller]
fn check_error(text: &str, expected: &str) {
    let error = expand(text, &variables()).expect_err(text);
    assert_eq!(error.to_string(), expected, "{text}");
}

#[test]
fn ex_9_1_expressions() {
    check("${TOKEN}", "abc");
    check("${env:TOKEN}", "abc");
    check("${MISSING:-x}", "x");
    check("${EMPTY:-x}", "x");
    check("${EMPTY}", "");
    check("${NEST}", "${TOKEN}");
    check("a-${TOKEN}-b", "a-abc-b");
    check("${workspaceFolder:-x}", "x");
    check("$TOKEN", "$TOKEN");
    check("${TOKEN", "${TOKEN");
    check("$${TOKEN}", "$abc");
    check("${MISSING:-a}b}", "ab}");
    check("${MISSING:-}", "");
    check("${env:MISSING:-d:-e}", "d:-e");
}

#[test]
fn ex_9_1_expressions_without_a_value() {
    let not_set = |name: &str| {
        format!(
            "the environment variable `{name}` is not set; set it, or write `${{{name}:-default}}`"
        )
    };
    check_error("${MISSING}", &not_set("MISSING"));
    check_error("${env:workspaceFolder}", &not_set("workspaceFolder"));
    let ours =
        "is no expression of ours; those are `${NAME}`, `${env:NAME}` and `${NAME:-default}`";
    check_error("${workspaceFolder}", &format!("`${{workspaceFolder}}` {ours}"));
    check_error("${CLAUDE_PLUGIN_ROOT}", &format!("`${{CLAUDE_PLUGIN_ROOT}}` {ours}"));
    for word in ["input", "file", "command"] {
        check_error(&format!("${{{word}:x}}"), &format!("`${{{word}:…}}` {ours}"));
    }
    check_error("${}", &format!("this {ours}"));
    check_error("${1A}", &format!("this {ours}"));
    check_error("${s3cr-et}", &format!("this {ours}"));
}

#[test]
fn more_expressions() {
    check("${TOKEN}${TOKEN}", "abcabc");
    check("${MISSING:-a\nb}", "a\nb");
    check("${env:-x}", "e");
    check("${TOKEN:-x}", "abc");
    check("a}b", "a}b");
    check("${MISSING:-${TOKEN}", "${TOKEN");
    check("", "");
}

/// Resolves a server whose MCP file is in `/conf`.
fn resolved(transport: Transport, dotenv: &str) -> Result<Resolved, ResolveError> {
    let nothing = Node::new(Position { line: 1, column: 6 }, Kind::Null);
    resolve_as(nothing, transport, dotenv)
}

fn resolve_as(written: Node, transport: Transport, dotenv: &str) -> Result<Resolved, ResolveError> {
    let server = Server {
        name: "s".to_owned(),
        file: "/conf/mcp.json".into(),
        position: Position { line: 1, column: 1 },
        path: "mcpServers.s".to_owned(),
        written,
        directory: "/conf".into(),
        transport,
        required: true,
        startup_timeout: Duration::from_secs(1),
        tool_timeout: Duration::from_secs(1),
        filter: Filter::default(),
        trust_annotations: false,
    };
    let read = |path: &Path| match path.to_str() {
        Some("/conf/.env") => Ok(dotenv.as_bytes().to_vec()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let host = Host { variables: &variables(), workspace: Path::new("/work"), read: &read };
    resolve(&server, host)
}

fn secrets(pairs: &[(&str, &str)]) -> Vec<(String, Secret)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect()
}

fn stdio() -> Stdio {
    Stdio {
        command: "c".to_owned(),
        args: Vec::new(),
        cwd: None,
        env: Vec::new(),
        env_vars: Vec::new(),
        env_file: None,
    }
}

fn http() -> Http {
    Http {
        url: "https://example.com/mcp".to_owned(),
        headers: Vec::new(),
        env_http_headers: Vec::new(),
        bearer_token_env_var: None,
    }
}

#[track_caller]
fn check_resolve_error(transport: Transport, expected: &str) {
    let error = resolved(transport, "").expect_err(expected);
    assert_eq!(error.to_string(), expected);
    assert!(!format!("{error:?}").contains("abc"));
}

#[test]
fn env_beats_the_dotenv_file_and_that_the_inherited_variables() {
    let description = Stdio {
        command: "${TOKEN}/run".to_owned(),
        args: vec!["--x=${MISSING:-1}".to_owned(), "./rel".to_owned()],
        env: secrets(&[("OTHER", "from env"), ("D", "${env:TOKEN}")]),
        env_vars: vec!["TOKEN".to_owned(), "OTHER".to_owned(), "EMPTY".to_owned()],
        env_file: Some("${MISSING:-.env}".to_owned()),
        ..stdio()
    };
    let dotenv = "TOKEN=file\nA=${TOKEN}\nOTHER=file\nNOTHING\nB='$A'\n?\nBAD LINE\n";
    let Ok(Resolved::Stdio { command, args, cwd, env, skipped_lines }) =
        resolved(Transport::Stdio(description), dotenv)
    else {
        panic!("it resolves");
    };
    assert_eq!(command, "abc/run");
    assert_eq!(args, ["--x=1", "./rel"]);
    assert_eq!(cwd, Path::new("/work"));
    // `${TOKEN}` in the file is the host's, not the file's own.
    let expected = [
        ("A", "abc"),
        ("B", "$A"),
        ("D", "abc"),
        ("EMPTY", ""),
        ("OTHER", "from env"),
        ("TOKEN", "file"),
    ];
    let env: Vec<(&str, &str)> =
        env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(env, expected);
    assert_eq!(skipped_lines, ["/conf/.env:7"]);
}

#[test]
fn a_relative_folder_starts_from_the_mcp_file() {
    let folder = |cwd: &str| {
        let description = Stdio { cwd: Some(cwd.to_owned()), ..stdio() };
        match resolved(Transport::Stdio(description), "") {
            Ok(Resolved::Stdio { cwd, .. }) => cwd,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(folder("sub"), Path::new("/conf/sub"));
    assert_eq!(folder("/abs"), Path::new("/abs"));
    assert_eq!(folder("${TOKEN}/x"), Path::new("/conf/abc/x"));
}

const NOT_SET: &str = "the environment variable `MISSING` is not set";
const SET: &str = "; set it where the gateway runs";
const ADVICE: &str = "; set it, or write `${MISSING:-default}`";

#[test]
fn what_cannot_be_resolved_for_a_process_is_named_without_a_value() {
    let missing = || "${MISSING}".to_owned();
    let stdio_error = |description, expected: &str| {
        check_resolve_error(Transport::Stdio(description), expected);
    };
    stdio_error(
        Stdio { command: missing(), ..stdio() },
        &format!("mcpServers.s.command: {NOT_SET}{ADVICE}"),
    );
    stdio_error(
        Stdio { args: vec!["a".into(), missing()], ..stdio() },
        &format!("mcpServers.s.args[1]: {NOT_SET}{ADVICE}"),
    );
    stdio_error(
        Stdio { env: secrets(&[("A.B", "x${MISSING}")]), ..stdio() },
        &format!("mcpServers.s.env.\"A.B\": {NOT_SET}{ADVICE}"),
    );
    stdio_error(
        Stdio { env_vars: vec!["MISSING".into()], ..stdio() },
        &format!("mcpServers.s.env_vars[0]: {NOT_SET}{SET}"),
    );
    stdio_error(
        Stdio { cwd: Some(missing()), ..stdio() },
        &format!("mcpServers.s.cwd: {NOT_SET}{ADVICE}"),
    );
    stdio_error(
        Stdio { env_file: Some("other.env".into()), ..stdio() },
        "mcpServers.s.envFile: the dotenv file cannot be read: entity not found (`other.env`, from /conf)",
    );
    let process = "this cannot be handed to a process: it is empty or has a NUL";
    stdio_error(
        Stdio { command: "${EMPTY}".into(), ..stdio() },
        &format!("mcpServers.s.command: {process}"),
    );
    stdio_error(
        Stdio { args: vec!["a\0b".into()], ..stdio() },
        &format!("mcpServers.s.args[0]: {process}"),
    );
    stdio_error(
        Stdio { env: secrets(&[("A=B", "x")]), ..stdio() },
        "mcpServers.s.env.\"A=B\": this cannot be the name of a variable: it is empty, or has a `=` or a NUL; write the name alone, and its value after the colon",
    );
}

#[test]
fn what_cannot_be_resolved_for_a_url_is_named_without_a_value() {
    let http_error = |description, expected: &str| {
        check_resolve_error(Transport::Http(description), expected);
    };
    http_error(
        Http { url: "ftp://x".into(), ..http() },
        "mcpServers.s.url: this is no http or https URL",
    );
    http_error(
        Http { url: "${TOKEN}".into(), ..http() },
        "mcpServers.s.url: this is no http or https URL",
    );
    http_error(
        Http { headers: secrets(&[("X", "${MISSING}")]), ..http() },
        &format!("mcpServers.s.headers.X: {NOT_SET}{ADVICE}"),
    );
    http_error(
        Http { headers: secrets(&[("X y", "1")]), ..http() },
        "mcpServers.s.headers.\"X y\": this cannot be a header",
    );
    http_error(
        Http { headers: secrets(&[("Mcp-Session-Id", "1")]), ..http() },
        "mcpServers.s.headers.Mcp-Session-Id: this header cannot be set, it belongs to the protocol; remove it",
    );
    http_error(
        Http { headers: secrets(&[("X", "a\r\nb: c")]), ..http() },
        "mcpServers.s.headers.X: this cannot be a header",
    );
    http_error(
        Http { bearer_token_env_var: Some("MISSING".into()), ..http() },
        &format!("mcpServers.s.bearer_token_env_var: {NOT_SET}{SET}"),
    );
    http_error(
        Http { env_http_headers: vec![("X".into(), "MISSING".into())], ..http() },
        &format!("mcpServers.s.env_http_headers.X: {NOT_SET}{SET}"),
    );
    // T20
    http_error(
        Http { headers: secrets(&[("X-Key", "${TOKEN}"), ("x-key", "abcd")]), ..http() },
        "mcpServers.s.headers.x-key: the header is given twice, with different values",
    );
}

#[test]
fn a_value_that_is_found_bad_when_it_is_used_has_its_place() {
    let text = "{\n  mcpServers: {\n    s: {serverUrl: 'localhost:3000',\n     http_headers: {'X-Y': '${MISSING}'},\n     args: ['a',\n       '${MISSING}'], env: {A: 1}}\n  }\n}";
    let document = Document::parse("dir/mcp.json", Format::Json5, text).unwrap();
    let written = document.root.find("mcpServers.s").unwrap().clone();
    let place = |transport| {
        let error = resolve_as(written.clone(), transport, "").unwrap_err();
        let cause = error.into_cause();
        (cause.reason, cause.detail.unwrap())
    };
    let url = "localhost:3000".to_owned();
    assert_eq!(
        place(Transport::Http(Http { url, ..http() })),
        (
            "mcpServers.s.serverUrl: this is no http or https URL; write `http://localhost:3000`"
                .to_owned(),
            "/conf/mcp.json:3:20".to_owned()
        )
    );
    let headers = secrets(&[("X-Y", "${MISSING}")]);
    assert_eq!(
        place(Transport::Sse(Http { headers, ..http() })),
        (
            format!("mcpServers.s.http_headers.X-Y: {NOT_SET}{ADVICE}"),
            "/conf/mcp.json:4:28".to_owned()
        )
    );
    let args = vec!["a".to_owned(), "${MISSING}".to_owned()];
    let (_, place_of_item) = place(Transport::Stdio(Stdio { args, ..stdio() }));
    assert_eq!(place_of_item, "/conf/mcp.json:6:8");
    // What the file does not have itself is placed at the nearest thing that it has.
    let env = secrets(&[("B", "${MISSING}")]);
    let (_, nearest) = place(Transport::Stdio(Stdio { env, ..stdio() }));
    assert_eq!(nearest, "/conf/mcp.json:6:28");
}

#[test]
fn the_url_is_told_that_was_meant_by_one_without_a_scheme() {
    for (written, meant_by_it) in [
        ("htps://example.com/mcp", Some("https://example.com/mcp")),
        ("htp://me:abc@example.com/mcp?k=abc", Some("http://example.com/mcp")),
        (
            "htps://example.com/ghp_abcdefghijklmnopqrstuvwxyz0123456789/mcp",
            Some("https://example.com/****************************************/mcp"),
        ),
        ("htps://${HOST}/mcp", None),
        ("localhost:3000", Some("http://localhost:3000")),
        (" 127.0.0.1:3000/mcp?key=s3cret", Some("http://127.0.0.1:3000/mcp")),
        ("me:s3cret@db:81/x", Some("http://db:81/x")),
        ("//mcp.example.com/mcp", Some("https://mcp.example.com/mcp")),
        ("[::1]:80", Some("http://[::1]:80")),
        ("mcp", None),
        ("stdio:", None),
        ("ftp://x", None),
        ("${HOST}:80", None),
        ("npx -y foo", None),
        ("", None),
    ] {
        assert_eq!(meant(written).as_deref(), meant_by_it, "{written}");
    }
}

#[test]
fn a_dotenv_file_in_a_home_folder_is_not_looked_for_there() {
    let description = Stdio { env_file: Some("~/.env".to_owned()), ..stdio() };
    let error = resolved(Transport::Stdio(description), "").unwrap_err().to_string();
    assert!(
        error.ends_with("; `~` is not expanded: write the whole path, or `${HOME}`"),
        "{error}"
    );
}

#[test]
fn ex_9_2_the_same_header_merges() {
    let description = Http {
        headers: secrets(&[
            ("Authorization", "Bearer ${TOKEN}"),
            ("authorization", "Bearer ${env:TOKEN}"),
            ("X-Two", "2"),
        ]),
        env_http_headers: vec![("X-Env".to_owned(), "OTHER".to_owned())],
        bearer_token_env_var: Some("TOKEN".to_owned()),
        ..http()
    };
    for (transport, sse) in
        [(Transport::Http(description.clone()), false), (Transport::Sse(description), true)]
    {
        let endpoint = match resolved(transport, "") {
            Ok(Resolved::Http(endpoint)) if !sse => endpoint,
            Ok(Resolved::Sse(endpoint)) if sse => endpoint,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            endpoint.headers,
            secrets(&[("authorization", "Bearer abc"), ("x-two", "2"), ("x-env", "o")])
        );
    }
}

#[test]
fn nothing_that_is_resolved_shows_a_value() {
    let description = Http {
        url: "https://user:abc@example.com/abc?key=abc".to_owned(),
        headers: secrets(&[("X", "abc")]),
        ..http()
    };
    let shown = format!("{:?}", resolved(Transport::Http(description.clone()), ""));
    assert_eq!(
        shown,
        "Ok(Http(Endpoint { origin: \"https://example.com\", headers: [(\"x\", [redacted])], .. }))"
    );
    assert!(!format!("{description:?}").contains("abc"));
    let description = Stdio {
        command: "abc".to_owned(),
        args: vec!["abc".to_owned()],
        env: secrets(&[("A", "abc")]),
        ..stdio()
    };
    let shown = format!("{:?}", resolved(Transport::Stdio(description), ""));
    assert!(!shown.contains("abc"), "{shown}");
}

#[track_caller]
fn check_dotenv(text: &str, expected: &[(&str, Option<&str>)], skipped: &[usize]) {
    let parsed = dotenv::parse(text);
    let entries: Vec<(&str, Option<&str>)> = parsed
        .entries
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_ref().map(Secret::expose)))
        .collect();
    assert_eq!(entries, expected, "{text}");
    assert_eq!(parsed.skipped_lines, skipped, "{text}");
}

#[test]
fn dotenv_files() {
    check_dotenv("", &[], &[]);
    check_dotenv("\u{feff}A=1\r\nB=2\r\n", &[("A", Some("1")), ("B", Some("2"))], &[]);
    check_dotenv("# c\n\n  A = 1 # c\nB=x#y\n", &[("A", Some("1")), ("B", Some("x#y"))], &[]);
    check_dotenv("export A=1\nexport=2\n", &[("A", Some("1")), ("export", Some("2"))], &[]);
    check_dotenv("A=\nB\nC=''\n", &[("A", Some("")), ("B", None), ("C", Some(""))], &[]);
    check_dotenv("A='it\\'s \\n $B ${C}' # c\n", &[("A", Some("it's \\n $B ${C}"))], &[]);
    check_dotenv("A=\"a\\nb\\t\\\"q\\\" \\x # no\"\n", &[("A", Some("a\nb\t\"q\" \\x # no"))], &[]);
    check_dotenv(
        "A=\"one\ntwo\"\nB='three\n\nfour'\nC=5",
        &[("A", Some("one\ntwo")), ("B", Some("three\n\nfour")), ("C", Some("5"))],
        &[],
    );
    check_dotenv("A=a b  c  \n", &[("A", Some("a b  c"))], &[]);
    check_dotenv("A=1\nA=2\n", &[("A", Some("1")), ("A", Some("2"))], &[]);
    check_dotenv("'a b'=1\na.b-c=2\n", &[("a b", Some("1")), ("a.b-c", Some("2"))], &[]);
    check_dotenv(
        "A=1\nB='open\nC=3\nD=\"x\" y\n=4\nE=5\n",
        &[("A", Some("1")), ("C", Some("3")), ("E", Some("5"))],
        &[2, 4, 5],
    );
    check_dotenv(
        "A= # c\nB=#c\nC =\nD==d\nE\t=\t1\u{b}\n",
        &[("A", Some("")), ("B", Some("#c")), ("C", Some("")), ("D", Some("=d")), ("E", Some("1"))],
        &[],
    );
    check_dotenv("export\nA=1\n?\n", &[("export", None), ("A", Some("1")), ("?", None)], &[]);
    check_dotenv("A=пример\n", &[("A", Some("пример"))], &[]);
}

#[test]
fn a_dotenv_file_of_nothing_but_mistakes_is_read_once() {
    let parsed = dotenv::parse(&"=\n\n".repeat(200_000));
    assert_eq!(parsed.skipped_lines.len(), 200_000);
    assert_eq!(parsed.skipped_lines.last(), Some(&399_999));
}

proptest! {
    #[test]
    fn no_text_panics(text in "[${}:\\-A-Z_a-c'\"\\\\\n#= é]{0,60}") {
        let _unused = expand(&text, &variables());
        let _unused = dotenv::parse(&text);
    }
}
