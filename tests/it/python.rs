//! An agent's Python tools, as a client sees them, and an interpreter that ends in every way.

mod extensions;
mod faults;
mod fidelity;
mod odd;

use std::time::Duration;

use serde_json::{Value, json};

use crate::binary::{Ended, command, exe, peer, run};
use crate::fixture::{Home, eventually, within};
use crate::session::{Session, code, names, text};

const TOOLS: &str = r#"
import asyncio, ctypes, os, sys, time
from pathlib import Path
from iris.tools import (
    BaseTool, CallableExecutionMode, ToolCapability, ToolDefinition, ToolErrorInfo, ToolResult, tool,
)

READ = {ToolCapability.READ}
print("loading says this on standard output")
LEDGER = Path(__file__).with_name("ledger")


def note(line):
    with LEDGER.open("a") as ledger:
        ledger.write(line + "\n")


@tool(capabilities=READ, tags=["math"], version="1.2", examples=[{"left": 1, "right": 2}])
def add(left: int, right: int = 1) -> int:
    """Adds two numbers.

    Args:
        left (int): the first
            of them
        right: the second
    """
    print("noise", sys.stdin.read(), flush=True)
    os.write(1, b"more noise\n")
    return left + right


@tool(capabilities=READ, preset_kwargs={"secret": "s3cret"}, deprecated=True)
def preset(name: str, secret: str) -> str:
    return f"{name} {secret}"


@tool(capabilities=READ)
async def sleep(seconds: float) -> str:
    note("sleep")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    return "slept"


@tool(capabilities=READ, execution_mode=CallableExecutionMode.THREAD)
def thread(seconds: float) -> dict:
    note("thread")
    time.sleep(seconds)
    return {"b": 1, "a": [1, 2.0, None, True, "中"]}


@tool(capabilities=READ)
def die(how: str) -> str:
    note(how)
    if how == "exit":
        os._exit(3)
    if how == "segfault":
        ctypes.string_at(0)
    if how == "raise":
        raise ValueError("no luck")
    if how == "quit":
        sys.exit("gone")
    if how == "loop":
        while True:
            pass
    if how == "huge":
        return "x" * 3_000_000
    if how == "fork":
        if os.fork() == 0:
            print("a child's words", flush=True)
            os._exit(0)
    return "alive"


@tool()
def save(text: str) -> str:
    return text


class Shout(BaseTool):
    definition = ToolDefinition(
        name="shout", description="Shouts.", aliases=("yell",), group="loud",
        input_schema={"type": "object", "properties": {"text": {"type": "string"}}},
        capabilities={ToolCapability.READ, ToolCapability.WRITE},
    )

    def validate_input(self, params):
        if not params.get("text"):
            from iris.exceptions import IrisToolValidationError
            raise IrisToolValidationError("there is nothing to shout")
        return params

    def is_read_only(self, params):
        return "quietly" in params["text"]

    async def arun(self, params, context):
        if params["text"] == "fail":
            error = ToolErrorInfo(code="TOO_LOUD", message="hush", retryable=True, details={"db": 120})
            return ToolResult(tool_use_id="", tool_name="", is_error=True, error=error)
        assert context.workspace_root.is_dir() and not context.cancellation.requested
        content = [{"type": "text", "text": params["text"].upper()}]
        return ToolResult(tool_use_id=context.call_id, tool_name="shout", content=content, data={"n": 1})


class Draw(BaseTool):
    definition = ToolDefinition(
        name="draw", description="Draws.", input_schema={"type": "object"}, capabilities=READ, deferred=True,
    )

    async def arun(self, params, context):
        from iris.message import ImageBlock
        from iris.tools import ToolArtifact
        assert context.metadata["run_id"] == context.session_id
        assert context.metadata["activation_id"] == context.call_id
        path = Path(context.workspace_root, "drawn.txt")
        seen = context.read_state.get(path) is not None
        path.write_text("as text")
        context.read_state.update(path)
        image = ImageBlock(data=PNG, mime_type="image/png", name="dot.png")
        artifact = ToolArtifact(path=path, preview="as")
        wrong = ImageBlock(data="no!", mime_type="image/png")
        return ToolResult(tool_use_id="", tool_name="", content=[image, wrong], artifact=artifact, data={"seen": seen})


PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def register(registry):
    registry.register(Shout())


def register_draw(registry):
    registry.register(Draw())
"#;

const AGENT: &str = r#"
permissions: { workspace: workspace, writes: allow }
context_policy: { enabled: false }
tools:
  python:
    functions: ["mine:add", "mine:preset", "mine:sleep", "mine:thread", "mine:die", "mine:save"]
    registrars: ["mine:register"]
"#;

fn interpreter() -> String {
    peer("fastmcp/bin/python").to_string_lossy().into_owned()
}

fn agent(tools: &str, agent: &str) -> (Home, Vec<String>) {
    let home = Home::new();
    home.write("mine.py", tools);
    let agent = home.write("agent.yaml", agent);
    (home, vec!["--agent".to_owned(), agent])
}

fn session(arguments: &[String], more: &[&str]) -> Session {
    let more = more.iter().map(|argument| (*argument).to_owned());
    let arguments: Vec<String> = arguments.iter().cloned().chain(more).collect();
    let mut session = Session::start_with(&arguments, |command| {
        command.env("IRIS_MCP_LOG", "info,iris_mcp::process=debug");
        command.env("IRIS_MCP_PYTHON_INTERPRETER", interpreter());
    });
    session.initialize();
    session
}

fn iris(arguments: &[String], more: &[&str], python: &str) -> Ended {
    let mut command = command(exe());
    command.args(more).args(arguments).env("IRIS_MCP_PYTHON_INTERPRETER", python);
    run(command, Duration::from_secs(30))
}

#[test]
fn ex_2_1_functions_and_classes_are_listed_with_what_they_say_of_themselves() {
    let (_home, arguments) = agent(TOOLS, AGENT);
    let mut session = session(&arguments, &[]);
    let listed = session.request("tools/list", &json!({}))["result"].take();
    assert_eq!(names(&listed), ["add", "preset", "sleep", "thread", "die", "save", "shout"]);
    let add = &listed["tools"][0];
    // The type in brackets is left out (EX-2.2), and the next line goes on (EX-2.3).
    let schema = json!({
        "properties": {
            "left": {"description": "the first of them", "title": "Left", "type": "integer"},
            "right": {"default": 1, "description": "the second", "title": "Right", "type": "integer"},
        },
        "required": ["left"], "title": "AddToolInput", "type": "object",
    });
    assert_eq!(add["inputSchema"], schema);
    assert_eq!(add["annotations"]["readOnlyHint"], true);
    let about = &add["_meta"]["iris/tool"];
    assert_eq!((&about["tags"], &about["version"]), (&json!(["math"]), &json!("1.2")));
    assert_eq!(about["examples"], json!([{"left": 1, "right": 2}]));
    let preset = &listed["tools"][1];
    assert_eq!(preset["inputSchema"]["properties"].as_object().unwrap().len(), 1);
    assert!(
        preset["description"].as_str().unwrap().ends_with("Deprecated: This tool is deprecated.")
    );
    assert_eq!(listed["tools"][6]["_meta"]["iris/tool"]["group"], "loud");
}

#[test]
fn ex_2_4_arguments_are_coerced_and_results_are_what_was_returned() {
    let (_home, arguments) = agent(TOOLS, AGENT);
    let mut session = session(&arguments, &[]);
    let add = session.call("add", &json!({"left": "2", "right": 3, "zzz": 1}));
    assert_eq!(text(&add), "5");
    let stats = &add["_meta"]["iris/result"]["stats"];
    assert_eq!(stats["execution_mode"], "inline");
    assert!(stats["elapsed_ms"].is_number(), "{add}");
    let wrong = session.call("add", &json!({"left": 2.5}));
    assert_eq!(code(&wrong), "VALIDATION_ERROR");
    assert!(text(&wrong).contains("left"), "{wrong}");
    let preset = session.call("preset", &json!({"name": "n"}));
    assert_eq!(text(&preset), "n s3cret");
    let taken = session.call("preset", &json!({"name": "n", "secret": "mine"}));
    assert_eq!(code(&taken), "VALIDATION_ERROR");
    assert_eq!(
        text(&session.call("thread", &json!({"seconds": 0}))),
        "{\"b\":1,\"a\":[1,2.0,null,true,\"中\"]}"
    );
    // That was EX-2.5, but for what has a result of its own.
    for name in ["shout", "yell"] {
        let shout = session.call(name, &json!({"text": "hi"}));
        assert_eq!((text(&shout), &shout["_meta"]["iris/result"]["data"]["n"]), ("HI", &json!(1)));
    }
    let failed = session.call("shout", &json!({"text": "fail"}));
    assert_eq!(code(&failed), "TOO_LOUD");
    let about = &failed["_meta"]["iris/result"];
    assert_eq!((&about["retryable"], &about["details"]["db"]), (&json!(true), &json!(120)));
    assert_eq!(code(&session.call("shout", &json!({}))), "VALIDATION_ERROR");
    // Without a capability it changes nothing, as in the seed.
    assert_eq!(session.call("save", &json!({"text": ""}))["content"], json!([]));
    let raised = session.call("die", &json!({"how": "raise"}));
    assert_eq!(
        (code(&raised), text(&raised)),
        ("EXECUTION_ERROR", "Error[EXECUTION_ERROR]: no luck")
    );
    let frames = raised["_meta"]["iris/result"]["details"]["traceback"].to_string();
    assert!(frames.contains("mine.py") && frames.contains("in die"), "{frames}");
    assert!(!frames.contains("asyncio") && !frames.contains("iris-mcp"), "{frames}");
    eventually("what it printed is in the log", || {
        let said = session.said();
        said.contains("more noise") && said.contains("ValueError: no luck")
    });
}

#[test]
fn calls_overlap_and_what_is_given_up_is_cancelled() {
    let (home, arguments) = agent(TOOLS, AGENT);
    let mut session = session(&arguments, &["--tool-timeout", "20"]);
    let slow = session.ask("tools/call", &json!({"name": "sleep", "arguments": {"seconds": 30}}));
    let thread = session.ask("tools/call", &json!({"name": "thread", "arguments": {"seconds": 1}}));
    home.wait_for("sleep");
    assert_eq!(text(&session.call("add", &json!({"left": 1}))), "2");
    session.notify("notifications/cancelled", &json!({"requestId": slow}));
    home.wait_for("cancelled");
    assert!(text(&session.answer(thread)["result"]).starts_with('{'));
    assert_eq!(text(&session.call("add", &json!({"left": 1}))), "2");
    assert_eq!(home.noted("sleep"), 1);
}

#[test]
fn an_interpreter_that_ends_ends_its_own_calls_and_the_next_one_is_soon_there() {
    let (home, arguments) = agent(TOOLS, AGENT);
    let more = ["--tool-timeout", "3", "--max-message-bytes", "1000000"];
    let mut session = session(&arguments, &more);
    for how in ["exit", "segfault"] {
        let ended = session.call("die", &json!({"how": how}));
        assert_eq!(code(&ended), "TOOL_OUTCOME_UNKNOWN", "{how}: {ended}");
        within(Duration::from_secs(10), how, || {
            let add = session.call("add", &json!({"left": 1}));
            add["isError"] != true || code(&add) == "INTERNAL_ERROR"
        });
        assert_eq!(text(&session.call("add", &json!({"left": 1}))), "2", "{how}");
        assert_eq!(home.noted(how), 1, "it is not run again");
    }
    for (how, code_of, words) in [
        ("quit", "EXECUTION_ERROR", "gone"),
        ("huge", "RESULT_TOO_LARGE", "max_message_bytes"),
        ("loop", "TOOL_TIMEOUT", "3 s"),
    ] {
        let ended = session.call("die", &json!({"how": how}));
        assert_eq!(code(&ended), code_of, "{how}: {ended}");
        assert!(text(&ended).contains(words), "{how}: {ended}");
        // What comes before the interpreter is ended is lost with it, and had not begun.
        within(Duration::from_secs(10), how, || {
            let add = session.call("add", &json!({"left": 1}));
            add["isError"] != true || code(&add) == "INTERNAL_ERROR"
        });
    }
    assert_eq!(text(&session.call("die", &json!({"how": "fork"}))), "alive");
    assert_eq!(text(&session.call("add", &json!({"left": 1}))), "2");
    eventually("the words of a fork are in the log", || session.said().contains("a child's words"));
    session.close();
    assert_eq!(session.end().0, Some(0));
}

#[test]
fn what_cannot_be_loaded_is_told_with_its_place_and_the_way_out() {
    let broken = AGENT.replace("mine:preset", "mine:nothing");
    let (home, arguments) = agent(TOOLS, &broken);
    let checked = iris(&arguments, &["check"], &interpreter());
    assert_eq!(checked.code, Some(1), "{checked:?}");
    for part in
        ["tools.python.functions[1]", "`mine:nothing`", "agent.yaml:6:", "no attribute 'nothing'"]
    {
        assert!(checked.stdout.contains(part), "{part}: {checked:?}");
    }
    home.write("agent.yaml", &broken.replace("mine:add", "mine:nowhere"));
    let checked = iris(&arguments, &["check"], &interpreter());
    for part in
        ["`mine:nowhere`", "`mine:nothing`", "agent.yaml:6:17", "agent.yaml:6:33", "2 problems"]
    {
        assert!(checked.stdout.contains(part), "{part}: {checked:?}");
    }
    home.write("agent.yaml", &broken);
    let mut served = command(exe());
    served.args(["serve"]).args(&arguments).env("IRIS_MCP_PYTHON_INTERPRETER", interpreter());
    served.stdin(std::process::Stdio::piped());
    let served = run(served, Duration::from_secs(30));
    assert_eq!(served.code, Some(1), "{served:?}");
    assert!(served.stderr.contains("--keep-going"), "{served:?}");
    let mut rest = session(&arguments, &["--keep-going"]);
    assert_eq!(rest.tools().len(), 6);
    let called = rest.request("tools/call", &json!({"name": "nothing", "arguments": {}}));
    let said = called["error"]["message"].as_str().unwrap_or_default();
    assert!(said.starts_with("unknown tool: nothing; python has it, but tools.python"), "{called}");
    assert!(said.contains("no attribute 'nothing'"), "{called}");

    // Only what another tool's name is given to is left out.
    home.write(
        "agent.yaml",
        &AGENT
            .replace("tools:", "tools:\n  builtin: [file.read]")
            .replace("mine:preset", "mine:read_file"),
    );
    home.write("mine.py", &format!("{TOOLS}\n\ndef read_file() -> str:\n    return 'mine'\n"));
    let checked = iris(&arguments, &["check"], &interpreter());
    assert_eq!(checked.code, Some(1), "{checked:?}");
    for part in ["read_file: it is left out", "rename the Python one", "agent.yaml:7:", "add"] {
        assert!(checked.stdout.contains(part), "{part}: {checked:?}");
    }

    home.write("agent.yaml", AGENT);
    let absent = iris(&arguments, &["tools"], "/no/such/python");
    assert_ne!(absent.code, Some(0), "{absent:?}");
    assert!(absent.stderr.contains("/no/such/python"), "{absent:?}");
    home.write("mine.py", "import os\nraise RuntimeError('not today')\n");
    let raised = iris(&arguments, &["check", "--json"], &interpreter());
    let found: Value = serde_json::from_str(&raised.stdout).unwrap();
    assert!(found["problems"][0].as_str().unwrap().contains("RuntimeError: not today"), "{found}");
}

#[test]
fn images_and_files_reach_the_client_and_what_was_read_is_remembered() {
    let with_draw = AGENT.replace("\"mine:register\"", "\"mine:register_draw\"");
    let (home, arguments) = agent(TOOLS, &with_draw);
    // Nobody can search for it, which `check` tells.
    let checked = iris(&arguments, &["check"], &interpreter());
    assert_eq!(checked.code, Some(1), "{checked:?}");
    assert!(checked.stdout.contains("the tool `draw` has to be searched for"), "{checked:?}");

    let mut session = session(&arguments, &["--defer", "auto"]);
    session.call("tool_search", &json!({"queries": ["draw"]}));
    let drawn = session.call("draw", &json!({}));
    let block = &drawn["content"][0];
    assert_eq!(
        (&block["type"], &block["mimeType"]),
        (&json!("image"), &json!("image/png")),
        "{drawn}"
    );
    assert_eq!(drawn["content"][1]["text"], "an image whose data is not base64", "{drawn}");
    let about = &drawn["_meta"]["iris/result"];
    assert_eq!(about["data"]["seen"], false, "{drawn}");
    assert_eq!(about["artifact"]["path"], home.path("workspace/drawn.txt"), "{drawn}");
    let uri = about["artifact"]["uri"].as_str().expect("an address");
    home.write("workspace/drawn.txt", "changed since");
    let read = session.request("resources/read", &json!({"uri": uri}));
    assert_eq!(read["result"]["contents"][0]["text"], "as text", "{read}");
    let again = session.call("draw", &json!({}));
    assert_eq!(again["_meta"]["iris/result"]["data"]["seen"], true, "{again}");
}
