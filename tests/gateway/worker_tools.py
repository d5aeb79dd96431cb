"""Tools that tell which process runs them, for tests of several that serve together."""

from __future__ import annotations

import os
from pathlib import Path

from bridge.tools.function import function_tool


def worker() -> str:
    """The id of the process that serves this."""
    return str(os.getpid())


def buy(city: str) -> str:
    """Note a purchase in the file that the environment names."""
    with Path(os.environ["PURCHASES"]).open("a", encoding="utf-8") as purchases:
        purchases.write(f"{city}\n")

    return f"bought {city}"


guarded = function_tool(buy, require_confirmation=True)
