"""Session state, as a call reads and writes it."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any


class State:
    """A view of the session's state that files every write for the event, too.

    `set` writes the delta first, then the live session; if the session refuses, the delta
    keeps the value. `get` reads the delta first. Iterating shows the live session alone.
    """

    __slots__ = ("_delta", "_live")

    def __init__(self, live: MutableMapping[str, Any], delta: dict[str, Any] | None) -> None:
        self._live = live
        self._delta = delta

    def get(self, key: str) -> Any:
        """The value under `key`, newest first.

        Raises:
            KeyError: Neither this call nor the session has the key.
        """
        if self._delta is not None and key in self._delta:
            return self._delta[key]

        return self._live[key]

    def set(self, key: str, value: Any) -> None:
        """File `value` for the event, then write it to the live session."""
        if self._delta is not None:
            self._delta[key] = value

        self._live[key] = value

    def all(self) -> Iterator[tuple[str, Any]]:
        """Every pair of the live session, whatever this call has filed."""
        return iter(list(self._live.items()))
