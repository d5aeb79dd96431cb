"""A channel to a server whose conversation another process of ours keeps, the host.

Where several processes serve the same clients, a conversation that has a state (a child process,
a legacy session) is kept once, by the host, and each of the others has a channel through it;
`between` says what goes over it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio

from bridge.core.caller import Caller
from bridge.core.content import Result
from bridge.core.wire import dumps, escaped, loads, loads_leniently
from bridge.upstream.between import READ_BY_HOST, UNBOUNDED, described, from_wire, passed_on
from bridge.upstream.channel import (
    NO_JSON,
    NO_OPTIONS,
    ChannelBusy,
    ChannelError,
    Limits,
    Message,
    Notify,
    Options,
    Params,
)
from bridge.upstream.correlator import Correlator
from bridge.upstream.desk import Desk, Negotiated
from bridge.upstream.last_words import LastWords
from bridge.upstream.lines import LineSplitter
from bridge.upstream.link import Link
from bridge.upstream.protocol import PROGRESS
from bridge.upstream.target import Hosted

HOST_GONE = "the process that keeps the server's conversation has ended"


class HostedChannel(asyncio.Protocol, Negotiated):
    """One conversation through the host."""

    def __init__(self, target: Hosted, limits: Limits, desk: Desk, on_notification: Notify) -> None:
        self._limits = limits
        self._words = LastWords(str(target), target.without_secrets, limits)
        self.desk = desk
        self.correlator = Correlator(desk, limits)
        self._on_notification = on_notification
        self._lines = LineSplitter(UNBOUNDED)
        self._opened: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.WriteTransport | None = None
        self._reason = ""
        self._passes = False
        self._closed = anyio.Event()

    @property
    def is_open(self) -> bool:
        """Whether requests can still be answered."""
        return not self._reason

    @property
    def closed_because(self) -> str:
        """Why not; empty while they can."""
        return self._reason

    async def opened(self, name: str, client: Caller | None) -> Message:
        """Ask for the server's conversation, and return what the host answers.

        `client` is whose it is, if it is one client's alone; a modern one's is this channel's
        alone, since nothing tells its requests from another's.

        Raises:
            ChannelError: The host could not connect.
        """
        wanted: Message = {"open": name}
        if client is not None:
            alone = secrets.token_hex(8) if client.modern else ""
            wanted["client"] = {**described(client), "alone": alone}

        self._write(wanted)
        opened = await self._opened
        self._passes = bool(opened.get("passes"))
        return opened

    def request(
        self, method: str, params: Params, options: Options = NO_OPTIONS
    ) -> Coroutine[Any, Any, Result]:
        """Send one request and return its result; see `Channel.request`."""
        passes = self._passes and options.on_progress is None and method not in READ_BY_HOST

        def send(message: Message) -> None:
            if "id" not in message:
                self._write(message)
            elif passes:  # over stdio, which has no headers
                self._put(passed_on(message["id"], options.caller, method, params))
            else:
                self._put(dumps({**message, **_beside(options)}) + b"\n")

        return self.correlator.ask(method, params, options, send)

    async def notify(self, method: str, params: Params) -> None:
        """Send one notification; see `Channel.notify`."""
        self._write({"jsonrpc": "2.0", "method": method, "params": params})

    async def reply(self, message: Message) -> None:
        """Send the answer to a request of the server's; see `questions.Reply`."""
        self._write(message)

    async def wait_closed(self) -> None:
        """Return when no further request can be answered."""
        await self._closed.wait()

    def close(self) -> None:
        """Close it."""
        self._end("closed")
        if self._transport is not None:
            self._transport.close()

    # What the event loop calls.

    def connection_made(self, transport: Any) -> None:
        """Keep the transport."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take what the host wrote."""
        try:
            for line in self._lines.feed(data):
                if line.startswith(b"{"):
                    self._take(loads(line))
                else:
                    self._take_result(line)
        except ValueError:
            self._end("the host wrote what is no message")
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The host is gone, or has closed this conversation."""
        self._end(HOST_GONE)

    # Inside.

    def _write(self, message: Message) -> None:
        self._put(escaped(message) + b"\n")

    def _put(self, line: bytes) -> None:
        if self._reason or self._transport is None or self._transport.is_closing():
            raise ChannelError(self._reason or HOST_GONE, sent=False)

        if self._transport.get_write_buffer_size() > self._limits.message_bytes:
            raise ChannelBusy("the host does not read what it is sent")

        self._transport.write(line)

    def _take(self, message: Message) -> None:
        method = message.get("method")
        if method is not None:
            self._take_said(message, method)
        elif "broken" in message:
            self.correlator.fail(message["id"], from_wire(message["broken"]))
        elif "id" in message:
            self.correlator.answer(message)
        elif "hold" in message:
            change = self.correlator.pause if message["holds"] else self.correlator.resume
            change(message["hold"])
        elif "closed" in message:
            self._end(message["closed"])
        elif not self._opened.done():
            self._opened.set_result(message)

    def _take_result(self, line: bytes) -> None:
        number, _, text = line.partition(b"\t")
        try:
            message = loads_leniently(text)
        except ValueError:
            self._words.stray(text)
            self.correlator.fail(int(number), ChannelError(NO_JSON, sent=True))
        else:
            self.correlator.answer({**message, "id": int(number)})

    def _take_said(self, message: Message, method: str) -> None:
        """What the server says or asks of its own accord; the host knows whose it is."""
        number: int | None = message.pop("for", None)
        params: Params = message.get("params") or {}
        if "id" in message:
            reply = self.desk.asked(message, number)
            if reply is not None and not self._reason:
                self._write(reply)
        elif method == PROGRESS:
            self.correlator.receive(message)
        elif message.get("direct"):
            self.desk.told(method, params, number)
        else:
            self._on_notification(method, params)

    def _end(self, reason: str) -> None:
        if not self._reason:
            self._reason = reason
            self._closed.set()
            self.correlator.fail_all(reason)

        if not self._opened.done():
            self._opened.set_exception(ChannelError(reason, sent=False))
            self._opened.exception()  # somebody knows, whoever still waits


def _beside(options: Options) -> Message:
    """What the host must know of a request that it reads."""
    beside: Message = {}
    if options.caller is not None:
        beside["caller"] = described(options.caller)

    if options.headers:
        beside["headers"] = dict(options.headers)

    return beside


@asynccontextmanager
async def open_hosted(
    target: Hosted, on_notification: Notify, limits: Limits, client: Caller | None
) -> AsyncIterator[Link | None]:
    """The host's conversation with a server, as a link; None if that needs no host.

    Raises:
        ChannelError: The host is gone, or could not connect.
    """
    failure: Exception | None = None
    desk = Desk(on_notification, client)
    channel = HostedChannel(target, limits, desk, on_notification)
    try:
        await asyncio.get_running_loop().create_unix_connection(lambda: channel, target.place)
    except OSError as exc:
        raise ChannelError(HOST_GONE, sent=False) from exc

    try:
        opened = await channel.opened(target.name, client)
        if "failed" in opened:
            raise ChannelError(opened["failed"], sent=False)

        async with anyio.create_task_group() as beside:
            desk.open(beside, channel.reply, channel.correlator)
            try:
                yield None if "yourself" in opened else _link(channel, opened)
            except Exception as exc:
                failure = exc  # raised below, outside the task group, so that it stays itself
            finally:
                desk.close()
                beside.cancel_scope.cancel()
    finally:
        channel.close()

    if failure is not None:
        raise failure


def _link(channel: HostedChannel, opened: Message) -> Link:
    channel.protocol_version = opened["version"]
    return Link(
        channel,
        opened["transport"],
        opened["era"],
        opened["version"],
        opened["capabilities"],
        opened["server"],
    )
