"""Functions that configurations of the tests name."""

from __future__ import annotations

from typing import Any

from bridge.tools.function import function_tool


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def lines(count: int = 100_000) -> str:
    """Count, a line each."""
    return "".join(f"line {number:>8}\n" for number in range(count))


async def asks_for_secrets(name: str, args: dict[str, Any]) -> bool:
    """Whether a call wants a person's yes."""
    return "secret" in str(args)


@function_tool
def drop(name: str) -> str:
    """Drop a table."""
    return f"dropped {name}"
