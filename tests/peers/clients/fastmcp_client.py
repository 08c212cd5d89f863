"""Drives a server with `fastmcp.Client`; see steps.py for the description it takes."""

from __future__ import annotations

from typing import Any

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from mcp_types import CreateMessageResult, Root

import steps


class Connected:
    def __init__(self, client: Client, logs: steps.Logs, changes: steps.Changes) -> None:
        self.client, self.logs, self.changes = client, logs, changes

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


def person_of(description: dict[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    """Returns the handlers that answer for the person behind the client."""
    if "elicit" in description:
        person = steps.Person(description, report)

        async def one_after_the_other(message: str, _type: Any, _params: Any, _context: Any) -> ElicitResult:
            return ElicitResult(**await person.answer(message))

        return {"elicitation_handler": one_after_the_other}
    if "person" not in description:
        return {}
    answers = description["person"]

    async def elicit(_message: str, _type: Any, params: Any, _context: Any) -> ElicitResult:
        report["asked"].append(steps.plain(params))
        return ElicitResult(**answers[params.mode])

    async def sample(_messages: Any, params: Any, _context: Any) -> CreateMessageResult:
        report["asked"].append(steps.plain(params))
        return CreateMessageResult.model_validate(answers["sampling"])

    async def list_roots(_context: Any) -> list[Root]:
        report["asked"].append({})
        return [Root(**root) for root in answers["roots"]["roots"]]

    return {"elicitation_handler": elicit, "sampling_handler": sample, "roots": list_roots}


async def connect_and_run(description: dict[str, Any], report: dict[str, Any]) -> None:
    logs, changes = steps.Logs(report), steps.Changes(report)
    options = {**person_of(description, report), "log_handler": logs.add, "message_handler": changes.add}
    client = Client(transport_of(description["transport"]), mode=description.get("mode", "auto"), **options)
    async with client:
        report["protocol"] = client.protocol_version
        report["server"] = steps.plain(client.server_info) if client.server_info else None
        report["instructions"] = client.instructions
        # In the newer era it wants every message by itself.
        if "log_level" in description and client.protocol_version < "2026-07-28":
            await client.set_logging_level(description["log_level"])
        await steps.run_steps(Connected(client, logs, changes), description["steps"], report)


if __name__ == "__main__":
    steps.main(connect_and_run)
