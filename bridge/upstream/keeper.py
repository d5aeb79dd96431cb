"""An upstream that is kept: connected and listed for as long as somebody runs this."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from bridge.errors import ToolError, UpstreamUnavailable
from bridge.upstream.connection import Connection
from bridge.upstream.failures import describe
from bridge.upstream.library import Library
from bridge.upstream.link import Link
from bridge.upstream.listed import Listing

SETTLED_SECONDS = 10.0
DEBOUNCE_SECONDS = 0.5
SHORTEST_PAUSE = 0.1
MOST_DOUBLINGS = 7
LIBRARY_SECONDS = 2.0
"""How long the tools wait, at most, for what else there is, so that all come together."""


class Keeper:
    """Keeps one upstream connected and listed."""

    def __init__(
        self,
        connection: Connection,
        listing: Listing,
        library: Library,
        on_change: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._listing = listing
        self._library = library
        self._on_change = on_change
        self._crashes = 0
        self._failures = 0

    async def run(self) -> None:
        """Until cancelled: connect, list, wait for news, and again."""
        self._listing.keep(UpstreamUnavailable(f'upstream "{self._connection.name}" is connecting'))
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._library.run)
                while True:
                    await self._once()
        finally:
            self._listing.keep(False)

    async def _once(self) -> None:
        started = anyio.current_time()
        changed = self._listing.awaited()
        try:
            await self._listing.refreshed()
            link = await self._connection.link()
        except Exception as exc:  # whatever is wrong with one upstream is that upstream's alone
            failure = exc if isinstance(exc, ToolError) else ToolError(describe(exc))
            self._listing.keep(failure)
            self._on_change()
            pause = SHORTEST_PAUSE * 2**self._failures
            self._failures = min(self._failures + 1, MOST_DOUBLINGS)
            await anyio.sleep(max(self._connection.pause, pause))
            return

        self._failures = 0
        self._listing.keep(True)
        with anyio.move_on_after(LIBRARY_SECONDS):
            await self._library.listed(link)

        self._on_change()
        await self._until_outdated(link, changed)
        if link.is_open:
            await anyio.sleep(DEBOUNCE_SECONDS)
        elif anyio.current_time() - started < SETTLED_SECONDS:
            # It came and went at once: a server that crashes must not be started in a hurry.
            self._crashes = min(self._crashes + 1, 5)
            await anyio.sleep(2.0**self._crashes / 2)
        else:
            self._crashes = 0

    async def _until_outdated(self, link: Link, changed: anyio.Event) -> None:
        with anyio.move_on_after(self._listing.holds_for(link)):
            async with anyio.create_task_group() as tasks:

                async def lost() -> None:
                    await link.channel.wait_closed()
                    tasks.cancel_scope.cancel()

                tasks.start_soon(lost)
                await changed.wait()
                tasks.cancel_scope.cancel()
