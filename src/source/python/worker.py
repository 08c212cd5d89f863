"""The other end of the gateway's line: loads an agent's Python tools and runs their calls.

A message is a line of JSON. The two descriptors that carry them are private: standard input is empty
and standard output is standard error by the time a tool is loaded, so nothing that a tool prints,
reads or forks gets between. What is written here is answered by number:

    -> {"id", "do": "validate", "tool", "arguments"}    <- {"id", "arguments", "traits"} | {"id", "failure"}
    -> {"id", "do": "run", "tool", "arguments", "context"}
                            <- {"id", "started"}, then {"id", "result"} | {"id", "failure"}
    -> {"id", "do": "ping"}                             <- {"id"}
    -> {"id", "do": "cancel"}                           the run of this number; it is answered all the same
"""

import asyncio
import concurrent.futures
import contextlib
import fcntl
import importlib
import importlib.abc
import importlib.util
import json
import os
import queue
import sys
import threading
import traceback
from pathlib import Path

NEEDED = ("tool", "CallableTool", "BaseTool", "ToolResult", "ToolExecutionContext")
NOT_THEIRS = ("/asyncio/", "/importlib/", "/concurrent/futures/")
THREADS = 32
CANCELLED = {"code": "CANCELLED", "message": "the call was cancelled"}


class Shipped(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds the modules that the gateway has sent."""

    def __init__(self, modules):
        self.modules = modules

    def find_spec(self, name, path=None, target=None):
        if name not in self.modules:
            return None
        return importlib.util.spec_from_loader(name, self, origin="iris-mcp", is_package=self.is_package(name))

    def get_source(self, name):
        return self.modules[name]

    def is_package(self, name):
        return any(other.startswith(name + ".") for other in self.modules)


class Line:
    """The private line to the gateway; what is written waits in a queue of its own thread."""

    def __init__(self, limit):
        self.limit = limit
        self.input = os.fdopen(fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 64), "rb")
        self.output = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 64)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        os.dup2(2, 1)
        os.register_at_fork(after_in_child=self.close)
        self.waiting = queue.SimpleQueue()
        threading.Thread(target=self.write_all, name="iris-mcp line", daemon=True).start()

    def close(self):
        with contextlib.suppress(OSError):
            os.close(self.output)
            os.close(self.input.fileno())

    def write_all(self):
        while True:
            data, written = self.waiting.get()
            data = memoryview(data)
            try:
                while data:
                    data = data[os.write(self.output, data) :]
            except OSError:
                os._exit(0)
            if written is not None:
                written.set()

    def send(self, message, written=None):
        data = json.dumps(message, ensure_ascii=True, separators=(",", ":"), default=str).encode() + b"\n"
        if len(data) > self.limit and "id" in message:
            text = f"the result has {len(data)} bytes, and at most {self.limit} may be sent (limits.max_message_bytes)"
            return self.send({"id": message["id"], "failure": {"code": "RESULT_TOO_LARGE", "message": text}})
        self.waiting.put((data, written))

    def send_now(self, message):
        written = threading.Event()
        self.send(message, written)
        written.wait()


class Recorder:
    """The registry that registrars are given."""

    def __init__(self, kit):
        self.kit = kit
        self.tools = []

    def register(self, tool):
        self.tools.append(tool)
        return tool

    def register_many(self, tools):
        for tool in list(tools):
            self.register(tool)

    def register_function(self, func, **said):
        return self.register(self.kit.CallableTool(func, **said))

    def get(self, name):
        for tool in self.tools:
            if name == tool.definition.name or name in tool.definition.aliases:
                return tool
        raise LookupError(f"there is no tool {name}")


def kit_of(modules):
    """Returns Iris itself where the interpreter has it, and what we ship for it otherwise."""
    try:
        kit = importlib.import_module("iris.tools")
        if all(hasattr(kit, name) for name in NEEDED):
            return kit, "installed"
    except Exception:
        pass
    for name in [name for name in sys.modules if name == "iris" or name.startswith("iris.")]:
        del sys.modules[name]
    try:
        if int(importlib.import_module("pydantic").VERSION.split(".")[0]) < 2:
            raise ImportError
    except ImportError:
        sys.exit(f"it has no pydantic 2; `{sys.executable} -m pip install 'pydantic>=2'` installs it")
    sys.meta_path.insert(0, Shipped(modules))
    return importlib.import_module("iris.tools"), "shipped"


def plain(value):
    """Makes JSON of whatever a model or a tool has."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if dump else value


def own_frames(error):
    """Returns the traceback, as far as it is the user's, with the modules of ours left out."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<") and not any(part in frame.filename for part in NOT_THEIRS)
    ]
    shown = [f"{frame.filename}:{frame.lineno} in {frame.name}: {frame.line or ''}".rstrip(": ") for frame in frames[-8:]]
    return [*shown, f"{type(error).__name__}: {error}"]


def code_of(error):
    name = type(error).__name__
    return "VALIDATION_ERROR" if "Validation" in name else "EXECUTION_ERROR"


def failure_of(error):
    """Makes the failure that an exception is, with the frames of whoever raised the first one."""
    cause = error.__cause__ or error
    traceback.print_exception(type(error), error, error.__traceback__)
    failure = {"code": code_of(error), "message": str(error) or type(error).__name__, "details": {}}
    context = getattr(error, "context", None)
    if isinstance(context, dict) and context:
        failure["details"].update(context)
    if failure["code"] == "EXECUTION_ERROR":
        failure["details"]["traceback"] = own_frames(cause)
    return failure


def described(tool):
    definition = tool.definition
    about = plain(definition)
    return {
        "name": about["name"],
        "description": about["description"],
        "input_schema": about["input_schema"],
        "capabilities": sorted(str(one) for one in about.get("capabilities") or ()),
        "group": about.get("group", "core"),
        "aliases": list(about.get("aliases") or ()),
        "deferred": bool(about.get("deferred", False)),
        "max_result_chars": about.get("max_result_chars", 50_000),
        "preview_chars": about.get("preview_chars", 8_000),
        "preview_mode": str(about.get("preview_mode", "head")),
        "context_retention": str(about.get("context_retention", "keep")),
        "metadata": about.get("metadata") or {},
    }


class Worker:
    def __init__(self, line, hello):
        self.line = line
        self.hello = hello
        self.tools = {}
        self.running = {}

    def load(self):
        """Loads every tool; one that cannot be is told with its reference, and the others stay."""
        sys.path[:0] = self.hello["path"]
        kit, origin = kit_of(self.hello["modules"])
        self.kit = kit
        problems, found = [], []
        for kind in ("functions", "registrars"):
            for number, reference in enumerate(self.hello[kind]):
                recorder = Recorder(kit)
                try:
                    module, name = reference.split(":", 1)
                    target = importlib.import_module(module)
                    for part in name.split("."):
                        target = getattr(target, part)
                    if kind == "functions":
                        recorder.register_function(target)
                    else:
                        target(recorder)
                    found += [(tool, described(tool), f"{kind}[{number}]") for tool in recorder.tools]
                except (Exception, SystemExit) as error:
                    traceback.print_exception(type(error), error, error.__traceback__)
                    frames = own_frames(error)
                    problems.append({"place": f"{kind}[{number}]", "reference": reference, "lines": frames})
        tools = []
        for tool, about, place in found:
            names = {about["name"], *about["aliases"]}
            if names & self.tools.keys():
                text = f"another Python tool is called {sorted(names & self.tools.keys())[0]}"
                problems.append({"place": place, "reference": about["name"], "lines": [text]})
                continue
            self.tools.update((name, tool) for name in names)
            tools.append(about)
        version = ".".join(map(str, sys.version_info[:3]))
        self.line.send({"described": {"tools": tools, "problems": problems, "python": version, "iris": origin}})

    async def serve(self):
        loop = asyncio.get_running_loop()
        pool = concurrent.futures.ThreadPoolExecutor(THREADS, thread_name_prefix="iris-mcp tool")
        loop.set_default_executor(pool)
        ended = loop.create_future()

        def read():
            for data in self.line.input:
                loop.call_soon_threadsafe(self.take, json.loads(data))
            loop.call_soon_threadsafe(ended.set_result, None)

        threading.Thread(target=read, name="iris-mcp requests", daemon=True).start()
        await ended
        # Threads of tools may go on for ever; nobody waits for what they come to.
        os._exit(0)

    def take(self, message):
        number, do = message["id"], message["do"]
        if do == "ping":
            self.line.send({"id": number})
        elif do == "cancel":
            if number in self.running:
                task, signal = self.running[number]
                signal.request()
                task.cancel()
            else:
                # It never came, or was answered already.
                self.line.send({"id": number, "failure": CANCELLED})
        elif do == "validate":
            self.answer(number, lambda: self.validate(message))
        else:
            signal = Signal()
            task = asyncio.get_running_loop().create_task(self.run(message, signal))
            self.running[number] = (task, signal)
            task.add_done_callback(lambda _: self.running.pop(number, None))

    def answer(self, number, make):
        try:
            reply = make()
        except Exception as error:
            reply = {"failure": failure_of(error)}
        self.line.send({"id": number, **reply})

    def validate(self, message):
        tool = self.tools[message["tool"]]
        params = tool.validate_input(message["arguments"])
        seen = plain(params)
        return {
            "arguments": seen if isinstance(seen, dict) else message["arguments"],
            "traits": {
                "read_only": bool(tool.is_read_only(params)),
                "destructive": bool(tool.is_destructive(params)),
                "parallel": bool(tool.is_concurrency_safe(params)),
                "timeout_owner": "tool" if str(getattr(tool, "timeout_owner", "")) == "tool" else "runtime",
            },
        }

    async def run(self, message, signal):
        number = message["id"]
        try:
            tool = self.tools[message["tool"]]
            parse = getattr(tool, "parse", tool.validate_input)
            params = parse(message["arguments"])
            # From here on nobody can know what was done, so it is said before anything is.
            self.line.send_now({"id": number, "started": True})
            context = self.context(message["context"], signal)
            result = await tool.arun(params, context)
            reply = {"result": plain(result)}
        except asyncio.CancelledError:
            reply = {"failure": CANCELLED}
        except (Exception, SystemExit) as error:
            reply = {"failure": failure_of(error)}
        self.line.send({"id": number, **reply})

    def context(self, about, signal):
        kind = self.kit.ToolExecutionContext
        known = getattr(kind, "model_fields", {})
        about = {**about, "workspace_root": Path(about["workspace_root"]), "cancellation": signal}
        return kind(**{key: value for key, value in about.items() if not known or key in known})


class Signal:
    """Whether the caller has given a call up."""

    def __init__(self):
        self.requested = False

    def request(self):
        self.requested = True

    def raise_if_requested(self):
        if self.requested:
            raise asyncio.CancelledError


def main(hello):
    line = Line(hello["limit"])
    worker = Worker(line, hello)
    worker.load()
    asyncio.run(worker.serve())
