"""Sessions in a database, for several processes at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, select, update

from bridge.core.event import Event
from bridge.core.identity import random_id, utc_now
from bridge.core.session import Session, SessionKey
from bridge.core.state import ScopedState, split_state, temporary_state
from bridge.errors import SessionExists, SessionNotFound, StaleSession
from bridge.stores.database import Database, Row, add, put
from bridge.stores.records import (
    check_append,
    check_id,
    check_key,
    check_owner,
    first_revision,
    from_micros,
    pack_event,
    pack_state,
    to_micros,
    unpack_event,
    unpack_state,
)
from bridge.stores.schema import events, sessions
from bridge.stores.schema import state as state_table


class SqlSessionService:
    """A `SessionService` over a database.

    An append compares the held session's revision with the stored one in the very statement
    that moves it on, so of two processes that hold the same revision one appends and the other
    is told that its session is stale.
    """

    def __init__(
        self,
        database: Database,
        *,
        clock: Callable[[], datetime] = utc_now,
        new_id: Callable[[], str] = random_id,
    ) -> None:
        self._database = database
        self._clock = clock
        self._new_id = new_id

    async def create(self, key: SessionKey, state: Mapping[str, Any] | None = None) -> Session:
        """A new session; see `SessionService.create`."""
        check_owner(key.app_name, key.user_id)
        key = key if key.session_id else replace(key, session_id=self._new_id())
        check_key(key)
        session = _columns(key) | {
            "revision": first_revision(),
            "updated_at": to_micros(self._clock()),
        }
        rows = _state_rows(key, state or {})

        def work(connection: Connection) -> Session:
            if not add(connection, sessions, session):
                raise SessionExists(f'session "{key.session_id}" already exists')

            put(connection, state_table, rows)
            return _held(
                key, session, _states(connection, key.app_name, key.user_id, key.session_id)
            )

        created = await self._database.write(work)
        created.state.update(temporary_state(state or {}))
        return created

    async def get(
        self, key: SessionKey, *, newest: int | None = None, after: datetime | None = None
    ) -> Session:
        """The session with some or all of its events; see `SessionService.get`."""
        check_key(key)

        def work(connection: Connection) -> tuple[Session, Sequence[str]]:
            found = connection.execute(select(sessions).where(_is(sessions, key))).one_or_none()
            if found is None:
                raise SessionNotFound(f'there is no session "{key.session_id}"')

            states = _states(connection, key.app_name, key.user_id, key.session_id)
            held = _held(key, found._asdict(), states)
            return held, _history(connection, key, newest, after)

        session, history = await self._database.read(work)
        session.events.extend(unpack_event(text) for text in history)
        return session

    async def list(self, app_name: str, user_id: str = "") -> Sequence[Session]:
        """The app's sessions without events; see `SessionService.list`."""
        check_id(app_name, "app name")
        wanted = sessions.c.app_name == app_name
        if user_id:
            wanted = and_(wanted, sessions.c.user_id == user_id)

        def work(connection: Connection) -> list[Session]:
            found = connection.execute(select(sessions).where(wanted)).all()
            states = _states(connection, app_name, user_id)
            return [_held(_key(row._asdict()), row._asdict(), states) for row in found]

        listed = await self._database.read(work)
        return sorted(listed, key=lambda session: session.key)

    async def delete(self, key: SessionKey) -> None:
        """Forget the session, if there is one."""
        check_key(key)

        def work(connection: Connection) -> None:
            for table in (sessions, events, state_table):
                connection.execute(delete(table).where(_is(table, key)))

        await self._database.write(work)

    async def append_event(self, session: Session, event: Event) -> None:
        """Store an event, then let the held session take it in."""
        check_append(session, event)
        if event.partial:
            return

        key, revision = session.key, session.revision
        row = _columns(key) | {
            "position": revision + 1,
            "timestamp": to_micros(event.timestamp),
            "event": pack_event(event.without_temporary_state()),
        }
        rows = _state_rows(key, event.actions.state_delta or {})

        def work(connection: Connection) -> None:
            _move_on(connection, key, revision, row["timestamp"])
            connection.execute(events.insert().values(**row))
            put(connection, state_table, rows)

        await self._database.write(work)
        session.apply(event, revision + 1)


def _move_on(connection: Connection, key: SessionKey, revision: int, updated_at: int) -> None:
    """Count one more event in, if the session is where the caller holds it to be."""
    mine = _is(sessions, key)
    held = and_(mine, sessions.c.revision == revision)
    values = {"revision": revision + 1, "updated_at": updated_at}
    if connection.execute(update(sessions).where(held).values(values)).rowcount == 1:
        return

    if connection.execute(select(sessions.c.revision).where(mine)).first() is None:
        raise SessionNotFound(f'there is no session "{key.session_id}" to append to')

    raise StaleSession(
        f'session "{key.session_id}" has changed since it was read; get it anew, then retry'
    )


def _history(
    connection: Connection, key: SessionKey, newest: int | None, after: datetime | None
) -> list[str]:
    """The texts of the newest events, of these the ones not before a moment, oldest first."""
    wanted = select(events.c.timestamp, events.c.event).where(_is(events, key))
    wanted = wanted.order_by(events.c.position.desc()).limit(newest)
    since = None if after is None else to_micros(after)
    found = connection.execute(wanted).all()
    return [text for at, text in reversed(found) if since is None or at >= since]


def _states(
    connection: Connection, app_name: str, user_id: str = "", session_id: str = ""
) -> dict[SessionKey, dict[str, str]]:
    """The packed state of an app and its users and sessions, by whose it is.

    With a user, of that user alone; with a session, of that session alone.
    """
    wanted = select(state_table).where(state_table.c.app_name == app_name)
    if user_id:
        wanted = wanted.where(state_table.c.user_id.in_(("", user_id)))

    if session_id:
        wanted = wanted.where(state_table.c.session_id.in_(("", session_id)))

    states: dict[SessionKey, dict[str, str]] = {}
    for row in connection.execute(wanted):
        states.setdefault(_key(row._asdict()), {})[row.key] = row.value

    return states


def _held(key: SessionKey, row: Row, states: Mapping[SessionKey, dict[str, str]]) -> Session:
    app, user, own = (states.get(owner, {}) for owner in _owners(key))
    return Session(
        id=key.session_id,
        user_id=key.user_id,
        app_name=key.app_name,
        state=unpack_state(ScopedState(app, user, own).merged()),
        updated_at=from_micros(row["updated_at"]),
        revision=row["revision"],
    )


def _owners(key: SessionKey) -> tuple[SessionKey, SessionKey, SessionKey]:
    """Whose state a session shows: the app's, the user's and its own."""
    return SessionKey(key.app_name, ""), SessionKey(key.app_name, key.user_id), key


def _state_rows(key: SessionKey, state: Mapping[str, Any]) -> list[Row]:
    scoped = split_state(state)
    parts: Iterable[dict[str, Any]] = (scoped.app, scoped.user, scoped.session)
    return [
        _columns(owner) | {"key": name, "value": value}
        for owner, part in zip(_owners(key), parts, strict=True)
        for name, value in pack_state(part).items()
    ]


def _key(row: Row) -> SessionKey:
    return SessionKey(row["app_name"], row["user_id"], row["session_id"])


def _columns(key: SessionKey) -> dict[str, Any]:
    return {"app_name": key.app_name, "user_id": key.user_id, "session_id": key.session_id}


def _is(table: Table, key: SessionKey) -> ColumnElement[bool]:
    return and_(*(table.c[name] == value for name, value in _columns(key).items()))
