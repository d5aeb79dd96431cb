"""One process's part in a conversation that the host keeps: what `hosted` speaks with."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Protocol

from bridge.core.caller import Caller
from bridge.core.content import Result
from bridge.core.rpc import INTERNAL_ERROR, RpcError, rpc_error
from bridge.core.wire import escaped, loads
from bridge.telemetry import log
from bridge.upstream.between import MARGIN, taken_apart, to_wire
from bridge.upstream.channel import ChannelError, Message, Options, Params
from bridge.upstream.correlator import result_of
from bridge.upstream.failures import describe, did_not_run
from bridge.upstream.lines import LineSplitter
from bridge.upstream.link import Link
from bridge.upstream.passing import Passed
from bridge.upstream.protocol import CANCELLED, PROGRESS

MOST_UNREAD = 4
"""How many of the longest messages wait for a process that does not read."""


class Table(Protocol):
    """The conversation that a seat is at."""

    def request(
        self, seat: Seat, method: str, params: Params, options: Options
    ) -> Awaitable[Result]:
        """Send one request to the server; see `Channel.request`."""
        ...

    def pass_on(self, request: bytes, caller: Caller | None) -> Passed:
        """Send one request to the server unread; see `Passing.pass_on`."""
        ...

    async def notify(self, method: str, params: Params) -> None:
        """Send one notification to the server; see `Channel.notify`."""
        ...

    def leave(self, seat: Seat) -> None:
        """This seat is empty from now on."""
        ...

    def doubt(self, seat: Seat) -> None:
        """The server did not run what came from this seat, and perhaps runs nothing any more."""
        ...


class Guest:
    """The client of one request, or of a whole conversation, as the host sees it: a `Caller`."""

    meta: Mapping[str, Any] = {}
    brought: Mapping[str, Any] = {}

    def __init__(
        self, told: Message, seat: Callable[[], Seat | None], number: int | None = None
    ) -> None:
        """`seat` is where the client sits now; `number` is its request there."""
        self.key: str = told["key"]
        self.modern: bool = told["modern"]
        self.capabilities: Mapping[str, Any] = told["capabilities"]
        self.log_level: str | None = told["level"]
        self._seat = seat
        self._number = number

    async def ask(self, method: str, params: dict[str, Any]) -> Result:
        """Put a server's request to the client; see `Caller.ask`."""
        seat = self._seat()
        if seat is None:
            raise rpc_error(INTERNAL_ERROR, "the client is gone")

        return await seat.ask(method, params, self._number)

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """Pass a notification on to the client; see `Caller.tell`."""
        seat = self._seat()
        if seat is not None:
            seat.write({**_said(method, params, self._number), "direct": True})


class Seat(asyncio.Protocol):
    """One connection to the host, from its first line to its end.

    `open_table` takes what the first line asks for, and answers it; it must not raise.
    """

    def __init__(
        self, limit: int, open_table: Callable[[Seat, Message], Coroutine[Any, Any, None]]
    ) -> None:
        self._limit = limit
        self._open_table = open_table
        self._lines = LineSplitter(limit + MARGIN)
        self._transport: asyncio.Transport | None = None
        self._opening: asyncio.Task[None] | None = None
        self._running: dict[int, asyncio.Future[bytes | Result]] = {}
        self._telling: set[asyncio.Task[None]] = set()
        self._numbers = itertools.count(1)
        self._asked: dict[str, asyncio.Future[Result]] = {}
        self.table: Table | None = None
        self.is_gone = False

    async def ask(self, method: str, params: Params, number: int | None) -> Result:
        """Have the client asked behind a request; see `Caller.ask`."""
        name = f"q{next(self._numbers)}"
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._asked[name] = future
        try:
            self.write({"id": name, **_said(method, params, number)})
            return await future
        except asyncio.CancelledError:
            self.write({**_said(CANCELLED, {"requestId": name}, number), "direct": True})
            raise
        finally:
            del self._asked[name]

    def write(self, message: Message) -> None:
        """Send one line; a process that reads nothing is let go of."""
        self._put(escaped(message) + b"\n")

    def _put(self, line: bytes) -> None:
        transport = self._transport
        if self.is_gone or transport is None or transport.is_closing():
            return

        if transport.get_write_buffer_size() > self._limit * MOST_UNREAD:
            log.warning("a process does not read what its servers say: its conversation is closed")
            transport.abort()
            return

        transport.write(line)

    def end(self, reason: str) -> None:
        """Close it, and say why."""
        self.write({"closed": reason})
        if self._transport is not None:
            self._transport.close()

    # What the event loop calls.

    def connection_made(self, transport: Any) -> None:
        """Keep the transport."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take what the process wrote."""
        try:
            for line in self._lines.feed(data):
                if line.startswith(b"{"):
                    self._take(loads(line))
                else:
                    self._pass_on(line)
        except (OverflowError, ValueError, KeyError) as exc:
            log.warning("a process wrote what is no message: %s", type(exc).__name__)
            self.end("the host does not understand this")

    def connection_lost(self, exc: Exception | None) -> None:
        """The process is gone, or is done with this conversation."""
        self.is_gone = True
        for running in (*self._running.values(), *([self._opening] if self._opening else ())):
            running.cancel()

        for future in self._asked.values():
            if not future.done():
                future.set_exception(rpc_error(INTERNAL_ERROR, "the client is gone"))

        if self.table is not None:
            self.table.leave(self)

    # Inside.

    def _take(self, message: Message) -> None:
        table, method = self.table, message.get("method")
        if table is None:
            if self._opening is None:
                self._opening = _started(self._open_table(self, message))
        elif method is None:
            self._answered(message)
        elif "id" in message:
            what = message["method"], message["params"], self._options(message)
            self._ask(table, message["id"], partial(table.request, self, *what))
        elif method == CANCELLED:
            running = self._running.get(message["params"]["requestId"])
            if running is not None:
                running.cancel()
        else:
            telling = _started(_told(table, method, message["params"]))
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)

    def _pass_on(self, line: bytes) -> None:
        number, told, request = taken_apart(line)
        if self.table is None:
            raise ValueError("a request before the conversation is open")

        guest = None if told is None else Guest(told, lambda: self, number)
        self._ask(self.table, number, partial(self.table.pass_on, request, guest))

    def _ask(
        self, table: Table, number: int, begin: Callable[[], Awaitable[bytes | Result]]
    ) -> None:
        """Have `begin` ask the server, and tell the process what came of it."""
        try:
            running = asyncio.ensure_future(begin())
        except ChannelError as exc:
            self._failed(table, number, exc)
        else:
            self._running[number] = running
            running.add_done_callback(partial(self._done, table, number))

    def _done(self, table: Table, number: int, running: asyncio.Future[bytes | Result]) -> None:
        del self._running[number]
        if running.cancelled():
            return

        try:
            self._answer(number, running.result())
        except (RpcError, ChannelError) as exc:
            self._failed(table, number, exc)
        except Exception as exc:  # the process would wait for ever
            log.exception("the host failed to ask a server")
            self._failed(table, number, ChannelError(describe(exc), sent=True))

    def _answer(self, number: int, result: bytes | Result) -> None:
        if isinstance(result, bytes):
            self._put(b"%d\t%b\n" % (number, result))
        else:
            self.write({"jsonrpc": "2.0", "id": number, "result": result})

    def _failed(self, table: Table, number: int, exc: RpcError | ChannelError) -> None:
        """Tell the process why there is no result."""
        why = {"error": exc.error} if isinstance(exc, RpcError) else {"broken": to_wire(exc)}
        self.write({"jsonrpc": "2.0", "id": number, **why})
        if did_not_run(exc):
            table.doubt(self)

    def _options(self, message: Message) -> Options:
        """What a request carries: no time limit, which is the process's own."""
        number, caller = message["id"], message.get("caller")
        meta = message["params"].get("_meta")
        on_progress = None
        if isinstance(meta, dict) and "progressToken" in meta:

            def on_progress(params: Params) -> None:
                self.write(_said(PROGRESS, {**params, "progressToken": number}, None))

        guest = None if caller is None else Guest(caller, lambda: self, number)
        return Options(None, on_progress, message.get("headers", {}), guest)

    def _answered(self, message: Message) -> None:
        future = self._asked.get(message["id"])
        if future is None or future.done():
            return

        try:
            future.set_result(result_of(message))
        except RpcError as exc:
            future.set_exception(exc)


@asynccontextmanager
async def seats(place: str, make: Callable[[], Seat]) -> AsyncIterator[None]:
    """Take connections at the Unix socket `place`, each with a seat of its own."""
    server = await asyncio.get_running_loop().create_unix_server(make, place)
    try:
        yield
    finally:
        server.close()


def opened(link: Link, passes: bool) -> Message:
    """What a process is told that joins a conversation; `passes` if requests can be passed on."""
    return {
        "transport": link.transport,
        "era": link.era,
        "version": link.protocol_version,
        "capabilities": link.capabilities,
        "server": link.server,
        "passes": passes,
    }


def _said(method: str, params: Params, number: int | None) -> Message:
    said: Message = {"jsonrpc": "2.0", "method": method, "params": params}
    return said if number is None else {**said, "for": number}


async def _told(table: Table, method: str, params: Params) -> None:
    with suppress(RpcError, ChannelError):
        await table.notify(method, params)


def _started(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(work)
