"""Stores that live as long as the process: for tests, demos and child runs.

What they keep is packed as in a database, so that nothing a caller holds is shared with what
rests. Every method runs without interruption on its event loop; use one instance on one loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from bridge.core.content import Part, Result
from bridge.core.event import Event
from bridge.core.identity import random_id, utc_now
from bridge.core.session import Session, SessionKey
from bridge.core.state import ScopedState, split_state, temporary_state
from bridge.core.stores import Decision
from bridge.errors import (
    ArtifactNotFound,
    SessionExists,
    SessionNotFound,
    StaleSession,
)
from bridge.stores.decisions import pack_decision, unpack_decision, unspent
from bridge.stores.parts import (
    PackedPart,
    artifact_owner,
    artifact_owners,
    pack_part,
    unpack_part,
)
from bridge.stores.records import (
    check_append,
    check_id,
    check_key,
    check_owner,
    first_revision,
    pack,
    pack_event,
    pack_state,
    to_micros,
    unpack_event,
    unpack_state,
)

Packed = dict[str, str]


@dataclass(slots=True)
class _Stored:
    """A session at rest."""

    state: Packed
    updated_at: datetime
    revision: int
    events: list[tuple[datetime, str]] = field(default_factory=list)


class InMemorySessionService:
    """A `SessionService` in dictionaries."""

    def __init__(
        self, *, clock: Callable[[], datetime] = utc_now, new_id: Callable[[], str] = random_id
    ) -> None:
        self._clock = clock
        self._new_id = new_id
        self._sessions: dict[SessionKey, _Stored] = {}
        self._app_state: dict[str, Packed] = {}
        self._user_state: dict[tuple[str, str], Packed] = {}

    async def create(self, key: SessionKey, state: Mapping[str, Any] | None = None) -> Session:
        """A new session; see `SessionService.create`."""
        check_owner(key.app_name, key.user_id)
        key = key if key.session_id else replace(key, session_id=self._new_id())
        check_key(key)
        if key in self._sessions:
            raise SessionExists(f'session "{key.session_id}" already exists')

        shared = split_state(state or {})
        own = pack_state(shared.session)
        self._share(key, shared)
        self._sessions[key] = _Stored(own, self._clock(), first_revision())
        created = self._held(key, self._sessions[key], [])
        created.state.update(temporary_state(state or {}))
        return created

    async def get(
        self, key: SessionKey, *, newest: int | None = None, after: datetime | None = None
    ) -> Session:
        """The session with some or all of its events; see `SessionService.get`."""
        check_key(key)
        stored = self._stored(key)
        skipped = 0 if newest is None else max(len(stored.events) - newest, 0)
        events = stored.events[skipped:]
        return self._held(
            key, stored, [text for at, text in events if after is None or at >= after]
        )

    async def list(self, app_name: str, user_id: str = "") -> Sequence[Session]:
        """The app's sessions without events; see `SessionService.list`."""
        return [
            self._held(key, stored, [])
            for key, stored in sorted(self._sessions.items(), key=lambda pair: pair[0])
            if key.app_name == app_name and user_id in ("", key.user_id)
        ]

    async def delete(self, key: SessionKey) -> None:
        """Forget the session, if there is one."""
        check_key(key)
        self._sessions.pop(key, None)

    async def append_event(self, session: Session, event: Event) -> None:
        """Store an event, then let the held session take it in."""
        check_append(session, event)
        if event.partial:
            return

        stored = self._stored(session.key)
        if stored.revision != session.revision:
            raise StaleSession(
                f'session "{session.id}" has changed since it was read; get it anew, then retry'
            )

        packed = pack_event(event.without_temporary_state())
        shared = split_state(event.actions.state_delta or {})
        own = pack_state(shared.session)
        self._share(session.key, shared)
        stored.state.update(own)
        stored.events.append((event.timestamp, packed))
        stored.updated_at = event.timestamp
        stored.revision += 1
        session.apply(event, stored.revision)

    def _stored(self, key: SessionKey) -> _Stored:
        stored = self._sessions.get(key)
        if stored is None:
            raise SessionNotFound(f'there is no session "{key.session_id}"')

        return stored

    def _share(self, key: SessionKey, state: ScopedState) -> None:
        app, user = pack_state(state.app), pack_state(state.user)
        self._app_state.setdefault(key.app_name, {}).update(app)
        self._user_state.setdefault((key.app_name, key.user_id), {}).update(user)

    def _held(self, key: SessionKey, stored: _Stored, events: Sequence[str]) -> Session:
        state = ScopedState(
            app=unpack_state(self._app_state.get(key.app_name, {})),
            user=unpack_state(self._user_state.get((key.app_name, key.user_id), {})),
            session=unpack_state(stored.state),
        )
        return Session(
            id=key.session_id,
            user_id=key.user_id,
            app_name=key.app_name,
            state=state.merged(),
            events=[unpack_event(text) for text in events],
            updated_at=stored.updated_at,
            revision=stored.revision,
        )


class InMemoryApprovalStore:
    """An `ApprovalStore` in a dictionary."""

    def __init__(self, *, clock: Callable[[], datetime] = utc_now) -> None:
        self._clock = clock
        self._rows: dict[tuple[SessionKey, str], dict[str, Any]] = {}

    async def spend(self, key: SessionKey, decision: Decision) -> bool:
        """Record the first decision on a confirmation; see `ApprovalStore.spend`."""
        row = pack_decision(key, decision, self._clock())
        return self._rows.setdefault((key, decision.confirmation_id), row) is row

    async def find(self, key: SessionKey, confirmation_id: str) -> Decision | None:
        """The decision that spent it; None while it is unspent."""
        row = self._rows.get(self._place(key, confirmation_id))
        return None if row is None else unpack_decision(row)

    async def record(self, key: SessionKey, confirmation_id: str, response: Result | None) -> bool:
        """Keep the call's response; see `ApprovalStore.record`."""
        packed = pack(response, "the response to a decision")
        row = self._rows.get(self._place(key, confirmation_id))
        if row is None:
            raise unspent(confirmation_id)

        if row["answered_at"] is not None:
            return False

        row.update(answered_at=to_micros(self._clock()), response=packed)
        return True

    def _place(self, key: SessionKey, confirmation_id: str) -> tuple[SessionKey, str]:
        check_key(key)
        check_id(confirmation_id, "confirmation id")
        return key, confirmation_id


class InMemoryArtifactService:
    """An `ArtifactService` in dictionaries."""

    def __init__(self) -> None:
        self._artifacts: dict[SessionKey, dict[str, dict[int, PackedPart]]] = {}

    async def save(self, key: SessionKey, name: str, part: Part) -> int:
        """Store a new version and return its number; see `ArtifactService.save`."""
        owner = artifact_owner(key, name)
        packed = pack_part(name, part)
        versions = self._artifacts.setdefault(owner, {}).setdefault(name, {})
        version = max(versions, default=0) + 1
        versions[version] = packed
        return version

    async def load(self, key: SessionKey, name: str, version: int | None = None) -> Part:
        """One version, the newest where none is named."""
        versions = self._versions(key, name)
        packed = versions.get(max(versions) if version is None else version)
        if packed is None:
            raise ArtifactNotFound(f'artifact "{name}" has no version {version}')

        return unpack_part(packed)

    async def list(self, key: SessionKey) -> Sequence[str]:
        """The names in this session, and the user's own; sorted."""
        owners = artifact_owners(key)
        return sorted(name for owner in owners for name in self._artifacts.get(owner, {}))

    async def versions(self, key: SessionKey, name: str) -> Sequence[int]:
        """The versions there are, oldest first."""
        return sorted(self._versions(key, name))

    async def delete(self, key: SessionKey, name: str, version: int | None = None) -> None:
        """Forget one version, or all."""
        names = self._artifacts.get(artifact_owner(key, name), {})
        versions = names.get(name, {})
        if version is not None:
            versions.pop(version, None)

        if version is None or not versions:
            names.pop(name, None)

    def _versions(self, key: SessionKey, name: str) -> dict[int, PackedPart]:
        versions = self._artifacts.get(artifact_owner(key, name), {}).get(name)
        if not versions:
            raise ArtifactNotFound(f'there is no artifact "{name}"')

        return versions
