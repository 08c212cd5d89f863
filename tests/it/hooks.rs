//! Hooks that are commands, with the real program: what they read, what they may say, how they fail.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use iris_mcp::app::App;
use iris_mcp::config::settings::Settings;
use iris_mcp::config::{Config, Host};
use iris_mcp::hook::{Event, Hook, HookError, Registration, RunFinished, Verdict};
use iris_mcp::tool::Call;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::binary::{Gateway, command, exe, run};
use crate::fixture::{Home, eventually, within};
use crate::process::traces::Mark;
use crate::session::{Session, code, hello, text};
use crate::web::Web;

/// A hook of an agent file.
fn hook(name: &str, event: &str, line: &str) -> Value {
    json!({"name": name, "event": event, "handler": {"type": "command", "command": line}})
}

/// A hook that is for some tools only.
fn only(tools: &[&str], mut hook: Value) -> Value {
    hook["tools"] = json!(tools);
    hook
}

fn within_seconds(seconds: f64, mut hook: Value) -> Value {
    hook["timeout_seconds"] = seconds.into();
    hook
}

/// A hook that writes its event to a ledger beside the workspace, and says nothing.
fn noting(name: &str, event: &str) -> Value {
    hook(name, event, &format!("cat >/dev/null; echo {name} >> ../ledger; echo '{{}}'"))
}

/// A home with a file to read, and an agent with these hooks; returns the arguments that serve it.
fn agent(home: &Home, hooks: &[Value]) -> Vec<String> {
    home.write("workspace/here.txt", "it is here\n");
    // JSON is YAML, too.
    let agent = json!({
        "name": "a",
        "permissions": {"workspace": "workspace", "writes": "allow"},
        "tools": {"builtin": ["file.read", "file.list", "file.write"]},
        "hooks": hooks,
    });
    vec!["--agent".to_owned(), home.write("agent.yaml", &agent.to_string())]
}

fn serving(home: &Home, hooks: &[Value]) -> Session {
    let mut session = Session::start(&agent(home, hooks));
    session.initialize();
    session
}

fn read(session: &mut Session, file: &str) -> Value {
    session.call("read_file", &json!({ "file_path": file }))
}

fn events(home: &Home, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(home.file(file)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn ex_14_1_a_hook_reads_one_call_to_the_byte() {
    let home = Home::new();
    let mut session = serving(&home, &[hook("h", "tool.before", "cat > ../stdin; echo '{}'")]);
    let result = session.call("write_file", &json!({"file_path": "n.txt", "content": "hi ☃"}));
    assert_eq!(text(&result), "WROTE: n.txt");
    let told = fs::read_to_string(home.file("stdin")).unwrap();
    let event: Value = serde_json::from_str(&told).unwrap();
    let part = |key: &str| event[key].as_str().unwrap().to_owned();
    let workspace = home.file("workspace").canonicalize().unwrap();
    let (session_id, call, at) = (part("session_id"), part("call_id"), part("occurred_at"));
    assert_eq!(
        told,
        format!(
            r#"{{"event": "tool.before", "agent_id": "a", "session_id": "{session_id}", "run_id": "{session_id}", "activation_id": "{call}", "workspace": "{}", "occurred_at": "{at}", "call_id": "{call}", "tool_name": "write_file", "arguments": {{"file_path": "n.txt", "content": "hi ☃"}}}}"#,
            workspace.display()
        )
    );
    assert!(at.ends_with("+00:00") && at.len() >= "2026-12-01T08:00:00+00:00".len(), "{at}");
}

#[test]
fn ex_14_2_a_reason_ends_a_call_and_feedback_follows_its_result() {
    let home = Home::new();
    let deny = r#"echo '{"deny_reason":"no writes on Friday"}'"#;
    let feedback = r#"cat > ../after; echo '{"feedback":"mention the diff"}'"#;
    let mut session = serving(
        &home,
        &[
            only(&["write_file"], hook("freeze", "tool.before", deny)),
            hook("never", "tool.before", "echo never >> ../ledger; echo '{}'"),
            hook("advice", "tool.after", feedback),
        ],
    );
    let refused = session.call("write_file", &json!({"file_path": "n.txt", "content": "hi"}));
    assert_eq!(code(&refused), "HOOK_REJECTED");
    assert_eq!(text(&refused), "Error[HOOK_REJECTED]: no writes on Friday");
    assert!(!home.file("workspace/n.txt").exists());
    assert_eq!(home.ledger(), [""; 0], "the first refusal ends it");
    assert!(!home.file("after").exists(), "nothing has run");

    let done = read(&mut session, "here.txt");
    assert!(text(&done).starts_with("it is here"), "{done}");
    assert_eq!(done["content"][1]["text"], "[Hook feedback]\nmention the diff");
    assert_eq!(home.ledger(), ["never"]);
    let after = &events(&home, "after")[0];
    let call = after["call_id"].as_str().unwrap();
    assert_eq!(after["result"]["tool_use_id"], call);
    assert_eq!(
        (&after["body_status"], &after["result"]["is_error"]),
        (&json!("success"), &json!(false))
    );
    assert!(after["result"]["content"][0]["text"].as_str().unwrap().starts_with("it is here"));

    let failed = read(&mut session, "missing.txt");
    assert_eq!(code(&failed), "FILE_NOT_FOUND");
    let after = &events(&home, "after")[0];
    assert_eq!(after["body_status"], "error");
    assert_eq!(after["result"]["error"]["code"], "FILE_NOT_FOUND");
}

/// Does what the file asked for is called.
const CASES: &str = r#"
case "$(cat)" in
  *case-empty*) ;;
  *case-exit*) echo '{}'; echo "this is why" >&2; exit 3;;
  *case-two*) echo '{}'; echo '{}';;
  *case-list*) echo '[]';;
  *case-fields*) echo '{"answer": 42}';;
  *case-blank*) echo '{"deny_reason": " ", "feedback": " "}';;
  *case-bytes*) printf '{"feedback": "\377"}';;
  *case-much*) head -c 2000000 /dev/zero | tr '\0' ' '; echo '{}';;
  *case-missing*) exec no-such-program-anywhere;;
  *case-signal*) kill -9 $$;;
  *case-guard*) kill -9 $PPID; sleep 5;;
  *case-hang*) trap '' TERM HUP
     (setsid sh -c 'trap "" TERM; while :; do sleep 1; done' &)
     while :; do sleep 1; done;;
  *case-holds*) sleep 1000 & echo '{}';;
  *) echo "all is well" >&2; echo '{}';;
esac
"#;

/// The cases, and what is said of each.
const WRONG: [(&str, &str); 12] = [
    ("empty", "its command must print one JSON object on standard output, and printed nothing"),
    ("exit", "its command ended with exit code 3"),
    ("two", "its command must print one JSON object on standard output, and printed `{}\n{}`"),
    ("list", "its command must print one JSON object on standard output, and printed `[]`"),
    ("fields", "its command may print `{}` or "),
    ("bytes", "bytes that are not UTF-8"),
    ("much", "what its command printed could not be kept whole (byte_limit)"),
    ("missing", "its command ended with exit code 127"),
    ("signal", "its command was ended by signal 9"),
    ("guard", "nobody can say how the command ended"),
    ("hang", "it took longer than 1 s"),
    ("holds", "what its command printed could not be kept whole (drain_timeout)"),
];

#[test]
fn t28_a_hook_that_fails_before_a_call_stops_it_and_says_what_came() {
    let home = Home::new();
    home.write("hook.sh", CASES);
    let strict = within_seconds(1.0, hook("strict", "tool.before", "exec sh ../hook.sh"));
    let arguments = agent(&home, &[strict]);
    let mark = Mark::new();
    let settings = home.write("server.toml", "[command]\ninherit_env = ['MARK']\n");
    let mut session = Session::start_with(
        &[&arguments[..], &["--config".to_owned(), settings]].concat(),
        |command| {
            command.env("MARK", mark.to_string());
        },
    );
    session.initialize();
    assert!(text(&read(&mut session, "here.txt")).starts_with("it is here"));
    for (case, what) in WRONG {
        let began = Instant::now();
        let result = read(&mut session, &format!("case-{case}"));
        assert_eq!(code(&result), "HOOK_ERROR", "{case}");
        let message = text(&result);
        assert!(message.starts_with("Error[HOOK_ERROR]: the hook strict failed: "), "{message}");
        assert!(message.contains(what), "{case}: {message}");
        assert!(began.elapsed() < Duration::from_secs(6), "{case}: {:?}", began.elapsed());
        if case == "hang" {
            eventually("the hook is gone", || mark.bearers() == [session.pid().as_raw()]);
        }
    }
    assert_eq!(code(&read(&mut session, "case-blank")), "HOOK_ERROR");
    // Nothing has come of it, and calls go on.
    assert!(text(&read(&mut session, "here.txt")).starts_with("it is here"));
    eventually("the log has what it said, and its name", || {
        let said = session.said();
        said.contains("this is why") && said.contains("hook=\"strict\"")
    });
    session.close();
    session.end();
    mark.vanishes();
}

#[test]
fn t28_a_hook_that_fails_after_a_call_is_in_the_log_and_nowhere_else() {
    let home = Home::new();
    home.write("hook.sh", CASES);
    let careless = within_seconds(1.0, hook("careless", "tool.after", "exec sh ../hook.sh"));
    let mut session = serving(&home, &[careless, noting("next", "tool.after")]);
    for (index, (case, what)) in WRONG.into_iter().enumerate() {
        home.write(&format!("workspace/case-{case}"), "text");
        let result = read(&mut session, &format!("case-{case}"));
        assert!(text(&result).starts_with("text"), "{case}: {result}");
        assert_eq!(result["content"].as_array().unwrap().len(), 1, "{case}: {result}");
        assert_eq!(home.ledger().len(), index + 1, "{case}: the next one is asked all the same");
        let what = what.replace('\n', "\\n");
        within(Duration::from_secs(5), &what, || {
            let said = session.said();
            said.contains("hook=\"careless\"") && said.contains(&what)
        });
    }
}

#[test]
fn t28_a_filter_is_about_the_names_that_are_called() {
    let home = Home::new();
    let mut session = serving(
        &home,
        &[
            only(&["read_file"], noting("by-name", "tool.before")),
            only(&["file.read"], noting("by-key", "tool.before")),
            only(&["list_files", "write_file"], noting("others", "tool.before")),
            noting("all", "tool.after"),
        ],
    );
    read(&mut session, "here.txt");
    assert_eq!(home.ledger(), ["by-name", "all"]);
    session.call("list_files", &json!({}));
    assert_eq!(home.ledger()[2..], ["others", "all"]);
}

#[test]
fn hooks_have_the_environment_of_programs_and_none_of_our_secrets() {
    let home = Home::new();
    let arguments =
        agent(&home, &[hook("env", "tool.before", "env > ../env; pwd >> ../env; echo '{}'")]);
    let mut session = Session::start_with(&arguments, |command| {
        command.env("SECRET_TOKEN", "s3cret").env("IRIS_MCP_LOG", "warn").env("LC_ALL", "C");
    });
    session.initialize();
    read(&mut session, "here.txt");
    let env = fs::read_to_string(home.file("env")).unwrap();
    assert!(env.contains("LC_ALL=C\n") && env.contains("PATH="), "{env}");
    assert!(!env.contains("SECRET_TOKEN") && !env.contains("IRIS_"), "{env}");
    let workspace = home.file("workspace").canonicalize().unwrap();
    assert!(env.ends_with(&format!("{}\n", workspace.display())), "{env}");
}

#[test]
fn hooks_run_whatever_the_agent_may_not_do() {
    let home = Home::new();
    home.write("workspace/here.txt", "it is here\n");
    let agent = json!({
        "permissions": {"workspace": "workspace", "writes": "deny", "execute": "deny"},
        "tools": {"builtin": ["file.read"]},
        "hooks": [noting("h", "tool.before")],
    });
    let mut session = Session::start(&["--agent", &home.write("agent.yaml", &agent.to_string())]);
    session.initialize();
    assert!(text(&read(&mut session, "here.txt")).starts_with("it is here"));
    assert_eq!(home.ledger(), ["h"]);
}

#[test]
fn hooks_are_for_the_tools_of_upstreams_too_by_their_canonical_names() {
    let home = Home::with_up(json!({"tools": ["echo", "fail"]}));
    let agent = json!({
        "permissions": {"workspace": "workspace"},
        "mcp": {"path": "mcp.json"},
        "hooks": [
            only(&["mcp__up__echo"], hook("after", "tool.after", "cat > ../after; echo '{\"feedback\": \"so there\"}'")),
            only(&["mcp__up__fail"], hook("before", "tool.before", "echo '{\"deny_reason\": \"it fails\"}'")),
        ],
    });
    let agent = home.write("agent.yaml", &agent.to_string());
    let names = ["--approval", "client", "--names", "bare"];
    let mut session = Session::start(&[&["--agent", &agent], &names[..]].concat());
    session.initialize();
    let result = session.call("echo", &json!({"text": "hi"}));
    assert_eq!(text(&result), "hi");
    assert_eq!(result["content"][1]["text"], "[Hook feedback]\nso there");
    let event = &events(&home, "after")[0];
    assert_eq!(
        (&event["arguments"], &event["body_status"]),
        (&json!({"text": "hi"}), &json!("success"))
    );
    assert_eq!(text(&session.call("fail", &json!({}))), "Error[HOOK_REJECTED]: it fails");
}

/// Hooks that write events of runs, and of calls, to the ledger.
fn of_runs() -> [Value; 4] {
    let noting = |event: &str| {
        let line =
            format!("cat >> ../events; echo >> ../events; echo {event} >> ../ledger; echo '{{}}'");
        hook(event, event, &line)
    };
    [noting("run.started"), noting("run.finished"), noting("tool.before"), noting("tool.after")]
}

#[test]
fn j6_a_run_begins_with_the_first_call_and_ends_with_the_client() {
    let home = Home::new();
    let mut session = serving(&home, &of_runs());
    session.tools();
    assert_eq!(home.ledger(), [""; 0], "nothing was called");
    read(&mut session, "here.txt");
    read(&mut session, "missing.txt");
    let calls = ["tool.before", "tool.after"];
    let so_far = [&["run.started"][..], &calls, &calls].concat();
    assert_eq!(home.ledger(), so_far);
    session.close();
    assert_eq!(session.end().0, Some(0));
    assert_eq!(home.ledger(), [&so_far[..], &["run.finished"]].concat());
    let events = events(&home, "events");
    let (started, first, finished) = (&events[0], &events[1], &events[5]);
    for key in ["session_id", "run_id", "agent_id", "workspace"] {
        assert_eq!(started[key], first[key], "{key}");
        assert_eq!(finished[key], first[key], "{key}");
    }
    assert_eq!(started["activation_id"], first["call_id"]);
    assert_eq!(started["input"], "");
    assert_eq!(started["run"]["phase"], "running");
    assert_eq!(finished["result"]["run"]["stop_reason"], "completed");
    assert_eq!(finished["result"]["run"]["started_at"], started["run"]["started_at"]);
}

#[test]
fn j6_a_session_without_calls_is_no_run() {
    let home = Home::new();
    let mut session = serving(&home, &of_runs());
    session.tools();
    let unknown = session.request("tools/call", &json!({"name": "nonesuch", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602);
    session.close();
    session.end();
    assert_eq!(home.ledger(), [""; 0]);
}

#[test]
fn j6_a_run_begins_once_however_many_calls_come_first() {
    let home = Home::new();
    let [mut started, finished, ..] = of_runs();
    let line = started["handler"]["command"].as_str().unwrap();
    started["handler"]["command"] = format!("sleep 0.3; {line}").into();
    // A shell for each of a hundred calls is not what is tested: the calls note themselves.
    let mut session = serving(&home, &[started, finished]);
    let mut open = Vec::new();
    for _ in 0..100 {
        let call = json!({"name": "read_file", "arguments": {"file_path": "here.txt"}});
        open.push(session.ask("tools/call", &call));
    }
    for id in open {
        let answer = session.answer(id);
        assert!(text(&answer["result"]).starts_with("it is here"), "{answer}");
        assert_eq!(home.ledger(), ["run.started"], "no call comes before");
    }
    session.close();
    session.end();
    assert_eq!(home.ledger(), ["run.started", "run.finished"]);
}

#[test]
fn j6_a_hook_of_runs_that_fails_or_takes_too_long_changes_nothing() {
    let home = Home::new();
    home.write("hook.sh", CASES);
    let wrong = |name: &str, event: &str| hook(name, event, "echo '{\"input\": 1}'");
    let slow = within_seconds(1.0, hook("slow", "run.started", "sleep 1000"));
    let hooks = [
        wrong("bad-start", "run.started"),
        slow,
        noting("next", "run.started"),
        wrong("bad-end", "run.finished"),
    ];
    let mut session = serving(&home, &hooks);
    assert!(text(&read(&mut session, "here.txt")).starts_with("it is here"));
    assert_eq!(home.ledger(), ["next"]);
    session.close();
    session.end();
    for part in [
        "hook=\"bad-start\" event=\"run.started\"",
        "for `run.started` its command may print only `{}`, and printed `{\\\"input\\\": 1}`",
        "hook=\"slow\"",
        "it took longer than 1 s",
        "hook=\"bad-end\" event=\"run.finished\"",
    ] {
        eventually(part, || session.said().contains(part));
    }
}

#[test]
fn j6_a_signal_cancels_runs_and_their_hooks_that_are_commands_are_not_run() {
    let home = Home::new();
    let hang =
        within_seconds(1000.0, hook("hang", "tool.before", "echo hangs >> ../ledger; sleep 1000"));
    let hooks = [&of_runs()[..2], &[only(&["list_files"], hang)]].concat();
    let mark = Mark::new();
    let settings = home.write("server.toml", "[command]\ninherit_env = ['MARK']\n");
    let arguments = [&agent(&home, &hooks)[..], &["--config".to_owned(), settings]].concat();
    for hangs in [false, true] {
        fs::write(home.file("ledger"), "").unwrap();
        let mut session = Session::start_with(&arguments, |command| {
            command.env("MARK", mark.to_string());
        });
        session.initialize();
        read(&mut session, "here.txt");
        if hangs {
            session.ask("tools/call", &json!({"name": "list_files", "arguments": {}}));
            home.wait_for("hangs");
        }
        session.signal(Signal::SIGTERM);
        let (exit, took, _) = session.end();
        assert_eq!(exit, Some(0));
        assert!(took < Duration::from_secs(3), "{took:?}");
        assert_eq!(home.noted("run.finished"), 0);
        assert_eq!(home.noted("run.started"), 1);
        mark.has_vanished();
    }
}

#[test]
fn j6_over_http_a_run_ends_with_its_session() {
    let home = Home::new();
    let mut arguments = agent(&home, &of_runs());
    let settings = home.write("server.toml", "[limits]\nsession_idle_seconds = 4.0\n");
    arguments.extend(["--config".to_owned(), settings]);
    let mut gateway = Gateway::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let call = json!({"name": "read_file", "arguments": {"file_path": "here.txt"}});
    let mut older = Web::new(&gateway.url);
    older.initialize();
    assert!(text(&older.request("tools/call", &call)["result"]).starts_with("it is here"));
    assert_eq!(home.noted("run.started"), 1);
    older.open("DELETE", "");
    home.wait_for("run.finished");
    assert_eq!(home.noted("run.finished"), 1);

    let mut newer = Web::new(&gateway.url);
    for _ in 0..2 {
        assert!(text(&newer.modern("tools/call", &call)["result"]).starts_with("it is here"));
    }
    assert_eq!(home.noted("run.started"), 2);
    within(Duration::from_secs(20), "it is idle", || home.noted("run.finished") == 2);
    // The same client begins again.
    newer.modern("tools/call", &call);
    assert_eq!(home.noted("run.started"), 3);
    let mut older = Web::new(&gateway.url);
    older.initialize();
    older.request("tools/call", &call);
    assert_eq!(home.noted("run.started"), 4);
    let (exit, _) = gateway.terminate();
    assert_eq!(exit, Some(0));
    assert_eq!(home.noted("run.finished"), 2, "those two were cancelled");
    let ends = events(&home, "events");
    let ends = ends.iter().filter(|event| event["event"] == "run.finished");
    assert!(ends.clone().all(|event| event["result"]["run"]["stop_reason"] == "completed"));
}

#[test]
fn a_call_from_the_command_line_is_a_run_too() {
    let home = Home::new();
    let arguments = agent(&home, &of_runs());
    let mut command = command(exe());
    command.args(["call", "read_file", r#"{"file_path": "here.txt"}"#]).args(arguments);
    let ended = run(command, Duration::from_secs(20));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(home.ledger(), ["run.started", "tool.before", "tool.after", "run.finished"]);
}

#[test]
fn check_and_serve_say_which_hooks_there_are() {
    let home = Home::new();
    let arguments = agent(&home, &[noting("one", "tool.before"), noting("two", "run.finished")]);
    let mut command = command(exe());
    command.arg("check").args(&arguments);
    let ended = run(command, Duration::from_secs(20));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("\nhooks: one (tool.before), two (run.finished)\n"), "{ended:?}");
    assert_eq!(home.ledger(), [""; 0], "none of them is run");

    let gateway = Gateway::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    within(Duration::from_secs(20), "it is said", || {
        gateway.said().contains("  hooks: one (tool.before), two (run.finished)")
    });
}

#[test]
fn j4_a_hook_of_a_call_that_is_cancelled_is_stopped() {
    let home = Home::new();
    let line = "trap '' TERM; echo hangs >> ../ledger; while :; do sleep 1; done";
    let hang = within_seconds(1000.0, only(&["list_files"], hook("hang", "tool.before", line)));
    let settings = home.write("server.toml", "[command]\ninherit_env = ['MARK']\n");
    let arguments = [&agent(&home, &[hang])[..], &["--config".to_owned(), settings]].concat();
    let mark = Mark::new();
    let mut session = Session::start_with(&arguments, |command| {
        command.env("MARK", mark.to_string());
    });
    session.initialize();
    let id = session.ask("tools/call", &json!({"name": "list_files", "arguments": {}}));
    home.wait_for("hangs");
    session.notify("notifications/cancelled", &json!({ "requestId": id }));
    eventually("the hook is gone", || mark.bearers() == [session.pid().as_raw()]);
    assert!(text(&read(&mut session, "here.txt")).starts_with("it is here"));
}

#[test]
fn j6_a_hook_that_hangs_at_the_end_holds_us_up_for_some_seconds_only() {
    let home = Home::new();
    let hang = within_seconds(1000.0, hook("hang", "run.finished", "trap '' TERM; sleep 1000"));
    let settings = home.write("server.toml", "[command]\ninherit_env = ['MARK']\n");
    let arguments = [&agent(&home, &[hang])[..], &["--config".to_owned(), settings]].concat();
    let mark = Mark::new();
    let mut session = Session::start_with(&arguments, |command| {
        command.env("MARK", mark.to_string());
    });
    session.initialize();
    read(&mut session, "here.txt");
    session.close();
    let (exit, took, _) = session.end();
    assert_eq!(exit, Some(0));
    assert!(took > Duration::from_secs(6) && took < Duration::from_secs(10), "{took:?}");
    eventually("it is told", || session.said().contains("have not heard in time"));
    mark.has_vanished();
}

/// An embedder's hook, which writes down what it hears.
#[derive(Debug)]
struct Theirs(std::path::PathBuf);

impl Theirs {
    fn note(&self, what: &str) {
        let ledger = fs::OpenOptions::new().append(true).create(true).open(&self.0);
        writeln!(ledger.unwrap(), "{what}").unwrap();
    }
}

#[async_trait::async_trait]
impl Hook for Theirs {
    async fn before(&self, call: &Call) -> Result<Verdict, HookError> {
        self.note(&format!("theirs {}", call.tool_name));
        Ok(Verdict::Continue)
    }

    async fn run_finished(&self, finished: &RunFinished) -> Result<(), HookError> {
        self.note(finished.stop_reason.name());
        Ok(())
    }
}

#[tokio::test]
async fn j5_an_embedders_hooks_come_after_those_of_the_file_and_hear_of_our_end() {
    let home = Home::new();
    let arguments = agent(&home, &[noting("file", "tool.before"), noting("end", "run.finished")]);
    let host =
        Host { environment: std::env::vars().collect(), directory: home.file(""), exe: None };
    let settings = Settings { agent: Some((&arguments[1]).into()), ..Settings::default() };
    let mut config = Config::build(settings, &host).unwrap();
    config.hooks = [Event::Before, Event::RunFinished]
        .map(|event| Registration {
            event,
            name: "theirs".to_owned(),
            tools: None,
            timeout: Duration::from_secs(10),
            hook: Arc::new(Theirs(home.file("ledger"))),
        })
        .into();
    let processes = iris_mcp::process::Config { exe: Some(exe().into()) };
    let app = App::start(config, processes).await.unwrap();
    let told = [
        "file (tool.before)",
        "end (run.finished)",
        "theirs (tool.before)",
        "theirs (run.finished)",
    ];
    assert_eq!(app.hooks(), told);

    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(theirs);
    let serving = iris_mcp::server::stdio::serve_over(app.gateway().clone(), input, output);
    let call = json!({"name": "read_file", "arguments": {"file_path": "here.txt"}});
    let talking = async {
        let (reader, mut writer) = tokio::io::split(ours);
        for message in [
            json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello("2025-11-25")}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}),
        ] {
            writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        }
        let mut lines = BufReader::new(reader).lines();
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("it is here") {
                return (lines, writer);
            }
        }
        panic!("no answer");
    };
    let _open = tokio::select! {
        open = talking => open,
        ended = serving => panic!("{ended:?}"),
    };
    assert_eq!(home.ledger(), ["file", "theirs read_file"]);
    app.end().await;
    assert_eq!(home.ledger()[2..], ["cancelled"], "the command is not told of that");
}
