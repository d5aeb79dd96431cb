"""The host: keeps conversations with servers for several processes that serve the same clients.

One conversation with a server is everybody's; a client that must have one of its own gets one,
whichever process its requests land on. Each goes on as long as somebody needs it: everybody's
until the host ends.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeAlias

import anyio

from bridge.core.wire import dumps
from bridge.upstream.capabilities import for_legacy
from bridge.upstream.channel import Message
from bridge.upstream.conversation import Conversation, Hosting
from bridge.upstream.failures import describe
from bridge.upstream.guest import Guest
from bridge.upstream.protocol import Era
from bridge.upstream.seat import Seat, opened, seats

Key: TypeAlias = tuple[str, ...]


class Host:
    """All conversations that are kept here, by server and client."""

    def __init__(self, servers: Mapping[str, Hosting]) -> None:
        self._servers = servers
        self._eras: dict[str, Era] = {}
        self._tables: dict[Key, Conversation] = {}
        self._longest = max((one.limits.message_bytes for one in servers.values()), default=0)

    def seat(self) -> Seat:
        """What takes one connection of a process."""
        return Seat(self._longest, self._join)

    async def aclose(self) -> None:
        """End every conversation; bounded in time."""
        async with anyio.create_task_group() as tasks:
            for table in tuple(self._tables.values()):
                tasks.start_soon(table.aclose)

    async def _join(self, seat: Seat, message: Message) -> None:
        name, told = message["open"], message.get("client")
        hosting = self._servers.get(name)
        if hosting is None:
            seat.write({"failed": f'there is no upstream "{name}"'})
            return

        key: Key = (name,)
        if told is not None:
            declared = dumps(for_legacy(Guest(told, lambda: None))).decode()
            key = (name, told["key"], declared, told["alone"])

        table = self._tables.get(key)
        if table is None:
            over = partial(self._tables.pop, key, None)
            table = self._tables[key] = Conversation(hosting, told, self._eras.get(name), over)

        try:
            with table.joining():
                link = await table.link()
                self._eras[name] = link.era
                if link.era == "modern" and link.transport == "http":
                    seat.write({"yourself": True})  # there is none: each process calls it
                else:
                    table.sit(seat)
                    seat.write(opened(link, table.passes))
        except Exception as exc:  # whatever is wrong with a server is told to who wanted it
            seat.write({"failed": f"{describe(exc)}{table.words}"})


@asynccontextmanager
async def hosting(servers: Mapping[str, Hosting], place: str) -> AsyncIterator[None]:
    """Keep conversations for whoever connects to the Unix socket `place`; at the end they end."""
    host = Host(servers)
    try:
        async with seats(place, host.seat):
            yield
    finally:
        with anyio.CancelScope(shield=True):
            await host.aclose()
