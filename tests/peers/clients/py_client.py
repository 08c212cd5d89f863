"""Drives a server with the Python SDK's `mcp.Client`; see steps.py for the description it takes."""

from __future__ import annotations

import warnings
from contextlib import AsyncExitStack
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import ElicitResult

import steps


class Connected:
    def __init__(self, client: Client) -> None:
        self.client = client

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


async def server_of(transport: dict[str, Any], stack: AsyncExitStack) -> Any:
    if "command" in transport:
        command, *args = transport["command"]
        return StdioServerParameters(command=command, args=args, env=transport.get("env"), cwd=transport.get("cwd"))
    http = await stack.enter_async_context(create_mcp_http_client(headers=transport.get("headers")))
    return streamable_http_client(transport["url"], http_client=http)


async def connect_and_run(description: dict[str, Any], report: dict[str, Any]) -> None:
    person = steps.Person(description, report) if "elicit" in description else None

    async def elicit(_context: Any, params: Any) -> ElicitResult:
        return ElicitResult(**await person.answer(params.message))

    options = {"elicitation_callback": elicit} if person else {}
    async with AsyncExitStack() as stack:
        server = await server_of(description["transport"], stack)
        client = await stack.enter_async_context(Client(server, mode=description.get("mode", "auto"), **options))
        report["protocol"] = client.protocol_version
        report["server"] = steps.plain(client.server_info) if client.server_info else None
        report["instructions"] = client.instructions
        await steps.run_steps(Connected(client), description["steps"], report)


if __name__ == "__main__":
    steps.main(connect_and_run)
