"""One HTTP/1.1 connection, and the responses that come on it one after the other.

A request costs one write and one future: no task, no cancel scope.
"""

from __future__ import annotations

import asyncio
import select
from collections import deque
from collections.abc import Callable
from typing import Protocol

from bridge.upstream.h1 import Head, NotHttp, ResponseReader
from bridge.upstream.wording import ConnectionLost, reason

READ_AHEAD = 256 * 1024  # bytes of a body that nobody has taken yet, before reading pauses
ONE_WRITE = 64 * 1024  # up to here a request is joined into one write


class Keeper(Protocol):
    """Keeps connections between requests."""

    def born(self, connection: Connection) -> None:
        """It begins."""
        ...

    def put(self, connection: Connection) -> None:
        """It can carry another request."""
        ...

    def died(self, connection: Connection) -> None:
        """It has ended."""
        ...


class Exchange:
    """One request's response, as far as it has come. One task reads it."""

    __slots__ = ("_connection", "_failure", "_held", "_pieces", "_place", "_reader", "_waiter")

    def __init__(self, connection: Connection, place: str) -> None:
        self._connection: Connection | None = connection
        self._place = place
        self._reader = ResponseReader()
        self._pieces: deque[bytes] = deque()
        self._held = 0
        self._failure = ""
        self._waiter: asyncio.Future[None] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all of the response has come, taken or not."""
        return self._reader.is_done

    async def head(self) -> Head:
        """The response's head.

        Raises:
            ConnectionLost: The connection ended before, or what came is not HTTP.
        """
        while (head := self._reader.head) is None:
            await self._more()

        return head

    async def piece(self) -> bytes:
        """What came next of the body; empty at its end.

        Raises:
            ConnectionLost: The connection ended before the body did.
        """
        while not self._pieces:
            if self._reader.is_done:
                return b""

            await self._more()

        piece = self._pieces.popleft()
        self._held -= len(piece)
        if self._connection is not None and self._held < READ_AHEAD:
            self._connection.resume()

        return piece

    def close(self) -> None:
        """Let go of it: unless the response is complete, the connection ends."""
        if self._connection is not None:
            self._connection.abort()
            self._connection = None

    def take(self, data: bytes) -> None:
        """Take what came from the server."""
        try:
            piece = self._reader.feed(data)
        except NotHttp as exc:
            self.fail(str(exc))
            return

        if piece:
            self._pieces.append(piece)
            self._held += len(piece)

        if self._reader.is_done:
            self._part(keep=self._reader.is_reusable)
        elif self._held >= READ_AHEAD and self._connection is not None:
            self._connection.pause()

        self._wake()

    def ended(self, why: str) -> None:
        """Take that the server has ended the connection."""
        if not self._reader.end():
            self.fail(why)
            return

        self._part(keep=False)
        self._wake()

    def fail(self, why: str) -> None:
        """End it without the rest of the response."""
        self._failure = why
        self._part(keep=False)
        self._wake()

    def _part(self, *, keep: bool) -> None:
        if self._connection is not None:
            self._connection.finish(keep=keep)
            self._connection = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _more(self) -> asyncio.Future[None]:
        """What is to be awaited until more has come, or the end."""
        if self._connection is None:
            raise ConnectionLost(
                f"the connection to {self._place} was lost: {self._failure or 'it was closed'}",
                sent=True,
            )

        self._waiter = self._connection.loop.create_future()
        return self._waiter


class Connection(asyncio.Protocol):
    """One connection of a pool, on the running event loop."""

    def __init__(self, keeper: Keeper) -> None:
        self.loop = asyncio.get_running_loop()
        self._keeper = keeper
        self._exchange: Exchange | None = None
        self._transport: asyncio.Transport | None = None
        self._is_paused = False
        self._is_lost = False
        self._is_readable: Callable[[], bool] | None = None
        self.idle_since = 0.0

    def begin(self, transport: asyncio.Transport) -> None:
        """Take the transport that was made for it.

        Raises:
            ConnectionError: It is lost already.
        """
        if self._is_lost or transport.is_closing():
            transport.abort()
            raise ConnectionError("it was closed as soon as it was made")

        self._is_readable = readable(transport.get_extra_info("socket").fileno())
        self._transport = transport
        self._keeper.born(self)

    def data_received(self, data: bytes) -> None:
        """Take bytes; asyncio calls this. What comes between two responses was not asked for."""
        if self._exchange is not None:
            self._exchange.take(data)
        else:
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End; asyncio calls this, also after the other side has ended."""
        self._is_lost = True
        self._transport = None
        self._keeper.died(self)
        if self._exchange is not None:
            why = "it was closed before the answer was complete" if exc is None else reason(exc)
            self._exchange.ended(why)

    @property
    def is_alive(self) -> bool:
        """Whether a request may be sent: nothing came since the last response, no end either."""
        transport, is_readable = self._transport, self._is_readable
        if transport is None or is_readable is None:
            return False

        return not transport.is_closing() and not is_readable()

    def send(self, head: bytes, content: bytes, place: str) -> Exchange:
        """Send a request."""
        assert self._transport is not None
        exchange = self._exchange = Exchange(self, place)
        if len(content) > ONE_WRITE:
            self._transport.write(head)
            self._transport.write(content)
        else:
            self._transport.write(head + content)

        return exchange

    def finish(self, *, keep: bool) -> None:
        """The response is over; `keep` if the connection can carry another request."""
        self._exchange = None
        if keep and self._transport is not None and not self._transport.get_write_buffer_size():
            self.resume()
            self._keeper.put(self)
        else:
            self.abort()

    def pause(self) -> None:
        """Read no more until `resume`."""
        if self._transport is not None and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()

    def abort(self) -> None:
        """End the connection at once, and whatever it carries."""
        if self._transport is not None:
            self._transport.abort()


def readable(descriptor: int) -> Callable[[], bool]:
    """Tells whether there is something to read on a socket: bytes, the end, or an error.

    It asks the system, for the event loop may not know it yet.
    """
    if not hasattr(select, "poll"):
        return lambda: bool(select.select([descriptor], [], [], 0)[0])

    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    ask = poll.poll
    return lambda: bool(ask(0))
