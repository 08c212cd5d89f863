"""A middleware: it says in the metadata of a result how long the body took."""

import time

from iris.tools import ToolCall, ToolMiddleware, ToolNext, ToolResult


class Timing(ToolMiddleware):
    """Measures what it is wrapped around."""

    def __init__(self, unit: str = "s") -> None:
        self.unit, self.factor = unit, {"s": 1, "ms": 1000}[unit]

    async def wrap_tool_call(self, call: ToolCall, call_next: ToolNext) -> ToolResult:
        began = time.perf_counter()
        result = await call_next()
        took = round((time.perf_counter() - began) * self.factor, 3)
        # A new object: what came from further in may be used elsewhere.
        return result.model_copy(update={"metadata": {**result.metadata, f"body_{self.unit}": took}})
