"""The last look at what goes from the servers' tools to clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bridge.core.content import Result
from bridge.core.tool import Tool
from bridge.downstream.addresses import Addresses
from bridge.downstream.asker import Asker
from bridge.downstream.listing import Listing, list_catalog
from bridge.downstream.tasks import Tasks


class Passing:
    """Puts URIs as clients read them, and notes whose each task is; copies only what changes."""

    def __init__(self, addresses: Addresses, tasks: Tasks) -> None:
        self._addresses = addresses
        self._tasks = tasks

    @property
    def version(self) -> int:
        """Grows when definitions may read otherwise than before."""
        return self._addresses.version + self._tasks.legacy.version

    def listing(self, version: int, tools: Mapping[str, Tool]) -> Listing:
        """One version of what is offered, as clients of each era read it."""
        listing = list_catalog(version, tools, self._addresses.definition)
        shapes = self._tasks.legacy.listed(listing.legacy["tools"], tools)
        return replace(listing, legacy={"tools": shapes})

    def as_tasks(self, asker: Asker, name: str, tools: Mapping[str, Tool]) -> Mapping[str, Tool]:
        """The tools for a call that its client wants run as a task; see `LegacyTasks`."""
        return self._tasks.legacy.as_tasks(asker, name, tools)

    def answer(self, asker: Asker, tool: Tool | None, answer: Result) -> Result:
        """The answer to a call of a tool as the client reads it."""
        upstream = getattr(tool, "upstream", "")
        if asker.task is not None:
            answer = self._tasks.legacy.remember(asker, tool, answer)
        else:
            self._tasks.remember(asker, upstream, answer)

        return self._addresses.answer(upstream, answer)
