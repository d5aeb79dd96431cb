"""The task that owns one connection: it alone enters and leaves what the connection is made of.

Cancel scopes and task groups must be left by the task that entered them. Callers come and go in
tasks of their own, so none of them can own a connection: one task is made for it, opens it, waits,
and closes it, whoever asks. Nobody else's cancellation reaches it.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio

from bridge.telemetry import log
from bridge.upstream.channel import ChannelError
from bridge.upstream.link import Link

CLOSE_SECONDS = 20.0


class Owner:
    """One connection's life, from dialling to the end of everything it started."""

    def __init__(
        self,
        dial: Callable[[], AbstractAsyncContextManager[Link]],
        attend: Callable[[Link], Coroutine[Any, Any, None]],
        connect_seconds: float,
    ) -> None:
        """`dial` opens the connection; `attend` runs beside it while it is open."""
        self._dial = dial
        self._attend = attend
        self._connect_seconds = connect_seconds
        self._stop = anyio.Event()
        self._ready = anyio.Event()
        self._done = anyio.Event()
        self._scope = anyio.CancelScope()
        self.link: Link | None = None
        self.failure: Exception | None = None
        self._loop = asyncio.get_running_loop()
        # An empty context: what the first caller happened to carry is none of the connection's.
        self._task = self._loop.create_task(self._run(), context=contextvars.Context())

    @property
    def is_foreign(self) -> bool:
        """Whether it lives in another event loop than the caller, and so cannot be used here."""
        return self._loop is not asyncio.get_running_loop()

    @property
    def is_over(self) -> bool:
        """Whether everything is closed."""
        return self._done.is_set()

    @property
    def is_connecting(self) -> bool:
        """Whether the connection is neither made nor failed yet."""
        return not self._ready.is_set()

    async def connected(self) -> Link:
        """Wait for the connection; a caller who stops waiting does not stop it.

        Raises:
            Exception: What went wrong while connecting.
        """
        await self._ready.wait()
        if self.link is None:
            raise self.failure or ChannelError("closed while connecting", sent=False)

        return self.link

    def stop(self) -> None:
        """Ask the task to close everything, without waiting for it."""
        self._stop.set()
        if not self._ready.is_set():
            self._scope.cancel()

    async def closed(self) -> None:
        """Wait until everything is closed; bounded, and not cut short by a cancelled caller."""
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await self._done.wait()

        if not self._done.is_set():
            log.error("a connection did not close within %g s; it is abandoned", CLOSE_SECONDS)
            self._task.cancel()

    async def _run(self) -> None:
        try:
            with self._scope:
                self._scope.deadline = anyio.current_time() + self._connect_seconds
                await self._live()

            if self._scope.cancelled_caught and self.failure is None and not self._stop.is_set():
                waited = f"no connection within {self._connect_seconds:g} s"
                self.failure = ChannelError(waited, sent=False)
        except Exception as exc:
            self.failure = exc  # whatever ends a connection is its callers' news
        finally:
            self._ready.set()
            self._done.set()

    async def _live(self) -> None:
        async with self._dial() as link, anyio.create_task_group() as beside:
            self._scope.deadline = float("inf")
            self.link = link
            self._ready.set()
            beside.start_soon(self._attend, link)
            beside.start_soon(self._until_closed, link)
            await self._stop.wait()
            beside.cancel_scope.cancel()

    async def _until_closed(self, link: Link) -> None:
        await link.channel.wait_closed()
        self._stop.set()
