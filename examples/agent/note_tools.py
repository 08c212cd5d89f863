"""A tool as a class: it checks its own arguments and says of each call what that does."""

from pathlib import Path

from iris.tools import BaseTool, ToolCapability, ToolDefinition, ToolExecutionContext, ToolRegistry, ToolResult
from iris.message import TextBlock
from pydantic import BaseModel, Field


class NoteInput(BaseModel):
    """What the tool takes."""

    title: str = Field(min_length=1, max_length=80, pattern=r"^[\w -]+$", description="What the note is called.")
    line: str = Field(default="", description="A line to add; without one the note is read.")


class Note(BaseTool):
    """Reads a note, or adds a line to it."""

    definition = ToolDefinition(
        name="note",
        description="Reads a note, or adds a line to it.",
        input_schema=NoteInput.model_json_schema(),
        capabilities={ToolCapability.READ, ToolCapability.WRITE},
        group="notes",
        aliases=("jot",),
    )

    def validate_input(self, params: dict) -> NoteInput:
        return NoteInput.model_validate(params)

    def is_read_only(self, params: NoteInput) -> bool:
        return not params.line

    def is_destructive(self, params: NoteInput) -> bool:
        return False

    def is_concurrency_safe(self, params: NoteInput) -> bool:
        return not params.line

    async def arun(self, params: NoteInput, context: ToolExecutionContext) -> ToolResult:
        path = Path(context.workspace_root, f"{params.title}.md")
        if params.line:
            with path.open("a", encoding="utf-8") as note:
                note.write(f"- {params.line}\n")
        text = path.read_text(encoding="utf-8") if path.is_file() else "(there is no such note yet)"
        return ToolResult(
            tool_use_id=context.call_id,
            tool_name=context.tool_name,
            content=[TextBlock(text=text)],
            data={"lines": text.count("\n")},
        )


def register(registry: ToolRegistry) -> None:
    """Registers what is in this file."""
    registry.register(Note())
