"""One timer for many deadlines: nearly all that has one ends long before it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final

CLOSE_ENOUGH: Final = 0.001
"""Seconds: some loops count no finer, and may wake up that much too early."""


class Alarm:
    """Rings at the next deadline it was told of, and is left alone when what that was for ends.

    `ring` takes a time of the event loop's, ends whatever is due by then, and returns the next
    deadline, infinite where there is none.
    """

    def __init__(self, ring: Callable[[float], float]) -> None:
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None
        self._next = math.inf

    def at(self, when: float) -> None:
        """Ring no later than then."""
        if when >= self._next:
            return

        self.stop()
        self._next = when
        self._timer = asyncio.get_running_loop().call_at(when, self._go_off)

    def stop(self) -> None:
        """Ring no more, until it is told of another deadline."""
        if self._timer is not None:
            self._timer.cancel()

        self._timer, self._next = None, math.inf

    def _go_off(self) -> None:
        self._timer, self._next = None, math.inf
        self.at(self._ring(asyncio.get_running_loop().time() + CLOSE_ENOUGH))
