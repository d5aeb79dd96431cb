"""What work hangs on: how long it may take, whether it is called off, and the values it carries.

A `Scope` is one link of a chain. Links only narrow: a deadline below is never later than one
above, and what calls off a link calls off everything below it. This is apart from the end of an
invocation: being called off or timed out never sets `ended`, and `ended` stops no work (§13.9).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import anyio

from bridge.errors import CalledOff, CapabilityError, TimedOut, ToolError

T = TypeVar("T")


@dataclass(frozen=True, eq=False, slots=True)
class Key(Generic[T]):
    """The typed name of a value on a chain. A key equals itself alone, whatever its name is."""

    name: str


class Scope:
    """One link of a chain that carries a deadline, a way to be called off, and values.

    It cannot be called off by whoever merely sees it: only `with_cancel` hands out the function
    that does so. All of it belongs to one event loop's thread.
    """

    __slots__ = ("_called_off_at", "_guards", "_key", "_parent", "_value", "deadline")

    def __init__(self, parent: Scope | None = None) -> None:
        self._parent = parent
        self._key: Key[Any] | None = None
        self._value: Any = None
        self._called_off_at: float | None = None
        # The anyio scopes now entered at or below this link; None where nothing can call it off.
        self._guards: set[anyio.CancelScope] | None = None
        # On the clock of `time.monotonic`, in seconds; None is no deadline.
        self.deadline: float | None = None if parent is None else parent.deadline

    def with_value(self, key: Key[T], value: T) -> Scope:
        """A link that carries `value`, and hides another of the same key above it."""
        link = Scope(self)
        link._key, link._value = key, value
        return link

    def with_timeout(self, seconds: float) -> Scope:
        """A link that ends after `seconds`, or with the links above, whichever is first."""
        link = Scope(self)
        until = time.monotonic() + seconds
        link.deadline = until if self.deadline is None else min(until, self.deadline)
        return link

    def with_cancel(self) -> tuple[Scope, Callable[[], None]]:
        """A link, and the function that calls it off with everything below it."""
        link = Scope(self)
        link._guards = set()
        return link, link._call_off

    def value(self, key: Key[T], default: T | None = None) -> T | None:
        """The nearest value of `key` on this chain, else `default`."""
        for link in self._chain():
            if link._key is key:
                found: T = link._value
                return found

        return default

    def require(self, key: Key[T]) -> T:
        """The nearest value of `key` on this chain.

        Raises:
            CapabilityError: The chain has none, as one that the runner did not make.
        """
        for link in self._chain():
            if link._key is key:
                found: T = link._value
                return found

        raise CapabilityError(
            f"this context carries no {key.name}: its scope was not derived from the run's own; "
            f"derive it with ctx.scope.with_timeout, with_cancel or with_value"
        )

    @property
    def error(self) -> ToolError | None:
        """Why work in this scope is to stop: `CalledOff` or `TimedOut`, whichever came first."""
        called_off = [at for link in self._chain() if (at := link._called_off_at) is not None]
        if called_off and (self.deadline is None or min(called_off) < self.deadline):
            return CalledOff("called off before it was done")

        if self.deadline is not None and time.monotonic() >= self.deadline:
            return TimedOut("not done in the time it was given")

        return None

    @property
    def done(self) -> bool:
        """Whether work in this scope is to stop."""
        return self.error is not None

    def check(self) -> None:
        """Raise what `error` holds, if anything: for work that has no place to be interrupted."""
        error = self.error
        if error is not None:
            raise error

    @contextmanager
    def enforced(self) -> Iterator[None]:
        """Interrupt the awaits inside as soon as this scope ends.

        `with ctx.scope.with_timeout(3).enforced(): …` is one request's own time-out.

        Raises:
            TimedOut: The deadline passed; what was awaited was cancelled.
            CalledOff: The scope was called off; what was awaited was cancelled.
        """
        self.check()
        links = [link for link in self._chain() if link._guards is not None]
        with anyio.CancelScope(deadline=self._loop_deadline()) as guard:
            for link in links:
                link._enter(guard)
            try:
                yield
            finally:
                for link in links:
                    link._leave(guard)

        if guard.cancelled_caught:
            # The loop's timer may be early by its resolution, when `error` is not set yet.
            raise self.error or TimedOut("not done in the time it was given")

    def _chain(self) -> Iterator[Scope]:
        link: Scope | None = self
        while link is not None:
            yield link
            link = link._parent

    def _call_off(self) -> None:
        if self._called_off_at is None:
            self._called_off_at = time.monotonic()

        for guard in tuple(self._guards or ()):
            guard.cancel()

    def _enter(self, guard: anyio.CancelScope) -> None:
        if self._guards is not None:
            self._guards.add(guard)

    def _leave(self, guard: anyio.CancelScope) -> None:
        if self._guards is not None:
            self._guards.discard(guard)

    def _loop_deadline(self) -> float:
        """The deadline on the event loop's clock, which need not be `time.monotonic`."""
        if self.deadline is None:
            return float("inf")

        return anyio.current_time() + self.deadline - time.monotonic()


BACKGROUND: Final = Scope()
"""Never ends and carries nothing: what a run hangs on where nobody says otherwise."""
