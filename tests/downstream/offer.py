"""What the tests of the served side serve: tools with behaviour, and their runs counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from bridge.core.confirmation import Subject, json_hash
from bridge.core.content import Args, Result
from bridge.core.context import ReadonlyContext, ToolContext, local_context
from bridge.core.declaration import Declaration
from bridge.core.tool import Tool
from bridge.errors import UpstreamError
from bridge.tools.catalog import Catalog
from bridge.tools.function import function_tool
from bridge.tools.gate import Rule, check

PICTURE = {
    "type": "image",
    "data": "iVBORw0KGgo=",
    "mimeType": "image/png",
    "_meta": {"example.com/dpi": 72},
    "unknownInside": [None, 1.5, "é"],
}
ODD_ANSWER: Result = {
    "content": [PICTURE, {"type": "text", "text": "one", "annotations": {"priority": 1}}],
    "structuredContent": 0,
    "isError": True,
    "unknown": {"deep": [{"null": None}, 2**70]},
    "_meta": {"example.com/trace": "t-1", "com.example/empty": {}},
}
RICH_ANSWER: Result = {
    "content": [PICTURE],
    "structuredContent": {"city": "Tōkyō", "none": None},
    "unknown": "kept",
    "_meta": {"example.com/trace": "t-2"},
}
RICH_DEFINITION: dict[str, Any] = {
    "name": "rich",
    "title": "Rich",
    "description": "Its server's own words.",
    "inputSchema": {
        "type": "object",
        "$defs": {"city": {"type": "string", "minLength": 1}},
        "properties": {"city": {"$ref": "#/$defs/city"}, "n": {"anyOf": [{"type": "integer"}]}},
        "unknownKeyword": True,
    },
    "outputSchema": {"type": "object", "$anchor": "out", "properties": {"city": {}}},
    "annotations": {"readOnlyHint": True, "unknownHint": 1},
    "_meta": {"example.com/ui": "x"},
    "unknownField": None,
}


class Shelf:
    """A toolset whose tools can be changed."""

    name = "shelf"

    def __init__(self, *tools: Tool) -> None:
        self.listing = tools

    async def tools(self, ctx: ReadonlyContext) -> Sequence[Tool]:
        """What is on it now."""
        return self.listing

    async def offered(self) -> Catalog:
        """A catalog of what is on it, listed once."""
        catalog = Catalog(self)
        await catalog.refresh(local_context())
        return catalog


@dataclass
class ServersTool:
    """A tool of an MCP server, as far as the served side sees of one."""

    definition: dict[str, Any]
    answer: Callable[[ToolContext, Args], Awaitable[Result]]
    name: str
    description: str
    rule: Rule | None = None
    upstream: str = "stand-in"
    is_long_running: bool = False

    @property
    def own_name(self) -> str:
        """What its server calls it."""
        return str(self.definition["name"])

    def declaration(self) -> Declaration:
        """What a model would read."""
        return Declaration(self.name, self.description, self.definition.get("inputSchema"))

    async def run(self, ctx: ToolContext, args: Args) -> Result:
        """Pass the gate, ask the server, keep its answer as it came."""
        if self.rule is not None:
            subject = Subject(self.upstream, self.own_name, json_hash(self.definition))
            await check(ctx, self.rule, subject, args)

        raw = await self.answer(ctx, args)
        if raw.get("isError"):
            raise UpstreamError("the server says no", raw, is_protocol_error=False)

        response: Result = {"output": raw.get("structuredContent", "text")}
        ctx.upstream_answer = (response, raw)
        return response


def servers_tool(
    name: str,
    answer: Callable[[ToolContext, Args], Awaitable[Result]],
    *,
    definition: dict[str, Any] | None = None,
    description: str | None = None,
    confirm: bool = False,
) -> ServersTool:
    """A stand-in for an MCP server's tool that answers with `answer`."""
    definition = definition or {"name": name, "inputSchema": {"type": "object"}}
    told = definition.get("description", "") if description is None else description
    rule = Rule(name, require=True) if confirm else None
    return ServersTool(definition, answer, name, told, rule)


@dataclass
class Runs:
    """How often each tool ran, and what with; `slow` and `until` wait here."""

    count: Counter[str] = field(default_factory=Counter)
    seen: list[Any] = field(default_factory=list)
    started: anyio.Event = field(default_factory=anyio.Event)
    cancelled: anyio.Event = field(default_factory=anyio.Event)
    go_on: anyio.Event = field(default_factory=anyio.Event)


def text(words: str, **more: Any) -> Result:
    """A server's plain answer."""
    return {"content": [{"type": "text", "text": words}], **more}


def everything(runs: Runs) -> list[Tool]:
    """One tool for each thing that the served side has to get right."""
    return [*_answers(), *_deeds(runs)]


def _answers() -> list[Tool]:
    """Tools that answer in ways that are easily lost on the way."""

    async def odd(ctx: ToolContext, args: Args) -> Result:
        return ODD_ANSWER

    async def rich(ctx: ToolContext, args: Args) -> Result:
        return RICH_ANSWER

    async def broken(ctx: ToolContext, args: Args) -> Result:
        error = {"code": -32050, "message": "broken there", "data": {"why": [1, None]}}
        raise UpstreamError("broken there", error, is_protocol_error=True)

    async def halves(ctx: ToolContext, args: Args) -> Result:
        return text("cut \ud83d here", **{"\ud83d": "\udc00"})

    return [
        servers_tool("odd", odd),
        servers_tool("rich", rich, definition=RICH_DEFINITION),
        servers_tool("broken", broken),
        servers_tool("halves", halves),
    ]


def _deeds(runs: Runs) -> list[Tool]:
    """Tools that do something, and count it."""

    async def buy(ctx: ToolContext, args: Args) -> Result:
        runs.count["buy"] += 1
        runs.seen.append(args)
        return text(f"bought {args.get('city')}")

    async def steps(ctx: ToolContext, args: Args) -> Result:
        for step in range(1, 4):
            await ctx.report_progress(step, 3, f"step {step}")

        return text("progress" if ctx.on_progress is not None else "silence")

    async def slow(ctx: ToolContext, args: Args) -> Result:
        runs.count["slow"] += 1
        runs.started.set()
        try:
            await anyio.sleep_forever()
        finally:
            runs.count["slow cancelled"] += 1
            runs.cancelled.set()

    async def until(ctx: ToolContext, args: Args) -> Result:
        await ctx.report_progress(1, 2)
        runs.started.set()
        await runs.go_on.wait()
        return text("went on")

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    def counts() -> dict[str, int]:
        """How often each tool ran."""
        return dict(runs.count)

    return [
        servers_tool("buy", buy, confirm=True),
        servers_tool("steps", steps),
        servers_tool("slow", slow),
        servers_tool("until", until),
        function_tool(add),
        function_tool(counts),
    ]
