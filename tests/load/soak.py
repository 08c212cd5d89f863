"""Lets many kinds of calls go through one gateway for a long time and prints what it holds meanwhile.

    python3 tests/load/soak.py [--minutes 30] [--binary target/release/iris-mcp] [--pause 0.005]

Clients of both eras come and go over HTTP beside one over standard streams. They call built-in tools and those
of upstreams over both transports, search for tools, read what was cut, fail, and give up in the middle of calls.
Every answer is looked at. A line a minute: resident memory, its peak, file descriptors, threads, processes, calls.
"""

import argparse
import collections
import json
import pathlib
import queue
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).parent
WEB = HERE.parent / "it" / "fixtures" / "web.py"
CLIENT = {"name": "soak", "version": "1"}
OF = "io.modelcontextprotocol/"
done = collections.Counter()
wrong = []
ending = threading.Event()


def check(what, answer, expected):
    done[what] += 1
    text = json.dumps(answer)
    if expected not in text and len(wrong) < 20:
        wrong.append(f"{what}: {expected!r} is not in {text[:600]}")


class Http:
    """A session of one era; the newer one has none, but is a client all the same."""

    def __init__(self, url, modern):
        self.url, self.modern, self.headers, self.next = url, modern, {}, 0
        if not modern:
            about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
            self.ask("initialize", about)
            self.ask("notifications/initialized", None)

    def ask(self, method, params, timeout=60):
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream", **self.headers}
        message = {"jsonrpc": "2.0", "method": method}
        if self.modern:
            meta = {f"{OF}protocolVersion": "2026-07-28", f"{OF}clientCapabilities": {}, f"{OF}clientInfo": CLIENT}
            params = {**params, "_meta": meta}
            headers |= {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
            headers |= {"mcp-name": params[key] for key in ("name", "uri") if key in params}
        if params is not None:
            self.next += 1
            message |= {"id": self.next, "params": params}
        request = urllib.request.Request(self.url, json.dumps(message).encode(), headers)
        with urllib.request.urlopen(request, timeout=timeout) as reply:
            if session := reply.headers.get("mcp-session-id"):
                self.headers = {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
            body = reply.read().decode()
        if not body:
            return {}
        if reply.headers["content-type"].startswith("text/event-stream"):
            body = [line[5:] for line in body.splitlines() if line.startswith("data:") and len(line) > 6][-1]
        return json.loads(body)

    def end(self):
        if not self.modern and random.random() < 0.9:
            # The rest just goes away, as clients do.
            request = urllib.request.Request(self.url, headers=self.headers, method="DELETE")
            urllib.request.urlopen(request, timeout=60).close()


class Stdio:
    def __init__(self, process):
        self.process, self.next, self.waiting, self.lock = process, 0, {}, threading.Lock()
        threading.Thread(target=self.read, daemon=True).start()
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT})
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" not in message and (answer := self.waiting.pop(message["id"], None)):
                answer.put(message)

    def write(self, message):
        with self.lock:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def ask(self, method, params, timeout=60):
        with self.lock:
            self.next += 1
            number, answer = self.next, queue.Queue()
        self.waiting[number] = answer
        self.write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        try:
            return answer.get(timeout=timeout)
        except queue.Empty:
            del self.waiting[number]
            told = {"requestId": number, "reason": "no patience"}
            self.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": told})
            raise TimeoutError from None

    def end(self):
        pass


def call(client, name, arguments, **more):
    return client.ask("tools/call", {"name": name, "arguments": arguments}, **more)


def step(client):
    """Makes one call of a kind by chance."""
    word = f"word-{random.randrange(10**9)}"
    kind = random.choices(
        ["read", "grep", "list", "echo", "web", "fail", "unknown", "bad", "cut", "promised", "search", "tools", "cancel"],
        [10, 4, 4, 30, 10, 5, 3, 3, 2, 1, 5, 3, 1],
    )[0]
    match kind:
        case "read":
            check(kind, call(client, "read_file", {"file_path": "a.txt"}), "first line")
        case "grep":
            check(kind, call(client, "grep_search", {"pattern": r"(s)e\1|first"}), "a.txt:1")
        case "list":
            check(kind, call(client, "list_files", {"pattern": "**/*.txt"}), "a.txt")
        case "echo":
            check(kind, call(client, "mcp__up__echo", {"word": word}), word)
        case "web":
            check(kind, call(client, "mcp__web__echo", {"text": word}), word)
        case "fail":
            check(kind, call(client, "mcp__up__fail", {"word": word}), "MCP_TOOL_ERROR")
        case "unknown":
            check(kind, call(client, "nobody", {}), "unknown tool")
        case "bad":
            check(kind, call(client, "read_file", {"file_path": ["a"]}), "VALIDATION_ERROR")
        case "cut":
            answer = call(client, "mcp__up__big", {"kind": "text", "size": 400_000})
            check(kind, answer, "was cut")
            uri = answer["result"]["_meta"]["iris/result"]["artifact"]["text_uri"]
            check("read resource", client.ask("resources/read", {"uri": uri}), "line with")
        case "promised":
            check(kind, call(client, "mcp__up__promised", {"kind": "structured", "size": 1_000_000}), '"item 100"')
        case "search":
            check(kind, call(client, "tool_search", {"queries": ["promised", "echo"]}), "mcp__up__")
        case "tools":
            check(kind, client.ask("tools/list", {}), "read_file")
        case "cancel":
            try:
                call(client, "mcp__web__mute", {}, timeout=0.3)
            except (TimeoutError, urllib.error.URLError):
                done[kind] += 1


def live(make, pause):
    while not ending.is_set():
        try:
            client = make()
            found = call(client, "tool_search", {"queries": ["up echo", "web echo", "mute", "fail", "big", "promised"]})
            check("first search", found, "mcp__web__mute")
            for _ in range(random.randrange(5, 60)):
                step(client)
                time.sleep(random.expovariate(1 / pause))
                if ending.is_set():
                    break
            client.end()
        except Exception as error:  # noqa: BLE001
            if not ending.is_set() and len(wrong) < 20:
                wrong.append(f"{type(error).__name__}: {error}")


def held(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as lines:
        status = dict(line.split(":", 1) for line in lines)
    mib = [int(status[key].split()[0]) / 1024 for key in ("VmRSS", "VmHWM")]
    fds = len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return mib, fds, int(status["Threads"]), len(children)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--minutes", type=float, default=30)
    arguments.add_argument("--binary", default="target/release/iris-mcp")
    arguments.add_argument("--pause", type=float, default=0.005)
    given = arguments.parse_args()
    pipe = subprocess.PIPE
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        web = subprocess.Popen([sys.executable, str(WEB), '{"tools": ["echo", "mute"]}'], stdout=pipe)
        port = int(web.stdout.readline())
        servers = {
            "up": {"command": sys.executable, "args": [str(HERE / "server.py")]},
            "web": {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"},
        }
        (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        (home / "agent.yaml").write_text(
            "name: soak\npermissions: {workspace: w, writes: allow}\nmcp: {path: mcp.json}\n"
            "tools: {builtin: [file.read, file.list, file.grep]}\n"
        )
        # Sessions whose client just goes away are kept so long; that is to happen many times.
        (home / "server.toml").write_text("[limits]\nsession_idle_seconds = 120\n")
        (home / "w").mkdir()
        for name in ("a", "b", "c"):
            (home / "w" / f"{name}.txt").write_text("first line\nses\n" + "more of it\n" * 2000)
        serve = [given.binary, "serve", "--stdio", "--http", "127.0.0.1:0", "--agent", str(home / "agent.yaml")]
        serve += ["--config", str(home / "server.toml")]
        serve += ["--defer", "always", "--approval", "client", "--permit", "*"]
        gateway = subprocess.Popen(serve, stdin=pipe, stdout=pipe, stderr=pipe)
        url = next(line[line.index("http://"):].split()[0] for line in map(bytes.decode, gateway.stderr) if "/mcp" in line)
        threading.Thread(target=lambda: [None for _ in gateway.stderr], daemon=True).start()
        stdio = Stdio(gateway)
        makers = [lambda: stdio] * 2 + [lambda: Http(url, False)] * 3 + [lambda: Http(url, True)] * 3
        threads = [threading.Thread(target=live, args=(make, given.pause), daemon=True) for make in makers]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        print("| minute | resident MiB | peak MiB | fds | threads | children | calls |", flush=True)
        while (elapsed := time.monotonic() - began) < given.minutes * 60:
            (resident, peak), fds, count, children = held(gateway.pid)
            print(
                f"| {elapsed / 60:.0f} | {resident:.1f} | {peak:.1f} | {fds} | {count} | {children} | {done.total()} |",
                flush=True,
            )
            for problem in wrong:
                print("wrong:", problem, flush=True)
            wrong.clear()
            time.sleep(min(60, max(1, given.minutes * 60 - elapsed)))
        ending.set()
        for thread in threads:
            thread.join(10)
        for problem in wrong:
            print("wrong:", problem, flush=True)
        print("at rest:", held(gateway.pid), dict(done), flush=True)
        gateway.stdin.close()
        gateway.terminate()
        gateway.wait(30)
        web.kill()


main()
