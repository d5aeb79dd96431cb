"""A block of one task that is ended from outside or by time, at a tenth of a cancel scope's cost.

It ends by a plain task cancellation, as in `asyncio.timeout`. Inside of it anyio's own scopes work
as ever. What is made for every call uses it; all else uses anyio.
"""

from __future__ import annotations

import asyncio
import math
from types import TracebackType
from typing import Self


class Ending:
    """The block of the task that enters it. Ended, it is left without an error.

    `deadline` is in the event loop's time and may be set, as that of a cancel scope.
    """

    __slots__ = ("_base", "_seconds", "_task", "_timer", "is_cancelled")

    def __init__(self, seconds: float | None = None) -> None:
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self.is_cancelled = False

    @property
    def deadline(self) -> float:
        """When the block ends at the latest; infinite without a bound."""
        return math.inf if self._timer is None else self._timer.when()

    @deadline.setter
    def deadline(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()

        loop = asyncio.get_running_loop()
        self._timer = None if when == math.inf else loop.call_at(when, self.cancel)

    def cancel(self) -> None:
        """End the block where it waits. From inside the block, where nothing waits, it is void."""
        if not self.is_cancelled and self._task is not asyncio.current_task():
            self.is_cancelled = True
            self._task.cancel()

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._base = task.cancelling()
        if self._seconds is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._seconds, self.cancel)

        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if self._timer is not None:
            self._timer.cancel()

        if not self.is_cancelled:
            return False

        others = self._task.uncancel() > self._base
        if not isinstance(exc, asyncio.CancelledError):
            return False

        # Who else cancelled the task in the same moment must not go unheard.
        return not others
