//! What people meet in their first hour: what they are shown while they wait, and told when a
//! file, a flag or a folder is not what was meant.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::pty::{OpenptyResult, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::binary::{Ended, Gateway, command, exe, run};
use crate::fixture::{Home, eventually, session};
use crate::session::{code, text};

const LIMIT: Duration = Duration::from_secs(20);
/// A folder that takes no new files, not even from root, and one that cannot be made.
const READ_ONLY: &str = "/proc/sys/kernel";
const NOWHERE: &str = "/proc/nowhere";

#[track_caller]
fn iris(arguments: &[&str]) -> Ended {
    let mut command = command(exe());
    command.args(arguments);
    run(command, LIMIT)
}

fn strs(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

/// Runs a command whose standard error is a terminal, until it ends or `enough` was shown there.
fn at_a_terminal(arguments: &[&str], enough: &str) -> (Option<i32>, String) {
    let OpenptyResult { master, slave } = openpty(None, None).unwrap();
    let mut command = command(exe());
    command.args(arguments).env_remove("NO_COLOR").env("TERM", "xterm").stderr(slave);
    command.stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It holds the terminal's other end, whose closing ends the reading below.
    drop(command);
    let mut terminal = File::from(master);
    let (mut shown, mut byte) = (Vec::new(), [0]);
    while matches!(terminal.read(&mut byte), Ok(1)) {
        shown.extend(byte);
        if !enough.is_empty() && shown.ends_with(enough.as_bytes()) {
            kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
        }
    }
    let code = child.wait().unwrap().code();
    (code, String::from_utf8_lossy(&shown).into_owned())
}

#[test]
fn every_command_that_waits_for_servers_shows_it_at_a_terminal_and_nowhere_else() {
    let home = Home::with_up(json!({"tools": ["echo"]}));
    let arguments = home.arguments();
    let waiting = "\r\u{1b}[2K\u{1b}[?7lwaiting for 1: up\u{1b}[?7h";
    let cleared = "\r\u{1b}[2K\u{1b}[?7l\u{1b}[?7h";
    for subcommand in [
        &["tools"][..],
        &["search", "echo"],
        &["call", "mcp__up__echo", r#"{"text": "a"}"#, "--yes"],
    ] {
        let line = [subcommand, &strs(&arguments)].concat();
        let (code, shown) = at_a_terminal(&line, "");
        assert_eq!(code, Some(0), "{subcommand:?}: {shown:?}");
        assert!(shown.starts_with(waiting) && shown.contains(cleared), "{shown:?}");
        let piped = iris(&line);
        assert_eq!((piped.code, piped.stderr.as_str()), (Some(0), ""), "{piped:?}");
        assert!(!piped.stdout.contains('\u{1b}'), "{piped:?}");
    }
}

#[test]
fn who_stops_waiting_gets_the_line_back_and_130() {
    let home = Home::with_up(json!({"tools": [], "gate": "/none"}));
    let arguments = home.arguments();
    for subcommand in [&["tools"][..], &["search", "x"], &["call", "x"], &["check"]] {
        let line = [subcommand, &strs(&arguments)].concat();
        let (code, shown) = at_a_terminal(&line, "waiting for 1: up\u{1b}[?7h");
        assert_eq!(code, Some(130), "{subcommand:?}: {shown:?}");
        assert!(shown.ends_with("\r\u{1b}[2K\u{1b}[?7l\u{1b}[?7h"), "{shown:?}");
    }
}

#[test]
fn serve_shows_a_person_what_it_waits_for_and_then_what_failed() {
    let home = Home::new();
    let good = home.server(json!({"tools": ["echo"]}));
    home.serve(json!({"good": good, "typo": {"command": "pythn3"}}));
    let arguments = home.arguments();
    let arguments = [&["serve", "--log", "info"], &strs(&arguments)[..]].concat();
    let (code, shown) = at_a_terminal(&arguments, "\u{1b}[?7htypo: failed: `pythn3` was not found");
    assert_eq!(code, Some(0), "{shown:?}");
    assert!(shown.contains("waiting for "), "{shown:?}");
    // A line of the log takes the place of what is waited for, and does not follow it.
    let logged = shown.lines().filter(|line| line.contains("INFO"));
    assert!(logged.clone().count() > 0, "{shown:?}");
    for line in logged {
        let last = line.rsplit("\u{1b}[2K").next().unwrap();
        assert!(!last.contains("waiting"), "{shown:?}");
    }
    let mut piped = session(&home, &[]);
    piped.tools();
    assert!(!piped.said().contains('\u{1b}'), "{}", piped.said());
    assert!(!piped.said().contains("\ntypo: failed"), "{}", piped.said());
}

#[test]
fn a_required_server_that_fails_ends_serve_before_the_others_have_started() {
    let home = Home::new();
    let slow = home.server(json!({"tools": [], "gate": "/none"}));
    home.serve(json!({"slow": slow, "typo": {"command": "pythn3"}}));
    let agent = home
        .write("agent.yaml", "permissions: { workspace: workspace }\nmcp: { path: mcp.json }\n");
    let mut serve = command(exe());
    serve.args(["serve", "--agent", &agent]).stdin(Stdio::piped());
    let began = Instant::now();
    let ended = run(serve, LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("error: the upstream server typo failed"), "{ended:?}");
    assert!(began.elapsed() < Duration::from_secs(15), "it waited for the other one");
}

#[test]
fn help_is_as_wide_as_the_terminal_and_never_wider_than_a_page() {
    for (columns, most) in [("60", 60), ("300", 100)] {
        let mut help = command(exe());
        help.args(["serve", "--help"]).env("COLUMNS", columns);
        let ended = run(help, LIMIT);
        let widest = ended.stdout.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(most) && widest > Some(most / 2), "{columns}: {}", ended.stdout);
    }
}

#[test]
fn a_snippet_for_a_client_says_where_the_token_goes_but_no_token() {
    let home = Home::new();
    let tokens = crate::http::tokens(&home);
    let workspace = home.path("workspace");
    for (more, has_token) in [(&["--token-file", tokens.as_str()][..], true), (&[], false)] {
        let gateway = Gateway::start(&[&["--workspace", workspace.as_str()], more].concat());
        let snippet = || {
            let said = gateway.said();
            let (_, rest) = said.split_once("for a client's configuration:\n")?;
            serde_json::Deserializer::from_str(rest).into_iter::<Value>().next()?.ok()
        };
        eventually("it says how to plug a client in", || snippet().is_some());
        let iris = &snippet().unwrap()["mcpServers"]["iris"];
        assert_eq!(iris["url"], gateway.url.as_str());
        let headers = json!({"Authorization": "Bearer ${IRIS_TOKEN}"});
        assert_eq!(iris.get("headers"), has_token.then_some(&headers));
    }
}

#[test]
fn a15_what_the_operator_wants_asked_for_is_not_left_to_the_client_by_default() {
    let home = Home::with_up(json!({"tools": ["echo"]}));
    let asks = home.write("server.toml", "[approval]\nask = ['mcp__up__echo']\n");
    let hello = json!({"text": "hello"});
    for more in [&["--ask", "echo"][..], &["--config", &asks]] {
        // This client cannot be asked, so nothing runs.
        let refused = session(&home, more).call("mcp__up__echo", &hello);
        assert_eq!(code(&refused), "PERMISSION_ERROR", "{refused}");
        assert!(text(&refused).contains("this client cannot be asked"), "{refused}");
        let said = [more, &["--approval", "client"]].concat();
        assert_eq!(text(&session(&home, &said).call("mcp__up__echo", &hello)), "hello");
    }
    assert_eq!(text(&session(&home, &[]).call("mcp__up__echo", &hello)), "hello");
}

#[test]
fn check_says_where_results_cannot_be_kept_and_leaves_nothing_where_they_can() {
    let check = |folder: &str, home: &str, more: &[&str]| {
        let mut check = command(exe());
        check.arg("check").args(more).args(["--workspace", folder]).current_dir(folder);
        run(
            {
                check.env("HOME", home).env_remove("XDG_STATE_HOME");
                check
            },
            LIMIT,
        )
    };
    let ended = check(READ_ONLY, NOWHERE, &[]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for part in ["/proc/sys/kernel/.iris", "/proc/nowhere/.local/state/iris-mcp", "artifacts.dir"] {
        assert!(ended.stdout.contains(part), "{part}: {ended:?}");
    }
    let found: Value =
        serde_json::from_str(&check(READ_ONLY, NOWHERE, &["--json"]).stdout).unwrap();
    assert_eq!((&found["ok"], &found["problems"][0]), (&false.into(), &found["unkept"]));
    let home = Home::new();
    let (workspace, own) = (home.path("workspace"), home.path("own"));
    fs::create_dir(&own).unwrap();
    for folder in [workspace.as_str(), READ_ONLY] {
        let ended = check(folder, &own, &[]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        for folder in [&workspace, &own] {
            assert_eq!(fs::read_dir(folder).unwrap().count(), 0, "{folder}");
        }
    }
}

#[test]
fn each_kind_of_file_is_known_when_it_is_given_as_the_other() {
    let home = Home::new();
    home.write("workspace/a.txt", "");
    let mcp = [
        ("m.json", r#"{"mcpServers": {}}"#),
        ("m.jsonc", "// ours\n{\"servers\": {},}"),
        ("m.toml", "[mcp_servers.a]\ncommand = 'x'\n"),
    ];
    for (name, content) in mcp {
        let ended = iris(&["tools", "--agent", &home.write(name, content)]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("this is an MCP file; give it with --mcp"), "{ended:?}");
        assert!(ended.stderr.contains(&format!("{name}:")), "{ended:?}");
    }
    for name in ["agent.yaml", "agent.json"] {
        let ended = iris(&["tools", "--mcp", &home.write(name, "name: a\ntools: {}\n")]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("this is an agent file; give it with --agent"), "{ended:?}");
    }
    let settings = home.write("s.toml", "mcp = ['m.json']\n[log]\nfilter = 'info'\n");
    for flag in ["--agent", "--mcp"] {
        let ended = iris(&["tools", flag, &settings]);
        let told = "s.toml:1:1: mcp: this is a file of settings; give it with --config";
        assert!(ended.code == Some(2) && ended.stderr.contains(told), "{ended:?}");
    }
    for (name, flag) in [("m.json", "--mcp"), ("agent.yaml", "--agent")] {
        let ended = iris(&["tools", "--config", &home.path(name)]);
        let told = format!("give it with {flag}");
        assert!(ended.code == Some(2) && ended.stderr.contains(&told), "{ended:?}");
    }
    for flag in ["--agent", "--mcp", "--config"] {
        let ended = iris(&["tools", flag, &home.path("workspace")]);
        let told = format!("this is a folder; {flag} takes a file");
        assert!(ended.code == Some(2) && ended.stderr.contains(&told), "{ended:?}");
    }
    let ended = iris(&["tools", "--agent", &home.write("other.yaml", "nome: a\n")]);
    assert!(ended.stderr.contains("did you mean `name`?"), "{ended:?}");
}

#[test]
fn what_a_settings_file_names_is_told_with_its_line_and_not_with_a_flag() {
    let home = Home::new();
    let file = home.write("a-file", "x");
    let workspace = format!("workspace = '{}'\n", home.path("workspace"));
    home.write("workspace/a.txt", "");
    for (settings, told) in [
        ("[activity]\nfile = 'no/calls'", ":3:1: activity.file: the record of calls "),
        ("agent = 'nope.yaml'", ":2:1: agent: "),
        ("mcp = ['nope.json']", ":2:8: mcp[0]: "),
        ("[log]\nfile = 'no/log'", ":3:1: log.file: "),
        ("[log]\nfilter = 'inf0'", ":3:1: log.filter: "),
        ("[artifacts]\ndir = '/proc/nowhere'", ":3:1: artifacts.dir: "),
        ("http = '127.0.0.1:0'\ntoken_file = 'nope'", ":3:1: token_file: "),
        ("http = '0.0.0.0:0'", ":2:1: http: 0.0.0.0:0 can be reached"),
    ] {
        let config = home.write("server.toml", &format!("{workspace}{settings}\n"));
        let ended = iris(&["serve", "--config", &config]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        let told = format!("error: {config}{told}");
        assert!(ended.stderr.contains(&told) && ended.stderr.contains("^\n"), "{ended:?}");
    }
    // A folder that is none, in each place, says so with that place.
    let config = home.write("server.toml", &format!("workspace = '{file}'\n"));
    let mut by_variable = command(exe());
    by_variable.arg("serve").env("IRIS_MCP_WORKSPACE", &file);
    let cure = "it is no folder; name the folder that the file tools are to work in";
    for (ended, place) in [
        (iris(&["serve", "--config", &config]), format!("{config}:1:1: workspace: ")),
        (iris(&["serve", "--workspace", &file]), "--workspace: ".to_owned()),
        (run(by_variable, LIMIT), "IRIS_MCP_WORKSPACE: ".to_owned()),
    ] {
        assert_eq!(ended.code, Some(2), "{ended:?}");
        let told = ended.stderr.contains(&format!("error: {place}")) && ended.stderr.contains(cure);
        assert!(told, "{ended:?}");
    }
    // A flag wins over the file, and is what is named then.
    let ended = iris(&["serve", "--config", &config, "--workspace", &home.path("nowhere")]);
    assert!(ended.stderr.contains("error: --workspace: the workspace "), "{ended:?}");
}

#[test]
fn no_secret_of_a_command_line_is_told_to_anybody() {
    let home = Home::new();
    let says = "import sys; sys.exit('bad key: ' + sys.argv[-1] + ' ' + sys.argv[1])";
    home.serve(json!({
        "variable": {"command": "TOKEN=hunter2secret npxx"},
        "argument": {"command": "python3 -y foo --token=hunter2secret"},
        "repeated": {"command": "python3", "args": ["-c", says, "--token=hunter2secret", "--api-key", "hunter2secret2"]},
    }));
    for more in [&["check"][..], &["check", "--json"], &["tools"]] {
        let ended = iris(&[more, &strs(&home.arguments()), &["--keep-going"]].concat());
        let told = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!told.contains("hunter2secret"), "{told}");
    }
    let ended = iris(&[&["check"], &strs(&home.arguments())[..]].concat());
    assert!(ended.stdout.contains("`TOKEN=*** npxx` was not found"), "{ended:?}");
    assert!(ended.stdout.contains("bad key: *** --token=***"), "{ended:?}");
    assert!(ended.stdout.contains("mcp.json:1:"), "{ended:?}");
}

#[test]
fn a_line_of_a_dotenv_file_that_sets_nothing_is_told() {
    let home = Home::new();
    let env = home.write("vars.env", "A=1\nBAD LINE\nX=\"unclosed\n");
    let mut up = home.server(json!({"tools": ["echo"]}));
    up["envFile"] = json!("vars.env");
    home.serve(json!({"up": up, "down": {"command": "no-such-cmd", "envFile": "vars.env"}}));
    let ended = iris(&[&["check"], &strs(&home.arguments())[..]].concat());
    for line in [2, 3] {
        let told = format!("{env}:{line}: the line sets nothing");
        assert_eq!(ended.stdout.matches(&told).count(), 2, "{ended:?}");
    }
}

#[test]
fn numbers_and_addresses_that_cannot_be_meant_say_what_can() {
    let home = Home::new();
    home.write("workspace/a.txt", "");
    for (arguments, told) in [
        (&["search", "x", "--limit", "0"][..], "expected a whole number above 0"),
        (&["tools", "--tool-timeout", "-1"], "expected a number of seconds above 0"),
        (&["tools", "--context", "maybe"], "expected `on` or `off`"),
        (&["serve", "--http", "localhost"], "such as 127.0.0.1:8808"),
    ] {
        let ended = iris(arguments);
        assert!(ended.code == Some(2) && ended.stderr.contains(told), "{ended:?}");
    }
    let ended = iris(&["tools", "--context", "true", "--workspace", &home.path("workspace")]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn what_init_says_to_run_can_be_pasted() {
    let home = Home::new();
    for name in ["sp ace & \"q\"", "-x"] {
        let mut init = command(exe());
        init.args(["init", "--", name]).current_dir(home.path(""));
        let ended = run(init, LIMIT);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let line = ended.stderr.lines().find(|line| line.starts_with("see what")).unwrap();
        let line = line.split_once("iris-mcp").unwrap().1;
        let mut shell = command("sh");
        shell.args(["-c", &format!("exec {}{line} --json", exe())]).current_dir(home.path(""));
        let ended = run(shell, LIMIT);
        assert!(ended.stdout.contains("\"servers\""), "{ended:?}");
    }
}

#[test]
fn a_list_that_is_empty_for_failures_is_a_failure() {
    let home = Home::new();
    let typo = json!({"command": "pythn3"});
    home.serve(json!({"typo": typo, "wrong": {"command": "x", "arg": 1}}));
    let mcp = home.path("mcp.json");
    for subcommand in [&["tools"][..], &["tools", "--json"], &["search", "x"]] {
        let ended = iris(&[subcommand, &["--mcp", mcp.as_str()]].concat());
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert_eq!(ended.stderr.matches("`pythn3` was not found").count(), 1, "{ended:?}");
        // What is wrong with an entry is said once, with its place.
        assert_eq!(ended.stderr.matches("unknown key").count(), 1, "{ended:?}");
        assert!(ended.stderr.contains("mcp.json:1:"), "{ended:?}");
    }
    home.serve(json!({"good": home.server(json!({"tools": ["echo"]})), "typo": typo}));
    for subcommand in [&["tools"][..], &["search", "echo"]] {
        let ended = iris(&[subcommand, &["--mcp", mcp.as_str()]].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stdout.contains("mcp__good__echo"), "{ended:?}");
        assert!(ended.stderr.starts_with("typo: failed: "), "{ended:?}");
    }
}

#[test]
fn a_rule_that_is_no_glob_is_told_with_its_place() {
    let home = Home::new();
    let workspace = home.path("workspace");
    let config = home.write("server.toml", "[approval]\npermit = [\n  'a',\n  '[',\n]\n");
    let tools = ["tools", "--workspace", &workspace];
    let ended = iris(&[&tools[..], &["--config", &config]].concat());
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let place = format!("error: {config}:4:3: approval.permit[1]: `[` is no glob");
    assert!(ended.stderr.starts_with(&place), "{ended:?}");
    let ended = iris(&[&tools[..], &["--forbid", "["]].concat());
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("--forbid") && ended.stderr.contains("`[` is no glob"));
    let mut variable = command(exe());
    variable.args(tools).env("IRIS_MCP_ASK", "a,[");
    let ended = run(variable, LIMIT);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.starts_with("error: IRIS_MCP_ASK: `[` is no glob"), "{ended:?}");
}

#[test]
fn commands_that_serve_nobody_listen_nowhere() {
    let home = Home::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let http = format!("http = '{}'\n", taken.local_addr().unwrap());
    let config = home.write("server.toml", &http);
    let workspace = home.path("workspace");
    for subcommand in [&["tools"][..], &["search", "read"], &["call", "list_files"], &["check"]] {
        let more = ["--config", &config, "--workspace", &workspace];
        let ended = iris(&[subcommand, &more].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
}

#[test]
fn a_folder_with_everything_in_it_is_no_place_for_an_agent() {
    let home = Home::new();
    let own = home.path("workspace");
    for (folder, directory) in [("/", own.as_str()), (".", "/"), (".", &own), (&own, "/")] {
        let mut init = command(exe());
        init.args(["init", folder]).current_dir(directory).env("HOME", &own);
        let ended = run(init, LIMIT);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("such as `iris-mcp init my-agent`"), "{ended:?}");
    }
    assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
}

#[test]
fn a_manual_page_says_how_commands_end_and_which_files_there_are() {
    for arguments in [&["man"][..], &["man", "check"]] {
        let page = iris(arguments).stdout;
        for part in [".SH \"EXIT STATUS\"", ".SH FILES", "130", "server.toml", "mcp.json"] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}

#[test]
fn a_call_takes_its_arguments_from_standard_input_and_prints_the_whole_result() {
    let home = Home::with_up(json!({"tools": ["echo", "fail"]}));
    let call = |name: &str, typed: &str, more: &[&str]| {
        let mut call = command(exe());
        call.args(["call", name, "-", "--yes"]).args(home.arguments()).args(more);
        let mut child = call.stdin(Stdio::piped()).spawn().unwrap();
        // One that is refused may end before it has read all.
        drop(child.stdin.take().unwrap().write_all(typed.as_bytes()));
        let ended = child.wait_with_output().unwrap();
        let [stdout, stderr] =
            [ended.stdout, ended.stderr].map(|text| String::from_utf8(text).unwrap());
        Ended { code: ended.status.code(), stdout, stderr }
    };
    let hello = r#"{"text": "hello"}"#;
    assert_eq!(call("mcp__up__echo", hello, &[]).stdout, "hello\n");
    let whole = call("mcp__up__echo", hello, &["--json"]);
    let result: Value = serde_json::from_str(&whole.stdout).unwrap();
    assert_eq!((whole.code, whole.stderr.as_str()), (Some(0), ""));
    assert_eq!(result["content"][0], json!({"type": "text", "text": "hello"}), "{result}");
    assert!(result["_meta"]["iris/result"]["call_id"].is_string(), "{result}");
    let failed = call("mcp__up__fail", "{}", &["--json"]);
    let result: Value = serde_json::from_str(&failed.stdout).unwrap();
    assert_eq!((failed.code, &result["isError"]), (Some(1), &true.into()), "{result}");
    let wrong = call("mcp__up__echo", "[", &[]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("the arguments are not JSON"), "{wrong:?}");
}
