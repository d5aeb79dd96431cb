"""A request while it runs, and how it is ended from outside or by time.

These are cancel scopes for the one task that a request has, and cost a tenth of one: they are
made for every request. Inside of them anyio's own scopes work as ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


class Running:
    """The task that is running now; `cancel` ends what it does, and nothing around that."""

    __slots__ = ("_task", "is_cancelled")

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self.is_cancelled = False

    def cancel(self) -> None:
        """End it: only while it waits for something. Its next step raises CancelledError."""
        if not self.is_cancelled and self._task is not None:
            self.is_cancelled = True
            self._task.cancel()

    def is_over(self) -> bool:
        """Whether the cancellation that arrived was ours, and nobody else's; ask once, then."""
        return self.is_cancelled and self._task is not None and self._task.uncancel() == 0


async def within(seconds: float, work: Callable[[], Awaitable[T]]) -> T:
    """What comes of `work`, if it comes in time.

    Raises:
        TimeoutError: It did not.
    """
    running = Running()
    timer = asyncio.get_running_loop().call_later(seconds, running.cancel)
    try:
        return await work()
    except asyncio.CancelledError:
        if running.is_over():
            raise TimeoutError from None

        raise
    finally:
        timer.cancel()
