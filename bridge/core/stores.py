"""What a run asks of the places where things rest. Implementations are in `bridge.stores`.

Everything is kept by `SessionKey`, so by app and user first: nothing here can reach from one
user to another. State, events and results are JSON, in memory as in a database, so that to
change the place changes nothing else; a value that is not JSON is refused as a `StoreError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from bridge.core.content import Args, FunctionCall, Part, Result
from bridge.core.event import Event
from bridge.core.memory import MemoryEntry
from bridge.core.session import Session, SessionKey


class SessionService(Protocol):
    """Conversations. What it hands out is held by the caller and changes nothing that rests."""

    async def create(self, key: SessionKey, state: Mapping[str, Any] | None = None) -> Session:
        """A new session; an id is made where the key has none.

        `app:` and `user:` keys of the first state go to where they are shared. `temp:` keys are
        in the returned copy alone.

        Raises:
            SessionExists: The key is taken; of many who ask at once, one gets it.
            StoreError: App or user is missing, or the state is not JSON.
        """
        ...

    async def get(
        self, key: SessionKey, *, newest: int | None = None, after: datetime | None = None
    ) -> Session:
        """The session with its newest `newest` events, and of these the ones not before `after`.

        Its state is its own, the app's under `app:` and the user's under `user:`.

        Raises:
            SessionNotFound: No session has that key.
        """
        ...

    async def list(self, app_name: str, user_id: str = "") -> Sequence[Session]:
        """The app's sessions, of one user or of all, without events, sorted by user and id."""
        ...

    async def delete(self, key: SessionKey) -> None:
        """Forget the session, if there is one. What is the app's or the user's stays."""
        ...

    async def append_event(self, session: Session, event: Event) -> None:
        """Store an event, then let the held `session` take it in; a partial one does nothing.

        The caller's event is never changed. Its `temp:` state reaches the held session alone.

        Raises:
            StaleSession: Something was appended that `session` has not seen; nothing is stored.
            SessionNotFound: No session has that key (any more).
            StoreError: The event is not JSON.
            TypeError: `session` is not a Session, or `event` not an Event.
        """
        ...


class ArtifactService(Protocol):
    """Files, in versions 1, 2, 3, …; a name that begins with `user:` is shared by sessions."""

    async def save(self, key: SessionKey, name: str, part: Part) -> int:
        """Store a new version and return its number; saves at the same time get different ones.

        Raises:
            StoreError: Name or key is unfit, or the part is too large.
        """
        ...

    async def load(self, key: SessionKey, name: str, version: int | None = None) -> Part:
        """One version, the newest where none is named.

        Raises:
            ArtifactNotFound: There is no such name, or no such version.
        """
        ...

    async def list(self, key: SessionKey) -> Sequence[str]:
        """The names in this session, and the user's own; sorted."""
        ...

    async def versions(self, key: SessionKey, name: str) -> Sequence[int]:
        """The versions there are, oldest first.

        Raises:
            ArtifactNotFound: There is no such name.
        """
        ...

    async def delete(self, key: SessionKey, name: str, version: int | None = None) -> None:
        """Forget one version, or all; what is not there is forgotten already."""
        ...


class MemoryService(Protocol):
    """What was said in sessions, to be found again by what it says."""

    async def add_session(self, session: Session) -> None:
        """Remember what was said in the session; what is known already is known once."""
        ...

    async def search(self, app_name: str, user_id: str, query: str) -> Sequence[MemoryEntry]:
        """What one user of one app said or was told that fits `query`, best first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A person's answer to one question, and what came of it.

    `call` is the call as it was sent, `args` the arguments as the person edited them (None: not
    at all) and `hash` the name of the effective call that the answer is about. `decided_at`,
    `answered_at` and `response` are the store's to fill in; `answered_at` is None until the
    call's response is recorded, which may itself be None.
    """

    confirmation_id: str
    confirmed: bool
    call: FunctionCall
    args: Args | None = None
    hash: str | None = None
    decided_at: datetime | None = None
    answered_at: datetime | None = None
    response: Result | None = None


class ApprovalStore(Protocol):
    """The ledger of decisions: a confirmation is spent by its first one, for ever.

    It is asked before a call runs, so two processes that resume the same run at once run the
    call once: whoever is told False runs nothing.
    """

    async def spend(self, key: SessionKey, decision: Decision) -> bool:
        """Record the first decision on `decision.confirmation_id`; False if there is one.

        Raises:
            StoreError: Key or id is unfit, or the arguments are not JSON.
        """
        ...

    async def find(self, key: SessionKey, confirmation_id: str) -> Decision | None:
        """The decision that spent it; None while it is unspent."""
        ...

    async def record(self, key: SessionKey, confirmation_id: str, response: Result | None) -> bool:
        """Keep the call's response; False if one is kept already.

        Raises:
            StoreError: The confirmation is unspent, or the response is not JSON.
        """
        ...
