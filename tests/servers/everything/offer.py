"""Where tools and prompts are entered: `@tool(…)` and `@prompt(…)` over a handler of that name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from mcp_types import CallToolResult, GetPromptResult, Prompt, PromptArgument, Tool

from tests.servers.everything.asking import Ask, Call

ToolHandler: TypeAlias = Callable[[Call], Awaitable[CallToolResult | Ask]]
PromptHandler: TypeAlias = Callable[[Call], Awaitable[GetPromptResult | Ask]]

TOOLS: dict[str, tuple[Tool, ToolHandler]] = {}
PROMPTS: dict[str, tuple[Prompt, PromptHandler]] = {}

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}


def tool(
    description: str, schema: dict[str, Any] | None = None
) -> Callable[[ToolHandler], ToolHandler]:
    """Offer a handler as the tool of its name; without a schema it takes no arguments."""

    def enter(handler: ToolHandler) -> ToolHandler:
        name = handler.__name__
        TOOLS[name] = (
            Tool(name=name, description=description, input_schema=schema or NOTHING),
            handler,
        )
        return handler

    return enter


def prompt(description: str, **arguments: str) -> Callable[[PromptHandler], PromptHandler]:
    """Offer a handler as the prompt of its name; every named argument is required."""

    def enter(handler: PromptHandler) -> PromptHandler:
        name = handler.__name__
        takes = [
            PromptArgument(name=argument, description=what, required=True)
            for argument, what in arguments.items()
        ]
        PROMPTS[name] = (Prompt(name=name, description=description, arguments=takes), handler)
        return handler

    return enter


def object_of(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object."""
    return {"type": "object", "properties": properties, "required": [*required]}
