"""Tools: functions with metadata, classes with a body, and what they give back."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, field_validator
from pydantic.fields import FieldInfo

from .exceptions import (
    IrisToolExecutionError,
    IrisToolNotFoundError,
    IrisToolRegistrationError,
    IrisToolValidationError,
)
from .message import ImageBlock, TextBlock

__all__ = [
    "BaseTool",
    "CallableExecutionMode",
    "CallableTool",
    "CancellationSignal",
    "DocstringInfo",
    "ImageBlock",
    "TextBlock",
    "ReadFileRecord",
    "ReadFileState",
    "ToolArtifact",
    "ToolCall",
    "ToolCapability",
    "ToolDefinition",
    "ToolErrorInfo",
    "ToolExecutionContext",
    "ToolExecutor",
    "ToolMiddleware",
    "ToolNext",
    "ToolRegistry",
    "ToolResult",
    "ToolTimeoutOwner",
    "schema_from_callable",
    "schema_from_pydantic_model",
    "tool",
]

_MARK = "__iris_tool__"
_CHANGES = ("write", "execute", "network", "mcp", "agent")


class _Words(str, Enum):
    def __str__(self) -> str:
        return str(self.value)


class ToolCapability(_Words):
    """What a tool does to the world."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    NETWORK = "network"
    MCP = "mcp"
    AGENT = "agent"


class CallableExecutionMode(_Words):
    """Where the body of a function runs: on the event loop, or in a thread."""

    INLINE = "inline"
    THREAD = "thread"


class ToolTimeoutOwner(_Words):
    """Who ends a call when its time is up."""

    RUNTIME = "runtime"
    TOOL = "tool"


class ToolDefinition(BaseModel):
    """What is known of a tool without running it."""

    name: str
    description: str
    input_schema: dict[str, Any]
    capabilities: set[ToolCapability] = Field(default_factory=set)
    group: str = "core"
    aliases: tuple[str, ...] = ()
    deferred: bool = False
    max_result_chars: int = 50_000
    preview_chars: int = 8_000
    preview_mode: str = "head"
    context_retention: str = "keep"
    metadata: dict[str, Any] = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        if not name or len(name) > 64:
            raise ValueError("a tool name has 1 to 64 characters")
        if not (name[0].isalpha() or name[0] == "_"):
            raise ValueError("a tool name starts with a letter or an underscore")
        if not all(sign.isalnum() or sign == "_" for sign in name):
            raise ValueError("a tool name has only letters, digits and underscores")
        return name

    @field_validator("description")
    @classmethod
    def _description(cls, description: str) -> str:
        if not description.strip():
            raise ValueError("a tool needs a description")
        return description

    @field_validator("input_schema")
    @classmethod
    def _input_schema(cls, schema: dict[str, Any]) -> dict[str, Any]:
        if schema.get("type") != "object":
            raise ValueError("the input schema of a tool is about an object")
        return {**schema, "properties": schema.get("properties", {}), "required": schema.get("required", [])}


class ToolErrorInfo(BaseModel):
    """Why a call failed."""

    code: str = Field(min_length=1)
    message: str = Field(min_length=1)
    retryable: bool = False
    details: dict[str, Any] = Field(default_factory=dict)


def _block(block: Any) -> Any:
    """Makes a block of what is written like one."""
    kinds = {"text": TextBlock, "image": ImageBlock}
    kind = kinds.get(block.get("type", "")) if isinstance(block, dict) else None
    return block if kind is None else kind.model_validate(block)


class ToolArtifact(BaseModel):
    """A file that holds a result, or more of it."""

    path: Path
    mime_type: str = "text/plain"
    size_bytes: int = 0
    preview: str = ""
    text_path: Path | None = None


class ToolResult(BaseModel):
    """What a call came to."""

    tool_use_id: str = ""
    tool_name: str = ""
    content: list[Any] = Field(default_factory=list)
    is_error: bool = False
    error: ToolErrorInfo | None = None
    data: dict[str, Any] = Field(default_factory=dict)
    artifact: ToolArtifact | None = None
    stats: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)
    hook_feedback: tuple[str, ...] = ()

    @field_validator("content", mode="before")
    @classmethod
    def _content(cls, content: Any) -> Any:
        return [_block(block) for block in content] if isinstance(content, list | tuple) else content

    @property
    def model_blocks(self) -> list[Any]:
        """The blocks that a model gets."""
        blocks = list(self.content)
        if self.is_error and self.error is not None:
            images = [block for block in blocks if getattr(block, "type", "") == "image"]
            blocks = [TextBlock(text=f"Error[{self.error.code}]: {self.error.message}"), *images]
        feedback = [TextBlock(text=f"[Hook feedback]\n{text}") for text in self.hook_feedback]
        return blocks + feedback

    @property
    def model_content(self) -> str:
        """The text of those blocks."""
        return "\n".join(block.text for block in self.model_blocks if getattr(block, "type", "") == "text")


class ReadFileRecord(BaseModel):
    """How a file was when it was read."""

    path: Path
    mtime_ns: int
    size_bytes: int
    digest: str | None = None


class ReadFileState(BaseModel):
    """The files that Python tools have read in a session, by their real paths."""

    files: dict[str, ReadFileRecord] = Field(default_factory=dict)

    def update(self, path: Path) -> None:
        """Remembers how a file is now."""
        real, about = path.resolve(), path.stat()
        self.files[str(real)] = ReadFileRecord(path=real, mtime_ns=about.st_mtime_ns, size_bytes=about.st_size)

    def get(self, path: Path) -> ReadFileRecord | None:
        """Returns how a file was when it was read, if it was."""
        return self.files.get(str(path.resolve()))


class CancellationSignal:
    """Whether the caller has given a call up."""

    def __init__(self) -> None:
        self._requested = False

    @property
    def requested(self) -> bool:
        """Whether it has."""
        return self._requested

    def request(self) -> None:
        """Gives the call up."""
        self._requested = True

    def raise_if_requested(self) -> None:
        """Ends the body, if it has."""
        if self._requested:
            raise asyncio.CancelledError


class ToolExecutionContext(BaseModel):
    """What a body may know of its call."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    workspace_root: Path
    call_id: str = ""
    tool_name: str = ""
    session_id: str = ""
    agent_id: str = ""
    permission_mode: str = "default"
    metadata: dict[str, Any] = Field(default_factory=dict)
    read_state: Any = None
    cancellation: Any = None
    tool_timeout_seconds: float | None = None


class BaseTool(ABC):
    """A tool with a definition and a body of its own."""

    definition: ToolDefinition

    @property
    def name(self) -> str:
        """The tool's own name."""
        return self.definition.name

    @property
    def timeout_owner(self) -> ToolTimeoutOwner:
        """Who ends a call when its time is up."""
        return ToolTimeoutOwner.RUNTIME

    def validate_input(self, params: dict[str, Any]) -> Any:
        """Makes what the body takes of what came; raises what is wrong with it."""
        return params

    def is_read_only(self, params: Any) -> bool:
        """Whether a call with these arguments changes nothing."""
        return not any(ability in _CHANGES for ability in map(str, self.definition.capabilities))

    def is_destructive(self, params: Any) -> bool:
        """Whether it may destroy something."""
        return any(ability in ("write", "execute") for ability in map(str, self.definition.capabilities))

    def is_concurrency_safe(self, params: Any) -> bool:
        """Whether it may overlap with others."""
        return True

    @abstractmethod
    async def arun(self, params: Any, context: ToolExecutionContext) -> ToolResult:
        """Runs the tool."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call on its way to a tool, as middleware sees it; its arguments are a copy."""

    tool_use_id: str
    tool_name: str
    arguments: dict[str, Any]
    agent_id: str
    session_id: str
    run_id: str | None
    activation_id: str | None
    workspace_root: Path


ToolNext = Callable[[], Awaitable[ToolResult]]


class ToolMiddleware(ABC):
    """Something that is wrapped around the bodies of tools."""

    @abstractmethod
    async def wrap_tool_call(self, call: ToolCall, call_next: ToolNext) -> ToolResult:
        """Runs around the rest, which `call_next()` runs once at most, or instead of it."""


class DocstringInfo(BaseModel):
    """A docstring in Google's style, taken apart."""

    summary: str = ""
    args: dict[str, str] = Field(default_factory=dict)


def _docstring(function: Callable[..., Any]) -> DocstringInfo:
    lines = (inspect.getdoc(function) or "").splitlines()
    info = DocstringInfo(summary=lines[0] if lines else "")
    inside, current = False, None
    for line in map(str.strip, lines[1:]):
        if not line:
            continue
        if line in ("Args:", "Arguments:", "Parameters:"):
            inside = True
        elif line in ("Returns:", "Raises:", "Example:", "Examples:"):
            inside = False
        elif inside and ":" in line:
            key, text = line.split(":", 1)
            current = key.split(" ", 1)[0]
            info.args[current] = text.strip()
        elif inside and current is not None:
            info.args[current] = f"{info.args[current]} {line}".strip()
    return info


def _input_model(function: Callable[..., Any], preset: Iterable[str]) -> type[BaseModel]:
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception as error:
        raise IrisToolValidationError(
            "the annotations of a tool's function cannot be resolved", function=function.__name__, error=str(error)
        ) from error
    texts, fields = _docstring(function).args, {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in preset or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise IrisToolValidationError("a tool's function has no positional-only parameters", parameter=name)
        if name not in hints:
            raise IrisToolValidationError("each parameter of a tool's function has an annotation", parameter=name)
        default = ... if parameter.default is parameter.empty else parameter.default
        if not isinstance(default, FieldInfo):
            # What an annotation says of itself stands where the docstring says nothing.
            default = Field(default, **({"description": texts[name]} if name in texts else {}))
        fields[name] = (hints[name], default)
    title = function.__name__.replace("_", " ").title().replace(" ", "") + "ToolInput"
    return create_model(title, **fields)


def schema_from_pydantic_model(model: type[BaseModel]) -> dict[str, Any]:
    """Returns the JSON schema of a model."""
    return model.model_json_schema()


def schema_from_callable(function: Callable[..., Any], *, preset_kwargs: set[str] | None = None) -> dict[str, Any]:
    """Returns the JSON schema of a function's parameters."""
    return schema_from_pydantic_model(_input_model(function, preset_kwargs or set()))


def _without(schema: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    hidden = set(names)
    properties = {key: value for key, value in schema.get("properties", {}).items() if key not in hidden}
    required = [name for name in schema.get("required", []) if name not in hidden]
    return {**schema, "properties": properties, "required": required}


def tool(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    preset_kwargs: dict[str, Any] | None = None,
    capabilities: set[ToolCapability] | None = None,
    group: str = "core",
    deferred: bool = False,
    examples: list[dict[str, Any]] | None = None,
    tags: list[str] | None = None,
    version: str | None = None,
    deprecated: bool = False,
    deprecation_message: str | None = None,
    execution_mode: CallableExecutionMode | None = None,
    concurrency_safe: bool | None = None,
    registry: Any = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Says of a function what it is as a tool; the function stays what it was."""
    if function is not None:
        raise TypeError("write @tool() with parentheses, since @tool alone takes no function")
    said = {key: value for key, value in locals().items() if key not in ("function", "registry")}

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        setattr(function, _MARK, said)
        if registry is not None:
            registry.register_function(function)
        return function

    return mark


class CallableTool(BaseTool):
    """A function as a tool."""

    def __init__(
        self,
        func: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        input_model: type[BaseModel] | None = None,
        preset_kwargs: dict[str, Any] | None = None,
        capabilities: set[ToolCapability] | None = None,
        group: str = "core",
        deferred: bool = False,
        examples: list[dict[str, Any]] | None = None,
        tags: list[str] | None = None,
        version: str | None = None,
        deprecated: bool = False,
        deprecation_message: str | None = None,
        execution_mode: CallableExecutionMode | None = None,
        concurrency_safe: bool | None = None,
    ) -> None:
        said = getattr(func, _MARK, {})

        def either(ours: Any, key: str, default: Any = None) -> Any:
            theirs = said.get(key)
            return ours if ours is not None else theirs if theirs is not None else default

        self.func = func
        self.preset_kwargs = dict(either(preset_kwargs, "preset_kwargs", {}))
        self.execution_mode = _mode(either(execution_mode, "execution_mode", CallableExecutionMode.INLINE), func)
        self.concurrency_safe = either(concurrency_safe, "concurrency_safe")
        if self.concurrency_safe is not None and not isinstance(self.concurrency_safe, bool):
            raise IrisToolValidationError("concurrency_safe of a tool is True or False")
        self.input_model = input_model or _input_model(func, self.preset_kwargs)
        schema = schema_from_pydantic_model(self.input_model)
        is_old = deprecated or said.get("deprecated", False)
        message = either(deprecation_message, "deprecation_message")
        own_name = name or said.get("name") or func.__name__
        text = description or said.get("description") or inspect.getdoc(func) or own_name
        if is_old:
            words = message or "This tool is deprecated."
            text = text if words in text else f"{text}\n\nDeprecated: {words}"
        metadata: dict[str, Any] = {
            "examples": list(either(examples, "examples", [])),
            "tags": list(either(tags, "tags", [])),
            "version": either(version, "version", ""),
            "deprecated": is_old,
            "deprecation_message": message,
        }
        if self.execution_mode is CallableExecutionMode.THREAD:
            metadata["execution_mode"] = "thread"
        if self.concurrency_safe is not None:
            metadata["concurrency_safe"] = self.concurrency_safe
        self.definition = ToolDefinition(
            name=own_name,
            description=text,
            input_schema=_without(schema, self.preset_kwargs) if input_model else schema,
            capabilities=either(capabilities, "capabilities", set()),
            group=group if group != "core" else said.get("group", "core"),
            deferred=deferred or said.get("deferred", False),
            metadata=metadata,
        )

    def validate_input(self, params: dict[str, Any]) -> BaseModel:
        taken = sorted(set(params) & set(self.preset_kwargs))
        if taken:
            raise IrisToolValidationError("preset arguments cannot be given", params=taken)
        return self.parse({**params, **self.preset_kwargs})

    def parse(self, params: dict[str, Any]) -> BaseModel:
        """Makes the typed arguments; what is preset may be among them."""
        try:
            return self.input_model.model_validate(params)
        except ValidationError as error:
            wrong = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
            raise IrisToolValidationError("invalid arguments", errors=wrong) from error

    def is_concurrency_safe(self, params: Any) -> bool:
        return self.concurrency_safe is not False

    async def arun(self, params: Any, context: ToolExecutionContext) -> ToolResult:
        began = time.perf_counter()
        fields = type(params).model_fields
        arguments = {name: getattr(params, name) for name in fields} | self.preset_kwargs
        try:
            if self.execution_mode is CallableExecutionMode.THREAD:
                value = await asyncio.to_thread(self.func, **arguments)
            else:
                value = self.func(**arguments)
            if inspect.isawaitable(value):
                value = await value
        except (asyncio.CancelledError, IrisToolValidationError):
            raise
        except Exception as error:
            raise IrisToolExecutionError(str(error) or type(error).__name__) from error
        result = converted(value, context)
        result.stats.setdefault("elapsed_ms", round((time.perf_counter() - began) * 1000, 3))
        result.stats["execution_mode"] = str(self.execution_mode)
        return result


def _mode(mode: Any, function: Callable[..., Any]) -> CallableExecutionMode:
    if not isinstance(mode, CallableExecutionMode):
        raise IrisToolValidationError("execution_mode of a tool is a CallableExecutionMode")
    if mode is CallableExecutionMode.THREAD and inspect.iscoroutinefunction(function):
        raise IrisToolValidationError("an async function does not run in a thread", function=function.__name__)
    return mode


def converted(value: Any, context: ToolExecutionContext) -> ToolResult:
    """Makes a result of what a function returned."""
    if isinstance(value, ToolResult):
        return value
    if value is None:
        text = ""
    elif isinstance(value, str):
        text = value
    else:
        try:
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        except (TypeError, ValueError):
            text = str(value)
    content = [TextBlock(text=text)] if text else []
    return ToolResult(tool_use_id=context.call_id, tool_name=context.tool_name, content=content)


class ToolRegistry:
    """Tools by name, in the order in which they came."""

    def __init__(self) -> None:
        self._tools: dict[str, BaseTool] = {}
        self._names: dict[str, BaseTool] = {}

    def register(self, tool: BaseTool) -> BaseTool:
        """Adds a tool."""
        self.register_many([tool])
        return tool

    def register_many(self, tools: Iterable[BaseTool]) -> None:
        """Adds tools, all or none."""
        tools, names = list(tools), dict(self._names)
        for one in tools:
            for name in (one.definition.name, *one.definition.aliases):
                if name in names:
                    raise IrisToolRegistrationError("two tools want one name", name=name)
                names[name] = one
        self._names = names
        self._tools.update((one.definition.name, one) for one in tools)

    def register_function(self, func: Callable[..., Any], **said: Any) -> BaseTool:
        """Adds a function."""
        return self.register(CallableTool(func, **said))

    def get(self, name: str) -> BaseTool:
        """Finds a tool by its name or an alias."""
        if name not in self._names:
            raise IrisToolNotFoundError("there is no such tool", name=name)
        return self._names[name]

    @property
    def tools(self) -> tuple[BaseTool, ...]:
        """All tools."""
        return tuple(self._tools.values())


class ToolExecutor:
    """Runs tools for tests: arguments are checked and failures become results; nothing else."""

    def __init__(self, registry: ToolRegistry, **_: Any) -> None:
        self.registry = registry

    async def execute_one(self, tool_use: Any, context: ToolExecutionContext, **_: Any) -> ToolResult:
        """Runs one call, given by `name`, `input` and `id`."""
        name, call_id = _of(tool_use, "name"), _of(tool_use, "id") or ""
        context = context.model_copy(update={"call_id": call_id, "tool_name": name})
        try:
            found = self.registry.get(name)
            params = found.validate_input(dict(_of(tool_use, "input") or {}))
            result = await found.arun(params, context)
        except Exception as error:
            info = ToolErrorInfo(code=code_of(error), message=str(error) or type(error).__name__)
            result = ToolResult(is_error=True, error=info)
        return result.model_copy(update={"tool_use_id": call_id, "tool_name": name})

    async def execute_many(self, tool_uses: Iterable[Any], context: ToolExecutionContext) -> list[ToolResult]:
        """Runs calls one after the other."""
        return [await self.execute_one(one, context) for one in tool_uses]


def _of(thing: Any, key: str) -> Any:
    return thing.get(key) if isinstance(thing, dict) else getattr(thing, key, None)


def code_of(error: BaseException) -> str:
    """Returns the code of the failure that an exception is."""
    kind = type(error).__name__
    if re.search("NotFound", kind):
        return "NOT_FOUND"
    return "VALIDATION_ERROR" if "Validation" in kind else "EXECUTION_ERROR"
