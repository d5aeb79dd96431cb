"""The time that requests have left where each runs inside a block with a deadline."""

from __future__ import annotations

import math
from typing import Protocol

import anyio


class Timed(Protocol):
    """A block that ends at its deadline, which may be set; infinite for never."""

    deadline: float


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
