"""What all toolsets around one other toolset share.

They keep the inner toolset's name and its own `process_request`, where it has one. What is made
of a listing is remembered as long as the inner toolset gives the very same tuple, so that a
listing in which nothing changed costs nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias

from bridge.core.context import ReadonlyContext, ToolContext
from bridge.core.request import LLMRequest
from bridge.core.tool import Tool, Toolset
from bridge.errors import ConfigError

Process: TypeAlias = Callable[[ToolContext, LLMRequest], Awaitable[None]]
Tools: TypeAlias = tuple[Tool, ...]


class Wrapper:
    """What all wrappers of one toolset share; `_wrap` makes this listing of the inner one."""

    process_request: Process  # only where the inner toolset has one

    def __init__(self, toolset: Toolset) -> None:
        if toolset is None:
            raise ConfigError(f"{type(self).__name__} wraps a toolset, not None")

        self._inner = toolset
        self._seen: Sequence[Tool] | None = None
        self._made: Tools = ()
        process: Process | None = getattr(toolset, "process_request", None)
        if process is not None:
            self.process_request = process

    @property
    def name(self) -> str:
        """The inner toolset's name."""
        return self._inner.name

    async def tools(self, ctx: ReadonlyContext) -> Tools:
        """The inner toolset's tools, wrapped; what listing them raises is raised unchanged."""
        listing = await self._inner.tools(ctx)
        if listing is self._seen:
            return self._made

        made = tuple(self._wrap(ctx, listing))
        if isinstance(listing, tuple):
            self._seen, self._made = listing, made

        return made

    def _wrap(self, ctx: ReadonlyContext, listing: Sequence[Tool]) -> Iterable[Tool]:
        raise NotImplementedError


def same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether both hold the very same objects, in order."""
    return len(some) == len(others) and all(map(operator.is_, some, others))
