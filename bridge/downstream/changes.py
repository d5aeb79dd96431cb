"""Telling clients that the list of tools has changed: soon, and not too often."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
from anyio import WouldBlock
from mcp.server.subscriptions import InMemorySubscriptionBus, ServerEvent, ToolsListChanged

INTERVAL = 0.5
"""Seconds in which any number of changes are told as one."""


class Changes:
    """One server's news that its tools changed, from whoever swaps them to whoever listens.

    Modern clients listen through `bus`, legacy ones are told by `follow`.
    """

    def __init__(self, interval: float = INTERVAL) -> None:
        self.bus = InMemorySubscriptionBus()
        self._interval = interval
        self._changed = anyio.Event()

    async def relay(self, on_change: list[Callable[[], None]]) -> None:
        """Publish what `on_change` calls report, until cancelled. Run this in one task."""
        on_change.append(self._mark)
        try:
            while True:
                await self._changed.wait()
                self._changed = anyio.Event()
                await self.bus.publish(ToolsListChanged())
                await anyio.sleep(self._interval)
        finally:
            on_change.remove(self._mark)

    async def follow(self, tell: Callable[[], Awaitable[None]]) -> None:
        """Call `tell` after each change, until cancelled; changes while it runs count as one."""
        send, receive = anyio.create_memory_object_stream[None](1)

        def wake(_: ServerEvent) -> None:
            with suppress(WouldBlock):  # it has not read of the change before this one yet
                send.send_nowait(None)

        unsubscribe = self.bus.subscribe(wake)
        try:
            async with send, receive:
                async for _ in receive:
                    await tell()
        finally:
            unsubscribe()

    def _mark(self) -> None:
        self._changed.set()
