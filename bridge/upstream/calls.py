"""The requests under way on one channel: each in a block that ends in time, one timer for all."""

from __future__ import annotations

import asyncio
import math
from types import TracebackType
from typing import Self

from bridge.core.ending import Ending
from bridge.upstream.alarm import Alarm
from bridge.upstream.flights import Flights


class Calls:
    """Makes the blocks of requests on the running event loop: they end in time, or when closed.

    A timer of its own costs a request more than its block does. Nearly all end long before their
    time, so one timer does: set to the deadline that is next, and left alone when requests end.
    """

    def __init__(self, flights: Flights) -> None:
        self.loop = asyncio.get_running_loop()
        self._flights = flights
        self._open: set[Call] = set()
        self._alarm = Alarm(self._expire)

    def call(self, seconds: float | None) -> Call:
        """A block that ends early, without an error; only to be entered while the channel is open.

        `seconds` of None are without end.
        """
        return Call(self, seconds)

    def close(self) -> None:
        """No request will be made any more; those that are under way end by other means."""
        self._alarm.stop()

    def begin(self, call: Call) -> None:
        """A block was entered."""
        self._open.add(call)
        self._flights.begin(call)

    def land(self, call: Call) -> None:
        """A block was left."""
        self._open.discard(call)
        self._flights.land(call)

    def look_at(self, when: float) -> None:
        """A block ends at that time of the event loop's."""
        self._alarm.at(when)

    def _expire(self, now: float) -> float:
        """End the blocks whose time is up by then; when that of the next one is."""
        following = math.inf
        for call in self._open:
            if call.deadline <= now:
                call.cancel()
            else:
                following = min(following, call.deadline)

        return following


class Call(Ending):
    """The block of one request."""

    __slots__ = ("_bound", "_calls", "_when")

    def __init__(self, calls: Calls, seconds: float | None) -> None:
        super().__init__()  # without a timer of its own
        self._bound = seconds
        self._calls = calls
        self._when = math.inf

    @property
    def deadline(self) -> float:
        """See `Ending.deadline`."""
        return self._when

    @deadline.setter
    def deadline(self, when: float) -> None:
        self._when = when
        self._calls.look_at(when)

    def __enter__(self) -> Self:
        super().__enter__()
        self._calls.begin(self)
        if self._bound is not None:
            self.deadline = self._calls.loop.time() + self._bound

        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self._calls.land(self)
        return super().__exit__(kind, exc, trace)
