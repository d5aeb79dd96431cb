"""One Streamable HTTP endpoint and our session there: requests out, responses into inboxes."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress

import anyio
import httpx2

from bridge.core.wire import dumps
from bridge.upstream.bounded import (
    EVENT_STREAM,
    JSON,
    EventStream,
    finish,
    media_type,
    read_body,
)
from bridge.upstream.channel import ChannelError, Limits, RpcError
from bridge.upstream.correlator import Message
from bridge.upstream.inbox import Inbox
from bridge.upstream.refusal import refusal
from bridge.upstream.web import ConnectionLost, Sending, exchange, place

TELL_SECONDS = 2.0  # for what is said in passing: replies, cancellations, the end of a session
TAIL_SECONDS = 1.0
TAIL_BYTES = 64 * 1024


class HttpWire:
    """Speaks HTTP with one MCP server.

    `protocol_version` is None until it is negotiated; `session_id` is what the server gave with
    its answer to `initialize`, if it did.
    """

    def __init__(self, url: str, client: httpx2.AsyncClient, limits: Limits) -> None:
        self.session_id: str | None = None
        self.protocol_version: str | None = None
        self._url = httpx2.URL(url)
        self._client = client
        self._limits = limits
        self._tail_seconds = TAIL_SECONDS

    @property
    def is_legacy(self) -> bool:
        """Whether a revision before 2026 was negotiated: revisions are named by their dates."""
        return self.protocol_version is not None and self.protocol_version < "2026"

    async def ask(
        self, message: Message, headers: Mapping[str, str], inbox: Inbox, sending: Sending
    ) -> None:
        """POST a request; its answer is in the inbox then.

        Raises:
            RpcError: The server refused the request itself.
            ChannelError: No answer came; ConnectionLost if its response merely ended too early.
        """
        begins = message["method"] == "initialize"
        if begins:
            self.session_id = None

        async with self._open("POST", headers, dumps(message), sending) as response:
            if not response.is_success:
                raise await refusal(response, in_session=self.session_id is not None)

            if begins:
                self.session_id = _session_id(response)

            await self._read(response, inbox)

        if inbox.answer is None:
            lost = f"{place(self._url)} ended its response without the answer"
            raise ConnectionLost(lost, sent=True)

    async def tell(self, message: Message, sending: Sending) -> None:
        """POST what has no answer: a notification, or the reply to a request of the server.

        Raises:
            RpcError, ChannelError: It was not accepted.
        """
        async with self._open("POST", {}, dumps(message), sending) as response:
            if not response.is_success:
                raise await refusal(response, in_session=self.session_id is not None)

            await finish(response, TAIL_BYTES, TAIL_SECONDS)

    async def listen(self, inbox: Inbox) -> None:
        """GET what the server says unasked, or the rest of what was interrupted, until it ends.

        Raises:
            RpcError, ChannelError: There is no such stream, or it was lost.
        """
        headers = {"Accept": EVENT_STREAM, "Cache-Control": "no-store"}
        if inbox.last_event_id:
            headers["Last-Event-ID"] = inbox.last_event_id

        async with self._open("GET", headers, None, Sending()) as response:
            if not response.is_success or media_type(response) != EVENT_STREAM:
                raise await refusal(response, in_session=self.session_id is not None)

            await self._read_events(response, inbox)

    async def end_session(self) -> None:
        """DELETE the session, if there is one; what comes of it does not matter."""
        if self.session_id is None:
            return

        with anyio.move_on_after(TELL_SECONDS), suppress(ChannelError):
            async with self._open("DELETE", {}, None, Sending()) as response:
                await finish(response, TAIL_BYTES, TAIL_SECONDS)

    @asynccontextmanager
    async def _open(
        self, verb: str, extra: Mapping[str, str], content: bytes | None, sending: Sending
    ) -> AsyncIterator[httpx2.Response]:
        headers: dict[str, str] = {}
        if content is not None:
            headers = {"Accept": f"{JSON}, {EVENT_STREAM}", "Content-Type": JSON}

        if self.session_id is not None:
            headers["Mcp-Session-Id"] = self.session_id

        if self.protocol_version is not None:
            headers["MCP-Protocol-Version"] = self.protocol_version

        headers.update(extra)
        async with exchange(
            self._client, verb, self._url, headers, content=content, sending=sending
        ) as response:
            yield response

    async def _read(self, response: httpx2.Response, inbox: Inbox) -> None:
        kind = media_type(response)
        if kind == EVENT_STREAM:
            await self._read_events(response, inbox)
        elif response.status_code in {202, 204}:
            raise ChannelError(
                f"{place(self._url)} took the request without answering "
                f"(HTTP status {response.status_code})",
                sent=True,
            )
        elif kind == JSON:
            inbox.take(await read_body(response, self._limits.message_bytes))
        else:
            raise await refusal(response, in_session=False)

    async def _read_events(self, response: httpx2.Response, inbox: Inbox) -> None:
        """Read events to the end of the stream, so that its connection can be used again.

        Behind the answer that end usually comes at once. A server that keeps its streams open
        is waited for once, and then less and less.
        """
        stream = EventStream(response, self._limits.message_bytes)
        with anyio.CancelScope() as tail:
            async with aclosing(stream.events()) as events:
                async for event in events:
                    for reply in inbox.take_event(event):
                        await self._reply(reply)

                    if inbox.answer is not None and tail.deadline == math.inf:
                        tail.deadline = anyio.current_time() + self._tail_seconds
                        stream.end_within(TAIL_BYTES)

        if tail.cancelled_caught:
            self._tail_seconds /= 4
        elif inbox.answer is not None:
            self._tail_seconds = TAIL_SECONDS

    async def _reply(self, message: Message) -> None:
        with anyio.move_on_after(TELL_SECONDS), suppress(RpcError, ChannelError):
            await self.tell(message, Sending())


def _session_id(response: httpx2.Response) -> str | None:
    value = response.headers.get("mcp-session-id")
    if not value:
        return None

    if not value.isascii() or not value.isprintable() or " " in value:
        raise ChannelError("the server's session id is not visible ASCII", sent=True)

    return str(value)
