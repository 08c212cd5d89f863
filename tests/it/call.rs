//! `call`, `tools` and `completions` at a terminal and in scripts; settings and what is wrong in them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nix::pty::{OpenptyResult, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::binary::{Ended, command, exe, run};
use crate::fixture::{Home, eventually};
use crate::process::traces::Mark;
use crate::session::Session;

const LIMIT: Duration = Duration::from_secs(20);

/// Runs the program with variables of its environment.
fn iris(arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = command(exe());
    command.args(arguments).envs(variables.iter().copied());
    run(command, LIMIT)
}

fn call(home: &Home, arguments: &[&str]) -> Ended {
    let workspace = home.path("workspace");
    iris(&[&["call", "--workspace", &workspace], arguments].concat(), &[])
}

fn workspace() -> Home {
    let home = Home::new();
    fs::write(home.file("workspace/a.txt"), "alpha\n").unwrap();
    home
}

#[test]
fn a_call_prints_what_the_model_reads_and_nothing_else() {
    let home = workspace();
    let ended = call(&home, &["list_files", r#"{"pattern": "*.txt"}"#]);
    assert_eq!(
        (ended.code, ended.stdout.as_str(), ended.stderr.as_str()),
        (Some(0), "a.txt\n", "")
    );
    let failed = call(&home, &["read_file", r#"{"file_path": "b.txt"}"#]);
    assert_eq!((failed.code, failed.stderr.as_str()), (Some(1), ""), "{failed:?}");
    assert!(failed.stdout.starts_with("Error[FILE_NOT_FOUND]: "), "{failed:?}");
    let invalid = call(&home, &["read_file"]);
    assert_eq!(invalid.code, Some(1), "{invalid:?}");
    assert!(invalid.stdout.starts_with("Error[VALIDATION_ERROR]: "), "{invalid:?}");
}

#[test]
fn a_call_that_cannot_be_made_says_what_to_do() {
    let home = workspace();
    for (arguments, part) in [
        (["read_file", "{"], "the arguments are not JSON"),
        (["read_file", "[]"], "the arguments are not a JSON object"),
    ] {
        let ended = call(&home, &arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains(part), "{part}: {ended:?}");
        assert!(ended.stderr.starts_with("error: "), "{ended:?}");
    }
    for (name, hint) in [("read_fil", "; did you mean read_file?"), ("zzzzzzzzz", "")] {
        let ended = call(&home, &[name, "{}"]);
        let text = format!("Error[NOT_FOUND]: unknown tool: {name}{hint}\n");
        assert_eq!((ended.code, ended.stdout), (Some(1), text));
        assert!(
            ended.stderr.contains("`iris-mcp tools` lists the tools there are"),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn an_upstream_is_called_when_the_call_is_approved() {
    let home = Home::with_up(json!({"tools": ["echo", "fail", "crash"], "banner": true}));
    let iris = |name: &str, more: &[&str]| {
        let name = format!("mcp__up__{name}");
        let arguments = home.arguments();
        let mut command = command(exe());
        command.args(["call", &name, r#"{"text": "hello"}"#]).args(&arguments).args(more);
        run(command, LIMIT)
    };
    let refused = iris("fail", &[]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stdout.starts_with("Error[PERMISSION_ERROR]: "), "{refused:?}");
    assert!(refused.stdout.contains("--yes"), "{refused:?}");
    assert_eq!(home.noted("fail"), 0);
    let approved = iris("echo", &["--yes"]);
    assert_eq!((approved.code, approved.stdout.as_str()), (Some(0), "hello\n"), "{approved:?}");
    let failed = iris("fail", &["--yes"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert_eq!(failed.stdout, "Error[MCP_TOOL_ERROR]: no luck\n", "{failed:?}");
    assert!(failed.stderr.contains("the whole MCP result is in "), "{failed:?}");
    let unknown = iris("crash", &["--yes"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert!(
        format!("{}{}", unknown.stdout, unknown.stderr).contains("outcome is unknown"),
        "{unknown:?}"
    );
}

/// Calls the upstream's tool `plain` at a terminal; returns the exit code, the standard output,
/// and what was shown. What is typed is typed when the question is there; nothing is an interrupt.
fn call_at_a_terminal(home: &Home, typed: Option<&[u8]>) -> (Option<i32>, String, String) {
    let OpenptyResult { master, slave } = openpty(None, None).unwrap();
    let mut command = command(exe());
    command.args(["call", "mcp__up__plain", r#"{"a": "what for"}"#]).args(home.arguments());
    command.stdin(slave.try_clone().unwrap()).stderr(slave);
    let child = command.spawn().unwrap();
    // It holds the terminal's other end, whose closing ends the reading below.
    drop(command);
    let mut terminal = File::from(master);
    let (mut shown, mut byte) = (Vec::new(), [0]);
    // When nobody holds the other end any more, reading is an error.
    while matches!(terminal.read(&mut byte), Ok(1)) {
        shown.extend(byte);
        if shown.ends_with(b"[y/N]") {
            match typed {
                Some(typed) => terminal.write_all(typed).unwrap(),
                None => kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap(),
            }
        }
    }
    let ended = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(ended.stdout).unwrap();
    (ended.status.code(), stdout, String::from_utf8(shown).unwrap())
}

#[test]
fn a_person_at_a_terminal_is_asked() {
    let home = Home::with_up(json!({"tools": ["plain"]}));
    let mut ran = 0;
    for (typed, code, answer) in [
        (Some(&b"y\n"[..]), 0, "this is plain: "),
        (Some(b"YES\n"), 0, "this is plain: "),
        (Some(b"n\n"), 3, "Error[USER_REJECTED]: "),
        (Some(b"\n"), 3, "Error[USER_REJECTED]: "),
        // The end of input.
        (Some(b"\x04"), 3, "Error[USER_REJECTED]: "),
        (None, 130, ""),
    ] {
        let (ended, stdout, shown) = call_at_a_terminal(&home, typed);
        assert_eq!(ended, Some(code), "{typed:?}: {stdout} {shown}");
        assert!(stdout.starts_with(answer), "{typed:?}: {stdout}");
        assert!(shown.contains("mcp__up__plain: this call needs a person's approval"), "{shown}");
        assert!(shown.contains("\"a\": \"what for\""), "{shown}");
        ran += usize::from(code == 0);
        assert_eq!(home.noted("plain"), ran, "{typed:?}");
    }
}

#[test]
fn tools_are_listed_for_people_and_for_programs() {
    let home = Home::with_up(json!({"tools": ["echo", "look"]}));
    let arguments = home.arguments();
    let list = |more: &[&str]| {
        let mut command = command(exe());
        command.arg("tools").args(&arguments).args(more);
        run(command, LIMIT)
    };
    let people = list(&[]);
    assert_eq!((people.code, people.stderr.as_str()), (Some(0), ""), "{people:?}");
    assert!(people.stdout.contains("mcp__up__echo\n    The tool echo.\n"), "{people:?}");
    let programs = list(&["--json"]);
    let tools: Value = serde_json::from_str(&programs.stdout).unwrap();
    assert_eq!(tools[0]["name"], "mcp__up__echo");
    assert_eq!(tools[0]["input_schema"]["required"], json!(["text"]));
}

#[test]
fn a_rule_that_concerns_no_tool_is_told() {
    let home = Home::with_up(json!({"tools": ["echo"]}));
    let rules = ["--permit", "ech", "--permit", "echo", "--ask", "nix*", "--forbid", "execute"];
    let told = [
        "--permit: `ech` matches no tool, neither by a name nor by a capability\n",
        "--ask: `nix*` matches no tool, neither by a name nor by a capability\n",
    ];
    let mut tools = command(exe());
    tools.arg("tools").args(home.arguments()).args(rules);
    let ended = run(tools, LIMIT);
    assert_eq!((ended.code, ended.stderr), (Some(0), told.concat()));
    let mut arguments = home.arguments();
    arguments.extend(rules.map(str::to_owned));
    let mut session = Session::start(&arguments);
    session.initialize();
    session.tools();
    eventually("both are logged", || told.iter().all(|line| session.said().contains(line)));
    assert_eq!(session.said().matches("matches no tool").count(), 2, "{}", session.said());
    assert!(session.said().contains("WARN"), "{}", session.said());
}

#[test]
fn a_closed_pipe_is_no_reason_to_complain() {
    let home =
        Home::with_up(json!({"tools": (0..3000).map(|n| format!("t{n}")).collect::<Vec<_>>()}));
    let arguments = home.arguments();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let subcommands: [&[&str]; 3] =
        [&[&["tools", "--all"][..], &arguments].concat(), &["completions", "bash"], &["--help"]];
    for subcommand in subcommands {
        let mut command = command(exe());
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        command.args(subcommand).stdout(Stdio::from(writer));
        let child = command.spawn().unwrap();
        let ended = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!((ended.status.code(), &*stderr), (Some(0), ""), "{subcommand:?}");
    }
}

#[test]
fn shells_get_their_completions() {
    for (shell, part) in
        [("bash", "complete -F"), ("zsh", "#compdef iris-mcp"), ("fish", "complete -c iris-mcp")]
    {
        let ended = iris(&["completions", shell], &[]);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        assert!(ended.stdout.contains(part), "{shell}");
        assert!(
            ended.stdout.contains("--token-file") || ended.stdout.contains("token-file"),
            "{shell}"
        );
    }
    assert_eq!(iris(&["completions", "tcl"], &[]).code, Some(2));
}

#[test]
fn nothing_is_coloured_where_nobody_looks() {
    let home = workspace();
    let workspace = home.path("workspace");
    for variables in [&[][..], &[("NO_COLOR", "1")]] {
        for arguments in [
            &["tools", "--workspace", &workspace][..],
            &["tools", "--workspace", "/none"],
            &["bogus"],
        ] {
            let ended = iris(arguments, variables);
            assert!(!format!("{}{}", ended.stdout, ended.stderr).contains('\u{1b}'), "{ended:?}");
        }
    }
}

#[test]
fn a_mistake_in_a_file_is_shown_where_it_is() {
    let home = Home::new();
    let server = "[limits]\nmax_message_bytes = 1\nmax_mesage_bytes = 2\n";
    let agent =
        "name: a\npermissions:\n  wrtes: {headers: {X: secret-value}, api_key: secret-value}\n";
    let mcp = "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\", \"arg\": [], \"env\": {\"K\": \"secret-value\"}}\n  }\n}";
    let table = [
        ("--config", "server.toml", server, ":3:1", "max_message_bytes"),
        ("--agent", "agent.yaml", agent, ":3:3", "writes"),
        ("--agent", "other.yaml", "tools:\n  builtin: [file.red]\n", ":2:", "file.read"),
        ("--agent", "third.yaml", "mcp:\n  path: mcp.json\n", ":3:27", "args"),
        ("--config", "fourth.toml", "http = \n", ":1:", ""),
    ];
    home.write("mcp.json", mcp);
    for (flag, name, text, place, hint) in table {
        let file = home.write(name, text);
        let ended = iris(&["tools", flag, &file, "--workspace", &home.path("workspace")], &[]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{name}: {ended:?}");
        let stderr = &ended.stderr;
        let shown = if name == "third.yaml" { home.path("mcp.json") } else { file };
        assert!(stderr.starts_with(&format!("error: {shown}{place}")), "{name}: {stderr}");
        assert!(stderr.contains(hint), "{name}: {stderr}");
        assert!(stderr.trim_end().ends_with('^') && stderr.contains(" | "), "{name}: {stderr}");
        assert!(!stderr.contains("secret-value"), "{stderr}");
    }
}

#[test]
fn a_mistake_in_a_flag_is_told_in_plain_words() {
    for (flag, value, expected) in [
        ("--concurrent-calls", "0", "expected a whole number above 0"),
        ("--max-message-bytes", "x", "expected a whole number above 0"),
        ("--tool-timeout", "0", "expected a number of seconds above 0"),
        ("--approval", "x", "expected `ask`, `client` or `deny`"),
        ("--http", "x", "expected an address and a port, such as 127.0.0.1:8808"),
    ] {
        let ended = iris(&["serve", flag, value], &[]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        let first = ended.stderr.lines().next().unwrap();
        assert!(first.contains(flag) && first.ends_with(expected), "{first}");
    }
}

#[test]
fn every_flag_and_variable_is_in_the_table_of_settings() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/settings.md");
    let table = fs::read_to_string(table).unwrap();
    let help = iris(&["serve", "--help"], &[]).stdout;
    let flags = help.split_whitespace().filter(|word| word.starts_with("--"));
    let flags: BTreeSet<&str> = flags
        .map(|flag| flag.trim_end_matches(|end: char| !end.is_ascii_lowercase()))
        .filter(|flag| *flag != "--help")
        .collect();
    assert!(flags.contains("--activity-log"), "{help}");
    for flag in flags {
        let is_there = [" ", "`"].iter().any(|end| table.contains(&format!("`{flag}{end}")));
        assert!(is_there, "{flag} is in no row of docs/settings.md");
    }
    for variable in iris_mcp::config::environment::VARIABLES {
        let is_there = table.contains(&format!("`{variable}`"));
        assert!(is_there, "{variable} is in no row of docs/settings.md");
    }
}

#[test]
fn a_variable_that_is_none_of_ours_is_refused_by_name() {
    let ended = iris(&["tools"], &[("IRIS_MCP_WORKSPCE", "s3cret")]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    assert!(ended.stderr.contains("IRIS_MCP_WORKSPCE"), "{ended:?}");
    assert!(ended.stderr.contains("did you mean IRIS_MCP_WORKSPACE?"), "{ended:?}");
    assert!(!ended.stderr.contains("s3cret"), "{ended:?}");
}

#[test]
fn a_flag_comes_before_a_variable_and_a_variable_before_the_file() {
    let home = Home::new();
    for place in ["flag", "variable", "file"] {
        fs::create_dir(home.file(place)).unwrap();
        fs::write(home.file(place).join(format!("{place}.txt")), "").unwrap();
    }
    let config = home.write("server.toml", "workspace = \"file\"\n");
    let variables =
        [("IRIS_MCP_CONFIG", config.as_str()), ("IRIS_MCP_WORKSPACE", &home.path("variable"))];
    let listed = |arguments: &[&str], variables: &[(&str, &str)]| {
        let ended = iris(&[&["call", "list_files"], arguments].concat(), variables);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stdout
    };
    assert_eq!(listed(&["--workspace", &home.path("flag")], &variables), "flag.txt\n");
    assert_eq!(listed(&[], &variables), "variable.txt\n");
    assert_eq!(listed(&[], &variables[..1]), "file.txt\n");
    assert_eq!(listed(&["--config", &config], &[]), "file.txt\n");
}

#[test]
fn every_file_of_a_list_is_read() {
    let home = Home::new();
    let one = home.server(json!({"tools": ["echo"]}));
    let first = home.write("first.json", &json!({"mcpServers": {"one": one}}).to_string());
    let second = home.write("second.json", &json!({"servers": {"two": one}}).to_string());
    let list = format!("{first},{second}");
    for (arguments, variables) in [
        (vec!["tools", "--mcp", &first, "--mcp", &second], vec![]),
        (vec!["tools"], vec![("IRIS_MCP_MCP", list.as_str())]),
    ] {
        let ended = iris(&arguments, &variables);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        for tool in ["mcp__one__echo", "mcp__two__echo"] {
            assert!(ended.stdout.contains(tool), "{ended:?}");
        }
    }
    let twice = iris(&["tools", "--mcp", &first, "--mcp", &first], &[]);
    assert_eq!(twice.code, Some(2), "{twice:?}");
    assert!(twice.stderr.contains("already in"), "{twice:?}");
}

#[test]
fn an_interrupted_call_is_cancelled_and_leaves_nothing() {
    let (home, mark) = (Home::new(), Mark::new());
    let mut up = home.server(json!({"tools": ["slow"]}));
    up["env"] = json!({"MARK": mark.to_string()});
    home.serve(json!({ "up": up }));
    let mut command = command(exe());
    command.args(["call", "mcp__up__slow", "{}", "--yes"]).args(home.arguments());
    let child = command.spawn().unwrap();
    home.wait_for("slow");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stdout.as_slice()), (Some(130), &b""[..]), "{ended:?}");
    home.wait_for("cancelled slow");
    mark.has_vanished();
}

#[test]
fn a_variable_of_ours_that_is_not_text_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let mut command = command(exe());
    command.args(["call", "read_file", "{}", "--workspace", "."]);
    command.env("IRIS_MCP_FORBID", std::ffi::OsStr::from_bytes(b"read_file,\xff"));
    let ended = run(command, Duration::from_secs(20));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    assert_eq!(ended.stderr, "error: IRIS_MCP_FORBID: the value is not UTF-8\n");
}

#[test]
fn the_log_never_goes_to_standard_output() {
    let mut command = command(exe());
    command.args(["tools", "--workspace", ".", "--log-file", "/dev/stdout"]);
    let ended = run(command, Duration::from_secs(20));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    assert!(ended.stderr.contains("is standard output"), "{}", ended.stderr);
}
