"""Hooks: what they are told, and what they may answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from .tools import ToolResult

__all__ = [
    "HookEvent",
    "HookHandler",
    "HookRegistration",
    "HookResult",
    "RunFinishedEvent",
    "RunResult",
    "RunSnapshot",
    "RunStartedEvent",
    "ToolAfterEvent",
    "ToolAfterResult",
    "ToolBeforeEvent",
    "ToolBeforeResult",
    "event_to_dict",
]


class RunSnapshot(BaseModel):
    """What is known of a run; in a gateway, a run is a client's session."""

    model_config = ConfigDict(extra="allow")

    run_id: str
    session_id: str = ""
    agent_id: str = ""
    phase: str = ""
    stop_reason: str | None = None


class RunResult(BaseModel):
    """What a run came to."""

    model_config = ConfigDict(extra="allow")

    run: RunSnapshot
    assistant_message: Any = None
    pending_interaction: Any = None
    error: Any = None


def _now() -> datetime:
    return datetime.now(timezone.utc)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    agent_id: str
    session_id: str
    workspace: str
    run_id: str | None = None
    activation_id: str | None = None
    occurred_at: datetime = field(default_factory=_now)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStartedEvent(_Event):
    """A run has begun."""

    run: RunSnapshot
    input: str | list[Any]
    event: Literal["run.started"] = field(default="run.started", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinishedEvent(_Event):
    """A run has ended."""

    result: RunResult
    event: Literal["run.finished"] = field(default="run.finished", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBeforeEvent(_Event):
    """A permitted call is about to run."""

    call_id: str
    tool_name: str
    arguments: dict[str, Any]
    event: Literal["tool.before"] = field(default="tool.before", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAfterEvent(_Event):
    """A call has run."""

    call_id: str
    tool_name: str
    arguments: dict[str, Any]
    result: ToolResult
    body_status: Literal["success", "error"]
    event: Literal["tool.after"] = field(default="tool.after", init=False)


HookEvent = RunStartedEvent | RunFinishedEvent | ToolBeforeEvent | ToolAfterEvent


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("it must say something")
    return text


class ToolBeforeResult(_Answer):
    """A refusal."""

    deny_reason: str

    _says = field_validator("deny_reason")(_said)


class ToolAfterResult(_Answer):
    """What the model is told besides the result."""

    feedback: str

    _says = field_validator("feedback")(_said)


HookResult = ToolBeforeResult | ToolAfterResult | None
HookHandler = Callable[[Any], Awaitable[HookResult]]


class HookRegistration(BaseModel):
    """A handler and when it is run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    event: Literal["run.started", "run.finished", "tool.before", "tool.after"]
    name: str
    handler: Callable[..., Any]
    tool_names: tuple[str, ...] | None = None
    timeout_seconds: float = Field(default=10, gt=0, allow_inf_nan=False)

    _says = field_validator("name")(_said)

    @model_validator(mode="after")
    def _is_about_tools(self) -> HookRegistration:
        if self.tool_names is not None and (not self.tool_names or not self.event.startswith("tool.")):
            raise ValueError("tool_names names tools, and only for events of tools")
        return self


def event_to_dict(event: HookEvent) -> dict[str, Any]:
    """Returns what a command is told of an event, in JSON's types."""
    told: dict[str, Any] = {
        "event": event.event,
        "agent_id": event.agent_id,
        "session_id": event.session_id,
        "run_id": event.run_id,
        "activation_id": event.activation_id,
        "workspace": event.workspace,
        "occurred_at": event.occurred_at.isoformat(),
    }
    for key in ("run", "input", "call_id", "tool_name", "arguments", "result", "body_status"):
        if hasattr(event, key):
            told[key] = _plain(getattr(event, key))
    return told


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return [_plain(item) for item in value] if isinstance(value, list) else value
