"""A channel over Streamable HTTP, of both eras: each request is a POST, answered on its response.

The caller's task does all the work. What differs between the eras: in the legacy one there may be
a session, a stream of its own for what the server says unasked, and cancelling needs a message; in
the modern one closing the response is the cancellation (MCP, transports, Streamable HTTP).
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio

from bridge.core.caller import Caller
from bridge.core.content import Result
from bridge.upstream.calls import Calls
from bridge.upstream.channel import (
    NO_OPTIONS,
    ChannelBusy,
    ChannelError,
    Limits,
    Notify,
    Options,
    Params,
    RequestTimeout,
    RpcError,
)
from bridge.upstream.client import Client, Sending
from bridge.upstream.clock import Clock
from bridge.upstream.correlator import Message, result_of
from bridge.upstream.credentials import Credentials
from bridge.upstream.desk import Desk
from bridge.upstream.flights import Flights
from bridge.upstream.http_wire import TELL_SECONDS, HttpWire
from bridge.upstream.inbox import Inbox
from bridge.upstream.streams import listen_on, resume
from bridge.upstream.web import open_client
from bridge.upstream.wording import ConnectionLost

NOTIFY_SECONDS = 10.0


class HttpChannel:
    """The conversation with one Streamable HTTP endpoint.

    A lost connection loses its request, not the channel: each request makes or finds its own.
    """

    def __init__(self, url: str, client: Client, limits: Limits, desk: Desk, clock: Clock) -> None:
        self._wire = HttpWire(url, client, limits)
        self._desk = desk
        self._limits = limits
        self._flights = Flights()
        self._calls = Calls(self._flights)
        self._finished = anyio.Event()
        self._initialized = anyio.Event()
        self._numbers = itertools.count(1)
        self._asking = 0
        self._clock = clock
        self._progress: dict[int, Callable[[Params], None]] = {}

    @property
    def protocol_version(self) -> str | None:
        """The revision that was negotiated, which every request names; None before."""
        return self._wire.protocol_version

    @protocol_version.setter
    def protocol_version(self, value: str | None) -> None:
        self._wire.protocol_version = value
        self._desk.version = value

    @property
    def session_id(self) -> str | None:
        """What the server gave with its answer to `initialize`, if it did."""
        return self._wire.session_id

    @session_id.setter
    def session_id(self, value: str | None) -> None:
        self._wire.session_id = value

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._flights.is_open

    @property
    def closed_because(self) -> str:
        """Why not; empty while they can."""
        return self._flights.closed_because

    async def request(self, method: str, params: Params, options: Options = NO_OPTIONS) -> Result:
        """Send one request and return its result; see `Channel.request`."""
        return await self.stream(method, params, options)

    async def stream(
        self,
        method: str,
        params: Params,
        options: Options,
        on_message: Callable[[Message], None] | None = None,
    ) -> Result:
        """As `request`; `on_message` takes each notification on the response, whole, unblocking.

        Without it they go where they belong.

        Raises:
            RpcError: The server answered with an error.
            ChannelError: The response ended without an answer.
        """
        self._admit()
        number = next(self._numbers)
        if options.on_progress is not None:
            params = {**params, "_meta": {**params.get("_meta", {}), "progressToken": number}}
            self._progress[number] = options.on_progress

        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        inbox, sending = self._inbox(number, on_message), Sending()
        self._asking += 1
        try:
            with self._calls.call(options.timeout) as flight:
                sending.blocks = (flight,)
                if options.caller is not None:
                    self._desk.callers[number] = options.caller
                    self._clock.scopes[number] = flight

                await self._converse(message, options, inbox, sending)
        except anyio.get_cancelled_exc_class():
            if inbox.answer is None and sending.sent:
                await self._tell_cancelled(message, "cancelled by the caller")

            raise
        finally:
            self._asking -= 1
            self._progress.pop(number, None)
            self._desk.callers.pop(number, None)
            self._clock.scopes.pop(number, None)

        if inbox.answer is not None:
            return result_of(inbox.answer)

        if not self.is_open:
            raise ChannelError(self.closed_because, sent=sending.sent)

        if sending.sent:
            await self._tell_cancelled(message, "timed out")

        raise RequestTimeout(method, options.timeout or 0.0)

    async def notify(self, method: str, params: Params) -> None:
        """Send one notification; see `Channel.notify`."""
        self._admit()
        sending = Sending()
        with self._flights.flight(NOTIFY_SECONDS) as flight:
            sending.blocks = (flight,)
            try:
                await self._wire.tell(
                    {"jsonrpc": "2.0", "method": method, "params": params}, sending
                )
            except RpcError as exc:
                raise ChannelError(f"the server refused {method}: {exc}", sent=True) from exc

        if flight.cancelled_caught:
            reason = self.closed_because or f"{method} was not taken in {NOTIFY_SECONDS:g} s"
            raise ChannelError(reason, sent=sending.sent)

        if method == "notifications/initialized":
            self._initialized.set()

    async def run_get_stream(self) -> None:
        """Hear what a legacy server says unasked; returns when closed, or if it has no such stream.

        It begins when the server was told that the handshake is over, and begins again, where it
        stopped, for as long as the channel is open.
        """
        with self._flights.flight():
            await self._initialized.wait()
            await listen_on(self._wire, self._inbox(None))

    async def wait_closed(self) -> None:
        """Return when the channel is closed."""
        await self._flights.wait_closed()

    async def aclose(self, reason: str = "the channel was closed") -> None:
        """End every request at once, then the session; from any task, any number of times."""
        with anyio.CancelScope(shield=True):
            if not self._flights.close(reason):
                await self._finished.wait()
                return

            try:
                await self._flights.wait_landed(self._limits.close_grace)
                await self._wire.end_session()
            finally:
                self._calls.close()
                self._finished.set()

    async def reply(self, message: Message) -> None:
        """Send the answer to a request of the server's; see `questions.Reply`."""
        with self._flights.flight(NOTIFY_SECONDS):
            await self._wire.tell(message, Sending())

    def _admit(self) -> None:
        if not self.is_open:
            raise ChannelError(self.closed_because, sent=False)

        if self._asking >= self._limits.in_flight:
            raise ChannelBusy(f"{self._asking} requests are already in flight")

    async def _converse(
        self, message: Message, options: Options, inbox: Inbox, sending: Sending
    ) -> None:
        try:
            await self._wire.ask(message, options.headers, inbox, sending)
        except ConnectionLost:
            if inbox.answer is not None:
                return

            if not self._wire.is_legacy or not inbox.last_event_id:
                raise

            await resume(self._wire, inbox)
        except ChannelError:
            if inbox.answer is None:
                raise

    async def _tell_cancelled(self, message: Message, reason: str) -> None:
        """Legacy servers are told; modern ones have seen the response close."""
        if not self.is_open or not self._wire.is_legacy or message["method"] == "initialize":
            return

        notice = {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": message["id"], "reason": reason},
        }
        with (
            self._flights.flight(TELL_SECONDS, shield=True),
            suppress(RpcError, ChannelError),
        ):
            await self._wire.tell(notice, Sending())

    def _inbox(
        self, number: int | None, on_message: Callable[[Message], None] | None = None
    ) -> Inbox:
        told = partial(self._notified, number) if on_message is None else on_message
        return Inbox(number, told, partial(self._desk.asked, number=number))

    def _notified(self, number: int | None, message: Message) -> None:
        method, params = message["method"], message.get("params")
        params = params if isinstance(params, dict) else {}
        if method != "notifications/progress":
            self._desk.told(method, params, number)
            return

        token = params.get("progressToken")
        listener = self._progress.get(token) if isinstance(token, int) else None
        if listener is not None:
            listener(params)


@asynccontextmanager
async def open_http(
    url: str,
    headers: Mapping[str, str],
    on_notification: Notify,
    limits: Limits,
    *,
    connect_timeout: float = 10.0,
    default: Caller | None = None,
    credentials: Credentials | None = None,
) -> AsyncIterator[HttpChannel]:
    """A channel to `url`; nothing is sent before its first request.

    `credentials`, if any, are presented with each request. `default` is whose all is that the
    server says outside requests.

    Raises:
        ChannelError: The URL or one of the headers cannot be used.
    """
    failure: Exception | None = None
    async with open_client(url, headers, limits, connect_timeout, credentials) as client:
        desk, clock = Desk(on_notification, default), Clock()
        channel = HttpChannel(url, client, limits, desk, clock)
        async with anyio.create_task_group() as beside:
            desk.open(beside, channel.reply, clock)
            beside.start_soon(channel.run_get_stream)
            try:
                yield channel
            except Exception as exc:
                failure = exc  # raised below, outside the task group, so that it stays itself
            finally:
                await channel.aclose()
                desk.close()
                beside.cancel_scope.cancel()

    if failure is not None:
        raise failure
