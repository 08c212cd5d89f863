"""Functions of all sorts, and calls of them; `record.py` writes down what becomes of each."""

from datetime import date

from iris.tools import ToolCapability, tool
from pydantic import BaseModel, Field


class Point(BaseModel):
    """A point."""

    x: int
    y: int = Field(default=0, ge=0, description="upwards")


def add(left: int, right: int) -> int:
    """Adds.

    Args:
        left: L
        right: R
    """
    return left + right


def plain_types(a: int, b: float, c: str, d: bool, e: list[int], f: list, g: set[str], h: tuple[int, str]):
    """Types."""
    return [a, b, c, d, e, f, sorted(g), h]


def docstring_quirks(limit: int, page: int = 0, note: str = "", other: str = ""):
    """The first line.

    A second paragraph: with a colon.

    Arguments:
        limit (int): max rows
            per page
        page: the page, and
            a line that has: a colon

        note (str, optional): after a blank line
    Returns:
        other: is not an argument here
    """
    return limit


def parameters_section(a: int):
    """Sums.

    Parameters:
        a: the a
    Raises:
        ValueError: never
    """
    return a


def without_a_docstring(value: int):
    return value


def starred(value: int, *rest: int, **named: int):
    return value


def no_parameters():
    """Nothing in."""
    return None


@tool(
    name="renamed",
    description="Described elsewhere.",
    capabilities={ToolCapability.READ, ToolCapability.NETWORK},
    group="shop",
    deferred=True,
    examples=[{"value": 1}],
    tags=["a", "b"],
    version="1.2",
)
def decorated(value: int):
    """Not this."""
    return value


@tool(preset_kwargs={"secret": "s"})
def preset(value: int, secret: str, more: int = 1):
    return f"{value} {secret} {more}"


@tool(deprecated=True, deprecation_message="use add")
def old(value: int):
    """An old one."""
    return value


@tool(deprecated=True, deprecation_message="use add")
def old_and_said(value: int):
    """An old one: use add."""
    return value


class Given(BaseModel):
    """Explicit."""

    value: int = Field(description="the value", gt=0)
    secret: str = "none"


def with_a_model(value: int, secret: str):
    return f"{value} {secret}"


async def later(value: int):
    """Async."""
    return {"b": value, "a": [1, 2.0, None, True, "中"]}


def returns(what: str):
    values = {
        "int": 5,
        "true": True,
        "none": None,
        "empty": "",
        "float": 2.5,
        "list": [1, "a", None],
        "object": Point(x=1),
        "date": date(2026, 12, 1),
        "bytes": b"ab",
        "tuple": (1, 2),
        "text": "line\nline",
    }
    return values[what]


def refused_unannotated(value):
    return value


def refused_positional(value: int, /):
    return value


def refused_unresolved(value: "Nowhere"):  # noqa: F821
    return value


# Each: a function, how it is registered besides, and arguments of calls.
CASES = [
    (add, {}, [{"left": "2", "right": 3, "zzz": 1}, {"left": 2.0, "right": True}, {"left": 2.5, "right": 1}, {"left": 1}]),
    (add, {"name": "sum_up", "description": "Sums up.", "group": "mathematics", "tags": ["t"]}, [{"left": 1, "right": 2}]),
    (
        plain_types,
        {},
        [
            {"a": 1, "b": 1, "c": "c", "d": "yes", "e": ["1"], "f": [None], "g": ["x", "x"], "h": [1, "a"]},
            {"a": "x", "b": "y", "c": 1, "d": 2, "e": 1, "f": {}, "g": 3, "h": [1]},
        ],
    ),
    (docstring_quirks, {}, [{"limit": 1}]),
    (parameters_section, {}, [{"a": 1}]),
    (without_a_docstring, {}, [{"value": 1}]),
    (starred, {}, [{"value": 1, "rest": [2]}]),
    (no_parameters, {}, [{}, {"a": 1}]),
    (decorated, {}, [{"value": 1}]),
    (decorated, {"name": "again", "group": "core", "deferred": False, "capabilities": set(), "tags": []}, []),
    (decorated, {"group": "other", "version": ""}, []),
    (preset, {}, [{"value": 1}, {"value": 1, "secret": "mine"}, {"value": 1, "more": 2}]),
    (preset, {"preset_kwargs": {"more": 5, "secret": "t"}}, [{"value": 1}]),
    (old, {}, []),
    (old_and_said, {}, []),
    (with_a_model, {"input_model": Given}, [{"value": "3"}, {"value": 0}, {"value": 1, "secret": "s"}]),
    (with_a_model, {"input_model": Given, "preset_kwargs": {"secret": "p"}}, [{"value": 3}]),
    (later, {}, [{"value": 1}]),
    (returns, {}, [{"what": what} for what in "int true none empty float list object date bytes tuple text".split()]),
    (refused_unannotated, {}, []),
    (refused_positional, {}, []),
    (refused_unresolved, {}, []),
]
