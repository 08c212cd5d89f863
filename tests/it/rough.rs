//! The command line where things are missing: streams, a terminal, a home, a folder to write to.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::binary::{Ended, command, exe, run};
use crate::fixture::{Home, script, within};
use crate::session::hello;
use crate::web::Web;

const LIMIT: Duration = Duration::from_secs(30);
/// A folder that is there, has files, and takes no new ones, not even from root.
const READ_ONLY: &str = "/proc/sys/kernel";
/// A folder that is not there and cannot be made.
const NOWHERE: &str = "/proc/nowhere";

/// Every command, and how it ends in a workspace with `a.txt`; `NEW` is a folder that is not there.
const COMMANDS: [(&[&str], i32); 22] = [
    (&["serve"], 0),
    (&["check"], 0),
    (&["check", "--json"], 0),
    (&["tools"], 0),
    (&["tools", "--json"], 0),
    (&["search", "read"], 0),
    (&["search", "--json", "read"], 0),
    (&["search", "zzz"], 0),
    (&["search", " "], 2),
    (&["call", "read_file", r#"{"file_path": "a.txt"}"#], 0),
    (&["call", "read_file", r#"{"file_path": "b.txt"}"#], 1),
    (&["call", "nothing"], 1),
    (&["call", "--ask", "*", "list_files"], 3),
    (&["init", "NEW"], 0),
    (&["init", "/proc"], 2),
    (&["man"], 0),
    (&["man", "nothing"], 2),
    (&["completions", "bash"], 0),
    (&["--help"], 0),
    (&["serve", "--help"], 0),
    (&["--version"], 0),
    (&["nothing"], 2),
];
/// Those that only look, and work anywhere.
const LOOKING: [&[&str]; 7] = [
    &["serve"],
    &["check"],
    &["tools"],
    &["search", "read"],
    &["call", "list_files"],
    &["man"],
    &["completions", "zsh"],
];

fn home() -> Home {
    let home = Home::new();
    home.write("workspace/a.txt", "alpha\n");
    home
}

/// Prepares a command of ours in a home's workspace.
fn ours(home: &Home, arguments: &[&str]) -> Command {
    let mut ours = command(exe());
    let new = home.path("new");
    ours.args(arguments.iter().map(|argument| if *argument == "NEW" { &*new } else { argument }));
    ours.current_dir(home.file("workspace"));
    ours
}

/// Returns a pipe that nobody reads.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// Checks how a command ended, and that it said nothing strange.
#[track_caller]
fn check(what: &str, ended: &Ended, code: i32) {
    assert_eq!(ended.code, Some(code), "{what}: {ended:?}");
    for strange in ["panicked", "rmcp", "iris_mcp::server::envelope"] {
        assert!(!ended.stderr.contains(strange), "{what}: {ended:?}");
    }
}

#[test]
fn no_command_minds_that_nobody_reads_what_it_says() {
    for (arguments, code) in COMMANDS {
        for which in ["standard output", "standard error", "both"] {
            let home = home();
            let mut ours = ours(&home, arguments);
            if which != "standard error" {
                ours.stdout(closed());
            }
            if which != "standard output" {
                ours.stderr(closed());
            }
            check(&format!("{arguments:?}, {which}"), &run(ours, LIMIT), code);
        }
    }
}

#[test]
fn no_command_minds_that_there_are_no_streams_at_all() {
    for (arguments, code) in COMMANDS {
        for which in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
            let home = home();
            let direct = ours(&home, arguments);
            let mut shell = command("sh");
            shell.args(["-c", &format!("exec \"$@\" {which}"), "-"]).arg(direct.get_program());
            shell.args(direct.get_args()).current_dir(home.file("workspace"));
            check(&format!("{arguments:?}, {which}"), &run(shell, LIMIT), code);
        }
    }
}

#[test]
fn output_that_cannot_be_written_is_a_failure_and_said() {
    let prints = COMMANDS.iter().filter(|(arguments, code)| {
        *code == 0 && !matches!(arguments, ["serve"] | ["init", ..] | ["search", "zzz"])
    });
    for (arguments, _) in prints {
        let home = home();
        let mut ours = ours(&home, arguments);
        ours.stdout(File::options().write(true).open("/dev/full").unwrap());
        let ended = run(ours, LIMIT);
        check(&format!("{arguments:?}"), &ended, 1);
        assert!(ended.stderr.contains("error: cannot write: No space left"), "{ended:?}");
    }
}

/// Returns the messages of a client that shakes hands and reads a file.
fn messages() -> String {
    let read = json!({"name": "read_file", "arguments": {"file_path": "a.txt"}});
    let messages = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello("2025-11-25")}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": read}),
    ];
    messages.map(|message| format!("{message}\n")).concat()
}

/// Prepares a server that hears those messages and then nothing more.
fn serving(home: &Home) -> Command {
    let mut serve = ours(home, &["serve"]);
    home.write("messages", &messages());
    serve.stdin(File::open(home.file("messages")).unwrap());
    serve
}

#[test]
fn a_client_is_served_though_nobody_reads_the_log() {
    let home = home();
    let mut serve = serving(&home);
    serve.stderr(closed());
    let ended = run(serve, LIMIT);
    check("serve", &ended, 0);
    let answers: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let read = answers.iter().find(|answer| answer["id"] == 2).expect("an answer");
    assert!(read.to_string().contains("alpha"), "{read}");
}

#[test]
fn a_client_that_reads_nothing_any_more_has_gone() {
    let home = home();
    // Its end for our input stays open: that alone must not keep us.
    let (input, mut keeps) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut keeps, messages().as_bytes()).unwrap();
    let mut serve = ours(&home, &["serve"]);
    serve.stdin(input).stdout(closed());
    let ended = run(serve, LIMIT);
    check("serve", &ended, 0);
    assert_eq!(ended.stderr.matches("the client cannot be written to").count(), 1, "{ended:?}");
    drop(keeps);
}

#[test]
fn a_client_whose_end_is_full_is_a_failure_of_serving() {
    let home = home();
    let mut serve = serving(&home);
    serve.stdout(File::options().write(true).open("/dev/full").unwrap());
    let ended = run(serve, LIMIT);
    check("serve", &ended, 1);
    let said = "error: serving ended: the client cannot be written to: No space left";
    assert!(ended.stderr.contains(said), "{ended:?}");
}

/// A process that ends with its test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // Already gone is as good.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_gateway_outlives_whoever_read_its_log() {
    let home = home();
    let mut serve = ours(&home, &["serve", "--http", "127.0.0.1:0"]);
    let mut gateway = Killed(serve.stdout(Stdio::null()).spawn().unwrap());
    let mut log = BufReader::new(gateway.0.stderr.take().unwrap());
    let mut url = String::new();
    log.read_line(&mut url).unwrap();
    drop(log);
    let mut web = Web::new(url.trim());
    for round in 0..3 {
        let read = json!({"name": "read_file", "arguments": {"file_path": "a.txt"}});
        let answer = web.ask_modern("tools/call", &read).json();
        assert!(answer.to_string().contains("alpha"), "{round}: {answer}");
    }
    kill(Pid::from_raw(gateway.0.id().cast_signed()), Signal::SIGTERM).unwrap();
    let mut code = None;
    within(LIMIT, "it ends", || {
        code = gateway.0.try_wait().unwrap();
        code.is_some()
    });
    assert_eq!(code.unwrap().code(), Some(0));
}

#[test]
fn no_command_needs_a_home_or_a_path() {
    type Change = fn(&mut Command) -> &mut Command;
    let table: [(&str, Change); 6] = [
        ("no HOME", |ours| ours.env_remove("HOME")),
        ("an empty HOME", |ours| ours.env("HOME", "")),
        ("a HOME that is not there", |ours| ours.env("HOME", NOWHERE)),
        ("a HOME that is no path", |ours| ours.env("HOME", "home")),
        ("an empty PATH", |ours| ours.env("PATH", "")),
        ("no environment", |ours| ours.env_clear()),
    ];
    for (what, change) in table {
        for arguments in LOOKING {
            let home = home();
            let mut ours = ours(&home, arguments);
            change(&mut ours);
            let ended = run(ours, LIMIT);
            check(&format!("{arguments:?}, {what}"), &ended, 0);
            assert_eq!(ended.stderr, "", "{arguments:?}, {what}");
            assert_eq!(fs::read_dir(home.file("workspace")).unwrap().count(), 1, "{what}");
        }
    }
}

#[test]
fn with_an_empty_path_a_server_is_not_found_and_that_is_said() {
    let home = home();
    home.serve(json!({"up": {"command": "some-server"}}));
    let mut check_it = ours(&home, &["check", "--mcp", &home.path("mcp.json")]);
    check_it.env("PATH", "");
    let ended = run(check_it, LIMIT);
    check("check", &ended, 1);
    assert!(ended.stdout.contains("`some-server` was not found in PATH"), "{ended:?}");
}

#[test]
fn a_folder_that_takes_nothing_is_looked_at_and_not_written_to() {
    let home = home();
    for arguments in LOOKING {
        let mut ours = ours(&home, arguments);
        ours.current_dir(READ_ONLY);
        let ended = run(ours, LIMIT);
        check(&format!("{arguments:?}"), &ended, 0);
        assert_eq!(ended.stderr, "", "{arguments:?}");
    }
    for folder in [".", "new"] {
        let mut init = ours(&home, &["init", folder]);
        init.current_dir(READ_ONLY);
        let ended = run(init, LIMIT);
        check(folder, &ended, 2);
        assert!(ended.stderr.contains("cannot be written"), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    }
    let agent = "permissions: {writes: allow}\ntools: {builtin: [file.write]}\n";
    let agent = home.write("agent.yaml", agent);
    let write = r#"{"file_path": "new", "content": "x"}"#;
    let call = ["call", "--agent", &agent, "--workspace", READ_ONLY, "write_file", write];
    let ended = run(ours(&home, &call), LIMIT);
    check("write_file", &ended, 1);
    assert!(ended.stdout.starts_with("Error[EXECUTION_ERROR]: cannot write new"), "{ended:?}");
}

#[test]
fn nowhere_to_keep_a_long_result_concerns_long_results_alone() {
    let home = home();
    let up = home.server(json!({"tools": ["echo", "large"]}));
    home.serve(json!({ "up": up }));
    let mcp = home.path("mcp.json");
    // Nobody named a workspace, so long results would go to the home.
    for folder in ["/", READ_ONLY] {
        let called = |tool: &str, arguments: &str| {
            let mut call = ours(&home, &["call", "--yes", "--mcp", &mcp, tool, arguments]);
            call.current_dir(folder).env("HOME", NOWHERE).env_remove("XDG_STATE_HOME");
            run(call, LIMIT)
        };
        let echoed = called("mcp__up__echo", r#"{"text": "short"}"#);
        check(folder, &echoed, 0);
        assert_eq!(echoed.stdout, "short\n");
        let large = called("mcp__up__large", r#"{"lines": 4000}"#);
        check(folder, &large, 1);
        assert!(large.stdout.starts_with("Error[ARTIFACT_ERROR]: the tool ran"), "{large:?}");
        assert!(large.stdout.contains("artifacts.dir"), "{large:?}");
    }
}

#[test]
fn a_log_that_cannot_be_written_stops_every_command_that_has_one() {
    let home = home();
    let log = home.path("missing/log");
    for arguments in
        LOOKING.iter().filter(|arguments| !["man", "completions"].contains(&arguments[0]))
    {
        let ended = run(ours(&home, &[*arguments, &["--log-file", &log]].concat()), LIMIT);
        check(&format!("{arguments:?}"), &ended, 2);
        assert_eq!(ended.stdout, "", "{arguments:?}");
        assert!(
            ended.stderr.starts_with(&format!("error: --log-file: the log file {log}")),
            "{ended:?}"
        );
    }
}

#[test]
fn a_current_folder_that_is_gone_is_said_where_one_is_needed() {
    let home = home();
    for arguments in LOOKING {
        let direct = ours(&home, arguments);
        let mut shell = command("sh");
        shell.args(["-c", "mkdir gone && cd gone && rmdir ../gone && exec \"$@\"", "-"]);
        shell.arg(direct.get_program()).args(direct.get_args());
        let ended = run_in(shell, &home);
        let needs_none = ["man", "completions"].contains(&arguments[0]);
        check(&format!("{arguments:?}"), &ended, if needs_none { 0 } else { 2 });
        let said = ended.stderr.contains("error: the current folder cannot be used");
        assert_eq!(said, !needs_none, "{ended:?}");
    }
}

#[track_caller]
fn run_in(mut command: Command, home: &Home) -> Ended {
    command.current_dir(home.file("workspace"));
    run(command, LIMIT)
}

/// Runs one of our commands at a terminal of 20 columns, and returns how it ended and was shown.
#[track_caller]
fn at_terminal(home: &Home, arguments: &[&str], typed: &str, variables: &[(&str, &str)]) -> Ended {
    let mut terminal = command("python3");
    terminal.arg(script("terminal.py")).args(["20", typed, exe()]).args(arguments);
    // On a machine that builds, libraries take a dumb terminal for one with colours.
    for inherited in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"] {
        terminal.env_remove(inherited);
    }
    terminal.env("TERM", "xterm-256color").envs(variables.iter().copied());
    run_in(terminal, home)
}

/// Returns the escape sequences that set colours.
fn colours(shown: &str) -> usize {
    let sequences = shown.split("\x1b[").skip(1);
    let ends = sequences.filter_map(|rest| rest.chars().find(char::is_ascii_alphabetic));
    ends.filter(|end| *end == 'm').count()
}

#[test]
fn a_terminal_gets_colours_only_if_it_may_and_can() {
    let home = home();
    let up = home.server(json!({"tools": ["echo"]}));
    home.serve(json!({ "up": up }));
    let mcp = home.path("mcp.json");
    let commands: [(&[&str], i32); 4] = [
        (&["check", "--mcp", &mcp], 0),
        (&["tools", "--mcp", &mcp, "--log", "debug"], 0),
        (&["nothing"], 2),
        (&["serve", "--help"], 0),
    ];
    for (arguments, code) in commands {
        let what = format!("{arguments:?}");
        let plain = at_terminal(&home, arguments, "", &[]);
        check_terminal(&what, &plain, code);
        assert!(colours(&plain.stdout) > 0, "{plain:?}");
        let uncoloured = at_terminal(&home, arguments, "", &[("NO_COLOR", "1")]);
        check_terminal(&what, &uncoloured, code);
        assert_eq!(colours(&uncoloured.stdout), 0, "{uncoloured:?}");
        let dumb = at_terminal(&home, arguments, "", &[("TERM", "dumb")]);
        check_terminal(&what, &dumb, code);
        assert!(!dumb.stdout.contains('\x1b'), "{dumb:?}");
    }
}

#[track_caller]
fn check_terminal(what: &str, ended: &Ended, code: i32) {
    assert_eq!(ended.code, Some(code), "{what}: {ended:?}");
    assert!(!ended.stdout.contains("panicked"), "{what}: {ended:?}");
}

#[test]
fn what_check_waits_for_stays_on_one_line_of_a_narrow_terminal() {
    let home = home();
    let up = home.server(json!({"tools": ["echo"]}));
    let long = ["first", "second", "third"].map(|name| (format!("the_{name}_server"), up.clone()));
    home.serve(Value::Object(long.into_iter().collect()));
    let shown = at_terminal(&home, &["check", "--mcp", &home.path("mcp.json")], "", &[]);
    check_terminal("check", &shown, 0);
    let waits: Vec<&str> = shown.stdout.split("\r\x1b[2K").skip(1).collect();
    assert!(waits.iter().any(|wait| wait.contains("waiting for")), "{shown:?}");
    for wait in waits.iter().filter(|wait| wait.contains("waiting for")) {
        // Nothing wraps between the two, however narrow it is.
        let (line, rest) = wait.split_once("\x1b[?7h").expect("wrapping is on again");
        assert!(line.starts_with("\x1b[?7l") && !line.contains('\n'), "{wait:?}");
        assert_eq!(rest, "", "{wait:?}");
    }
    let last = waits.last().unwrap();
    assert!(
        last.starts_with("\x1b[?7l\x1b[?7h"),
        "the line is cleared before the report: {last:?}"
    );
}

#[test]
fn a_person_is_asked_at_a_narrow_terminal() {
    let home = home();
    let call = ["call", "--ask", "*", "read_file", r#"{"file_path": "a.txt"}"#];
    for (typed, code, part) in [
        ("y\n", 0, "alpha"),
        ("n\n", 3, "Error[USER_REJECTED]"),
        ("\n", 3, "Error[USER_REJECTED]"),
        ("\x04", 3, "Error[USER_REJECTED]"),
    ] {
        let ended = at_terminal(&home, &call, typed, &[]);
        check_terminal(&format!("{typed:?}"), &ended, code);
        assert!(ended.stdout.contains(part), "{typed:?}: {ended:?}");
    }
}

#[test]
fn what_was_typed_before_the_question_is_no_answer_to_it() {
    let home = home();
    let call = ["call", "--ask", "*", "read_file", r#"{"file_path": "a.txt"}"#];
    let ended = at_terminal(&home, &call, "n\r", &[("TYPED_EARLY", "y\r")]);
    check_terminal("early", &ended, 3);
}
