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
        # One pair, swapped whole: event loops in several threads may list at once.
        self._remembered: tuple[Sequence[Tool] | None, Tools] = (None, ())
        process: Process | None = getattr(toolset, "process_request", None)
        if process is not None:
            self.process_request = process

    @property
    def name(self) -> str:
        """The inner toolset's name."""
        return self._inner.name

    @property
    def problems(self) -> tuple[str, ...]:
        """What the inner toolset says is wrong, one line each."""
        return problems_of(self._inner)

    async def tools(self, ctx: ReadonlyContext) -> Tools:
        """The inner toolset's tools, wrapped; what listing them raises is raised unchanged."""
        listing = await self._inner.tools(ctx)
        seen, made = self._remembered
        if listing is seen:
            return made

        made = tuple(self._wrap(ctx, listing))
        if isinstance(listing, tuple):
            self._remembered = (listing, made)

        return made

    def _wrap(self, ctx: ReadonlyContext, listing: Sequence[Tool]) -> Iterable[Tool]:
        raise NotImplementedError


def problems_of(toolset: Toolset) -> tuple[str, ...]:
    """What a toolset says is wrong with it, though it can be listed; most say nothing."""
    problems: tuple[str, ...] = getattr(toolset, "problems", ())
    return problems


def same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether both hold the very same objects, in order."""
    return len(some) == len(others) and all(map(operator.is_, some, others))
