"""A channel to a server whose conversation another process of ours keeps, the host.

Where several processes serve the same clients, a conversation that has a state (a child process,
a legacy session) is kept once, by the host, and each of the others has a channel through it: JSON
lines over a Unix socket. They are the JSON-RPC messages as they are for the server, with what the
host must know beside them: `caller` is whose a request is, `for` the request that something the
server says belongs to, `direct` that it is for one client, `broken` a failure that is no answer
of the server's.
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
from bridge.core.wire import dumps, loads
from bridge.upstream.channel import (
    NO_OPTIONS,
    ChannelBusy,
    ChannelError,
    HttpStatusError,
    Limits,
    Message,
    Notify,
    Options,
    Params,
    SessionGone,
)
from bridge.upstream.correlator import Correlator
from bridge.upstream.desk import Desk, Negotiated
from bridge.upstream.lines import LineSplitter
from bridge.upstream.link import Link
from bridge.upstream.protocol import PROGRESS
from bridge.upstream.target import Hosted

MARGIN = 64 * 1024
"""How much longer a line may be than the server's message that it holds."""

HOST_GONE = "the process that keeps the server's conversation has ended"


class HostedChannel(asyncio.Protocol, Negotiated):
    """One conversation through the host."""

    def __init__(self, limits: Limits, desk: Desk, on_notification: Notify) -> None:
        self._limits = limits
        self.desk = desk
        self.correlator = Correlator(desk, limits)
        self._on_notification = on_notification
        self._lines = LineSplitter(limits.message_bytes + MARGIN)
        self._opened: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.WriteTransport | None = None
        self._reason = ""
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
        return await self._opened

    def request(
        self, method: str, params: Params, options: Options = NO_OPTIONS
    ) -> Coroutine[Any, Any, Result]:
        """Send one request and return its result; see `Channel.request`."""
        beside: Message = {}
        if options.caller is not None:
            beside["caller"] = described(options.caller)

        if options.headers:
            beside["headers"] = dict(options.headers)

        def send(message: Message) -> None:
            self._write({**message, **beside})

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
                self._take(loads(line))
        except (OverflowError, ValueError):
            self._end("the host wrote what is no message")
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The host is gone, or has closed this conversation."""
        self._end(HOST_GONE)

    # Inside.

    def _write(self, message: Message) -> None:
        if self._reason or self._transport is None or self._transport.is_closing():
            raise ChannelError(self._reason or HOST_GONE, sent=False)

        if self._transport.get_write_buffer_size() > self._limits.message_bytes:
            raise ChannelBusy("the host does not read what it is sent")

        self._transport.write(dumps(message) + b"\n")

    def _take(self, message: Message) -> None:
        method = message.get("method")
        if method is not None:
            self._take_said(message, method)
        elif "broken" in message:
            self.correlator.fail(message["id"], from_wire(message["broken"]))
        elif "id" in message:
            self.correlator.receive(message)
        elif "closed" in message:
            self._end(message["closed"])
        elif not self._opened.done():
            self._opened.set_result(message)

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
    channel = HostedChannel(limits, desk, on_notification)
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


def described(caller: Caller) -> Message:
    """What the host must know of a client."""
    return {
        "key": caller.key,
        "modern": caller.modern,
        "capabilities": dict(caller.capabilities),
        "level": caller.log_level,
    }


def to_wire(error: ChannelError) -> Message:
    """A failure, as the host tells of it."""
    told: Message = {"kind": type(error).__name__, "text": str(error), "sent": error.sent}
    if isinstance(error, HttpStatusError):
        told |= {"status": error.status, "beginning": error.beginning}
        told["challenge"] = error.www_authenticate

    return told


def from_wire(told: Message) -> ChannelError:
    """The failure that the host told of."""
    match told["kind"]:
        case "ChannelBusy":
            return ChannelBusy(told["text"])
        case "SessionGone":
            return SessionGone(told["text"])
        case "HttpStatusError":
            beginning, challenge = told["beginning"], told["challenge"]
            return HttpStatusError(told["status"], beginning, www_authenticate=challenge)
        case _:
            return ChannelError(told["text"], sent=told["sent"])
