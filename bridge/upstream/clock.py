"""Blocks with a deadline, and what stops their time: a client or a person is asked meanwhile."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import anyio


class Timed(Protocol):
    """A block that ends at its deadline, which may be set; infinite for never."""

    deadline: float


class Pausable(Protocol):
    """What keeps the time of requests by their numbers; a `questions.Clock`."""

    def pause(self, number: int) -> None:
        """Stop a request's time."""
        ...

    def resume(self, number: int) -> None:
        """Let it go on."""
        ...


CONNECTING: ContextVar[Timed | None] = ContextVar("connecting", default=None)
"""The block in which a connection is being made, for what runs inside of it."""


@contextmanager
def standing_still(*blocks: Timed) -> Iterator[None]:
    """Let no time pass for these blocks, nor for the connecting that this is part of."""
    connecting = CONNECTING.get()
    stopped = blocks if connecting is None else (*blocks, connecting)
    now = anyio.current_time()
    left = [(block, block.deadline - now) for block in stopped]
    for block in stopped:
        block.deadline = math.inf

    try:
        yield
    finally:
        now = anyio.current_time()
        for block, seconds in left:
            block.deadline = now + seconds


class Clock:
    """The blocks of requests under way, by their numbers; a `questions.Clock`."""

    def __init__(self) -> None:
        self.scopes: dict[int, Timed] = {}
        self._left: dict[int, float] = {}

    def pause(self, number: int) -> None:
        """Stop a request's time."""
        scope = self.scopes.get(number)
        if scope is not None:
            self._left[number] = scope.deadline - anyio.current_time()
            scope.deadline = math.inf

    def resume(self, number: int) -> None:
        """Let it go on."""
        left, scope = self._left.pop(number, None), self.scopes.get(number)
        if left is not None and scope is not None:
            scope.deadline = anyio.current_time() + left


class Counted:
    """A request's time as a block's deadline, where a clock keeps it by the request's number.

    Only whether the deadline is infinite tells: the clock knows the rest.
    """

    def __init__(self, clock: Pausable, number: int) -> None:
        self._clock = clock
        self._number = number

    @property
    def deadline(self) -> float:
        """Unknown here, and so long past."""
        return -math.inf

    @deadline.setter
    def deadline(self, when: float) -> None:
        if when == math.inf:
            self._clock.pause(self._number)
        else:
            self._clock.resume(self._number)
