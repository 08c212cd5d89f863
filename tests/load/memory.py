"""Measures what one large result costs a gateway: how much its peak of memory grows, and what stays.

    python3 tests/load/memory.py [--binary FILE] [--http] [text|structured|both]...
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

MIB = 1 << 20
SERVER = str(pathlib.Path(__file__).parent / "server.py")
ABOUT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "memory", "version": "1"}}


def status(pid, key):
    with open(f"/proc/{pid}/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key + ":"))


class Stdio:
    def __init__(self, process):
        self.process, self.next = process, 0

    def ask(self, method, params):
        self.next += 1
        message = {"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit("the gateway has ended")
            if b'"id":%d,' % self.next in line[:60]:
                return line

    def hello(self):
        self.ask("initialize", ABOUT)
        self.process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')


class Http:
    def __init__(self, url, modern):
        self.url, self.modern, self.headers = url, modern, {}

    def ask(self, method, params):
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream", **self.headers}
        if self.modern:
            of = "io.modelcontextprotocol/"
            meta = {f"{of}protocolVersion": "2026-07-28", f"{of}clientCapabilities": {}, f"{of}clientInfo": ABOUT["clientInfo"]}
            params = {**params, "_meta": meta}
            headers |= {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
            headers |= {"mcp-name": params["name"]} if "name" in params else {}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url, body, headers)) as reply:
            if session := reply.headers.get("mcp-session-id"):
                self.headers = {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
            return reply.read()

    def hello(self):
        if not self.modern:
            self.ask("initialize", ABOUT)


def measure(binary, way, kind, size):
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        (home / "mcp.json").write_text(json.dumps({"mcpServers": {"up": {"command": sys.executable, "args": [SERVER]}}}))
        (home / "workspace").mkdir()
        serve = ["--stdio"] if way == "stdio" else ["--http", "127.0.0.1:0"]
        command = [binary, "serve", *serve, "--mcp", str(home / "mcp.json"), "--workspace", str(home / "workspace")]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command + ["--approval", "client"], stdin=pipe, stdout=pipe, stderr=pipe)
        try:
            if way == "stdio":
                client = Stdio(process)
            else:
                url = next(word for line in process.stderr for word in line.decode().split() if "http://" in word)
                client = Http(url[url.index("http://"):].strip('"'), way == "modern")
            client.hello()
            tool = "mcp__up__big" if kind == "text" else "mcp__up__promised"
            # What comes with the first call is not what the size costs.
            deadline = time.monotonic() + 20
            while b"isError" not in (answer := client.ask("tools/call", {"name": tool, "arguments": {"kind": kind, "size": 1000}})):
                if b'"id"' in answer and b"unknown tool" not in answer and b"structuredContent" in answer or b'"content"' in answer:
                    break
                if time.monotonic() > deadline:
                    raise SystemExit(answer[:400])
                time.sleep(0.1)
            before, rows = status(process.pid, "VmRSS"), []
            for _ in range(3):
                answer = client.ask("tools/call", {"name": tool, "arguments": {"kind": kind, "size": size}})
                rows.append((status(process.pid, "VmHWM"), status(process.pid, "VmRSS"), len(answer)))
            return before, rows
        finally:
            process.stdin.close()
            process.terminate()
            process.wait()


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--binary", default="target/release/iris-mcp")
    arguments.add_argument("--ways", default="stdio,legacy,modern")
    arguments.add_argument("kinds", nargs="*", default=["text", "structured", "both"])
    given = arguments.parse_args()
    print("| way | result | answer | before | peak growth | x size | growth after 3 calls | left |")
    for way in given.ways.split(","):
        for kind in given.kinds:
            size = (50 if kind == "text" else 24) * MIB
            before, rows = measure(given.binary, way, kind, size)
            grown = rows[0][0] - before
            figures = [f"{number / MIB:.0f}" for number in (rows[0][2], before, grown)]
            times, last, left = grown / size, (rows[2][0] - before) / MIB, (rows[2][1] - before) / MIB
            print(f"| {way} | {kind}, {size // MIB} MiB | {' | '.join(figures)} | {times:.1f} | {last:.0f} | {left:.0f} |", flush=True)


main()
