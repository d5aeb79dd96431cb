"""Local tools of a shop. Every sale that really happens is a line in the file SHOP_NOTES."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from bridge.core.context import ToolContext


def sell(city: str, copies: int = 1) -> str:
    """Sell printed reports on a city."""
    with Path(os.environ["SHOP_NOTES"]).open("a", encoding="utf-8") as notes:
        notes.write(f"{city} {copies}\n")

    return f"sold {copies} of {city}"


def reserve(ctx: ToolContext, city: str) -> dict[str, Any]:
    """Reserve a table; asks for approval by itself."""
    answer = ctx.tool_confirmation
    if answer is None:
        ctx.request_confirmation("A table costs 5 EUR.", {"price": 5})
        return {"status": "waiting"}

    given = f"a table in {city} for {answer.payload['price']}" if answer.confirmed else "no table"
    return {"result": given}
