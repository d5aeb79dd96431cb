"""A channel over HTTP+SSE (MCP 2024-11-05): one event stream brings everything, POSTs send.

Deprecated by the protocol and kept for the servers that know nothing newer. A request is POSTed
by its caller's task; its answer comes on the stream, which is read beside the opener's block.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress

import anyio
import httpx2
from httpx_sse import ServerSentEvent

from bridge.core.caller import Caller
from bridge.core.content import Result
from bridge.core.wire import dumps, loads
from bridge.telemetry import log
from bridge.upstream.bounded import EVENT_STREAM, JSON, EventStream, finish, media_type
from bridge.upstream.channel import (
    NO_OPTIONS,
    ChannelError,
    Limits,
    Notify,
    Options,
    Params,
    RpcError,
)
from bridge.upstream.client import Client, Sending
from bridge.upstream.clock import Counted, Timed
from bridge.upstream.correlator import Correlator, Message
from bridge.upstream.credentials import Credentials
from bridge.upstream.desk import Desk, Negotiated
from bridge.upstream.flights import Flights
from bridge.upstream.refusal import refusal
from bridge.upstream.web import exchange, open_client
from bridge.upstream.wording import excerpt, place

POST_SECONDS = 10.0  # for a notification or a reply to be taken
LATE_SECONDS = 1.0  # for the response to a POST whose answer has come on the stream before it
POST_BODY_BYTES = 64 * 1024
OUTBOX = 64


class SseChannel(Negotiated):
    """The conversation with one HTTP+SSE server, for as long as its event stream lasts."""

    def __init__(
        self,
        endpoint: httpx2.URL,
        client: Client,
        limits: Limits,
        desk: Desk,
    ) -> None:
        self._endpoint = endpoint
        self._client = client
        self._limits = limits
        self.desk = desk
        self._correlator = Correlator(desk, limits)
        self._flights = Flights()
        self._posts: dict[int, anyio.CancelScope] = {}
        self._stray = 0
        self._outbox, self._unsent = anyio.create_memory_object_stream[Message](OUTBOX)

    @property
    def is_open(self) -> bool:
        """Whether answers can still come."""
        return self._flights.is_open

    @property
    def closed_because(self) -> str:
        """Why not; empty while they can."""
        return self._flights.closed_because

    async def request(self, method: str, params: Params, options: Options = NO_OPTIONS) -> Result:
        """Send one request and return its result; see `Channel.request`."""
        self._admit()

        def send(message: Message) -> Awaitable[None] | None:
            if "id" in message:
                return self._deliver(message, options)

            self._later(message)
            return None

        return await self._correlator.ask(method, params, options, send)

    async def notify(self, method: str, params: Params) -> None:
        """Send one notification; see `Channel.notify`."""
        self._admit()
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        sending = Sending()
        with self._flights.flight(POST_SECONDS) as flight:
            sending.blocks = (flight,)
            try:
                await self._post(message, {}, sending)
            except RpcError as exc:
                raise ChannelError(f"the server refused {method}: {exc}", sent=True) from exc

        if flight.cancelled_caught:
            reason = self.closed_because or f"{method} was not taken in {POST_SECONDS:g} s"
            raise ChannelError(reason, sent=sending.sent)

    async def wait_closed(self) -> None:
        """Return when the channel is closed, by whichever side."""
        await self._flights.wait_closed()

    async def aclose(self, reason: str = "the channel was closed") -> None:
        """End every request at once; from any task, any number of times."""
        self._close(reason)
        with anyio.CancelScope(shield=True):
            await self._flights.wait_landed(self._limits.close_grace)

    async def reply(self, message: Message) -> None:
        """Send the answer to a request of the server's; see `questions.Reply`."""
        with self._flights.flight(POST_SECONDS):
            await self._post(message, {}, Sending())

    async def read(self, events: AsyncGenerator[ServerSentEvent]) -> None:
        """Take the stream's events until it ends or the channel is closed; then all requests end.

        The opener runs this beside its block.
        """
        reason = "the server ended its event stream"
        try:
            with self._flights.flight():
                async for event in events:
                    if event.event == "message" and event.data:
                        self._take(event.data)
        except ChannelError as exc:
            reason = str(exc)
        finally:
            self._close(reason)

    async def write(self) -> None:
        """Send what nobody waits for, in order: cancellations, and replies to the server.

        The opener runs this beside its block.
        """
        with self._flights.flight():
            async for message in self._unsent:
                with anyio.move_on_after(POST_SECONDS), suppress(RpcError, ChannelError):
                    await self._post(message, {}, Sending())

    def _admit(self) -> None:
        if not self.is_open:
            raise ChannelError(self.closed_because, sent=False)

    def _close(self, reason: str) -> None:
        if self._flights.close(reason):
            self._correlator.fail_all(reason)
            self._outbox.close()
            self._unsent.close()

    def _take(self, text: str) -> None:
        try:
            message = loads(text)
        except ValueError:
            self._stray += 1
            if self._stray & (self._stray - 1) == 0:  # the 1st, 2nd, 4th, 8th …
                where = place(self._endpoint)
                log.warning("%s sent an event that is not JSON: %s", where, excerpt(text))

            return

        for one in message if isinstance(message, list) else [message]:
            reply = self._correlator.receive(one)
            if reply is not None:
                self._later(reply)

            number = one.get("id") if isinstance(one, dict) and "method" not in one else None
            if isinstance(number, int) and (post := self._posts.get(number)) is not None:
                post.deadline = min(post.deadline, anyio.current_time() + LATE_SECONDS)

    def _later(self, message: Message) -> None:
        try:
            self._outbox.send_nowait(message)
        except (anyio.WouldBlock, anyio.ClosedResourceError):
            log.debug("%s is not sent any more", message.get("method", "a reply"))

    async def _deliver(self, message: Message, options: Options) -> None:
        """POST a request. What ends the wait for its answer ends this too, without an error."""
        with self._flights.flight(options.timeout) as flight:
            self._posts[message["id"]] = flight
            try:
                sending = Sending(flight, Counted(self._correlator, message["id"]))
                await self._post(message, options.headers, sending)
            finally:
                del self._posts[message["id"]]

    async def _post(self, message: Message, headers: Mapping[str, str], sending: Sending) -> None:
        async with exchange(
            self._client,
            "POST",
            self._endpoint,
            {"Content-Type": JSON, **headers},
            content=dumps(message),
            sending=sending,
        ) as response:
            if not response.is_success:
                raise await refusal(response, in_session=False)

            await finish(response, POST_BODY_BYTES, LATE_SECONDS)


@asynccontextmanager
async def open_sse(
    url: str,
    headers: Mapping[str, str],
    on_notification: Notify,
    limits: Limits,
    *,
    connect_timeout: float = 10.0,
    default: Caller | None = None,
    credentials: Credentials | None = None,
) -> AsyncIterator[SseChannel]:
    """A channel to the server whose event stream is at `url`; it ends with the block.

    `credentials`, if any, are presented with each request. `default` is whose all is that the
    server says outside requests.

    Raises:
        ChannelError: There is no such stream, or it names no endpoint to send to.
    """
    failure: Exception | None = None
    async with AsyncExitStack() as stack:
        opened = open_client(url, headers, limits, connect_timeout, credentials)
        client = await stack.enter_async_context(opened)
        with anyio.move_on_after(connect_timeout) as opening:
            events = await stack.enter_async_context(_events(client, url, limits, opening))
            endpoint = await _endpoint(events, httpx2.URL(url))

        if opening.cancelled_caught:
            late = f"{place(url)} named no endpoint within {connect_timeout:g} s"
            raise ChannelError(late, sent=False)

        desk = Desk(on_notification, default)
        channel = SseChannel(endpoint, client, limits, desk)
        async with anyio.create_task_group() as beside:
            desk.open(beside, channel.reply, channel._correlator)
            beside.start_soon(channel.read, events)
            beside.start_soon(channel.write)
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


@asynccontextmanager
async def _events(
    client: Client, url: str, limits: Limits, opening: Timed
) -> AsyncIterator[AsyncGenerator[ServerSentEvent]]:
    headers = {"Accept": EVENT_STREAM, "Cache-Control": "no-store"}
    sending = Sending(opening)
    async with exchange(client, "GET", httpx2.URL(url), headers, sending=sending) as response:
        if not response.is_success or media_type(response) != EVENT_STREAM:
            raise await refusal(response, in_session=False)

        async with aclosing(EventStream(response, limits.message_bytes).events()) as events:
            yield events


async def _endpoint(events: AsyncGenerator[ServerSentEvent], url: httpx2.URL) -> httpx2.URL:
    """The URL to POST to, which the first event names; our credentials go nowhere else."""
    async for event in events:
        if event.event != "endpoint":
            continue

        try:
            endpoint = url.join(event.data)
        except httpx2.InvalidURL:
            named = excerpt(event.data)
            raise ChannelError(f"the server's endpoint is no URL: {named}", sent=False) from None

        if (endpoint.scheme, endpoint.netloc) != (url.scheme, url.netloc):
            raise ChannelError(
                f"{place(url)} wants messages sent to another origin, {place(endpoint)}; refused",
                sent=False,
            )

        return endpoint.copy_with(userinfo=url.userinfo, fragment=None)

    raise ChannelError(f"{place(url)} ended its event stream without an endpoint", sent=False)
