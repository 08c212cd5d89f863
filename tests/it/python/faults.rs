//! What goes wrong in user code, and that nothing else suffers from it.

use std::time::Duration;

use serde_json::{Value, json};

use super::{agent, interpreter, iris, session};
use crate::binary::{command, run};
use crate::fixture::within;
use crate::session::{code, text};

const CODE: &str = r#"
import asyncio, os, signal, subprocess, sys, threading, time
from pathlib import Path
from iris.exceptions import IrisToolExecutionError
from iris.tools import BaseTool, CallableExecutionMode, TextBlock, ToolDefinition, ToolResult, tool

THREAD = {"execution_mode": CallableExecutionMode.THREAD}
LEDGER = Path(__file__).with_name("ledger")
now, most = 0, 0
lock = threading.Lock()
gate = threading.Event()


@tool()
def fine() -> str:
    return "fine"


@tool(**THREAD)
def sleep(seconds: float) -> int:
    global now, most
    with lock:
        now += 1
        most = max(most, now)
    time.sleep(seconds)
    with lock:
        now -= 1
    return most


@tool()
def inline(seconds: float) -> int:
    """Counts how many of its bodies run at once."""
    global now
    now += 1
    with LEDGER.open("a") as ledger:
        ledger.write("inline\n")
    seen = now
    gate.wait(seconds)
    now -= 1
    return seen


@tool(**THREAD)
def open_the_gate() -> str:
    gate.set()
    return "open"


@tool()
def odd(how: str):
    if how == "half":
        return "a\ud800b\ud83d\ude00"
    if how == "object":
        return type("Odd", (), {"__str__": lambda self: "as text"})()
    if how == "no text":
        def no_text(self):
            raise ValueError("it has no text")
        return type("Odd", (), {"__str__": no_text})()
    if how == "in data":
        def no_text(self):
            raise ValueError("it has no text")
        odd = type("Odd", (), {"__str__": no_text, "__repr__": no_text})()
        return ToolResult(tool_use_id="", tool_name="", content=[TextBlock(text="x")], data={"odd": odd})
    if how == "not a number":
        return ToolResult(
            tool_use_id="", tool_name="", content=[TextBlock(text="x")], data={"n": float("nan"), "i": [float("inf")]}
        )
    if how == "circle":
        circle = []
        circle.append(circle)
        return circle
    if how == "deep":
        deep = []
        for _ in range(100_000):
            deep = [deep]
        return deep
    if how == "long":
        raise ValueError("y" * 5_000_000)
    if how == "keyboard":
        raise KeyboardInterrupt
    if how == "own kind":
        raise type("Own", (BaseException,), {})("of its own")
    if how == "fork":
        return "child" if os.fork() == 0 else "parent"
    if how == "fork and exit":
        child = os.fork()
        if child == 0:
            sys.exit(0)
        os.waitpid(child, 0)
        return "parent"
    if how == "file":
        raise IrisToolExecutionError("FILE_NOT_FOUND: a file")


@tool(**THREAD)
def in_a_thread(how: str):
    if how == "stop":
        return next(iter([]))
    if how == "keyboard":
        raise KeyboardInterrupt
    return "child" if os.fork() == 0 else "parent"


class Bare(BaseTool):
    definition = ToolDefinition(name="bare", description="d", input_schema={"type": "object"})

    def validate_input(self, params):
        if params.get("wait"):
            time.sleep(60)
        return params

    async def arun(self, params, context):
        return "no result"


def registrar(registry):
    registry.register(Bare())


@tool(group="file")
def of_files(text: str) -> str:
    raise IrisToolExecutionError(text)


@tool()
def hold(note: str) -> str:
    """Lets nothing else of the interpreter run, for ever."""
    import re
    with LEDGER.open("a") as ledger:
        ledger.write("hold\n")
    re.match(r"(a+)+$", "a" * 60 + "b")
    return note


@tool()
def noise() -> str:
    """Forks children that write what they like to all that is open."""
    children = []
    for _ in range(20):
        child = os.fork()
        if child == 0:
            for _ in range(2_000):
                os.write(1, b'{"id":1,"result":{}}\n' * 10)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    subprocess.run([sys.executable, "-c", "print('x' * 1_000_000)"])
    return "quiet"
"#;

const AGENT: &str = r#"
permissions: { workspace: workspace, writes: allow }
context_policy: { enabled: false }
tools:
  python:
    functions:
      - "mine:fine"
      - "mine:sleep"
      - "mine:inline"
      - "mine:open_the_gate"
      - "mine:odd"
      - "mine:of_files"
      - "mine:noise"
      - "mine:hold"
      - "mine:in_a_thread"
    registrars: ["mine:registrar"]
"#;

#[test]
fn threads_run_beside_each_other_and_beside_what_blocks_the_loop() {
    let (home, arguments) = agent(CODE, AGENT);
    let mut session = session(&arguments, &[]);
    let sleeps: Vec<u64> = (0..100)
        .map(|_| {
            session.ask("tools/call", &json!({"name": "sleep", "arguments": {"seconds": 0.2}}))
        })
        .collect();
    let most = sleeps.into_iter().map(|id| {
        let answer = session.answer(id)["result"].take();
        text(&answer).parse::<usize>().unwrap()
    });
    let most = most.max().unwrap();
    assert!(most >= 25, "{most} ran at once");

    // The body that blocks goes on only when a thread has run, and its call was accepted, beside it.
    let two = [(); 2].map(|()| {
        session.ask("tools/call", &json!({"name": "inline", "arguments": {"seconds": 15}}))
    });
    home.wait_for("inline");
    assert_ne!(text(&session.call("sleep", &json!({"seconds": 0}))), "");
    assert_eq!(text(&session.call("open_the_gate", &json!({}))), "open");
    for id in two {
        // One at a time.
        assert_eq!(text(&session.answer(id)["result"]), "1");
    }
}

#[test]
fn whatever_is_returned_or_raised_is_an_answer() {
    let (_home, arguments) = agent(CODE, AGENT);
    let mut session = session(&arguments, &[]);
    for (how, expected, words) in [
        ("half", "", "a\u{fffd}b😀"),
        ("object", "", "as text"),
        ("no text", "EXECUTION_ERROR", "it has no text"),
        ("in data", "EXECUTION_ERROR", "serialize"),
        ("not a number", "", "x"),
        ("circle", "", "[[...]]"),
        ("deep", "EXECUTION_ERROR", "recursion"),
        ("long", "EXECUTION_ERROR", "yyyy"),
        ("keyboard", "EXECUTION_ERROR", "KeyboardInterrupt"),
        ("own kind", "EXECUTION_ERROR", "of its own"),
        ("fork", "", "parent"),
        ("fork and exit", "", "parent"),
        // EX-4.2: it is no tool of files.
        ("file", "EXECUTION_ERROR", "FILE_NOT_FOUND: a file"),
    ] {
        let answer = session.call("odd", &json!({"how": how}));
        let is_error = answer["isError"] == true;
        assert_eq!(if is_error { code(&answer) } else { "" }, expected, "{how}: {answer}");
        assert!(text(&answer).contains(words), "{how}: {answer}");
        assert!(answer.to_string().len() < 200_000, "{how}");
        if how == "not a number" {
            assert_eq!(answer["_meta"]["iris/result"]["data"], json!({"n": null, "i": [null]}));
        }
        assert_eq!(text(&session.call("fine", &json!({}))), "fine", "{how}");
    }
}

#[test]
fn nothing_of_a_thread_or_a_class_is_left_without_an_answer() {
    let (_home, arguments) = agent(CODE, AGENT);
    let mut session = session(&arguments, &["--tool-timeout", "2"]);
    for (name, given, expected, words) in [
        ("in_a_thread", json!({"how": "stop"}), "EXECUTION_ERROR", "StopIteration"),
        ("in_a_thread", json!({"how": "keyboard"}), "EXECUTION_ERROR", "KeyboardInterrupt"),
        ("in_a_thread", json!({"how": "fork"}), "", "parent"),
        ("bare", json!({}), "EXECUTION_ERROR", "arun of a tool returns a ToolResult"),
        ("bare", json!({"wait": true}), "TOOL_TIMEOUT", "2 s"),
    ] {
        let answer = session.call(name, &given);
        let is_error = answer["isError"] == true;
        assert_eq!(if is_error { code(&answer) } else { "" }, expected, "{name}: {answer}");
        assert!(text(&answer).contains(words), "{name}: {answer}");
        for _ in 0..5 {
            assert_eq!(text(&session.call("fine", &json!({}))), "fine", "{name} {given}");
        }
    }
}

#[test]
fn ex_4_1_a_text_that_begins_with_a_code_names_it_in_the_group_of_files() {
    let (_home, arguments) = agent(CODE, AGENT);
    let mut session = session(&arguments, &[]);
    for (said, expected, message) in [
        ("FILE_NOT_FOUND: no such file", "FILE_NOT_FOUND", "no such file"),
        // EX-4.3
        ("A: b", "EXECUTION_ERROR", "A: b"),
        ("E1:x", "E1", "x"),
        ("ab: c", "EXECUTION_ERROR", "ab: c"),
        // EX-4.4
        ("FILE_NOT_FOUND: a\nwarn", "EXECUTION_ERROR", "FILE_NOT_FOUND: a\nwarn"),
    ] {
        let answer = session.call("of_files", &json!({"text": said}));
        assert_eq!(text(&answer), format!("Error[{expected}]: {message}"), "{said}");
    }
}

#[test]
fn noise_of_forks_stays_out_of_the_line() {
    let (_home, arguments) = agent(CODE, AGENT);
    let mut session = session(&arguments, &[]);
    let noisy = session.ask("tools/call", &json!({"name": "noise", "arguments": {}}));
    assert_eq!(text(&session.answer(noisy)["result"]), "quiet");
    assert_eq!(text(&session.call("fine", &json!({}))), "fine");
}

#[test]
fn o7_one_that_lets_nothing_run_is_ended_however_much_waits_for_it() {
    let (home, arguments) = agent(CODE, AGENT);
    let mut session = session(&arguments, &[]);
    let hold = session.ask("tools/call", &json!({"name": "hold", "arguments": {"note": ""}}));
    home.wait_for("hold");
    // More than there is room for on the way to it.
    let long = json!({"name": "hold", "arguments": {"note": "x".repeat(20_000), "and": 1}});
    let waiting: Vec<u64> = (0..150).map(|_| session.ask("tools/call", &long)).collect();
    std::thread::sleep(Duration::from_secs(1));
    for id in waiting.iter().chain([&hold]) {
        session.notify("notifications/cancelled", &json!({"requestId": id}));
    }
    within(Duration::from_secs(20), "the next one", || {
        let fine = session.call("fine", &json!({}));
        fine["isError"] != true
    });
}

#[test]
fn an_interpreter_that_is_killed_during_fifty_calls_answers_each_of_them_once() {
    let (home, arguments) = agent(CODE, AGENT);
    let mut session = session(&arguments, &[]);
    let calls: Vec<u64> = (0..50)
        .map(|_| session.ask("tools/call", &json!({"name": "sleep", "arguments": {"seconds": 20}})))
        .collect();
    let children = || -> Vec<String> {
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        let ours = pids.filter(|pid| {
            let environment = std::fs::read(pid.path().join("cmdline")).unwrap_or_default();
            let cwd = std::fs::read_link(pid.path().join("cwd")).unwrap_or_default();
            cwd.starts_with(home.path(""))
                && environment.windows(9).any(|part| part == b"hello.pop")
        });
        ours.map(|pid| pid.file_name().to_string_lossy().into_owned()).collect()
    };
    assert_ne!(text(&session.call("fine", &json!({}))), "");
    for pid in children() {
        let pid = nix::unistd::Pid::from_raw(pid.parse().unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    }
    for id in calls {
        let answer = session.answer(id)["result"].take();
        // Those of which nothing had begun can be made again.
        assert!(["TOOL_OUTCOME_UNKNOWN", "WORKER_LOST"].contains(&code(&answer)), "{answer}");
        assert_eq!(answer["_meta"]["iris/result"]["retryable"], code(&answer) == "WORKER_LOST");
    }
    within(Duration::from_secs(10), "the next one", || {
        let fine = session.call("fine", &json!({}));
        fine["isError"] != true
    });
}

#[test]
fn what_cannot_be_a_tool_says_why() {
    for (tools, words) in [
        ("def f(x): pass", &["annotation", "x"][..]),
        ("def f(x: int, /): pass", &["positional-only", "x"]),
        ("def f(x: 'Nowhere'): pass", &["annotations", "Nowhere"]),
        ("f = 5", &["int"]),
        ("from iris.tools import *\n@tool\ndef f(): pass", &["write @tool() with parentheses"]),
        ("from iris.tools import *\nclass f(BaseTool): pass", &["is a class"]),
        ("import os\nos._exit(7)", &["was loading", "`theirs:f`", "7"]),
        (
            "import nothing_like_this\nf = 1",
            &["No module named 'nothing_like_this'", "python", "[python] path", "looked in"],
        ),
        (
            "from iris.tools import *\n@tool(execution_mode=CallableExecutionMode.THREAD)\nasync def f(): pass",
            &["async", "thread"],
        ),
        ("from iris.tools import *\n@tool(name='9a')\ndef f(): pass", &["letter"]),
        ("from iris.tools import *\n@tool(name='fine')\ndef f(): pass", &["fine"]),
        ("def f(): pass\nraise SystemExit('gone')", &["SystemExit: gone"]),
    ] {
        let (home, arguments) = agent(
            CODE,
            "tools: { python: { functions: [\"mine:fine\", \"theirs:f\"] } }\npermissions: { workspace: . }",
        );
        home.write("theirs.py", tools);
        let checked = iris(&arguments, &["check", "--json"], &interpreter());
        assert_eq!(checked.code, Some(1), "{tools}: {checked:?}");
        let found: Value = serde_json::from_str(&checked.stdout).unwrap();
        let problems = found["problems"].to_string();
        for word in words.iter().chain(&["functions[1]"]) {
            assert!(problems.contains(word), "{tools}: {word}: {problems}");
        }
        if tools.contains("_exit") {
            continue;
        }
        // The others are there.
        let called = iris(&arguments, &["call", "fine", "--keep-going"], &interpreter());
        assert_eq!(called.stdout.trim(), "fine", "{tools}: {called:?}");
    }
}

#[test]
fn an_interpreter_without_pydantic_is_told_what_to_run() {
    let (home, arguments) = agent(CODE, AGENT);
    let mut made = command("python3");
    made.args(["-m", "venv", "--without-pip", &home.path("bare")]);
    let made = run(made, Duration::from_secs(30));
    assert_eq!(made.code, Some(0), "{made:?}");
    let python = home.path("bare/bin/python");
    let checked = iris(&arguments, &["check"], &python);
    assert_eq!(checked.code, Some(1), "{checked:?}");
    assert!(checked.stdout.contains("bare/bin/python -m pip install 'pydantic>=2'"), "{checked:?}");
}
