"""Where new ids and the current time come from: a run's scope may bring its own."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from bridge.core.scope import BACKGROUND, Key, Scope

NEW_ID: Final[Key[Callable[[], str]]] = Key("maker of ids")
NOW: Final[Key[Callable[[], datetime]]] = Key("clock")


def random_id() -> str:
    """A random UUID, as text."""
    return str(uuid.uuid4())


def utc_now() -> datetime:
    """The current time, in UTC."""
    return datetime.now(UTC)


def new_id(scope: Scope = BACKGROUND) -> str:
    """A fresh id: from the scope's own maker where it has one, so that runs can be repeated."""
    make = scope.value(NEW_ID)
    return random_id() if make is None else make()


def now(scope: Scope = BACKGROUND) -> datetime:
    """The current time: from the scope's own clock where it has one."""
    clock = scope.value(NOW)
    return utc_now() if clock is None else clock()
