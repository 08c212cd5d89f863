"""Drives a server with `fastmcp.Client`; see steps.py for the description it takes."""

from __future__ import annotations

from typing import Any

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

import steps


class Connected:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def tools(self) -> list[Any]:
        return await self.client.list_tools()

    async def call(self, name: str, arguments: dict[str, Any], progress: Any) -> Any:
        return await self.client.call_tool_mcp(name, arguments, progress_handler=progress)

    async def resources(self) -> list[Any]:
        return await self.client.list_resources()

    async def ping(self) -> None:
        await self.client.ping()


def transport_of(transport: dict[str, Any]) -> Any:
    if "command" in transport:
        command, *args = transport["command"]
        return StdioTransport(command, args, env=transport.get("env"), cwd=transport.get("cwd"), keep_alive=False)
    return StreamableHttpTransport(transport["url"], headers=transport.get("headers"))


async def connect_and_run(description: dict[str, Any], report: dict[str, Any]) -> None:
    person = steps.Person(description, report) if "elicit" in description else None

    async def elicit(message: str, _type: Any, _params: Any, _context: Any) -> ElicitResult:
        return ElicitResult(**await person.answer(message))

    options = {"elicitation_handler": elicit} if person else {}
    client = Client(transport_of(description["transport"]), mode=description.get("mode", "auto"), **options)
    async with client:
        report["protocol"] = client.protocol_version
        report["server"] = steps.plain(client.server_info) if client.server_info else None
        report["instructions"] = client.instructions
        await steps.run_steps(Connected(client), description["steps"], report)


if __name__ == "__main__":
    steps.main(connect_and_run)
