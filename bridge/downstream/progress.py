"""Progress on its way to a client: never backwards, and never more often than a client can read."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from bridge.core.encodable import encodable

Send: TypeAlias = Callable[[float, float | None, str | None], Awaitable[None]]

PER_SECOND = 20.0
BURST = 20.0


class PacedProgress:
    """Passes progress of one call on to `send`; a `ProgressSink`.

    What does not increase is dropped (MCP, progress), and so is what comes faster than
    PER_SECOND after the first BURST; one report is held back for the last, where progress
    equals total.
    """

    def __init__(self, send: Send, clock: Callable[[], float] = time.monotonic) -> None:
        self._send = send
        self._clock = clock
        self._last = -math.inf
        self._credit = BURST
        self._counted = clock()

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Report, or drop the report."""
        if not progress > self._last:
            return

        now = self._clock()
        self._credit = min(BURST, self._credit + (now - self._counted) * PER_SECOND)
        self._counted = now
        if self._credit < (0 if progress == total else 1):
            return

        self._credit -= 1
        self._last = progress
        await self._send(progress, total, encodable(message))
