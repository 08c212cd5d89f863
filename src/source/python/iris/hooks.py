"""Hooks: what they are told, and what they may answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
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


class _Event(BaseModel):
    agent_id: str
    session_id: str
    run_id: str | None = None
    activation_id: str | None = None
    workspace: Path
    occurred_at: datetime


class RunStartedEvent(_Event):
    """A run has begun."""

    event: Literal["run.started"] = "run.started"
    run: RunSnapshot
    input: Any = ""


class RunFinishedEvent(_Event):
    """A run has ended."""

    event: Literal["run.finished"] = "run.finished"
    result: RunResult


class ToolBeforeEvent(_Event):
    """A permitted call is about to run."""

    event: Literal["tool.before"] = "tool.before"
    call_id: str
    tool_name: str
    arguments: dict[str, Any]


class ToolAfterEvent(_Event):
    """A call has run."""

    event: Literal["tool.after"] = "tool.after"
    call_id: str
    tool_name: str
    arguments: dict[str, Any]
    result: ToolResult
    body_status: Literal["success", "error"]


HookEvent = RunStartedEvent | RunFinishedEvent | ToolBeforeEvent | ToolAfterEvent


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


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

    model_config = ConfigDict(arbitrary_types_allowed=True)

    event: Literal["run.started", "run.finished", "tool.before", "tool.after"]
    name: str
    handler: Callable[..., Any]
    tool_names: frozenset[str] | None = None
    timeout_seconds: float = Field(default=10, gt=0, allow_inf_nan=False)

    _says = field_validator("name")(_said)

    @model_validator(mode="after")
    def _is_about_tools(self) -> HookRegistration:
        if self.tool_names is not None and (not self.tool_names or not self.event.startswith("tool.")):
            raise ValueError("tool_names names tools, and only for events of tools")
        return self


def event_to_dict(event: HookEvent) -> dict[str, Any]:
    """Returns what a command is told of an event, in JSON's types."""
    about = ("event", "agent_id", "session_id", "run_id", "activation_id", "workspace")
    told = event.model_dump(mode="json")
    first = {key: told.pop(key) for key in about}
    del told["occurred_at"]
    return {**first, "occurred_at": event.occurred_at.isoformat(), **told}
