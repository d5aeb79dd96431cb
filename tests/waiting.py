"""Waiting in tests: for a condition where nothing signals, never for an amount of time."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")

PATIENCE = 30.0  # seconds: generous, since only a failing test ever waits so long
STEP = 0.02


async def eventually(
    condition: Callable[[], T] | Callable[[], Awaitable[T]], within: float = PATIENCE
) -> T:
    """Ask again and again until the condition holds; return what it gave.

    The condition may be a coroutine function. An AssertionError in it counts as "not yet".

    Raises:
        AssertionError: It did not hold `within` so many seconds.
    """
    last: object = None
    with anyio.move_on_after(within):
        while True:
            try:
                value = condition()
                last = await value if inspect.isawaitable(value) else value
            except AssertionError as exc:
                last = exc
            else:
                if last:
                    return last

            await anyio.sleep(STEP)

    name = getattr(condition, "__qualname__", repr(condition))
    raise AssertionError(f"{name} did not hold within {within:g} s; it gave {last!r}")
