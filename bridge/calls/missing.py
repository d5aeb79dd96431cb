"""What is said of a tool that cannot run here: unknown, or known and yet nothing to run."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from bridge.core.tool import Tool, is_function_tool
from bridge.errors import ToolNotFound

MOST_NAMES = 100
LONGEST_NAME = 128  # characters of what was called that are worth repeating


@dataclass(frozen=True, slots=True)
class StandIn:
    """Stands where a tool should be, so that an on-error hook sees what was called."""

    name: str
    description: str = "No tool of this name can run here."
    is_long_running: bool = False


def not_found(name: str, tools: Mapping[str, Tool]) -> ToolNotFound:
    """The error that names what was called, what is nearest to it, and what there is."""
    available = [offered for offered, tool in tools.items() if _can_run(tool)]
    called = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
    near = difflib.get_close_matches(called, available, n=1)
    suggestion = f'; did you mean "{near[0]}"?' if near else ""
    shown = ", ".join(available[:MOST_NAMES]) or "none"
    more = f" and {len(available) - MOST_NAMES} more" if len(available) > MOST_NAMES else ""
    reason = "cannot be called" if name in tools else "does not exist"
    return ToolNotFound(f'the tool "{called}" {reason}{suggestion}\nAvailable tools: {shown}{more}')


def _can_run(tool: Tool) -> bool:
    return is_function_tool(tool) or hasattr(tool, "run_stream")
