"""Stand-ins with behaviour, so that no test needs a mock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bridge.core.content import Args, Result
from bridge.core.context import ReadonlyContext, ToolContext
from bridge.core.declaration import Declaration, ModelTool
from bridge.core.request import GenerateConfig, LLMRequest
from bridge.core.tool import Tool


@dataclass
class PlainTool:
    """Identity and nothing else."""

    name: str
    description: str = "A tool of a stranger's."
    is_long_running: bool = False


@dataclass
class CustomTool(PlainTool):
    """A stranger's tool that runs: it knows nothing of rules, and notes what it was called with."""

    answer: Any = field(default_factory=lambda: {"ok": True})
    calls: list[Args] = field(default_factory=list)

    def declaration(self) -> Declaration | None:
        return Declaration(self.name, self.description, {"type": "object"})

    async def run(self, ctx: ToolContext, args: Args) -> Result | None:
        self.calls.append(args)
        if isinstance(self.answer, BaseException):
            raise self.answer

        return self.answer


@dataclass
class NativeTool(PlainTool):
    """One of a provider's own tools: it enters the request and runs nowhere here."""

    async def process_request(self, ctx: ToolContext, request: LLMRequest) -> None:
        request.config = request.config or GenerateConfig()
        request.config.tools.append(ModelTool(native={self.name: {}}))


@dataclass
class StreamOnlyTool(PlainTool):
    """A tool that answers in pieces and cannot do otherwise."""

    def declaration(self) -> Declaration | None:
        return Declaration(self.name, self.description)

    async def run_stream(self, ctx: ToolContext, args: Args) -> Any:
        yield "piece"


@dataclass
class ScriptedToolset:
    """A toolset that answers each listing with the next of its lines; the last one stays."""

    name: str
    lines: list[Sequence[Tool] | Exception]
    listed: int = 0

    async def tools(self, ctx: ReadonlyContext) -> Sequence[Tool]:
        self.listed += 1
        line = self.lines.pop(0) if len(self.lines) > 1 else self.lines[0]
        if isinstance(line, Exception):
            raise line

        return line
