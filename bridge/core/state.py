"""Session state, as a call reads and writes it, and what its key prefixes mean (§13.6, §14.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

from bridge.core.delta import UNSET
from bridge.errors import BridgeError, NoSuchStateKey

APP_PREFIX: Final = "app:"
"""Keys that all users of an app share."""
USER_PREFIX: Final = "user:"
"""Keys that all sessions of one user share."""
TEMP_PREFIX: Final = "temp:"
"""Keys that live in the held session alone and never rest."""


class State:
    """A view of the session's state that files every write for the event, too.

    `set` writes the delta first, then the live session; if the session refuses, the delta
    keeps the value. `get` reads the delta first. Iterating shows the live session alone.
    Editing a fetched value in place is seen by nobody who looks for changes: call `set`.
    """

    __slots__ = ("_delta", "_live")

    def __init__(self, live: MutableMapping[str, Any] | None, delta: dict[str, Any] | None) -> None:
        self._live = live
        self._delta = delta

    def get(self, key: str, default: Any = UNSET) -> Any:
        """The value under `key`, newest first; `default`, if given, where there is none.

        Raises:
            NoSuchStateKey: Neither this call nor the session has the key (also a KeyError).
            BridgeError: There is no session to look in.
        """
        if self._delta is not None and key in self._delta:
            return self._delta[key]

        if self._live is None:
            raise BridgeError(f'cannot get key "{key}" from state: there is no session')

        if key in self._live:
            return self._live[key]

        if default is UNSET:
            raise NoSuchStateKey(
                f'the state has no key "{key}"; read it with get("{key}", default) if it may lack'
            )

        return default

    def set(self, key: str, value: Any) -> None:
        """File `value` for the event, then write it to the live session.

        Raises:
            BridgeError: There is no session to write to; the value stays filed.
        """
        if self._delta is not None:
            self._delta[key] = value

        if self._live is None:
            raise BridgeError(f'cannot set key "{key}" to state: there is no session')

        self._live[key] = value

    def all(self) -> Iterator[tuple[str, Any]]:
        """Every pair of the live session, whatever this call has filed.

        Raises:
            BridgeError: There is no session.
        """
        if self._live is None:
            raise BridgeError("cannot list the state: there is no session")

        return iter(list(self._live.items()))


@dataclass(frozen=True, slots=True)
class ScopedState:
    """One mapping of state, split by who shares it; `app` and `user` keys are without prefix."""

    app: dict[str, Any] = field(default_factory=dict)
    user: dict[str, Any] = field(default_factory=dict)
    session: dict[str, Any] = field(default_factory=dict)

    def merged(self) -> dict[str, Any]:
        """As a session shows it: its own keys, then the app's, then the user's, prefixed."""
        merged = dict(self.session)
        merged.update((APP_PREFIX + key, value) for key, value in self.app.items())
        merged.update((USER_PREFIX + key, value) for key, value in self.user.items())
        return merged


def split_state(state: Mapping[str, Any]) -> ScopedState:
    """Sort keys by their prefix; what is `temp:` is in none of the three."""
    split = ScopedState()
    for key, value in state.items():
        if key.startswith(APP_PREFIX):
            split.app[key.removeprefix(APP_PREFIX)] = value
        elif key.startswith(USER_PREFIX):
            split.user[key.removeprefix(USER_PREFIX)] = value
        elif not key.startswith(TEMP_PREFIX):
            split.session[key] = value

    return split


def temporary_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """The `temp:` keys of a state, as they are."""
    return {key: value for key, value in state.items() if key.startswith(TEMP_PREFIX)}
