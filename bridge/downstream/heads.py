"""Connections that begin a request and never finish its head: uvicorn would keep them for ever."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any

import anyio

LOOKS = 4
"""How often it is looked in the time that a head may take."""


async def end_slow_heads(connections: Callable[[], Collection[Any]], seconds: float) -> None:
    """Close every connection on which the head of a request is overdue, until cancelled.

    `connections` gives uvicorn's protocols, of either parser. One waits for a head while it
    serves no request and is not idle between two, which uvicorn times by itself.
    """
    waiting: dict[Any, tuple[Any, float]] = {}
    while True:
        await anyio.sleep(seconds / LOOKS)
        now, before = time.monotonic(), waiting
        waiting = {}
        for one in list(connections()):
            if not _waits_for_head(one):
                continue

            last, since = before.get(one, (None, now))
            if last is not one.cycle:  # it has served a request meanwhile
                since = now

            if now - since >= seconds:
                one.transport.close()
            else:
                waiting[one] = one.cycle, since


def _waits_for_head(connection: Any) -> bool:
    cycle = connection.cycle
    is_idle = connection.timeout_keep_alive_task is not None
    return (cycle is None or cycle.response_complete) and not is_idle
