"""One Streamable HTTP endpoint and our session there: requests out, responses into inboxes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

import anyio
import httpx2
from httpx_sse import ServerSentEvent

from bridge.core.wire import dumps
from bridge.upstream.bounded import (
    EVENT_STREAM,
    JSON,
    check_coding,
    finish,
    media_type,
    read_body,
)
from bridge.upstream.channel import ChannelError, Limits, RpcError
from bridge.upstream.client import Client, Response, Sending, Template
from bridge.upstream.correlator import Message
from bridge.upstream.events import EventReader
from bridge.upstream.inbox import Inbox
from bridge.upstream.refusal import refusal
from bridge.upstream.wording import ConnectionLost, place

TELL_SECONDS = 2.0  # for what is said in passing: replies, cancellations, the end of a session
TAIL_SECONDS = 1.0
TAIL_BYTES = 64 * 1024
STANDING: dict[str, dict[str, str]] = {
    "POST": {"Accept": f"{JSON}, {EVENT_STREAM}", "Content-Type": JSON},
    "GET": {"Accept": EVENT_STREAM, "Cache-Control": "no-store"},
    "DELETE": {},
}


class HttpWire:
    """Speaks HTTP with one MCP server.

    `protocol_version` is None until it is negotiated; `session_id` is what the server gave with
    its answer to `initialize`, if it did.
    """

    def __init__(self, url: str, client: Client, limits: Limits) -> None:
        self._session_id: str | None = None
        self._protocol_version: str | None = None
        self._url = httpx2.URL(url)
        self._client = client
        self._limits = limits
        self._tail_seconds = TAIL_SECONDS
        self._templates: dict[str, Template] = {}

    @property
    def session_id(self) -> str | None:
        """What the server gave with its answer to `initialize`."""
        return self._session_id

    @session_id.setter
    def session_id(self, value: str | None) -> None:
        self._session_id = value
        self._templates.clear()

    @property
    def protocol_version(self) -> str | None:
        """The revision that was negotiated."""
        return self._protocol_version

    @protocol_version.setter
    def protocol_version(self, value: str | None) -> None:
        self._protocol_version = value
        self._templates.clear()

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

        response = await self._template("POST").send(headers, dumps(message), sending)
        try:
            if not response.is_success:
                raise await refusal(response, in_session=self.session_id is not None)

            if begins:
                self.session_id = _session_id(response)

            await self._read(response, inbox)
        finally:
            await response.aclose()

        if inbox.answer is None:
            lost = f"{place(self._url)} ended its response without the answer"
            raise ConnectionLost(lost, sent=True)

    async def tell(self, message: Message, sending: Sending) -> None:
        """POST what has no answer: a notification, or the reply to a request of the server.

        Raises:
            RpcError, ChannelError: It was not accepted.
        """
        response = await self._template("POST").send({}, dumps(message), sending)
        try:
            if not response.is_success:
                raise await refusal(response, in_session=self.session_id is not None)

            await finish(response, TAIL_BYTES, TAIL_SECONDS)
        finally:
            await response.aclose()

    async def listen(self, inbox: Inbox) -> None:
        """GET what the server says unasked, or the rest of what was interrupted, until it ends.

        Raises:
            RpcError, ChannelError: There is no such stream, or it was lost.
        """
        place_to_resume = {"Last-Event-ID": inbox.last_event_id} if inbox.last_event_id else {}
        response = await self._template("GET").send(place_to_resume, None, Sending())
        try:
            if not response.is_success or media_type(response) != EVENT_STREAM:
                raise await refusal(response, in_session=self.session_id is not None)

            await self._read_events(response, inbox)
        finally:
            await response.aclose()

    async def end_session(self) -> None:
        """DELETE the session, if there is one; what comes of it does not matter."""
        if self.session_id is None:
            return

        with anyio.move_on_after(TELL_SECONDS), suppress(ChannelError):
            response = await self._template("DELETE").send({}, None, Sending())
            try:
                await finish(response, TAIL_BYTES, TAIL_SECONDS)
            finally:
                await response.aclose()

    def _template(self, verb: str) -> Template:
        """What all requests of one verb have in common, for as long as the session lasts."""
        if (known := self._templates.get(verb)) is not None:
            return known

        headers = dict(STANDING[verb])
        if self.session_id is not None:
            headers["Mcp-Session-Id"] = self.session_id

        if self.protocol_version is not None:
            headers["MCP-Protocol-Version"] = self.protocol_version

        made = self._templates[verb] = self._client.template(verb, self._url, headers)
        return made

    async def _read(self, response: Response, inbox: Inbox) -> None:
        kind = response.header("content-type")
        if kind != JSON:  # as most servers write it
            kind = media_type(response)

        if kind == EVENT_STREAM:
            await self._read_events(response, inbox)
        elif response.status in {202, 204}:
            raise ChannelError(
                f"{place(self._url)} took the request without answering "
                f"(HTTP status {response.status})",
                sent=True,
            )
        elif kind == JSON:
            inbox.take(await read_body(response, self._limits.message_bytes))
        else:
            raise await refusal(response, in_session=False)

    async def _read_events(self, response: Response, inbox: Inbox) -> None:
        """Read events to the end of the stream, so that its connection can be used again."""
        check_coding(response)
        reader = EventReader(self._limits.message_bytes)
        while piece := await response.piece():
            await self._take(reader.feed(piece), inbox)
            if inbox.answer is not None and not response.is_whole:
                await self._read_tail(response, reader, inbox)
                return

    async def _read_tail(self, response: Response, reader: EventReader, inbox: Inbox) -> None:
        """Read what comes behind the answer: usually the end, at once.

        A server that keeps its streams open is waited for once, and then less and less.
        """
        left = TAIL_BYTES
        with anyio.move_on_after(self._tail_seconds) as tail:
            while left > 0 and (piece := await response.piece()):
                left -= len(piece)
                await self._take(reader.feed(piece), inbox)

        if tail.cancelled_caught:
            self._tail_seconds /= 4
        else:
            self._tail_seconds = TAIL_SECONDS

    async def _take(self, events: Iterator[ServerSentEvent], inbox: Inbox) -> None:
        for event in events:
            for reply in inbox.take_event(event):
                await self._reply(reply)

    async def _reply(self, message: Message) -> None:
        with anyio.move_on_after(TELL_SECONDS), suppress(RpcError, ChannelError):
            await self.tell(message, Sending())


def _session_id(response: Response) -> str | None:
    value = response.header("mcp-session-id")
    if not value:
        return None

    if not value.isascii() or not value.isprintable() or " " in value:
        raise ChannelError("the server's session id is not visible ASCII", sent=True)

    return value
