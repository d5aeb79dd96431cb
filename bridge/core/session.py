"""A conversation as it is held in memory while something runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from bridge.core.event import Event

NEVER: Final = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, order=True)
class SessionKey:
    """Which session: of which app, of which user. An id of "" stands for one yet to be made."""

    app_name: str
    user_id: str
    session_id: str = ""


@dataclass(slots=True)
class Session:
    """Who talks, in which app, and what is remembered.

    `revision` says which append of the stored session this copy has seen; a service compares
    it, so that a copy that is behind never overwrites what it has not seen.
    """

    id: str
    user_id: str = "local"
    app_name: str = "bridge"
    state: dict[str, Any] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    updated_at: datetime = NEVER
    revision: int = 0

    @property
    def key(self) -> SessionKey:
        """The key under which a service stores it."""
        return SessionKey(self.app_name, self.user_id, self.id)

    def apply(self, event: Event, revision: int) -> None:
        """Take in an event that a service has stored.

        Every key of its state delta is written to the state, `temp:` ones too; the event that
        joins the history is without these, and `event` itself is unchanged (§14.4).
        """
        self.state.update(event.actions.state_delta or {})
        self.events.append(event.without_temporary_state())
        self.updated_at = event.timestamp
        self.revision = revision
