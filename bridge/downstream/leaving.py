"""Noticing that an HTTP client has left before its response was done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.types import Receive


class Leaving:
    """Watches one connection; calls `left`, once, when its client is gone.

    The body must have been read: whatever comes after it is the end.
    """

    __slots__ = ("_left", "_receive", "_task", "_timer", "is_gone")

    def __init__(self, receive: Receive, left: Callable[[], None]) -> None:
        self._receive = receive
        self._left = left
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self.is_gone = False

    def watch(self) -> None:
        """Watch from now on."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def watch_after(self, seconds: float) -> None:
        """Watch from then on, if that is not too late: a timer costs less than a task."""
        self._timer = asyncio.get_running_loop().call_later(seconds, self.watch)

    def end(self) -> None:
        """Watch no more."""
        if self._timer is not None:
            self._timer.cancel()

        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

        self.is_gone = True
        self._left()
