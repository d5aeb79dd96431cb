"""What is under way on a channel, so that closing it ends all of that at once, from any task."""

from __future__ import annotations

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
