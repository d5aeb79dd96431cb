"""Telling clients that what they know has changed: soon, and not too often."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import anyio

INTERVAL = 0.5
"""Seconds in which any number of changes are told as one."""

News: TypeAlias = Callable[[str, dict[str, Any]], None]
"""Takes one change, the method and params of its notification; never blocks, never raises."""


class Changes:
    """One server's news, from whoever makes them to whoever listens."""

    def __init__(self, interval: float = INTERVAL) -> None:
        self._interval = interval
        self._news: dict[tuple[str, str], dict[str, Any]] = {}
        self._changed = anyio.Event()
        self._listeners: dict[object, News] = {}

    def follow(self, listener: News) -> Callable[[], object]:
        """Have `listener` called after each change; returns what ends that."""
        token = object()
        self._listeners[token] = listener
        return partial(self._listeners.pop, token, None)

    def take(self, method: str, params: dict[str, Any]) -> None:
        """Note one change. Lists that change again, or one resource, are told once."""
        self._news[method, str(params.get("uri", ""))] = params
        self._changed.set()

    async def relay(self) -> None:
        """Tell the listeners what was noted, until cancelled. Run this in one task."""
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            news, self._news = self._news, {}
            for (method, _), params in news.items():
                for listener in list(self._listeners.values()):
                    listener(method, params)

            await anyio.sleep(self._interval)
