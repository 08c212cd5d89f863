"""Functions as tools: the annotations are the schema, the docstring is the description."""

import asyncio
import time
from typing import Annotated, Literal

from iris.tools import CallableExecutionMode, ToolCapability, tool
from pydantic import Field

READS = {ToolCapability.READ}


@tool(capabilities=READS, group="text", tags=["text", "count"], examples=[{"text": "to be or not to be"}])
def word_count(text: str, unique: bool = False) -> int:
    """Counts the words of a text.

    Args:
        text: the text
        unique: whether a word counts once only
    """
    words = text.lower().split()
    return len(set(words) if unique else words)


# What blocks belongs into a thread: other calls go on meanwhile.
@tool(capabilities=READS, group="text", execution_mode=CallableExecutionMode.THREAD, preset_kwargs={"pause": 0.01})
def reading_time(text: str, words_per_minute: Annotated[int, Field(gt=0)] = 200, pause: float = 0.0) -> dict:
    """Estimates how long it takes to read a text.

    Args:
        text: the text
        words_per_minute: how fast the reader is
    """
    time.sleep(pause)
    words = len(text.split())
    return {"words": words, "seconds": round(words / words_per_minute * 60)}


@tool(capabilities=READS, group="text")
async def compare(texts: list[str], by: Literal["words", "characters"] = "words") -> str:
    """Says which of some texts is the longest.

    Args:
        texts: the texts
        by: what is counted
    """
    await asyncio.sleep(0)
    if not texts:
        raise ValueError("there are no texts to compare")
    sizes = [len(text.split()) if by == "words" else len(text) for text in texts]
    return f"number {sizes.index(max(sizes)) + 1} is the longest, with {max(sizes)} {by}"
