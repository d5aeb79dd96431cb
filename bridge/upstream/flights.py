"""What is under way on a channel, so that closing it ends all of that at once, from any task."""

from __future__ import annotations

import asyncio
import math
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol

import anyio


class Cancellable(Protocol):
    """What can be made to end."""

    def cancel(self) -> None:
        """End it soon, without an error."""
        ...


class Flights:
    """Pieces of work on one channel, each in its own task, and whether the channel is open.

    Each runs inside a cancel scope of its own. Closing cancels these scopes: the work stops where
    it waits, its task goes on behind the block and finds the channel closed.
    """

    def __init__(self) -> None:
        self.closed_because = ""
        self._scopes: set[Cancellable] = set()
        self._closed = anyio.Event()
        self._landed = anyio.Event()

    def __len__(self) -> int:
        return len(self._scopes)

    @property
    def is_open(self) -> bool:
        """False from the moment it is closed."""
        return not self._closed.is_set()

    def flight(
        self, seconds: float | None = None, *, shield: bool = False
    ) -> AbstractContextManager[anyio.CancelScope]:
        """A block that ends early when the channel closes or `seconds` are over, without error."""
        return _Flight(self, seconds, shield)

    def call(self, seconds: float | None = None) -> Call:
        """As `flight`, for a third of its cost; only to be entered while the channel is open."""
        return Call(self, seconds)

    def begin(self, scope: Cancellable) -> None:
        """Let closing cancel this scope, also if that came first."""
        self._scopes.add(scope)
        if not self.is_open:
            scope.cancel()

    def land(self, scope: Cancellable) -> None:
        """Its block was left."""
        self._scopes.discard(scope)
        if not self._scopes and not self.is_open:
            self._landed.set()

    def close(self, reason: str) -> bool:
        """End everything; False if it was closed before."""
        if not self.is_open:
            return False

        self.closed_because = reason
        self._closed.set()
        for scope in self._scopes:
            scope.cancel()

        if not self._scopes:
            self._landed.set()

        return True

    async def wait_closed(self) -> None:
        """Return when the channel is closed."""
        await self._closed.wait()

    async def wait_landed(self, seconds: float) -> None:
        """Return when it is closed and every block was left, or the time is up."""
        with anyio.move_on_after(seconds):
            await self._landed.wait()


class _Flight:
    """The block of one flight. A class, since a generator costs twice as much on every request."""

    __slots__ = ("_flights", "_scope")

    def __init__(self, flights: Flights, seconds: float | None, shield: bool) -> None:
        deadline = math.inf if seconds is None else anyio.current_time() + seconds
        self._flights = flights
        self._scope = anyio.CancelScope(deadline=deadline, shield=shield)

    def __enter__(self) -> anyio.CancelScope:
        scope = self._scope.__enter__()
        self._flights.begin(scope)
        return scope

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self._flights.land(self._scope)
        return self._scope.__exit__(kind, exc, trace)


class Call:
    """The block of one request, which a plain task cancellation ends, as in `asyncio.timeout`.

    `deadline` is in the event loop's time and may be set, as that of a cancel scope.
    """

    __slots__ = ("_base", "_flights", "_is_cancelled", "_seconds", "_task", "_timer")

    def __init__(self, flights: Flights, seconds: float | None) -> None:
        self._flights = flights
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self._is_cancelled = False

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
        if not self._is_cancelled and self._task is not asyncio.current_task():
            self._is_cancelled = True
            self._task.cancel()

    def __enter__(self) -> Call:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._base = task.cancelling()
        self._flights.begin(self)
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

        self._flights.land(self)
        if not self._is_cancelled:
            return False

        others = self._task.uncancel() > self._base
        if not isinstance(exc, asyncio.CancelledError):
            return False

        # Who else cancelled the task in the same moment must not go unheard.
        return not others
