"""What tools share that have something to add to the requests of a model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields
from typing import TypeAlias

from bridge.core.context import ToolContext
from bridge.core.request import LLMRequest
from bridge.core.tool import pack_tool
from bridge.tools.function import LocalTool

Prepare: TypeAlias = Callable[[str, ToolContext, LLMRequest], Awaitable[None]]
"""Takes the name that the tool is offered under, and edits the request."""


@dataclass(frozen=True, slots=True, eq=False)
class PreparingTool(LocalTool):
    """A local tool whose `prepare` edits the request once the tool has entered it."""

    prepare: Prepare

    async def process_request(self, ctx: ToolContext, request: LLMRequest) -> None:
        """Enter the tool in the request, then add to the request what goes with the tool.

        Raises:
            DuplicateTool: Another tool has that name.
            ToolsetError: What goes with the tool cannot be had.
        """
        pack_tool(request, self)
        await self.prepare(self.name, ctx, request)


def preparing(tool: LocalTool, prepare: Prepare) -> PreparingTool:
    """The same tool, which also prepares requests."""
    kept = {spec.name: getattr(tool, spec.name) for spec in fields(LocalTool)}
    return PreparingTool(**kept, prepare=prepare)


def said_first(ctx: ToolContext) -> str:
    """The text of the first part of the user's message; empty where that is no text."""
    content = ctx.user_content
    return content.parts[0].text or "" if content is not None and content.parts else ""
