"""The last look at what goes from the servers' tools to clients."""

from __future__ import annotations

from typing import Any

from bridge.core.content import Result
from bridge.downstream.addresses import Addresses
from bridge.downstream.asker import Asker
from bridge.downstream.tasks import Tasks


class Passing:
    """Puts URIs as clients read them, and notes whose each task is; copies only what changes."""

    def __init__(self, addresses: Addresses, tasks: Tasks) -> None:
        self._addresses = addresses
        self._tasks = tasks

    @property
    def version(self) -> int:
        """Grows when definitions may read otherwise than before."""
        return self._addresses.version

    def definition(self, upstream: str, definition: dict[str, Any]) -> dict[str, Any]:
        """The definition of an upstream's tool as clients read it."""
        return self._addresses.definition(upstream, definition)

    def answer(self, asker: Asker, upstream: str, answer: Result) -> Result:
        """An upstream's answer to a call as the client reads it."""
        self._tasks.remember(asker, upstream, answer)
        return self._addresses.answer(upstream, answer)
