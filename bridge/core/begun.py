"""A coroutine after its first step: what is there at once needs no deadline and no timer."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Begun(Generic[T]):
    """`work`, as far as it comes without waiting; awaited, it goes on, in the same task.

    Whatever its first step raises is raised here.
    """

    __slots__ = ("_waits_for", "_work", "is_done", "result")

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self.is_done = False
        try:
            self._waits_for = work.send(None)
        except StopIteration as done:
            self.is_done = True
            self.result: T = done.value

    def __await__(self) -> Generator[Any, Any, T]:
        """Go on to the end; once, and only if it is not done."""
        waits_for = self._waits_for
        while True:
            try:
                sent = yield waits_for
            except BaseException as exc:  # a cancellation above all: it is the work's to take
                error: BaseException | None = exc
            else:
                error = None

            try:
                waits_for = self._work.send(sent) if error is None else self._work.throw(error)
            except StopIteration as done:
                result: T = done.value
                return result
