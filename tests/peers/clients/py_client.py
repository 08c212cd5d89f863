"""Drives a server with the Python SDK's `mcp.Client`; see steps.py for the description it takes."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, PromptReference, ResourceTemplateReference

import steps


class Connected:
    def __init__(self, client: Client, logs: steps.Logs, changes: steps.Changes) -> None:
        self.client, self.logs, self.changes = client, logs, changes

    async def tools(self) -> list[Any]:
        found, cursor = [], None
        while True:
            page = await self.client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def call(self, name: str, arguments: dict[str, Any], progress: Any) -> Any:
        return await self.client.call_tool(name, arguments, progress_callback=progress)

    async def resources(self) -> list[Any]:
        return (await self.client.list_resources()).resources

    async def ping(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            await self.client.send_ping()


def relayed(request: Callable[[Client, dict[str, Any]], Awaitable[Any]]) -> Callable[[Any, dict[str, Any]], Any]:
    """Makes a step of a request, whose whole result is told."""

    async def step(port: Any, description: dict[str, Any]) -> dict[str, Any]:
        return {"result": steps.plain(await request(port.client, description))}

    return step


def reference(of: dict[str, str]) -> PromptReference | ResourceTemplateReference:
    return PromptReference(**of) if of["type"] == "ref/prompt" else ResourceTemplateReference(**of)


steps.OPS.update(
    prompts=relayed(lambda client, _step: client.list_prompts()),
    prompt=relayed(lambda client, step: client.get_prompt(step["name"], step.get("arguments"))),
    templates=relayed(lambda client, _step: client.list_resource_templates()),
    read=relayed(lambda client, step: client.read_resource(step["uri"])),
    complete=relayed(lambda client, step: client.complete(reference(step["ref"]), step["argument"])),
)


async def server_of(transport: dict[str, Any], stack: AsyncExitStack) -> Any:
    if "command" in transport:
        command, *args = transport["command"]
        return StdioServerParameters(command=command, args=args, env=transport.get("env"), cwd=transport.get("cwd"))
    http = await stack.enter_async_context(create_mcp_http_client(headers=transport.get("headers")))
    return streamable_http_client(transport["url"], http_client=http)


def person_of(description: dict[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    """Returns the callbacks that answer for the person behind the client."""
    if "elicit" in description:
        person = steps.Person(description, report)

        async def one_after_the_other(_context: Any, params: Any) -> ElicitResult:
            return ElicitResult(**await person.answer(params.message))

        return {"elicitation_callback": one_after_the_other}
    if "person" not in description:
        return {}
    answers = description["person"]

    async def elicit(_context: Any, params: Any) -> ElicitResult:
        report["asked"].append(steps.plain(params))
        return ElicitResult(**answers[params.mode])

    async def sample(_context: Any, params: Any) -> CreateMessageResult:
        report["asked"].append(steps.plain(params))
        return CreateMessageResult.model_validate(answers["sampling"])

    async def list_roots(_context: Any) -> ListRootsResult:
        report["asked"].append({})
        return ListRootsResult.model_validate(answers["roots"])

    return {"elicitation_callback": elicit, "sampling_callback": sample, "list_roots_callback": list_roots}


async def connect_and_run(description: dict[str, Any], report: dict[str, Any]) -> None:
    logs, changes, level = steps.Logs(report), steps.Changes(report), description.get("log_level")
    heard = {"logging_callback": logs.add, "message_handler": changes.add, "log_level": level}
    options = {**person_of(description, report), **heard}
    async with AsyncExitStack() as stack:
        server = await server_of(description["transport"], stack)
        client = await stack.enter_async_context(Client(server, mode=description.get("mode", "auto"), **options))
        report["protocol"] = client.protocol_version
        report["server"] = steps.plain(client.server_info) if client.server_info else None
        report["instructions"] = client.instructions
        if level and client.protocol_version < "2026-07-28":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                await client.set_logging_level(level)
        await steps.run_steps(Connected(client, logs, changes), description["steps"], report)


if __name__ == "__main__":
    steps.main(connect_and_run)
