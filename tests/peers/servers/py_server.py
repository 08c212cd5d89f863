"""A server on a Python SDK with one tool for each thing a server can want of its client.

    py_server.py mcp|fastmcp stdio
    py_server.py mcp|fastmcp http PORT

Each of the two SDKs speaks both eras. In the older one a tool asks by a request of its own; in the
newer one it answers the call with its question, and is called again with the answer. A tool that
asked returns, as JSON, the answer as the SDK has read it.
"""

import asyncio
import logging
import sys
import warnings
from pathlib import Path

from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)

SDK = sys.argv[1]
if SDK == "fastmcp":
    from fastmcp import Context, FastMCP

    server = FastMCP("asks")
    tool = server.tool(output_schema=None)
else:
    from mcp.server.mcpserver import Context, MCPServer

    server = MCPServer("asks")
    tool = server.tool(structured_output=False)

NEWER = "2026-07-28"
FORM = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "enum": ["grün", "blau"], "title": "Colour"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "sure": {"type": "boolean", "default": False},
    },
    "required": ["colour", "count"],
}
FORM_MESSAGE = "Which colour for „Köln“?\nAnd how many? 🎨"
URL_MESSAGE = "Please sign in."
URL = "https://example.com/sign-in?flow=a%20b&x=1#top"
SYSTEM = "Answer in one word."
ASKED = SamplingMessage(role="user", content=TextContent(type="text", text="Capital of France?"))


def newer(context: Context) -> bool:
    return context.session.protocol_version >= NEWER


def told(answer):
    return answer.model_dump_json(by_alias=True, exclude_none=True)


def asked(context: Context, question):
    """Asks in the newer era; the second time the answer is there."""
    if not context.input_responses:
        return InputRequiredResult(input_requests={"it": question}, request_state="asked once")
    if context.request_state != "asked once":
        return f"not my state: {context.request_state}"
    return told(context.input_responses["it"])


@tool
async def ask_form(context: Context):
    if newer(context):
        return asked(context, ElicitRequest(params=ElicitRequestFormParams(message=FORM_MESSAGE, requested_schema=FORM)))
    return told(await context.session.elicit_form(FORM_MESSAGE, FORM, related_request_id=context.request_id))


@tool
async def ask_url(context: Context):
    if newer(context):
        return asked(context, ElicitRequest(params=ElicitRequestURLParams(message=URL_MESSAGE, url=URL)))
    return told(await context.session.elicit_url(URL_MESSAGE, URL, "sign-in-1", related_request_id=context.request_id))


@tool
async def sample(context: Context):
    if newer(context):
        params = CreateMessageRequestParams(messages=[ASKED], max_tokens=16, system_prompt=SYSTEM)
        return asked(context, CreateMessageRequest(params=params))
    wanted = {"max_tokens": 16, "system_prompt": SYSTEM, "related_request_id": context.request_id}
    return told(await context.session.create_message([ASKED], **wanted))


@tool
async def roots(context: Context):
    if newer(context):
        return asked(context, ListRootsRequest())
    return told(await context.session.list_roots())


@tool
async def progress(until: str, context: Context):
    for step in (1, 2, 3):
        await context.report_progress(step, 3, f"step {step}")
    # Whoever gets the reports makes this file, while the call still runs.
    while not Path(until).exists():
        await asyncio.sleep(0.005)
    return "done"


@tool
async def slow(ledger: str, context: Context):
    await context.report_progress(1, 2, "it has begun")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        with open(ledger, "a", encoding="utf-8") as notes:
            notes.write("cancelled\n")
        raise
    return "slept"


@tool
async def log(context: Context):
    wanted = {"data": {"städte": ["Köln"]}, "logger": "engine", "related_request_id": context.request_id}
    await context.session.send_log_message("warning", **wanted)
    return "logged"


warnings.simplefilter("ignore")
logging.disable(logging.ERROR if sys.argv[2] == "stdio" else logging.DEBUG)
quiet = {"show_banner": False} if SDK == "fastmcp" else {}
if sys.argv[2] == "stdio":
    server.run("stdio", **quiet)
else:
    transport = "http" if SDK == "fastmcp" else "streamable-http"
    server.run(transport, host="127.0.0.1", port=int(sys.argv[3]), **quiet)
