"""Legacy sessions over Streamable HTTP: who has one, what streams it has, and when it ends."""

from __future__ import annotations

import itertools
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from bridge.downstream.client import Client, Message
from bridge.downstream.front import Front
from bridge.downstream.streams import EventStream

SWEEP_SECONDS = 60.0
KEPT_STREAMS: Final = 16
"""Streams of one session that can be resumed; an older one that has ended is forgotten."""

PRIMED_SINCE = "2025-11-25"
"""Older clients fail on an event without data (MCP 2025-11-25, transports)."""


class Session:
    """One legacy client's session."""

    UNASKED: Final = "0"
    """The name of the stream of what belongs to no request."""

    def __init__(self, name: str, client: Client) -> None:
        self.name = name
        self.client = client
        self.open_requests = 0
        self.last_used = time.monotonic()
        self._numbers = itertools.count(1)
        self._streams: OrderedDict[str, EventStream] = OrderedDict()
        self._unasked: EventStream | None = None
        client.push = self.push

    def stream(self) -> EventStream:
        """A new stream, for one response."""
        name = f"{self.client.mark}{next(self._numbers)}"
        made = EventStream(name, primes=self.client.version >= PRIMED_SINCE)
        self._streams[name] = made
        while len(self._streams) > KEPT_STREAMS:
            ended = next((key for key, one in self._streams.items() if one.is_ended), None)
            if ended is None:
                break

            del self._streams[ended]

        return made

    @property
    def unasked(self) -> EventStream:
        """The stream of what belongs to no request, which a GET opens."""
        if self._unasked is None:
            self._unasked = EventStream(self.UNASKED, primes=self.client.version >= PRIMED_SINCE)

        return self._unasked

    def push(self, message: Message) -> None:
        """Tell the client something outside of any request."""
        self.unasked.post(message)

    def found(self, name: str) -> EventStream | None:
        """The stream of that name, if it is still kept."""
        return self.unasked if name == self.UNASKED else self._streams.get(name)

    def end(self) -> None:
        """End every stream."""
        for stream in (self._unasked, *self._streams.values()):
            if stream is not None:
                stream.end()


class Sessions:
    """All sessions of one front, each its principal's alone."""

    def __init__(self, front: Front, most: int, idle_seconds: float, mark: str = "") -> None:
        """`mark` begins the names of all sessions here, where several processes serve."""
        self._front = front
        self._most = most
        self.idle_seconds = idle_seconds
        self._mark = mark
        self._sessions: dict[str, Session] = {}
        self._looked_at = time.monotonic()
        self.on_end: Callable[[Session], Awaitable[None]] | None = None

    @property
    def is_full(self) -> bool:
        """Whether no further client can be taken."""
        return len(self._sessions) >= self._most

    def __len__(self) -> int:
        """How many are open that began here; copies of others are counted where these began."""
        return sum(name.startswith(self._mark) for name in self._sessions)

    def add(self, principal: str) -> Session:
        """Make a session that nobody else can name."""
        name = self._mark + secrets.token_hex(16)
        return self.copy(name, Client(principal, name, mark=self._mark))

    def copy(self, name: str, client: Client) -> Session:
        """Take a session that has its name already, where another process began it."""
        session = self._sessions[name] = Session(name, client)
        self._front.open(client)
        return session

    def named(self, name: object) -> Session | None:
        """The session of that name, whosever it is; this is no use of it."""
        return self._sessions.get(name) if isinstance(name, str) else None

    def use(self, name: str) -> None:
        """Note that a session, if it is still there, is in use."""
        session = self._sessions.get(name)
        if session is not None:
            session.last_used = time.monotonic()

    def all_of(self, mark: str) -> list[Session]:
        """The sessions that another process began."""
        return [one for name, one in self._sessions.items() if name.startswith(mark)]

    def lately_used(self) -> list[Session]:
        """The sessions in use, now or since this was asked last."""
        since, self._looked_at = self._looked_at, time.monotonic()
        everyone = self._sessions.values()
        return [one for one in everyone if one.open_requests or one.last_used >= since]

    def get(self, name: str, principal: str) -> Session | None:
        """The session of that name, if it is this principal's."""
        session = self._sessions.get(name)
        if session is None or session.client.principal != principal:
            return None

        session.last_used = time.monotonic()
        return session

    async def end(self, session: Session) -> None:
        """End a session and all that runs in it."""
        if self._sessions.pop(session.name, None) is not None:
            await self._front.closed(session.client)
            session.end()
            if self.on_end is not None:
                await self.on_end(session)

    async def run(self) -> None:
        """End sessions that nobody uses, until cancelled. Run this in one task."""
        while True:
            await anyio.sleep(min(SWEEP_SECONDS, self.idle_seconds))
            oldest = time.monotonic() - self.idle_seconds
            for session in list(self._sessions.values()):
                if session.last_used < oldest and not session.open_requests:
                    await self.end(session)

    def end_streams(self) -> None:
        """End the streams that belong to no request: this server is closing."""
        for session in self._sessions.values():
            session.end()
