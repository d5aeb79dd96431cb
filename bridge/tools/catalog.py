"""What is on offer now: the last good listing of a toolset, as a table by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import anyio

from bridge.core.context import ReadonlyContext
from bridge.core.tool import Tool, Toolset
from bridge.telemetry import log
from bridge.tools.wrapper import problems_of

NOTHING: Mapping[str, Tool] = MappingProxyType({})


class Catalog:
    """A snapshot of a toolset that is swapped whole, and only for a good one.

    `on_change` holds what to call, without arguments, after a swap that changed the offer; a
    callback must be quick and must not raise.
    """

    def __init__(self, toolset: Toolset) -> None:
        self.on_change: list[Callable[[], None]] = []
        self._toolset = toolset
        self._tools = NOTHING
        self._faces: Mapping[str, Any] = {}
        self._version = 0
        self._problems: tuple[str, ...] = ()
        self._lock = anyio.Lock()
        self._asked = 0
        self._answered = 0
        self._changed = False

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by offered name, as last listed well; empty before that."""
        return self._tools

    @property
    def version(self) -> int:
        """Grows by one with each change of the offer; 0 is the empty offer of the beginning."""
        return self._version

    @property
    def problems(self) -> tuple[str, ...]:
        """What the latest refresh could not do or found wrong, one line each; else empty."""
        return self._problems

    async def refresh(self, ctx: ReadonlyContext) -> bool:
        """List anew, and say whether the offer changed.

        A listing that fails leaves the snapshot as it is and shows in `problems`. Refreshes
        asked for while one runs become one, after it.
        """
        self._asked += 1
        mine = self._asked
        async with self._lock:
            # A listing that began after this one was asked for answers it, too.
            if self._answered < mine:
                covered = self._asked
                self._changed = await self._list(ctx)
                self._answered = covered

            return self._changed

    async def _list(self, ctx: ReadonlyContext) -> bool:
        try:
            listing = await self._toolset.tools(ctx)
        except Exception as exc:  # a toolset is a stranger: the last good offer outlives it
            log.warning('the tools of "%s" could not be listed: %s', self._toolset.name, exc)
            self._problems = (str(exc) or type(exc).__name__,)
            return False

        problems = [f'"{name}": {why}' for name, why in _failures(self._toolset).items()]
        tools = _by_name(listing, problems)
        faces = _faces(tools, problems)
        problems += problems_of(self._toolset)
        self._problems = tuple(problems)
        self._tools = MappingProxyType({name: tools[name] for name in faces})
        if faces == self._faces:
            return False

        self._faces = faces
        self._version += 1
        for callback in list(self.on_change):
            callback()

        return True


def _by_name(listing: Sequence[Tool], problems: list[str]) -> dict[str, Tool]:
    """The tools by name; where two have one name neither is offered, and a problem says so.

    Which of them is meant cannot be known, and must not depend on which one came first.
    """
    tools: dict[str, Tool] = {}
    twins: dict[str, Tool] = {}
    for tool in listing:
        other = tools.setdefault(tool.name, tool)
        if other is not tool:
            twins[tool.name] = tool

    for name, twin in twins.items():
        problems.append(
            f'two tools are named "{name}": {_origin(tools.pop(name))} and {_origin(twin)}; '
            "neither is offered: rename one, or give its upstream a prefix of its own"
        )

    return tools


def _origin(tool: Tool) -> str:
    upstream = getattr(tool, "upstream", None)
    if upstream is None:
        return "one that runs here"

    own_name = getattr(tool, "own_name", tool.name)
    return f'"{own_name}" of upstream "{upstream}"'


def _failures(toolset: Toolset) -> Mapping[str, Exception]:
    failures: Mapping[str, Exception] = getattr(toolset, "failures", {})
    return failures


def _faces(tools: Mapping[str, Tool], problems: list[str]) -> dict[str, Any]:
    """What each tool shows of itself; one that cannot show itself is left out, with a problem."""
    faces: dict[str, Any] = {}
    for name, tool in tools.items():
        try:
            faces[name] = _face(tool)
        except Exception as exc:  # a stranger's declaration: a bad tool hides itself alone
            log.warning('the tool "%s" is left out: %s', name, exc)
            problems.append(f'the tool "{name}" is left out, for it cannot declare itself: {exc}')

    return faces


def _face(tool: Tool) -> Any:
    """Everything that a client or a model is told of a tool, to see whether it changed."""
    declare = getattr(tool, "declaration", None)
    return (
        tool.description,
        tool.is_long_running,
        None if declare is None else declare(),
        getattr(tool, "definition", None),
        getattr(tool, "rule", None),
    )
