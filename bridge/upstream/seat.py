"""One process's part in a conversation that the host keeps: what `hosted` speaks with."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Protocol

from bridge.core.caller import Caller
from bridge.core.content import Result
from bridge.core.rpc import INTERNAL_ERROR, RpcError, rpc_error
from bridge.core.wire import escaped, loads
from bridge.telemetry import log
from bridge.upstream.between import UNBOUNDED, taken_apart, to_wire
from bridge.upstream.channel import ChannelError, Message, Options, Params
from bridge.upstream.correlator import result_of
from bridge.upstream.failures import describe, did_not_run
from bridge.upstream.guest import Guest
from bridge.upstream.lines import LineSplitter
from bridge.upstream.link import Link
from bridge.upstream.outlet import Outlet
from bridge.upstream.passing import Passed
from bridge.upstream.protocol import CANCELLED, PROGRESS


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

    def pace(self, seat: Seat, is_behind: bool) -> None:
        """This seat has more to read than it should, or has not any more."""
        ...

    def leave(self, seat: Seat) -> None:
        """This seat is empty from now on."""
        ...

    def doubt(self, seat: Seat) -> None:
        """The server did not run what came from this seat, and perhaps runs nothing any more."""
        ...


class Seat(asyncio.Protocol):
    """One connection to the host, from its first line to its end.

    `open_table` takes what the first line asks for, and answers it; it must not raise.
    """

    def __init__(
        self, limit: int, open_table: Callable[[Seat, Message], Coroutine[Any, Any, None]]
    ) -> None:
        self._limit = limit
        self._open_table = open_table
        self._lines = LineSplitter(UNBOUNDED)
        self._outlet: Outlet | None = None
        self._opening: asyncio.Task[None] | None = None
        self._running: dict[int, asyncio.Task[None] | Passed] = {}
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
            self.tell(CANCELLED, {"requestId": name}, number)
            raise
        finally:
            del self._asked[name]

    def tell(self, method: str, params: Params, number: int | None) -> None:
        """Pass a notification on to the client behind a request; see `Caller.tell`."""
        self.write({**_said(method, params, number), "direct": True})

    def hold(self, number: int, holds: bool) -> None:
        """Say that a request's time stands still from now on, or goes on."""
        self.write({"hold": number, "holds": holds})

    def write(self, message: Message) -> None:
        """Send one line; a process that reads nothing is let go of."""
        self._put(escaped(message) + b"\n")

    def _put(self, line: bytes) -> None:
        if self._outlet is not None and not self.is_gone:
            self._outlet.write(line)

    def end(self, reason: str) -> None:
        """Close it, and say why."""
        self.write({"closed": reason})
        if self._outlet is not None:
            self._outlet.close()

    # What the event loop calls.

    def connection_made(self, transport: Any) -> None:
        """Keep the transport."""
        self._outlet = Outlet(transport, self._limit)

    def data_received(self, data: bytes) -> None:
        """Take what the process wrote."""
        try:
            for line in self._lines.feed(data):
                if line.startswith(b"{"):
                    self._take(loads(line))
                else:
                    self._pass_on(line)
        except (ValueError, KeyError) as exc:
            log.warning("a process wrote what is no message: %s", type(exc).__name__)
            self.end("the host does not understand this")

    def pause_writing(self) -> None:
        """Much of what was written is not read yet: servers that can wait have to."""
        self._pace(True)

    def resume_writing(self) -> None:
        """It is read."""
        self._pace(False)

    def connection_lost(self, exc: Exception | None) -> None:
        """The process is gone, or is done with this conversation."""
        self.is_gone = True
        if self._outlet is not None:
            self._outlet.is_behind(False)

        for running in (*self._running.values(), *([self._opening] if self._opening else ())):
            running.cancel()

        for future in self._asked.values():
            if not future.done():
                future.set_exception(rpc_error(INTERNAL_ERROR, "the client is gone"))

        if self.table is not None:
            self.table.leave(self)

    # Inside.

    def _pace(self, is_behind: bool) -> None:
        if self._outlet is not None:
            self._outlet.is_behind(is_behind)

        if self.table is not None:
            self.table.pace(self, is_behind)

    def _take(self, message: Message) -> None:
        table, method = self.table, message.get("method")
        if table is None:
            if self._opening is None:
                self._opening = _started(self._open_table(self, message))
        elif method is None:
            self._answered(message)
        elif "id" in message:
            number = message["id"]
            running = self._running[number] = _started(self._request(table, number, message))
            running.add_done_callback(lambda _: self._running.pop(number))
        elif method == CANCELLED:
            if (called_off := self._running.get(message["params"]["requestId"])) is not None:
                called_off.cancel()
        else:
            telling = _started(_told(table, method, message["params"]))
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)

    async def _request(self, table: Table, number: int, message: Message) -> None:
        """Ask the server what must be read on its way.

        The answer is written in the step in which it comes: the next may close the conversation.
        """
        method, params, options = message["method"], message["params"], self._options(message)
        try:
            self._answer(number, await table.request(self, method, params, options))
        except Exception as exc:  # a process that hears nothing of it would wait for ever
            self._failed(table, number, exc)

    def _pass_on(self, line: bytes) -> None:
        table = self.table
        number, told, request = taken_apart(line)
        if table is None:
            raise ValueError("a request before the conversation is open")

        guest = None if told is None else Guest(told, lambda: self, number)
        try:
            running = table.pass_on(request, guest)
        except ChannelError as exc:
            self._failed(table, number, exc)
        else:
            self._running[number] = running
            running.add_done_callback(partial(self._passed, table, number))

    def _passed(self, table: Table, number: int, running: Passed) -> None:
        del self._running[number]
        if not running.cancelled():
            try:
                self._answer(number, running.result())
            except (RpcError, ChannelError) as exc:
                self._failed(table, number, exc)

    def _answer(self, number: int, result: bytes | Result) -> None:
        if isinstance(result, bytes):
            self._put(b"%d\t%b\n" % (number, result))
        else:
            self.write({"jsonrpc": "2.0", "id": number, "result": result})

    def _failed(self, table: Table, number: int, exc: Exception) -> None:
        """Tell the process why there is no result."""
        if not isinstance(exc, RpcError | ChannelError):
            log.error("the host failed to ask a server", exc_info=exc)
            exc = ChannelError(describe(exc), sent=True)

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
