"""Compares a Python function behind the gateway with the same function in a server of FastMCP, in one run.

    PYTHON=target/peers/fastmcp/bin/python python3 tests/load/python.py [--calls 2000] [--binary target/release/iris-mcp]

Both are called over standard streams by the same client, in turns of a hundred calls, first one at a time and then
with 32 in flight. PYTHON is an interpreter that has fastmcp; the gateway runs the function with it, too.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

TURN = 100
IN_FLIGHT = 32
TOOLS = '''
from iris.tools import tool


@tool()
def nothing() -> str:
    """Does nothing."""
    return ""
'''
SERVER = '''
from fastmcp import FastMCP

server = FastMCP("nothing")


@server.tool
def nothing() -> str:
    """Does nothing."""
    return ""


server.run(transport="stdio", show_banner=False)
'''
AGENT = "tools: { python: { functions: ['nothing_tools:nothing'] } }\npermissions: { workspace: workspace }\n"


class Client:
    def __init__(self, command, env):
        self.process = subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.next = 0
        self.took = []
        self.rates = []
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.ask("initialize", about)
        self.read()
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.ask("tools/list", {})
        listed = self.read()["result"]["tools"]
        assert any(tool["name"] == "nothing" for tool in listed), listed

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.next += 1
        self.send({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})

    def read(self):
        while True:
            line = self.process.stdout.readline()
            if not line:
                sys.exit(f"{self.process.args} has ended")
            message = json.loads(line)
            if "id" in message and "method" not in message:
                return message

    def call(self):
        self.ask("tools/call", {"name": "nothing", "arguments": {}})

    def answer(self):
        result = self.read()["result"]
        assert not result.get("isError"), result

    def one_at_a_time(self):
        for _ in range(TURN):
            began = time.perf_counter()
            self.call()
            self.answer()
            self.took.append((time.perf_counter() - began) * 1e3)

    def many(self):
        began = time.perf_counter()
        for _ in range(IN_FLIGHT):
            self.call()
        for _ in range(TURN):
            self.answer()
            self.call()
        for _ in range(IN_FLIGHT):
            self.answer()
        self.rates.append((TURN + IN_FLIGHT) / (time.perf_counter() - began))

    def end(self):
        self.process.stdin.close()
        self.process.wait(20)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--binary", default="target/release/iris-mcp")
    arguments = parser.parse_args()
    python = os.environ.get("PYTHON", "target/peers/fastmcp/bin/python")
    python = str(pathlib.Path(python).absolute())
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "nothing_tools.py").write_text(TOOLS)
        (folder / "server.py").write_text(SERVER)
        (folder / "agent.yaml").write_text(AGENT)
        (folder / "workspace").mkdir()
        env = {**os.environ, "IRIS_MCP_PYTHON_INTERPRETER": python, "IRIS_MCP_LOG": "error"}
        binary = str(pathlib.Path(arguments.binary).absolute())
        ours = Client([binary, "serve", "--stdio", "--agent", str(folder / "agent.yaml")], env)
        theirs = Client([python, str(folder / "server.py")], env)
        for client in (ours, theirs):
            client.one_at_a_time()
            client.took.clear()
        for _ in range(arguments.calls // TURN):
            for client in (ours, theirs):
                client.one_at_a_time()
        for _ in range(arguments.calls // TURN):
            for client in (ours, theirs):
                client.many()
        for client in (ours, theirs):
            client.end()

    def figures(client):
        cuts = statistics.quantiles(client.took, n=100)
        return cuts[49], cuts[98], statistics.median(client.rates)

    mine, other = figures(ours), figures(theirs)
    print(f"{'':12}{'p50, ms':>10}{'p99, ms':>10}{'calls/s, 32 in flight':>24}")
    for name, (p50, p99, rate) in (("iris-mcp", mine), ("FastMCP", other)):
        print(f"{name:12}{p50:10.3f}{p99:10.3f}{rate:24.0f}")
    print(f"{'ratio':12}{mine[0] / other[0]:10.2f}{mine[1] / other[1]:10.2f}{mine[2] / other[2]:24.2f}")


main()
