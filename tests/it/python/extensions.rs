//! Hooks and middleware in Python, around tools of every kind.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{agent, interpreter, iris, session};
use crate::fixture::eventually;
use crate::session::{code, text};

const CODE: &str = r#"
import asyncio, os, sys, time
from pathlib import Path
from iris.hooks import (
    RunFinishedEvent, RunStartedEvent, ToolAfterEvent, ToolAfterResult, ToolBeforeEvent, ToolBeforeResult,
)
from iris.message import TextBlock
from iris.tools import ToolCall, ToolMiddleware, ToolResult, tool

LEDGER = Path(__file__).with_name("ledger")


def note(line):
    with LEDGER.open("a") as ledger:
        ledger.write(line + "\n")


@tool()
def body(how: str = "") -> str:
    note("body")
    if how == "raise":
        raise ValueError("no luck")
    return "made"


def before(how):
    async def handler(event):
        assert isinstance(event, ToolBeforeEvent) and Path(event.workspace).is_dir(), event
        assert event.occurred_at.tzinfo is not None and event.call_id and event.session_id == event.run_id
        note(f"before {event.tool_name}")
        if how == "crash":
            raise RuntimeError("the hook is broken")
        if how == "hang":
            await asyncio.sleep(60)
        if how == "block":
            time.sleep(60)
        if how == "exit":
            os._exit(5)
        if how == "feedback":
            return ToolAfterResult(feedback="not here")
        if how == "text":
            return "no"
        if how == "deny":
            return ToolBeforeResult(deny_reason="no writes on Friday")
        event.arguments["how"] = "changed"
    return handler


def plain_function(**options):
    return lambda event: None


def after(how):
    async def handler(event):
        assert isinstance(event, ToolAfterEvent) and isinstance(event.result, ToolResult), event
        note(f"after {event.body_status} {event.result.model_content}")
        if how == "crash":
            raise RuntimeError("the hook is broken")
        return ToolAfterResult(feedback=how)
    return handler


def run():
    async def handler(event):
        kind = type(event).__name__
        run = event.run if isinstance(event, RunStartedEvent) else event.result.run
        assert isinstance(event, (RunStartedEvent, RunFinishedEvent)) and run.session_id == event.session_id
        note(f"{kind} {run.stop_reason}")
    return handler


async def no_factory():
    pass


class Wrapper(ToolMiddleware):
    def __init__(self, name, how="", only=None):
        self.name, self.how, self.only = name, how, only
        self.kept = None

    async def wrap_tool_call(self, call, call_next):
        assert isinstance(call, ToolCall) and isinstance(call.workspace_root, Path), call
        if self.only and call.tool_name != self.only:
            return await call_next()
        note(f"{self.name}-pre")
        if self.how == "raise":
            raise RuntimeError("before anything")
        if self.how == "short":
            return ToolResult(tool_use_id="x", tool_name="y", content=[TextBlock(text="instead")])
        if self.how == "text":
            return "no result"
        if self.how == "hang":
            await asyncio.sleep(60)
        if self.how == "early":
            asyncio.get_running_loop().create_task(call_next())
            await asyncio.sleep(0)
            return ToolResult(tool_use_id="x", tool_name="y", content=[TextBlock(text="early")])
        if self.how == "keep":
            self.kept = call_next
        if self.how == "catch":
            try:
                return await call_next()
            except Exception as error:
                text = f"caught {type(error).__name__} {error.code}: {error}"
                return ToolResult(tool_use_id="x", tool_name="y", content=[TextBlock(text=text)])
        if self.how == "exit":
            os._exit(6)
        call.arguments["how"] = "raise"
        result = await call_next()
        note(f"{self.name}-post")
        if self.how == "late":
            raise RuntimeError("after all")
        if self.how == "twice":
            try:
                await call_next()
            except Exception as error:
                note(f"twice: {error}")
        if self.how == "replace":
            return result.model_copy(update={"content": [TextBlock(text=result.model_content + "!")]})
        if self.how == "note":
            return result.model_copy(update={"metadata": {"noted": True}})
        if self.how == "change":
            result.content = [TextBlock(text="changed in place")]
        return result


late = Wrapper("late", "keep")


def keeper():
    return late


@tool()
async def call_it_late() -> str:
    try:
        await late.kept()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "it ran"
"#;

fn with(hooks: &str, middleware: &str) -> String {
    format!(
        "permissions: {{ workspace: workspace, writes: allow }}
context_policy: {{ enabled: false }}
tools:
  builtin: [file.list]
  python: {{ functions: [\"mine:body\", \"mine:call_it_late\"] }}
hooks: [{hooks}]
middleware: {{ tools: [{middleware}] }}
"
    )
}

fn hook(event: &str, factory: &str, options: &str, more: &str) -> String {
    format!(
        "{{ name: mine, event: {event}, {more} handler: {{ type: python, factory: \"mine:{factory}\", options: {{ {options} }} }} }}"
    )
}

fn wrapper(options: &str) -> String {
    format!("{{ factory: \"mine:Wrapper\", options: {{ {options} }} }}")
}

fn ledger(home: &crate::fixture::Home) -> Vec<String> {
    let text = fs::read_to_string(home.file("ledger")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn t28_what_a_python_hook_says_before_a_call_counts() {
    for (how, expected, words) in [
        ("crash", "HOOK_ERROR", "the hook mine failed: the hook is broken"),
        ("hang", "HOOK_ERROR", "longer than 1 s"),
        ("block", "HOOK_ERROR", "longer than 1 s"),
        ("exit", "HOOK_ERROR", "interpreter ended"),
        ("feedback", "HOOK_ERROR", "deny_reason"),
        ("text", "HOOK_ERROR", "deny_reason"),
        ("deny", "HOOK_REJECTED", "Error[HOOK_REJECTED]: no writes on Friday"),
        ("", "", "made"),
    ] {
        let options = format!("how: \"{how}\"");
        let hook = hook("tool.before", "before", &options, "tools: [body], timeout_seconds: 1,");
        let (home, arguments) = agent(CODE, &with(&hook, ""));
        let mut session = session(&arguments, &[]);
        let called = session.call("body", &json!({}));
        assert_eq!(called["isError"] == true, !expected.is_empty(), "{how}: {called}");
        if !expected.is_empty() {
            assert_eq!(code(&called), expected, "{how}: {called}");
        }
        assert!(text(&called).contains(words), "{how}: {called}");
        assert_eq!(home.noted("body"), usize::from(expected.is_empty()), "{how}");
        // It is for one tool, by the name that is called.
        let other = session.call("list_files", &json!({}));
        assert_ne!(other["isError"], true, "{how}: {other}");
        if how == "crash" {
            eventually("the log has the error and the hook", || {
                let said = session.said();
                said.contains("RuntimeError: the hook is broken") && said.contains("hook=\"mine\"")
            });
        }
    }
}

#[test]
fn t28_what_a_python_hook_says_after_a_call_is_added_and_its_failure_is_not() {
    for (how, expected) in [("crash", "made"), ("mention it", "made\n[Hook feedback]\nmention it")]
    {
        let hook = hook("tool.after", "after", &format!("how: \"{how}\""), "");
        let (home, arguments) = agent(CODE, &with(&hook, ""));
        let mut session = session(&arguments, &[]);
        let called = session.call("body", &json!({}));
        let texts: Vec<&str> = called["content"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect();
        assert_eq!(texts.join("\n"), expected, "{called}");
        let raised = session.call("body", &json!({"how": "raise"}));
        assert_eq!(code(&raised), "EXECUTION_ERROR");
        assert_eq!(
            ledger(&home)[1..],
            ["after success made", "body", "after error Error[EXECUTION_ERROR]: no luck"]
        );
        if how == "crash" {
            eventually("the log names the hook", || {
                let said = session.said();
                said.contains("the hook is broken") && said.contains("hook=\"mine\"")
            });
        }
    }
}

#[test]
fn run_events_reach_python_hooks() {
    let hooks = ["run.started", "run.finished"].map(|event| hook(event, "run", "", ""));
    let (home, arguments) = agent(CODE, &with(&hooks.join(", "), ""));
    let mut session = session(&arguments, &[]);
    session.call("body", &json!({}));
    session.call("body", &json!({}));
    session.close();
    assert_eq!(session.end().0, Some(0));
    assert_eq!(
        ledger(&home),
        ["RunStartedEvent None", "body", "body", "RunFinishedEvent completed"]
    );
}

#[test]
fn t10_python_middleware_wraps_every_call_in_order() {
    let both = ["name: a", "name: b"].map(wrapper).join(", ");
    let (home, arguments) = agent(CODE, &with("", &both));
    let mut session = session(&arguments, &[]);
    // What one changes in its copy of the arguments changes nothing.
    assert_eq!(text(&session.call("body", &json!({}))), "made");
    assert_eq!(ledger(&home), ["a-pre", "b-pre", "body", "b-post", "a-post"]);
    assert_ne!(session.call("list_files", &json!({}))["isError"], true);
    assert_eq!(home.noted("a-post"), 2);
}

#[test]
fn t10_what_a_python_middleware_does_instead_or_too_often() {
    for (how, expected, words, bodies) in [
        ("short", "", "instead", 0),
        ("raise", "MIDDLEWARE_ERROR", "before anything", 0),
        ("text", "MIDDLEWARE_ERROR", "ToolResult", 0),
        ("exit", "MIDDLEWARE_ERROR", "interpreter ended", 0),
        ("early", "", "made", 1),
        ("late", "", "made", 1),
        ("twice", "", "made", 1),
        ("replace", "", "made!", 1),
        ("change", "", "changed in place", 1),
    ] {
        let options = format!("name: w, how: {how}, only: body");
        let hook = hook("tool.after", "after", "how: seen", "");
        let (home, arguments) = agent(CODE, &with(&hook, &wrapper(&options)));
        let mut session = session(&arguments, &[]);
        let called = session.call("body", &json!({}));
        let is_error = called["isError"] == true;
        assert_eq!(if is_error { code(&called) } else { "" }, expected, "{how}: {called}");
        assert!(text(&called).contains(words), "{how}: {called}");
        assert_eq!(home.noted("body"), bodies, "{how}");
        // Without a body there is nothing to look at afterwards.
        let seen = ledger(&home).iter().filter(|line| line.starts_with("after")).count();
        assert_eq!(seen, bodies, "{how}");
        if how == "twice" {
            let once = "twice: call_next can be called once, and only while its middleware runs";
            assert_eq!(home.noted(once), 1, "{:?}", ledger(&home));
            eventually("it is in the log", || session.said().contains("failed after the body"));
        }
    }
}

#[test]
fn t10_a_python_middleware_can_catch_what_a_body_raises() {
    let (home, arguments) = agent(CODE, &with("", &wrapper("name: w, how: catch")));
    let mut session = session(&arguments, &[]);
    let caught = session.call("body", &json!({"how": "raise"}));
    assert_ne!(caught["isError"], true, "{caught}");
    assert_eq!(text(&caught), "caught IrisToolExecutionError EXECUTION_ERROR: no luck");
    // One that lets it through changes nothing, and is no failure of its own.
    home.write("agent.yaml", &with("", &wrapper("name: w")));
    let mut session = super::session(&arguments, &[]);
    let raised = session.call("body", &json!({"how": "raise"}));
    assert_eq!(
        (code(&raised), text(&raised)),
        ("EXECUTION_ERROR", "Error[EXECUTION_ERROR]: no luck")
    );
    assert!(!session.said().contains("failed after the body"), "{}", session.said());
}

#[test]
fn t10_the_way_on_leads_nowhere_once_a_middleware_has_returned() {
    let (home, arguments) = agent(CODE, &with("", "{ factory: \"mine:keeper\" }"));
    let mut session = session(&arguments, &[]);
    assert_eq!(text(&session.call("body", &json!({}))), "made");
    // That of the call before: the one of this call is in its place once it runs.
    let late = session.call("call_it_late", &json!({}));
    assert!(text(&late).contains("only while its middleware runs"), "{late}");
    assert_eq!(home.noted("body"), 1);
}

#[test]
fn a_call_that_hangs_in_a_python_middleware_can_be_given_up() {
    let (home, arguments) = agent(CODE, &with("", &wrapper("name: w, how: hang, only: body")));
    let mut session = session(&arguments, &[]);
    let began = Instant::now();
    let hanging = session.ask("tools/call", &json!({"name": "body", "arguments": {}}));
    home.wait_for("w-pre");
    session.notify("notifications/cancelled", &json!({"requestId": hanging}));
    assert_ne!(session.call("list_files", &json!({}))["isError"], true);
    session.close();
    assert_eq!(session.end().0, Some(0));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(home.noted("body"), 0);
}

#[test]
fn a_factory_that_makes_nothing_of_use_is_told_with_its_place() {
    for (hooks, middleware, place, words) in [
        (hook("tool.before", "nothing", "", ""), String::new(), "hooks[0].handler", "nothing"),
        (hook("tool.before", "no_factory", "", ""), String::new(), "hooks[0].handler", "async"),
        (hook("tool.before", "before", "what: 1", ""), String::new(), "hooks[0].handler", "what"),
        (String::new(), wrapper("nome: 1"), "middleware.tools[0]", "nome"),
        (
            String::new(),
            "{ factory: \"mine:note\", options: { line: x } }".to_owned(),
            "middleware.tools[0]",
            "ToolMiddleware",
        ),
    ] {
        let (_home, arguments) = agent(CODE, &with(&hooks, &middleware));
        let checked = iris(&arguments, &["check"], &interpreter());
        assert_eq!(checked.code, Some(1), "{checked:?}");
        for part in [place, words, "agent.yaml:"] {
            assert!(checked.stdout.contains(part), "{part}: {checked:?}");
        }
        // With the rest alone, what cannot be asked says no.
        if place.starts_with("hooks") {
            let mut rest = session(&arguments, &["--keep-going"]);
            let refused = rest.call("list_files", &json!({}));
            assert_eq!(code(&refused), "HOOK_ERROR", "{refused}");
            assert!(text(&refused).contains("could not be loaded"), "{refused}");
        }
    }
    // A handler that is no async function says so when it is called.
    let (_home, arguments) = agent(CODE, &with(&hook("tool.before", "plain_function", "", ""), ""));
    let refused = session(&arguments, &[]).call("body", &json!({}));
    assert!(text(&refused).contains("async function"), "{refused}");
}

#[test]
fn what_a_middleware_notes_beside_a_result_leaves_the_result_as_it_came() {
    let up = r#"
from fastmcp import FastMCP
server = FastMCP("up")
@server.tool
def structured() -> dict[str, int]:
    return {"n": 1}
server.run(transport="stdio", show_banner=False)
"#;
    let agent_file = with("", &wrapper("name: w, how: note")) + "mcp: { path: mcp.json }\n";
    let (home, arguments) = agent(CODE, &agent_file);
    home.write("up.py", up);
    let entry = json!({"command": interpreter(), "args": ["up.py"], "cwd": home.path("")});
    home.write("mcp.json", &json!({"mcpServers": {"up": entry}}).to_string());
    let mut session = session(&arguments, &["--permit", "*"]);
    let called = session.call("mcp__up__structured", &json!({}));
    assert_eq!(called["structuredContent"], json!({"n": 1}), "{called}");
    assert_eq!(called["content"].as_array().map(Vec::len), Some(1), "{called}");
    assert_eq!(called["_meta"]["iris/result"]["metadata"]["noted"], true, "{called}");
}

#[test]
fn a_hook_for_a_tool_that_is_not_there_is_told() {
    let hook = hook("tool.before", "before", "how: \"\"", "tools: [bdy],");
    let (_home, arguments) = agent(CODE, &with(&hook, ""));
    let checked = iris(&arguments, &["check"], &interpreter());
    assert_eq!(checked.code, Some(1), "{checked:?}");
    assert!(checked.stdout.contains("hooks, mine: tools: `bdy` matches no tool"), "{checked:?}");
}
