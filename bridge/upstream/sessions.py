"""Which clients share an upstream's connection, and which have one of their own.

A legacy server learns once, when a session begins, what its client can be asked, and asks on that
session. So who can be asked needs a session that nobody else's questions come over. A modern
server is told with each request: one connection does for all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal, TypeAlias

import anyio

from bridge.core.caller import Caller
from bridge.core.content import Result
from bridge.core.wire import dumps
from bridge.errors import Overloaded, ToolError
from bridge.upstream.capabilities import can_be_asked, for_legacy
from bridge.upstream.channel import NO_OPTIONS, ChannelError, Options, Params
from bridge.upstream.connection import Connection
from bridge.upstream.link import Link
from bridge.upstream.protocol import TASK_STATUS

Policy: TypeAlias = Literal["auto", "shared", "per-client"]
Place: TypeAlias = tuple[str, bytes]
"""A client's key, and what it declared."""

TaskStatus: TypeAlias = Callable[[str, Params], None]
"""Takes what a task has come to: the key of the client whose session told it, and the params."""


class Sessions:
    """The connections to one upstream: the shared one, and those of single clients.

    "auto" gives clients that can be asked one of their own where the server is of the legacy era,
    "shared" never does, "per-client" gives one to every client. There are at most `most` of
    them; one that nobody used for `idle_seconds` is closed.
    """

    def __init__(
        self,
        shared: Connection,
        policy: Policy = "auto",
        most: int = 100,
        idle_seconds: float = 600.0,
    ) -> None:
        self.shared = shared
        self.policy: Policy = policy
        self.most = most
        self.idle_seconds = idle_seconds
        self._begin()

    def _begin(self) -> None:
        self._live: dict[Place, list[Session]] = {}
        self._ending: list[Session] = []
        self.on_task_status: list[TaskStatus] = []

    def __getstate__(self) -> dict[str, Any]:
        """What survives a copy to another process: nothing that is alive."""
        kept = ("shared", "policy", "most", "idle_seconds")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin anew from what survived."""
        self.__dict__.update(state)
        self._begin()

    def __len__(self) -> int:
        """How many clients' connections there are."""
        return sum(map(len, self._live.values()))

    @property
    def policy_chosen(self) -> Literal["shared", "per-client"]:
        """What becomes of a client that can be asked, as far as is known by now."""
        if self.policy != "auto":
            return self.policy

        return "per-client" if self.shared.known_era == "legacy" else "shared"

    def may_ask(self, caller: Caller | None) -> bool:
        """Whether the server may send this client requests while it works on a call of its."""
        return (
            caller is not None
            and self.policy != "shared"
            and self.shared.known_era != "modern"
            and can_be_asked(caller.capabilities)
        )

    def is_apart(self, caller: Caller) -> bool:
        """Whether this client does not use the shared connection."""
        return self.policy == "per-client" or self.may_ask(caller)

    def of(self, caller: Caller | None) -> Connection:
        """The connection for one request of this client's; send it at once, before you wait.

        A modern client's requests name no session, so two with one key may be two people's. While
        one of them can be asked, its connection is its alone.

        Raises:
            Overloaded: There are too many.
        """
        if caller is None or not self.is_apart(caller):
            return self.shared

        place = caller.key, dumps(for_legacy(caller))
        alone = caller.modern and self.may_ask(caller)
        for session in self._live.get(place, ()):
            if not (alone and session.is_busy):
                session.latest.now = caller
                return session

        return self._open(place, caller)

    async def leave(self, key: str) -> None:
        """Close what a client had that is gone."""
        for place in [place for place in self._live if place[0] == key]:
            for session in tuple(self._live.get(place, ())):
                session.stop()
                await session.aclose()

    async def tell(self, key: str, method: str, params: Params) -> None:
        """Pass a client's own notification on, on all that it has; where that fails, it is lost."""
        for place in [place for place in self._live if place[0] == key]:
            for session in tuple(self._live.get(place, ())):
                await session.tell(method, params)

    async def aclose(self) -> None:
        """Close every client's connection; the shared one is its owner's."""
        for session in [one for some in self._live.values() for one in some]:
            session.stop()

        for session in tuple(self._ending):
            await session.aclose()

        self._ending.clear()

    def _open(self, place: Place, caller: Caller) -> Session:
        for session in [one for some in self._live.values() for one in some]:
            if session.idle >= self.idle_seconds:
                session.stop()

        if len(self) >= self.most:
            raise Overloaded(
                f'upstream "{self.shared.name}": {self.most} clients have a session there, '
                "which is the bound; nothing ran"
            )

        session = Session(self.shared, caller, self.idle_seconds, self._ended)
        session.on_task_status = self.on_task_status
        self._live.setdefault(place, []).append(session)
        return session

    def _ended(self, session: Session) -> None:
        for place, some in self._live.items():
            if session in some:
                some.remove(session)
                if not some:
                    del self._live[place]

                break

        self._ending = [one for one in self._ending if not one.is_over] + [session]


class Session(Connection):
    """One client's connection: it declares what the client can be asked, and asks it."""

    def __init__(
        self,
        shared: Connection,
        caller: Caller,
        idle_seconds: float,
        on_end: Callable[[Session], None],
    ) -> None:
        self.latest = Latest(caller)
        super().__init__(
            shared.name,
            shared.target,
            connect_timeout=shared.connect_timeout,
            limits=shared.limits,
            era=shared.known_era,
            client=self.latest,
        )
        self._idle_seconds = idle_seconds
        self._on_end = on_end
        self.on_task_status: list[TaskStatus] = []
        self._under_way = 0
        self._used = time.monotonic()
        self.on_connected.append(self._connected)

    @property
    def is_busy(self) -> bool:
        """Whether a request is under way."""
        return self._under_way > 0

    @property
    def idle(self) -> float:
        """For how many seconds nothing was asked."""
        return 0.0 if self._under_way else time.monotonic() - self._used

    async def request(self, method: str, params: Params, options: Options = NO_OPTIONS) -> Result:
        """Send one request; see `Connection.request`."""
        self._under_way += 1
        try:
            return await super().request(method, params, options)
        finally:
            self._under_way -= 1
            self._used = time.monotonic()

    async def tell(self, method: str, params: Params) -> None:
        """Send a notification, if there is a link; where that fails, it is lost."""
        with suppress(ToolError, ChannelError):
            link = await self.link()
            await link.notify(method, params)

    def stop(self) -> None:
        """Ask it to close, without waiting."""
        super().stop()
        self._on_end(self)

    def _notified(self, method: str, params: Params) -> None:
        if method == TASK_STATUS:
            for tell in self.on_task_status:
                tell(self.latest.key, params)

        super()._notified(method, params)

    def _connected(self, link: Link) -> None:
        self.beside(link, self._watch)

    async def _watch(self) -> None:
        """Beside the link: end it when nobody has used it for long enough."""
        while True:
            left = self._idle_seconds - self.idle
            if left <= 0:
                self.stop()
                return

            await anyio.sleep(left)


class Latest:
    """A client as its youngest request shows it: whom a server asks outside requests."""

    def __init__(self, caller: Caller) -> None:
        self.now = caller

    @property
    def key(self) -> str:
        """See `Caller`."""
        return self.now.key

    @property
    def modern(self) -> bool:
        """See `Caller`."""
        return self.now.modern

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """See `Caller`."""
        return self.now.capabilities

    @property
    def log_level(self) -> str | None:
        """See `Caller`."""
        return self.now.log_level

    @property
    def meta(self) -> Mapping[str, Any]:
        """See `Caller`."""
        return self.now.meta

    @property
    def brought(self) -> Mapping[str, Any]:
        """See `Caller`."""
        return self.now.brought

    async def ask(self, method: str, params: dict[str, Any]) -> Result:
        """See `Caller`."""
        return await self.now.ask(method, params)

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """See `Caller`."""
        self.now.tell(method, params)
