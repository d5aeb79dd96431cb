"""The tool with which a model ends the loop that its agent runs in (§8.7)."""

from __future__ import annotations

from typing import Any

from bridge.core.context import ToolContext
from bridge.tools.function import function_tool


@function_tool
async def exit_loop(ctx: ToolContext) -> dict[str, Any]:
    """End the loop. Call this only when you are told to, or when nothing is left to be done."""
    ctx.actions.escalate = True
    ctx.actions.skip_summarization = True
    return {}
