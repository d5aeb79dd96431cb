"""Legacy sessions and sealed states among several processes that serve one address.

A session is at home in the process that answered its `initialize`: that one has its streams,
follows changes for it and ends it. Any other makes a copy when a request of the session first
lands there, by asking; with that it serves plain requests by itself. Only what changes the
session, or needs what another process has, goes to that process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import anyio
from anyio.abc import TaskGroup
from starlette.types import ASGIApp, Receive, Scope, Send

from bridge.downstream.client import Client, Message
from bridge.downstream.front import ROOTS_CHANGED, Front
from bridge.downstream.guard import Refused
from bridge.downstream.neighbours import FORWARDED, Neighbours
from bridge.downstream.sealed import after_kind, is_ours
from bridge.downstream.sessions import SWEEP_SECONDS, Session, Sessions
from bridge.downstream.streams import event_id
from bridge.upstream.protocol import CANCELLED, INITIALIZED, SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE

AT_HOME: Final = frozenset(
    {SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE},
)
"""The requests of a legacy session that change it."""

LAST_EVENT: Final = "last-event-id"
TASKS: Final = "tasks/"


class Spread:
    """One front's part in what several processes serve together."""

    def __init__(self, front: Front, sessions: Sessions, neighbours: Neighbours) -> None:
        self._front = front
        self._sessions = sessions
        self._neighbours = neighbours
        self._fetching: dict[str, list[bool]] = {}
        self._tasks: TaskGroup | None = None
        if neighbours.mark:
            front.handlers.confirmations.seals.mark = neighbours.mark
            sessions.on_end = self._ended

    async def copied(self, name: str, principal: str) -> Session | None:
        """A copy of another process's session, if that still has it for this principal."""
        home = self._neighbours.owner(name)
        if home is None or self._sessions.named(name) is not None:
            return None

        ended = self._fetching.setdefault(name, [])
        state = await self._neighbours.ask(home, {"session": name})
        self._fetching.pop(name, None)
        if state is None or ended or state["principal"] != principal:
            return None

        found = self._sessions.get(name, principal)  # made while we waited
        if found is not None:
            return found

        client = Client(principal, name, version=state["version"], mark=self._neighbours.mark)
        client.capabilities, client.info = state["capabilities"], state["info"]
        client.log_level = state["level"]
        return self._sessions.copy(name, client)

    async def elsewhere(
        self, owner: str | None, scope: Scope, receive: Receive, send: Send
    ) -> bool:
        """Have the request answered by its owner, if that is another process.

        Raises:
            Refused: 404 the owner is gone.
        """
        if owner is None or FORWARDED in scope:
            return False

        if not await self._neighbours.forward(owner, scope, receive, send):
            raise Refused(404, "there is no such session (any more): begin with initialize")

        return True

    def home(self, session: Session) -> str | None:
        """The other process that has this session; None if it is at home here."""
        return self._neighbours.owner(session.name)

    def stream_owner(self, session: Session, headers: Mapping[str, str]) -> str | None:
        """The other process that has the stream a GET is about: the named one, or the unasked."""
        found = event_id(headers.get(LAST_EVENT, ""))
        if found is not None and found[0] != session.UNASKED:
            return self._neighbours.owner(found[0])

        return self.home(session)

    async def resumed(
        self, message: Message | None, scope: Scope, receive: Receive, send: Send
    ) -> bool:
        """Have a modern request answered where the state that it brings was sealed.

        Whoever sealed it takes one answer to it, and has the call that waits for that. False if
        that is here, or gone: then the state is worth nothing, and the request is a new one.
        """
        params = message.get("params") if self._neighbours.mark and message is not None else None
        state = params.get("requestState") if isinstance(params, dict) else None
        if not isinstance(state, str) or not is_ours(state) or FORWARDED in scope:
            return False

        owner = self._neighbours.owner(after_kind(state))
        return owner is not None and await self._neighbours.forward(owner, scope, receive, send)

    async def take(self, session: Session, message: Message) -> None:
        """Take what a client says that is no request, here and wherever it is waited for."""
        method, neighbours = message.get("method"), self._neighbours
        said = {"say": message, "session": session.name}
        if method is None:
            owner = neighbours.owner(message.get("id"))
        elif method == INITIALIZED:
            owner = self.home(session)
        else:
            owner = None

        if owner is not None:
            await neighbours.ask(owner, said)
            return

        is_everybodys = method == ROOTS_CHANGED or _runs_elsewhere(session, message)
        self._front.receive(session.client, message)
        if is_everybodys:
            await neighbours.ask_all(said)

    async def changed(self, session: Session) -> None:
        """Tell everybody that this session's client has chosen another log level."""
        level = session.client.log_level
        await self._neighbours.ask_all({"level": level, "session": session.name})

    async def answer(self, question: Message) -> Message | None:
        """Answer what a neighbour asks, or take what it tells."""
        for name in question.get("used", ()):
            self._sessions.use(name)

        session = self._sessions.named(question.get("session"))
        if "ended" in question:
            self._fetching.get(question["session"], []).append(True)
            if session is not None:
                await self._sessions.end(session)
        elif session is None:
            return None
        elif "say" in question:
            self._front.receive(session.client, question["say"])
        elif "level" in question:
            session.client.log_level = question["level"]
        elif self.home(session) is None:
            return _state(session)

        return {}

    def gone(self, mark: str) -> None:
        """A process has ended, and all sessions that were at home there."""
        if self._tasks is not None:
            self._tasks.start_soon(self._end_copies, mark)

    async def run(self, app: ASGIApp) -> None:
        """Serve the neighbours, until cancelled. Run this in one task."""
        if not self._neighbours.mark:
            return

        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._neighbours.serve, app, self.answer, self.gone)
            tasks.start_soon(self._tell_used)

    async def _end_copies(self, mark: str) -> None:
        for session in self._sessions.all_of(mark):
            await self._sessions.end(session)

    async def _tell_used(self) -> None:
        """Tell of the copies that are used here, so that they are not ended at home."""
        while True:
            await anyio.sleep(min(SWEEP_SECONDS, self._sessions.idle_seconds / 4))
            used: dict[str, list[str]] = {}
            for session in self._sessions.lately_used():
                owner = self.home(session)
                if owner is not None:
                    used.setdefault(owner, []).append(session.name)

            for owner, names in used.items():
                await self._neighbours.ask(owner, {"used": names})

    async def _ended(self, session: Session) -> None:
        if self.home(session) is None:
            await self._neighbours.ask_all({"ended": True, "session": session.name})


def is_at_home(message: Message) -> bool:
    """Whether a legacy session's request is served where the session is at home.

    That is what changes it, and all about its tasks: which they are is known there alone.
    """
    method, params = message["method"], message.get("params")
    if method == "tools/call":
        return isinstance(params, dict) and params.get("task") is not None

    return method in AT_HOME or method.startswith(TASKS)


def _runs_elsewhere(session: Session, message: Message) -> bool:
    """Whether this calls off a request that does not run here."""
    params = message.get("params")
    number = params.get("requestId") if isinstance(params, dict) else None
    return message.get("method") == CANCELLED and number not in session.client.running


def _state(session: Session) -> Message:
    client = session.client
    return {
        "principal": client.principal,
        "version": client.version,
        "capabilities": dict(client.capabilities),
        "info": dict(client.info),
        "level": client.log_level,
    }
