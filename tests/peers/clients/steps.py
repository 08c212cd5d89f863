"""What the Python drivers have in common: reading a description, running its steps, printing one line.

A description is one JSON argument:

    {"transport": {"command": ["…"], "env": {…}, "cwd": "…"} | {"url": "…", "headers": {…}},
     "mode": "legacy" | "auto",
     "elicit": [{"action": "accept", "content": {…}}, null],
     "person": {"form": {…}, "url": {…}, "sampling": {…}, "roots": {…}}, "log_level": "debug",
     "steps": [{"op": "list"}, {"op": "list", "changes": 1},
               {"op": "call", "name": "…", "arguments": {…}, "timeout_s": 20},
               {"op": "call", "name": "…", "progress": 3, "touch": "FILE", "logs": 1},
               {"op": "cancel_call", "name": "…", "arguments": {…}, "after_progress": 1},
               {"op": "cancel_call", "name": "…", "arguments": {…}, "after_ms": 500},
               {"op": "resources"}, {"op": "ping"}]}

py_client.py alone also takes "prompts", "prompt" (name, arguments), "templates", "read" (uri) and "complete" (ref, argument).

The person behind the client gives the answers of "elicit" in order, the last one again and again; null is none, ever.
With a "person" instead, each kind of question has one answer, the result as it is to go out, and what was asked is told
in "asked". With a "log_level" log messages are wanted, and told in "logs"; a call with "logs" waits until there are so
many. A list with "changes" is asked for when it was said to have changed so often. A call with "progress" tells what
was reported, and makes the file of "touch" when so much was. A call that is cancelled is over when the file of "until"
is there, if that is given.

One line comes out: {"protocol", "server", "instructions", "steps": [...], "elicited": [...], "asked": [...],
"logs": [...], "changes": n}. A step that the server answered with a protocol error has an "error" with its code; the
exit code is not 0 only when the client itself got into trouble, and then the line has a "trouble".
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

import anyio
from mcp import MCPError

DEFAULT_TIMEOUT_S = 60.0


class Person:
    """Answers questions as a description says."""

    def __init__(self, description: dict[str, Any], report: dict[str, Any]) -> None:
        self.answers = list(description["elicit"])
        self.questions = report["elicited"]

    async def answer(self, question: str) -> dict[str, Any]:
        self.questions.append(question)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            await anyio.sleep_forever()
        return answer


class Logs:
    """The log messages that came."""

    def __init__(self, report: dict[str, Any]) -> None:
        self.told = report["logs"]
        self.come = anyio.Event()

    async def add(self, message: Any) -> None:
        self.told.append(plain(message))
        self.come.set()
        self.come = anyio.Event()

    async def until(self, count: int) -> None:
        while len(self.told) < count:
            await self.come.wait()


class Changes:
    """How often the list of tools was said to have changed."""

    def __init__(self, report: dict[str, Any]) -> None:
        self.report = report
        self.come = anyio.Event()

    async def add(self, message: Any) -> None:
        if getattr(message, "method", None) == "notifications/tools/list_changed":
            self.report["changes"] += 1
            self.come.set()
            self.come = anyio.Event()

    async def until(self, count: int) -> None:
        while self.report["changes"] < count:
            await self.come.wait()


class Port(Protocol):
    """One connected client, reduced to what the steps need."""

    logs: Logs
    changes: Changes

    async def tools(self) -> list[Any]: ...

    async def call(self, name: str, arguments: dict[str, Any], progress: Callable[..., Any] | None) -> Any: ...

    async def resources(self) -> list[Any]: ...

    async def ping(self) -> None: ...


def plain(value: Any) -> Any:
    """Returns a model of the SDK as it stands on the wire."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


async def listed(port: Port, step: dict[str, Any]) -> dict[str, Any]:
    with anyio.fail_after(step.get("timeout_s", DEFAULT_TIMEOUT_S)):
        await port.changes.until(step.get("changes", 0))
    tools = await port.tools()
    return {"tools": [tool.name for tool in tools], "definitions": [plain(tool) for tool in tools]}


async def called(port: Port, step: dict[str, Any]) -> dict[str, Any]:
    seen: list[Any] = []

    async def progress(done: float, total: float | None = None, message: str | None = None) -> None:
        seen.append([done, total, message])
        if len(seen) == step["progress"]:
            Path(step["touch"]).touch()

    handler = progress if step.get("progress") else None
    with anyio.fail_after(step.get("timeout_s", DEFAULT_TIMEOUT_S)):
        result = await port.call(step["name"], step.get("arguments", {}), handler)
        if "logs" in step:
            await port.logs.until(step["logs"])
    return {"result": plain(result), **({"progress": seen} if handler else {})}


async def call_cancelled(port: Port, step: dict[str, Any]) -> dict[str, Any]:
    """Starts a call, cancels it after so much progress or time, and tells how it ended."""
    enough = anyio.Event()
    seen: list[float] = []
    ended: dict[str, Any] = {}

    async def progress(done: float, _total: float | None = None, _message: str | None = None) -> None:
        seen.append(done)
        if "after_progress" in step and len(seen) >= step["after_progress"]:
            enough.set()

    async def body(scope: anyio.CancelScope) -> None:
        with scope:
            ended["result"] = plain(await port.call(step["name"], step.get("arguments", {}), progress))
        enough.set()

    started = time.monotonic()
    with anyio.fail_after(step.get("timeout_s", DEFAULT_TIMEOUT_S)):
        async with anyio.create_task_group() as tasks:
            scope = anyio.CancelScope()
            tasks.start_soon(body, scope)
            if "after_ms" in step:
                with anyio.move_on_after(step["after_ms"] / 1000):
                    await enough.wait()
            else:
                await enough.wait()
            asked = time.monotonic()
            scope.cancel()
        done = time.monotonic()
        # Who leaves at once may take the news of it along.
        while "until" in step and not Path(step["until"]).exists():
            await anyio.sleep(0.005)
    return {
        "cancelled": scope.cancelled_caught,
        "progress": len(seen),
        "elapsed_ms": round((done - started) * 1000),
        "after_cancel_ms": round((done - asked) * 1000),
        **ended,
    }


async def resources_listed(port: Port, _step: dict[str, Any]) -> dict[str, Any]:
    return {"resources": [str(resource.uri) for resource in await port.resources()]}


async def pinged(port: Port, _step: dict[str, Any]) -> dict[str, Any]:
    await port.ping()
    return {"pong": True}


OPS: dict[str, Callable[[Port, dict[str, Any]], Awaitable[dict[str, Any]]]] = {
    "list": listed,
    "call": called,
    "cancel_call": call_cancelled,
    "resources": resources_listed,
    "ping": pinged,
}


async def run_steps(port: Port, steps: list[dict[str, Any]], report: dict[str, Any]) -> None:
    """Runs the steps one after another; each one's report stands at its own index."""
    for step in steps:
        try:
            seen = await OPS[step["op"]](port, step)
        except MCPError as error:
            seen = {"error": {"code": error.error.code, "message": error.error.message, "data": error.error.data}}
        report["steps"].append({"op": step["op"], **seen})


def leaves(error: BaseException) -> list[BaseException]:
    """Returns the errors inside nested groups."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in leaves(inner)]
    return [error]


def main(connect_and_run: Callable[[dict[str, Any], dict[str, Any]], Awaitable[None]]) -> None:
    """Runs a driver: `connect_and_run(description, report)` fills in the report."""
    description = json.loads(sys.argv[1])
    report: dict[str, Any] = {"protocol": None, "server": None, "steps": [], "elicited": [], "asked": [], "logs": []}
    report["changes"] = 0

    async def bounded() -> None:
        with anyio.fail_after(description.get("timeout_s", 120)):
            await connect_and_run(description, report)

    code = 0
    try:
        anyio.run(bounded)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the test must read it
        report["trouble"] = "; ".join("".join(traceback.format_exception_only(leaf)).strip() for leaf in leaves(error))
        traceback.print_exc()
        code = 1
    print(json.dumps(report), flush=True)
    sys.exit(code)
