"""HTTP/1.1 connections to one server, kept between requests."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass

import anyio

from bridge.upstream.channel import ChannelBusy, ChannelError
from bridge.upstream.client import KEEPALIVE_SECONDS
from bridge.upstream.exchanges import Connection
from bridge.upstream.reach import reach
from bridge.upstream.wording import reason

CLOSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Origin:
    """Where connections go; `place` is what errors call it, `tls` is None for plain HTTP."""

    host: str
    port: int
    tls: ssl.SSLContext | None


class Pool:
    """The connections to one origin: at most `most`, each kept a few seconds while idle."""

    def __init__(
        self,
        origin: Origin,
        most: int,
        connect_timeout: float,
        keep_seconds: float = KEEPALIVE_SECONDS,
    ) -> None:
        self._origin = origin
        self._most = most
        self._connect_timeout = connect_timeout
        self._keep_seconds = keep_seconds
        self._connecting = 0
        self._alive: set[Connection] = set()
        self._idle: dict[Connection, None] = {}  # the last one kept stands last
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._empty = anyio.Event()

    def __len__(self) -> int:
        return len(self._alive)

    def take(self) -> Connection | None:
        """A connection that was kept and can be used, the last one first."""
        while self._idle:
            connection = self._idle.popitem()[0]
            if connection.is_alive:
                return connection

            connection.abort()

        return None

    async def connect(self, place: str) -> Connection:
        """A new connection; `place` is what errors call the server.

        Raises:
            ChannelError: There is none; nothing was sent.
        """
        if len(self._alive) + self._connecting >= self._most:
            raise ChannelBusy(f"{self._most} connections to {place} are in use")

        self._connecting += 1
        try:
            with anyio.fail_after(self._connect_timeout):
                return await self._dial()
        except TimeoutError as exc:
            why = f"no connection within {self._connect_timeout:g} s"
            raise ChannelError(f"cannot connect to {place}: {why}", sent=False) from exc
        except OSError as exc:  # among them what TLS finds wrong
            raise ChannelError(f"cannot connect to {place}: {reason(exc)}", sent=False) from exc
        finally:
            self._connecting -= 1

    async def _dial(self) -> Connection:
        sock = await reach(self._origin.host, self._origin.port)
        loop = asyncio.get_running_loop()
        name = self._origin.host if self._origin.tls is not None else None
        transport, connection = await loop.create_connection(
            lambda: Connection(self), sock=sock, ssl=self._origin.tls, server_hostname=name
        )
        connection.begin(transport)
        if self._is_closed:
            connection.abort()
            raise ConnectionError("the channel was closed")

        return connection

    def born(self, connection: Connection) -> None:
        """Count a connection that has just been made."""
        self._alive.add(connection)

    def put(self, connection: Connection) -> None:
        """Keep a connection for the next request."""
        loop = connection.loop
        connection.idle_since = loop.time()
        self._idle[connection] = None
        if self._timer is None:
            self._timer = loop.call_later(self._keep_seconds, self._expire)

    def died(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        self._idle.pop(connection, None)
        self._alive.discard(connection)
        if self._is_closed and not self._alive:
            self._empty.set()

    async def aclose(self) -> None:
        """End all connections, whatever they carry; none is made any more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()

        if not self._alive:
            return

        for connection in list(self._alive):
            connection.abort()

        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await self._empty.wait()

    def _expire(self) -> None:
        """End the connections that were kept for too long, and look again when the next is due."""
        loop = asyncio.get_running_loop()
        self._timer = None
        for connection in list(self._idle):
            left = connection.idle_since + self._keep_seconds - loop.time()
            if left > 0:
                self._timer = loop.call_later(left, self._expire)
                return

            del self._idle[connection]
            connection.abort()
