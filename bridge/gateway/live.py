"""A gateway while it runs: every upstream kept connected, the catalog kept true."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio

from bridge.core.context import local_context
from bridge.gateway.assembly import Assembly
from bridge.upstream.status import UpstreamStatus


class Gateway:
    """An assembly with its upstreams running."""

    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly
        self.catalog = assembly.catalog
        self._changed = anyio.Event()
        self._heard: set[str] = set()
        self._settled = anyio.Event()
        self._refreshed = anyio.Event()
        self._gathered = False

    def statuses(self) -> list[UpstreamStatus]:
        """How each upstream is now, in the order of the configuration."""
        return [upstream.status() for upstream in self.assembly.upstreams.values()]

    async def settled(self, seconds: float | None = None) -> None:
        """Wait until every upstream has come or failed once, and no longer than `seconds`."""
        with anyio.move_on_after(seconds):
            await self._settled.wait()

    async def gathered(self, pause: float) -> None:
        """Wait for the upstreams as long as a client may be made to wait for its first list.

        That is until all have come or failed; or, once one has come, until none came for `pause`
        seconds, so that one that hangs does not hold up the others.
        """
        while not self._gathered and not self._settled.is_set():
            refreshed = self._refreshed
            with anyio.move_on_after(pause if self.catalog.version else None) as waiting:
                await refreshed.wait()

            self._gathered = waiting.cancelled_caught

    async def offered(self, name: str) -> bool:
        """Wait until a tool of that name is offered, or until it is known that none will be."""
        while name not in self.catalog.tools:
            if self._settled.is_set():
                return False

            await self._refreshed.wait()

        return True

    def heard_of(self, upstream: str) -> None:
        """Note that what this upstream offers may have changed."""
        self._heard.add(upstream)
        self._changed.set()

    async def follow(self) -> None:
        """Refresh the catalog after changes, several at once where they come together."""
        everyone = set(self.assembly.upstreams)
        while True:
            heard = everyone <= self._heard
            await self.catalog.refresh(local_context())
            if heard:
                self._settled.set()

            self._refreshed.set()
            self._refreshed = anyio.Event()
            await self._changed.wait()
            self._changed = anyio.Event()


@asynccontextmanager
async def running(assembly: Assembly) -> AsyncIterator[Gateway]:
    """Start every upstream, side by side; on leaving, nothing of them is left."""
    gateway = Gateway(assembly)
    failure: Exception | None = None
    try:
        async with anyio.create_task_group() as tasks:
            for name, upstream in assembly.upstreams.items():
                tasks.start_soon(upstream.keep, partial(gateway.heard_of, name))

            tasks.start_soon(gateway.follow)
            try:
                yield gateway
            except Exception as exc:
                failure = exc  # raised below, outside the task group, so that it stays itself

            tasks.cancel_scope.cancel()
    finally:
        await assembly.aclose()

    if failure is not None:
        raise failure
