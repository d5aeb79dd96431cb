"""Tools with behaviour for tests of agents: they count, wait for one another, fail, stay silent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from bridge.core.content import Args, Result
from bridge.core.context import ToolContext
from bridge.core.declaration import Declaration
from bridge.core.request import LLMRequest
from bridge.core.tool import pack_tool

Body = Callable[[ToolContext, Args], Awaitable[Result | None]]


@dataclass
class Probe:
    """A stranger's tool: answers what it is told to, and notes its calls and their contexts."""

    name: str = "work"
    gives: Any = field(default_factory=lambda: {"ok": True})
    is_long_running: bool = False
    description: str = "A tool for tests."
    body: Body | None = None
    calls: list[Args] = field(default_factory=list)
    contexts: list[ToolContext] = field(default_factory=list)
    processed: int = 0

    def declaration(self) -> Declaration | None:
        return Declaration(self.name, self.description, {"type": "object"})

    async def process_request(self, ctx: ToolContext, request: LLMRequest) -> None:
        self.processed += 1
        pack_tool(request, self)

    async def run(self, ctx: ToolContext, args: Args) -> Result | None:
        self.calls.append(args)
        self.contexts.append(ctx)
        if self.body is not None:
            return await self.body(ctx, args)

        if isinstance(self.gives, Exception):
            raise self.gives

        given: Result | None = self.gives
        return given


@dataclass
class DeferringProbe(Probe):
    """Its answer may come by another way."""

    def defers_response(self) -> bool:
        return True


@dataclass
class DisplayedProbe(Probe):
    """Says whether its result is for people where no model sums it up."""

    is_displayed: bool = True

    def display_result_on_skip_summarization(self) -> bool:
        return self.is_displayed


@dataclass
class InstructionOnly:
    """A tool that only adds to the request; nobody can call it."""

    name: str = "advice"
    description: str = "Adds an instruction."
    is_long_running: bool = False
    edit: Callable[[ToolContext, LLMRequest], None] = lambda ctx, request: None

    async def process_request(self, ctx: ToolContext, request: LLMRequest) -> None:
        self.edit(ctx, request)
