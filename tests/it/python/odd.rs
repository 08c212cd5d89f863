//! Python that is valid and odd: results, arguments and bodies that nothing else may suffer from.

use std::time::Duration;

use serde_json::{Value, json};

use super::{agent, interpreter, iris, session};
use crate::fixture::within;
use crate::session::{Session, code, text};

const CODE: &str = r#"
import asyncio, os, re, sys, threading, time
from pathlib import Path
from typing import Annotated
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, Json, SecretStr
from iris.tools import BaseTool, CallableExecutionMode, TextBlock, ToolDefinition, ToolResult, tool

LEDGER = Path(__file__).with_name("ledger")


def note(word):
    with LEDGER.open("a") as ledger:
        ledger.write(word + "\n")


@tool()
def fine() -> str:
    return "fine"


@tool()
async def slow(seconds: float) -> str:
    note("slow")
    await asyncio.sleep(seconds)
    return "slept"


@tool(execution_mode=CallableExecutionMode.THREAD)
def slow_thread(seconds: float) -> str:
    note("slow thread")
    time.sleep(seconds)
    return "slept"


@tool()
def block(seconds: float) -> str:
    note("block")
    time.sleep(seconds)
    return "blocked"


def hold(text: str) -> str:
    note("hold")
    re.match(r"(a+)+$", "a" * 60 + "b")
    return text


@tool()
def held(text: Annotated[str, AfterValidator(hold)]) -> str:
    return text


class Item(BaseModel):
    number: int = Field(alias="itemNumber")


@tool()
def take(
    item: Item | None = None,
    tags: Annotated[list[str], BeforeValidator(lambda tags: tags.split(",") if isinstance(tags, str) else tags)] = [],
    shout: Annotated[str, AfterValidator(lambda text: text + "!")] = "",
    secret: SecretStr = SecretStr(""),
    numbers: Json[list[int]] = "[]",
    ratio: float = 0.0,
    number: int = 0,
    data: bytes = b"\xff",
    at_most: Annotated[int, Field(description="a limit")] = Field(default=3, gt=0),
) -> str:
    return repr((item and item.number, tags, shout, secret.get_secret_value(), numbers, ratio, number, at_most))


class NoText(Exception):
    def __str__(self):
        return None


def odd(how):
    result = ToolResult(content=["plain", {"type": "audio", "data": "AA==", "mimeType": "audio/wav"}])
    if how == "numbers":
        result.data = {"n": 10**30, "m": -(2**64), "k": 2**63, "x": [1e300], "h": 10**5000}
    elif how == "deep":
        for _ in range(150):
            result.data = {"d": result.data}
    elif how == "list":
        result.data = [1]
    elif how == "nothing":
        result.metadata = None
    elif how == "text":
        result.error, result.is_error = "it failed", True
    elif how == "no text":
        raise NoText()
    return result


class Odd(BaseTool):
    definition = ToolDefinition(name="odd", description="Odd.", input_schema={"type": "object"})

    async def arun(self, params, context):
        return odd(params["how"])


class Checked(BaseTool):
    definition = ToolDefinition(name="checked", description="Counts.", input_schema={"type": "object"})

    def validate_input(self, params):
        return {"n": params["n"] + 1}

    def parse(self, html):
        return "not ours"

    async def arun(self, params, context):
        return ToolResult(content=[TextBlock(text=repr(params))])


@tool(execution_mode=CallableExecutionMode.THREAD)
def in_a_thread() -> str:
    return "thread"


class Wrapped(BaseTool):
    """Says that a thread runs it, and runs something else."""

    def __init__(self, inner):
        self.definition = inner.definition.model_copy(update={"name": "wrapped"})

    async def arun(self, params, context):
        note("wrapped")
        os._exit(3)


@tool()
async def end(how: str) -> str:
    if how == "stop":
        asyncio.get_running_loop().call_later(0.2, asyncio.get_running_loop().stop)
    elif how == "exit":
        async def leave():
            sys.exit(4)
        end.task = asyncio.create_task(leave())
    elif how == "line":
        threading.Timer(0.2, os.closerange, (64, 65)).start()
    elif how == "json":
        import json
        json.dumps = os.write = None
    elif how == "thread":
        threading.Thread(target=time.sleep, args=(600,)).start()
        asyncio.get_running_loop().call_later(0.2, asyncio.get_running_loop().stop)
    return how


@tool()
def silence() -> str:
    os.close(2)
    sys.stderr.close()
    raise ValueError("after the end of the log")


def register(registry):
    registry.register(Odd())
    registry.register(Checked())
    registry.register(Wrapped(registry.register_function(in_a_thread)))


def register_negative(registry):
    registry.register_function(in_a_thread, name="below_zero").definition.max_result_chars = -1


def waiter():
    async def handler(event):
        if event.arguments["seconds"] == 60:
            time.sleep(60)

    return handler


if not LEDGER.with_name("loaded").exists():
    LEDGER.with_name("loaded").touch()

    @tool()
    def once() -> str:
        return "once"
"#;

const AGENT: &str = r#"
permissions: { workspace: workspace, writes: allow }
context_policy: { enabled: false }
tools:
  python:
    functions:
      - "mine:fine"
      - "mine:slow"
      - "mine:slow_thread"
      - "mine:block"
      - "mine:held"
      - "mine:take"
      - "mine:end"
      - "mine:silence"
    registrars: ["mine:register"]
"#;

fn ask(session: &mut Session, tool: &str, arguments: Value) -> u64 {
    session.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
}

/// Waits until a call comes through, which the next interpreter may have to begin with.
#[track_caller]
fn goes_on(session: &mut Session, what: &str) {
    for tool in ["fine", "in_a_thread"] {
        within(Duration::from_secs(30), what, || session.call(tool, &json!({}))["isError"] != true);
    }
}

#[test]
fn o9_an_odd_result_costs_nothing_but_its_own_call() {
    let (home, arguments) = agent(CODE, AGENT);
    let mut session = session(&arguments, &[]);
    let other = ask(&mut session, "slow", json!({"seconds": 4}));
    home.wait_for("slow");
    for (how, expected, words) in [
        ("deep", "EXECUTION_ERROR", "recursion limit"),
        ("list", "EXECUTION_ERROR", "what came of it cannot be handed on"),
        ("nothing", "EXECUTION_ERROR", "what came of it cannot be handed on"),
        ("text", "EXECUTION_ERROR", "what came of it cannot be handed on"),
        ("no text", "EXECUTION_ERROR", "NoText"),
    ] {
        let result = session.call("odd", &json!({"how": how}));
        assert_eq!(code(&result), expected, "{how}: {result}");
        assert!(text(&result).contains(words), "{how}: {result}");
    }
    let result = session.call("odd", &json!({"how": "numbers"}));
    assert_eq!(result["content"][0]["text"], "plain", "{result}");
    assert_eq!(
        result["content"][1]["text"], "a block of type `audio`, which no tool here can give",
        "{result}"
    );
    let data = &result["_meta"]["iris/result"]["data"];
    assert_eq!(data["n"], format!("1{}", "0".repeat(30)), "{data}");
    assert_eq!((&data["m"], &data["k"]), (&json!("-18446744073709551616"), &json!(1_u64 << 63)));
    assert_eq!(data["x"], json!([1e300]));
    assert!(data["h"].as_str().unwrap().starts_with("0x"), "{data}");
    assert_eq!(text(&session.answer(other)["result"]), "slept");
    assert_eq!(code(&session.call("silence", &json!({}))), "EXECUTION_ERROR");
    assert_eq!(code(&session.call("odd", &json!({"how": "no text"}))), "EXECUTION_ERROR");
    goes_on(&mut session, "without a log");
}

#[test]
fn o2_a_body_gets_what_was_made_of_its_arguments_once() {
    let (_home, arguments) = agent(CODE, AGENT);
    let mut session = session(&arguments, &[]);
    for (given, expected) in [
        (json!({}), "(None, [], '', '', '[]', 0.0, 0, 3)"),
        (json!({"item": {"itemNumber": 7}}), "(7, [], '', '', '[]', 0.0, 0, 3)"),
        (json!({"tags": "a,b"}), "(None, ['a', 'b'], '', '', '[]', 0.0, 0, 3)"),
        (json!({"shout": "a"}), "(None, [], 'a!', '', '[]', 0.0, 0, 3)"),
        (json!({"secret": "s3cret"}), "(None, [], '', 's3cret', '[]', 0.0, 0, 3)"),
        (json!({"numbers": "[1]"}), "(None, [], '', '', [1], 0.0, 0, 3)"),
        (json!({"ratio": "nan"}), "(None, [], '', '', '[]', nan, 0, 3)"),
        (
            json!({"number": "123456789012345678901234567890"}),
            "(None, [], '', '', '[]', 0.0, 123456789012345678901234567890, 3)",
        ),
        (json!({"at_most": 5}), "(None, [], '', '', '[]', 0.0, 0, 5)"),
    ] {
        let result = session.call("take", &given);
        assert_eq!(text(&result), expected, "{given}: {result}");
    }
    assert_eq!(code(&session.call("take", &json!({"at_most": 0}))), "VALIDATION_ERROR");
    let tools = session.request("tools/list", &json!({}))["result"]["tools"].take();
    let take = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "take").unwrap();
    let at_most = &take["inputSchema"]["properties"]["at_most"];
    assert_eq!((&at_most["default"], &at_most["exclusiveMinimum"]), (&json!(3), &json!(0)));
    assert_eq!(text(&session.call("checked", &json!({"n": 1}))), "{'n': 2}");
}

#[test]
fn o6_an_interpreter_whose_loop_or_line_has_ended_ends() {
    let (home, arguments) = agent(CODE, AGENT);
    let mut session = session(&arguments, &[]);
    for how in ["stop", "exit", "line", "thread"] {
        let slow = ask(&mut session, "slow", json!({"seconds": 60}));
        home.wait_for("slow");
        session.call("end", &json!({"how": how}));
        if how == "line" {
            // What closes the way in is noticed with the next thing that comes.
            std::thread::sleep(Duration::from_millis(500));
            for _ in 0..3 {
                session.call("fine", &json!({}));
            }
        }
        let lost = session.answer(slow)["result"].take();
        assert_eq!(code(&lost), "TOOL_OUTCOME_UNKNOWN", "{how}: {lost}");
        goes_on(&mut session, how);
        home.write("ledger", "");
    }
    // What user code puts in the place of others' functions is not what we use.
    assert_eq!(text(&session.call("end", &json!({"how": "json"}))), "json");
    goes_on(&mut session, "json");
    // Of what has run nobody says that it can be made again.
    let wrapped = session.call("wrapped", &json!({}));
    assert_eq!(code(&wrapped), "TOOL_OUTCOME_UNKNOWN", "{wrapped}");
    assert!(home.ledger().contains(&"wrapped".to_owned()));
    goes_on(&mut session, "wrapped");
}

#[test]
fn o7_whatever_blocks_is_ended_when_it_was_given_up() {
    let (home, arguments) = agent(CODE, AGENT);
    let mut session = session(&arguments, &[]);
    for (tool, given, sign) in
        [("block", json!({"seconds": 120}), "block"), ("held", json!({"text": "x"}), "hold")]
    {
        let blocking = ask(&mut session, tool, given);
        home.wait_for(sign);
        // Something later that does nothing but wait.
        let later = ask(&mut session, "slow_thread", json!({"seconds": 100}));
        if tool == "block" {
            home.wait_for("slow thread");
        }
        session.notify("notifications/cancelled", &json!({"requestId": blocking}));
        within(Duration::from_secs(20), tool, || {
            session.call("fine", &json!({}))["isError"] != true
        });
        session.notify("notifications/cancelled", &json!({"requestId": later}));
        home.write("ledger", "");
    }
    // What somebody waits for is no reason, however long it blocks those who do not.
    let blocking = ask(&mut session, "block", json!({"seconds": 6}));
    home.wait_for("block");
    let behind = ask(&mut session, "slow", json!({"seconds": 0}));
    session.notify("notifications/cancelled", &json!({"requestId": behind}));
    assert_eq!(text(&session.answer(blocking)["result"]), "blocked");
}

#[test]
fn o4_a_tool_that_is_no_more_or_cannot_be_one_is_told_alone() {
    let hooks = r#"
hooks:
  - name: wait
    event: tool.before
    tools: [once]
    handler: { type: command, command: "echo waits >> ../ledger; while [ ! -e ../go ]; do sleep 0.1; done; echo '{}'" }
"#;
    let with = AGENT.replace("\"mine:end\"", "\"mine:end\"\n      - \"mine:once\"") + hooks;
    let (home, arguments) = agent(CODE, &with);
    let mut session = session(&arguments, &["--permit", "*"]);
    let once = ask(&mut session, "once", json!({}));
    home.wait_for("waits");
    session.call("wrapped", &json!({}));
    goes_on(&mut session, "the next interpreter");
    home.write("go", "");
    let answer = session.answer(once)["result"].take();
    assert!(text(&answer).contains("its code was loaded anew"), "{answer}");
    goes_on(&mut session, "after it");

    let negative = AGENT.replace("mine:register\"", "mine:register\", \"mine:register_negative\"");
    let (_home, arguments) = agent(CODE, &negative);
    let checked = iris(&arguments, &["check"], &interpreter());
    assert_eq!(checked.code, Some(1), "{checked:?}");
    for part in ["below_zero", "-1", "agent.yaml:"] {
        assert!(checked.stdout.contains(part), "{part}: {checked:?}");
    }
    let called = iris(&arguments, &["call", "fine", "--keep-going"], &interpreter());
    assert_eq!(called.stdout.trim(), "fine", "{called:?}");
}

#[test]
fn a_hook_that_waits_behind_what_is_ended_is_asked_again() {
    let hooks = r#"
hooks:
  - name: waits
    event: tool.before
    tools: [slow]
    timeout_seconds: 1
    handler: { type: python, factory: "mine:waiter" }
"#;
    let (_home, arguments) = agent(CODE, &(AGENT.to_owned() + hooks));
    let mut session = session(&arguments, &[]);
    assert_eq!(code(&session.call("slow", &json!({"seconds": 60}))), "HOOK_ERROR");
    let next = session.call("slow", &json!({"seconds": 0}));
    assert!(text(&next) == "slept" || text(&next).contains("took longer than 1 s"), "{next}");
    assert!(!text(&next).contains("ended in the middle"), "{next}");
    within(Duration::from_secs(20), "the one after", || {
        text(&session.call("slow", &json!({"seconds": 0}))) == "slept"
    });
}
