"""The other end of the gateway's line: loads an agent's Python tools and runs their calls.

A message is a line of JSON. The two descriptors that carry them are private: standard input is empty
and standard output is standard error by the time a tool is loaded, so nothing that a tool prints,
reads or forks gets between. First comes what it is to load, and back come {"loading"} before each of it
and {"described"} in the end. What is written then is answered by number:

    -> {"id", "do": "validate", "tool", "arguments"}
                            <- {"id", "arguments", "traits", "checked"} | {"id", "failure"}
    -> {"id", "do": "run", "tool", "arguments", "checked", "context"}
                            <- {"id", "started"}, then {"id", "result"} | {"id", "failure"}
                            the arguments are those that were checked, as they came
    -> {"id", "do": "hook", "hook", "event"}            <- {"id", "started"}, then {"id", "verdict"} | {"id", "failure"}
    -> {"id", "do": "wrap", "middleware", "call"}       <- {"id", "started"}, then, at most once, {"id", "next"}
    -> {"id", "do": "resume", "result", "raised"}          what the rest of the chain came to; and in the end
                            <- {"id", "result"} | {"id", "kept": true} | {"id", "failure"}
                            | {"id", "kept": true, "metadata", "stats"}
    -> {"id", "do": "ping"}                             <- {"id", "alive": {"runs"}} at once, {"id"} by the loops
    -> {"id", "do": "cancel"}                           what has this number; it is answered all the same
"""

import asyncio
import concurrent.futures
import contextlib
import contextvars
import datetime
import fcntl
import functools
import importlib
import importlib.abc
import importlib.util
import inspect
import json
import math
import os
import queue
import re
import secrets
import sys
import threading
import traceback
from collections import OrderedDict
from pathlib import Path

# What user code puts in the place of these is not meant for us.
dumps, loads, write, leave = json.dumps, json.loads, os.write, os._exit

NEEDED = ("tool", "CallableTool", "BaseTool", "ToolResult", "ToolExecutionContext")
NOT_THEIRS = ("/asyncio/", "/importlib/", "/concurrent/futures/", "/pydantic/")
THREADS = 32
CHECKS = 8
SESSIONS = 1_000
CHECKED = 1_000
OURS = "iris_mcp_shipped"
LONGEST = 20_000
CALL = contextvars.ContextVar("the signal of the call that runs", default=None)
LONG_NUMBER = re.compile(r"\d{19}")
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


def encoded(message):
    """Returns a line of JSON, and nothing that only Python takes for it."""
    written = {"ensure_ascii": False, "separators": (",", ":"), "default": str}
    try:
        text = dumps(message, allow_nan=False, **written)
    except ValueError:
        text = dumps(readable(message), **written)
    if LONG_NUMBER.search(text):
        text = dumps(readable(message), **written)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        # Two halves of a character become one, and half of one a sign that something was there.
        data = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
    return data + b"\n"


def readable(value):
    """Copies a value, without the numbers that JSON lacks, and with those that are long as texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        return digits(value)
    if isinstance(value, dict):
        return {key: readable(item) for key, item in value.items()}
    return [readable(item) for item in value] if isinstance(value, list | tuple) else value


def digits(number):
    """Writes a number; one that Python itself does not write, in hexadecimal."""
    try:
        return str(number)
    except ValueError:
        return hex(number)


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
                    data = data[write(self.output, data) :]
            except OSError:
                leave(0)
            if written is not None:
                written.set()

    def send(self, message, written=None):
        try:
            data = encoded(message)
        except Exception as error:
            data = self.failure(message, error)
        if len(data) > self.limit and "id" in message:
            text = f"the result has {len(data)} bytes, and at most {self.limit} may be sent (limits.max_message_bytes)"
            return self.send({"id": message["id"], "failure": {"code": "RESULT_TOO_LARGE", "message": text}})
        self.waiting.put((data, written))

    @staticmethod
    def failure(message, error):
        """Makes the answer that there is in the place of one that cannot be written."""
        try:
            text = f"what it returned cannot be written as JSON: {type(error).__name__}: {text_of(error)}"
            return encoded({"id": message["id"], "failure": {"code": "EXECUTION_ERROR", "message": text[:LONGEST]}})
        except Exception:
            # Nobody can be answered any more.
            leave(1)

    def send_now(self, message):
        """Sends before anything else is done: whatever runs next may end the process."""
        written = threading.Event()
        self.send(message, written)
        written.wait()


class Recorder:
    """The registry that registrars are given."""

    def __init__(self, kit):
        self.kit = kit
        self.tools = []

    def register(self, tool):
        if not isinstance(tool, self.kit.BaseTool):
            raise TypeError(f"a registry takes instances of BaseTool, and not {tool!r}")
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
    if sys.version_info < (3, 10):
        sys.exit(f"it is Python {sys.version.split()[0]}; 3.10 or newer is needed ([python] interpreter names another)")
    for name in [name for name in sys.modules if name == "iris" or name.startswith("iris.")]:
        del sys.modules[name]
    try:
        if int(importlib.import_module("pydantic").VERSION.split(".")[0]) < 2:
            raise ImportError
    except ImportError:
        sys.exit(f"it has no pydantic 2; `{sys.executable} -m pip install 'pydantic>=2'` installs it, there or in a .venv beside the agent file")
    sys.meta_path.insert(0, Shipped(modules))
    return importlib.import_module("iris.tools"), "shipped"


def ours(modules, name):
    """Returns a module that we ship, under a name that leaves the installed Iris alone."""
    finder = Shipped({OURS + key.removeprefix("iris"): source for key, source in modules.items()})
    if not any(isinstance(one, Shipped) and OURS in one.modules for one in sys.meta_path):
        sys.meta_path.append(finder)
    return importlib.import_module(f"{OURS}.{name}")


def events_of(origin, modules):
    """Returns the classes of the events that hooks are told, and those of a run in them."""
    names = ("RunStartedEvent", "RunFinishedEvent", "ToolBeforeEvent", "ToolAfterEvent")
    kinds = ("run.started", "run.finished", "tool.before", "tool.after")
    shipped = importlib.import_module("iris.hooks") if origin == "shipped" else ours(modules, "hooks")
    hooks = shipped
    if origin == "installed":
        with contextlib.suppress(ImportError):
            installed = importlib.import_module("iris.hooks")
            hooks = installed if all(hasattr(installed, name) for name in names) else shipped
    events = {kind: getattr(hooks, name) for kind, name in zip(kinds, names, strict=True)}
    return events, (shipped.RunSnapshot, shipped.RunResult)


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
    return [line[:500] for line in shown] + [f"{type(error).__name__}: {text_of(error)}"[:LONGEST]]


def text_of(error):
    """Returns what an exception says, on one line where it is a list of what is wrong."""
    try:
        wrong = [(".".join(map(str, one["loc"])), one["msg"]) for one in error.errors()]
        return "; ".join(f"{where}: {what}" if where else what for where, what in wrong)
    except Exception:
        pass
    try:
        return str(error) or type(error).__name__
    except Exception:
        return type(error).__name__


def problem(place, reference, error):
    """Makes what is told of something that cannot be loaded."""
    print_error(error)
    lines = own_frames(error)
    if isinstance(error, ModuleNotFoundError):
        looked = ", ".join(dict.fromkeys(filter(None, sys.path)))
        lines[-1] += f"; {sys.executable} looked in {looked}; [python] path in the settings adds folders"
    return {"place": place, "reference": reference, "lines": lines}


def print_error(error):
    """Writes an exception to the log; one that is very long, in part."""
    with contextlib.suppress(Exception):
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        print(text if len(text) <= 2 * LONGEST else f"{text[:LONGEST]}\n[...]\n{text[-LONGEST:]}", file=sys.stderr)


def code_of(error):
    name = type(error).__name__
    return "VALIDATION_ERROR" if "Validation" in name else "EXECUTION_ERROR"


def coded(text, group):
    """Takes a text apart that begins with a code, as those of file tools do."""
    found = re.fullmatch(r"([A-Z][A-Z0-9_]+):[^\S\n]*([^\n]*)\n?", text)
    if found and found[2] and (group == "file" or found[1] == "ARTIFACT_ERROR"):
        return found[1], found[2]
    return "EXECUTION_ERROR", text


def failure_of(error, group=""):
    """Makes the failure that an exception is, whatever it is made of."""
    try:
        return failure_in_full(error, group)
    except Exception:
        return {"code": "EXECUTION_ERROR", "message": type(error).__name__, "details": {}}


def failure_in_full(error, group):
    """Makes the failure that an exception is, with the frames of whoever raised the first one."""
    cause = error.__cause__ or error
    print_error(error)
    code, message = code_of(error), text_of(error)
    if code == "EXECUTION_ERROR":
        code, message = coded(message, group)
    if len(message) > LONGEST:
        message = f"{message[:LONGEST]} [the message was cut, it has {len(message)} characters]"
    failure = {"code": code, "message": message, "details": {}}
    context = getattr(error, "context", None)
    if isinstance(context, dict) and context:
        failure["details"].update(context)
    if code != "VALIDATION_ERROR":
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


def referred(reference):
    """Imports what `module:name` says."""
    module, name = reference.split(":", 1)
    target = importlib.import_module(module)
    for part in name.split("."):
        target = getattr(target, part)
    return target


def handler_of(made):
    """Checks what the factory of a hook has made."""
    if not callable(made):
        raise TypeError(f"the factory of a hook returns an async function, and not {made!r}")
    return made


def wrapper_of(made):
    """Checks what the factory of a middleware has made."""
    if not callable(getattr(made, "wrap_tool_call", None)):
        raise TypeError(f"the factory of a middleware returns a ToolMiddleware, and not {made!r}")
    return made


class Worker:
    def __init__(self, line, hello):
        self.line = line
        self.hello = hello
        self.tools = {}
        self.running = {}
        self.frames = {}
        self.calls = {}
        self.read_states = OrderedDict()
        # What was made of arguments, until the call that they were checked for takes it.
        self.checked = OrderedDict()
        self.own = secrets.token_hex(8)

    def load(self):
        """Loads everything; what cannot be is told with its reference, and the rest stays."""
        sys.path[:0] = self.hello["path"]
        kit, origin = kit_of(self.hello["modules"])
        self.kit = kit
        problems, found = [], []
        self.hooks = self.made("hooks", handler_of, problems)
        self.middleware = self.made("middleware", wrapper_of, problems)
        self.events, self.run_kinds = events_of(origin, self.hello["modules"]) if self.hooks else ({}, ())
        for kind in ("functions", "registrars"):
            for number, reference in enumerate(self.hello[kind]):
                recorder = Recorder(kit)
                place = f"tools.python.{kind}[{number}]"
                try:
                    self.line.send_now({"loading": f"{place}: `{reference}`"})
                    target = referred(reference)
                    leave_if_forked()
                    if kind == "registrars":
                        if inspect.iscoroutine(registered := target(recorder)):
                            registered.close()
                            raise TypeError("a registrar is no async function")
                    elif inspect.isclass(target):
                        raise TypeError("it is a class; a registrar registers an instance of it")
                    elif not callable(target):
                        raise TypeError(f"it is no function, but of type {type(target).__name__}")
                    else:
                        recorder.register_function(target)
                    found += [(tool, described(tool), place) for tool in recorder.tools]
                except (Exception, SystemExit) as error:
                    problems.append(problem(place, reference, error))
        tools = []
        for tool, about, place in found:
            names = {about["name"], *about["aliases"]}
            if names & self.tools.keys():
                text = f"another Python tool is called {sorted(names & self.tools.keys())[0]}"
                problems.append({"place": place, "reference": about["name"], "lines": [text]})
                continue
            self.tools.update((name, tool) for name in names)
            tools.append({**about, "place": place})
        version = ".".join(map(str, sys.version_info[:3]))
        self.line.send({"described": {"tools": tools, "problems": problems, "python": version, "iris": origin}})

    def made(self, kind, check, problems):
        """Calls the factories of one kind; one that fails leaves why in its place."""
        all_made = []
        for about in self.hello[kind]:
            try:
                self.line.send_now({"loading": f"{about['place']}: `{about['factory']}`"})
                made = referred(about["factory"])(**about["options"])
                if inspect.iscoroutine(made):
                    made.close()
                    raise TypeError("a factory is no async function; what it returns may be one")
                all_made.append(check(made))
            except (Exception, SystemExit) as error:
                problems.append(problem(about["place"], about["factory"], error))
                all_made.append(error)
        return all_made

    async def serve(self):
        """Takes requests until the gateway ends.

        There are two loops, since the body of a function that is not async blocks the one it is on:
        functions with threads of their own, and the checking of arguments, go on beside it.
        """
        self.loop = asyncio.get_running_loop()
        self.beside = asyncio.new_event_loop()
        self.threads = Threads(THREADS, "tool")
        for loop in (self.loop, self.beside):
            loop.set_default_executor(self.threads)
        self.checks = Threads(CHECKS, "check")
        os.register_at_fork(after_in_child=self.let_go)
        ended = self.loop.create_future()

        def read():
            try:
                for data in self.line.input:
                    self.take(loads(data))
                self.loop.call_soon_threadsafe(ended.set_result, None)
            except BaseException as error:
                # Whoever reads no more answers nobody.
                print_error(error)
                leave(1)

        for name, target in (("requests", read), ("threads", self.beside.run_forever)):
            threading.Thread(target=target, name=f"iris-mcp {name}", daemon=True).start()
        await ended
        # Threads of tools may go on for ever; nobody waits for what they come to.
        leave(0)

    def let_go(self):
        """Lets a forked child have no part in the loops: what wakes them is shared."""
        for loop in (self.loop, self.beside):
            with contextlib.suppress(Exception):
                loop._selector.close()

    def take(self, message):
        """Takes a request, on the thread that reads them: nothing here may take long."""
        number, do = message["id"], message["do"]
        if do == "ping":
            # Whether the loops go on is what the gateway wants to know, and what keeps one from it.
            self.line.send({"id": number, "alive": {"runs": self.runs()}})
            on = functools.partial(self.beside.call_soon_threadsafe, self.line.send, {"id": number})
            self.loop.call_soon_threadsafe(on)
        elif do == "cancel":
            loop, signal = self.running.get(number, (self.loop, None))
            if signal is not None:
                signal.requested = True
            loop.call_soon_threadsafe(self.cancel, number)
        elif do == "validate":
            signal = Signal()
            self.running[number] = (self.loop, signal)
            self.checks.submit(self.answer, number, lambda: self.validate(message), signal=signal)
        elif do == "resume":
            self.loop.call_soon_threadsafe(self.resume, number, message)
        else:
            loop = self.beside if do == "run" and self.has_thread(message["tool"]) else self.loop
            signal = Signal()
            self.running[number] = (loop, signal)
            loop.call_soon_threadsafe(self.begin, message, loop, signal)

    def runs(self):
        """Returns the number of the request that one of the loops is at, if it is at any."""
        for loop in (self.loop, self.beside):
            with contextlib.suppress(Exception):
                if (task := asyncio.current_task(loop)) is not None:
                    for number, (_, signal) in list(self.running.items()):
                        if signal.task is task:
                            return number
        return None

    def has_thread(self, name):
        """Whether a thread of its own runs the body: one with a body of another kind says so in vain."""
        tool = self.tools.get(name)
        own = getattr(type(tool), "arun", None) is self.kit.CallableTool.arun
        return own and tool.definition.metadata.get("execution_mode") == "thread"

    def begin(self, message, loop, signal):
        body = {"run": self.run, "hook": self.hook, "wrap": self.wrap}[message["do"]]
        signal.task = loop.create_task(self.settled(message, signal, body))
        signal.task.add_done_callback(lambda _: self.running.pop(message["id"], None))

    def cancel(self, number):
        if number in self.running:
            task = self.running[number][1].task
            if task is not None:
                task.cancel()
            for threads in (self.threads, self.checks):
                asyncio.get_running_loop().call_later(1, threads.give_up_if_all_are_stuck)
        else:
            # It never came, or was answered already.
            self.line.send({"id": number, "failure": CANCELLED})

    def resume(self, number, message):
        if number in self.frames:
            self.frames[number].resume(message)

    def answer(self, number, make):
        try:
            reply = make()
        except BaseException as error:
            leave_if_forked(error)
            reply = {"failure": failure_of(error)}
        leave_if_forked()
        self.running.pop(number, None)
        self.line.send({"id": number, **reply})

    def validate(self, message):
        tool = self.tools[message["tool"]]
        params = tool.validate_input(message["arguments"])
        try:
            seen = plain(params)
        except Exception:
            # Not everything that can be used can be shown.
            seen = None
        checked = f"{self.own}-{message['id']}"
        self.checked[checked] = params
        if len(self.checked) > CHECKED:
            with contextlib.suppress(KeyError):
                self.checked.popitem(last=False)
        return {
            "checked": checked,
            "arguments": seen if isinstance(seen, dict) else message["arguments"],
            "traits": {
                "read_only": bool(tool.is_read_only(params)),
                "destructive": bool(tool.is_destructive(params)),
                "parallel": bool(tool.is_concurrency_safe(params)),
                "timeout_owner": "tool" if str(getattr(tool, "timeout_owner", "")) == "tool" else "runtime",
            },
        }

    async def settled(self, message, signal, body):
        """Runs what a message asks for and answers it, whatever happens."""
        CALL.set(signal)
        try:
            reply = await body(message, signal)
        except BaseException as error:
            leave_if_forked(error)
            if signal.requested and isinstance(error, asyncio.CancelledError):
                reply = {"failure": CANCELLED}
            else:
                tool = self.tools.get(message.get("tool"))
                reply = {"failure": failure_of(error, tool.definition.group if tool else "")}
        leave_if_forked()
        self.line.send({"id": message["id"], **reply})

    async def run(self, message, signal):
        tool = self.tools.get(message["tool"])
        if tool is None:
            raise LookupError(f"{message['tool']} was there and is no more: its code was loaded anew since")
        params = self.checked.pop(message.get("checked"), MISSING)
        if params is MISSING:
            # Another interpreter has checked them.
            params = tool.validate_input(message["arguments"])
        context = self.context(message["context"], signal)
        # From here on nobody can know what was done, so it is said before anything is.
        signal.begins = functools.partial(self.line.send_now, {"id": message["id"], "started": True})
        if not self.has_thread(message["tool"]):
            signal.begin()
        result = await tool.arun(params, context)
        if not isinstance(result, self.kit.ToolResult):
            raise TypeError(f"arun of a tool returns a ToolResult, and not {result!r}"[:500])
        return {"result": plain(result)}

    async def hook(self, message, signal):
        handler = self.loaded(self.hooks, message["hook"])
        self.line.send_now({"id": message["id"], "started": True})
        about = message["event"]
        answer = handler(self.event(about))
        if not inspect.isawaitable(answer):
            raise TypeError("the handler of a hook is an async function")
        return {"verdict": verdict(about["event"], await answer)}

    async def wrap(self, message, signal):
        wrapper = self.loaded(self.middleware, message["middleware"])
        number = message["id"]
        self.line.send_now({"id": number, "started": True})
        frame = self.frames[number] = Frame(self, number)
        try:
            with self.shared(message["call"]) as call:
                result = await wrapper.wrap_tool_call(call, frame.call_next)
            return frame.reply(result)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            leave_if_forked(error)
            return frame.failed(error)
        finally:
            frame.is_over = True
            del self.frames[number]

    def event(self, about):
        """Makes the event of what is told of one."""
        about = dict(about)
        kind = self.events[about.pop("event")]
        about["occurred_at"] = datetime.datetime.fromisoformat(about["occurred_at"])
        if "body_status" in about:
            about["result"] = self.kit.ToolResult.model_validate(about["result"])
        elif "run" in about:
            about["run"] = self.run_kinds[0].model_validate(about["run"])
        elif "result" in about:
            about["result"] = self.run_kinds[1].model_validate(about["result"])
        return kind(**about)

    @staticmethod
    def loaded(those, number):
        if isinstance(those[number], BaseException):
            raise RuntimeError(f"it could not be loaded: {those[number]}")
        return those[number]

    @contextlib.contextmanager
    def shared(self, about):
        """Gives out the call; the middlewares that are around it at one time share it."""
        key = about["tool_use_id"]
        if key not in self.calls:
            kind = getattr(self.kit, "ToolCall", None) or ours(self.hello["modules"], "tools").ToolCall
            self.calls[key] = [kind(**{**about, "workspace_root": Path(about["workspace_root"])}), 0]
        shared = self.calls[key]
        shared[1] += 1
        try:
            yield shared[0]
        finally:
            shared[1] -= 1
            if not shared[1]:
                del self.calls[key]

    def context(self, about, signal):
        kind = self.kit.ToolExecutionContext
        known = getattr(kind, "model_fields", {})
        about = {**about, "workspace_root": Path(about["workspace_root"]), "cancellation": signal}
        about["read_state"] = self.read_state(about["session_id"])
        return kind(**{key: value for key, value in about.items() if not known or key in known})

    def read_state(self, session):
        """Returns what the tools here have read in a session; the oldest sessions are forgotten."""
        kind = getattr(self.kit, "ReadFileState", None)
        if kind is not None and session not in self.read_states:
            self.read_states[session] = kind()
            if len(self.read_states) > SESSIONS:
                self.read_states.popitem(last=False)
        if session in self.read_states:
            self.read_states.move_to_end(session)
        return self.read_states.get(session)


MISSING = object()
SAID = ("content", "is_error", "error", "data", "artifact")


class Frame:
    """One middleware around one call, and its way on: once at most, and only while it runs."""

    def __init__(self, worker, number):
        self.worker = worker
        self.number = number
        self.is_over = False
        self.wrong = self.rest = self.before = self.result = self.raised = None

    async def call_next(self):
        kit = self.worker.kit
        if self.rest is not None or self.is_over:
            error = execution_error("call_next can be called once, and only while its middleware runs")
            if not self.is_over:
                self.wrong = error
            raise error
        self.rest = asyncio.get_running_loop().create_future()
        self.worker.line.send({"id": self.number, "next": True})
        # Whoever stops waiting does not stop what was begun.
        message = await asyncio.shield(self.rest)
        self.result = kit.ToolResult.model_validate(message["result"])
        self.before = plain(self.result)
        if message["raised"]:
            self.raised = execution_error(self.result.error.message, self.result.error.code)
            self.raised.result = self.result
            raise self.raised
        return self.result

    def resume(self, message):
        def set_result():
            if not self.rest.done():
                self.rest.set_result(message)

        # It may be waited for on a loop of the middleware's own.
        loop = self.rest.get_loop()
        if loop is asyncio.get_running_loop():
            return set_result()
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(set_result)

    def reply(self, result):
        if self.wrong is not None:
            return self.failed(self.wrong)
        if self.rest is not None and self.result is None:
            # What it has begun and not waited for counts, and not what it says.
            return {"kept": True}
        if not isinstance(result, self.worker.kit.ToolResult):
            return self.failed(TypeError(f"a middleware returns a ToolResult, and not {result!r}"[:500]))
        after = plain(result)
        if self.before is not None and all(after.get(key) == self.before.get(key) for key in SAID):
            # What the client gets is the upstream's own, besides.
            return {"kept": True, "metadata": after.get("metadata"), "stats": after.get("stats")}
        return {"result": after}

    def failed(self, error):
        if error is self.raised:
            return {"kept": True}
        return {"failure": failure_of(error)}


def execution_error(text, code="EXECUTION_ERROR"):
    """Makes the exception that a failure further in is, of Iris's own kinds where they are."""
    exceptions = sys.modules.get("iris.exceptions")
    name = "IrisToolValidationError" if code == "VALIDATION_ERROR" else "IrisToolExecutionError"
    error = getattr(exceptions, name, RuntimeError)(text)
    error.code = code
    return error


def verdict(event, answer):
    """Makes what a hook says of what its handler returned; only what its event allows."""
    key = {"tool.before": "deny_reason", "tool.after": "feedback"}.get(event)
    if answer is None:
        return {}
    said = plain(answer)
    if key is None or not isinstance(said, dict) or set(said) != {key}:
        allowed = f"None or a result with {key}" if key else "None"
        raise TypeError(f"the handler of {event} returns {allowed}, and not {answer!r}"[:500])
    if not isinstance(said[key], str) or not said[key].strip():
        raise ValueError(f"{key} says nothing")
    return said


PID = os.getpid()


def leave_if_forked(error=None):
    """Ends a child that comes out of user code: the loops and the line are not its own."""
    if os.getpid() != PID:
        with contextlib.suppress(Exception):
            if error is not None and not isinstance(error, SystemExit):
                print_error(error)
            sys.stderr.flush()
            sys.stdout.flush()
        code = getattr(error, "code", 0 if error is None else 1)
        leave(code if isinstance(code, int) else 0 if code is None else 1)


class Signal:
    """Whether the caller has given a call up."""

    def __init__(self):
        self.requested = False
        self.task = None
        self.begins = None

    def begin(self):
        """Says that the body begins, once."""
        begins, self.begins = self.begins, None
        if begins is not None:
            begins()

    def raise_if_requested(self):
        if self.requested:
            raise asyncio.CancelledError


class Threads(concurrent.futures.ThreadPoolExecutor):
    """Threads of tools. Nobody can end one whose call was given up and which goes on."""

    def __init__(self, count, name):
        super().__init__(count, thread_name_prefix=f"iris-mcp {name}")
        self.count = count
        self.busy = {}

    def submit(self, function, /, *args, signal=None, **kwargs):
        key, signal = object(), signal or CALL.get()

        def body():
            self.busy[key] = signal
            if signal is not None:
                signal.begin()
            try:
                return function(*args, **kwargs)
            except Exception as error:
                leave_if_forked(error)
                if isinstance(error, StopIteration):
                    # A future cannot hold it.
                    raise RuntimeError("the function raised StopIteration") from error
                raise
            except BaseException as error:
                leave_if_forked(error)
                raise RuntimeError(f"the function raised {type(error).__name__}: {error}") from error
            finally:
                leave_if_forked()
                del self.busy[key]

        return super().submit(body)

    def give_up_if_all_are_stuck(self):
        stuck = sum(signal is not None and signal.requested for signal in list(self.busy.values()))
        if stuck >= self.count:
            try:
                print(f"all {stuck} threads are busy with calls that were given up", file=sys.stderr, flush=True)
            finally:
                leave(1)


def main(hello):
    line = Line(hello["limit"])
    worker = Worker(line, hello)
    worker.load()
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(worker.serve())
    except BaseException as error:
        # User code has ended the loop. What it still runs must not look as if it went on.
        print_error(error)
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        leave(1)
