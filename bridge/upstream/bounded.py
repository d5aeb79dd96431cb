"""Response bodies read within bounds: whole, as server-sent events, or only to be done with them.

Every byte is counted as it arrives. Compressed answers are refused, since none was asked
for and a small one may hide an endless one.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator

import anyio
import httpx
from httpx_sse import EventSource, ServerSentEvent

from bridge.upstream.channel import ChannelError
from bridge.upstream.client import Response

EVENT_STREAM = "text/event-stream"
JSON = "application/json"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BLANK_LINE = re.compile(rb"(?>\r\n|\r|\n){2}")
SPLIT_BLANK_LINE = 3  # bytes of a blank line that may lie at the end of a piece, at most


def media_type(response: Response) -> str:
    """The media type of the body, without parameters, in lower case; empty if none is named."""
    return response.header("content-type").partition(";")[0].strip().lower()


def check_coding(response: Response) -> None:
    """Refuse a body that is compressed.

    Raises:
        ChannelError: It is.
    """
    coding = response.header("content-encoding").strip().lower()
    if coding not in {"", "identity"}:
        raise ChannelError(
            f"the server compressed its answer ({coding!r:.40}), which bridge did not ask for",
            sent=True,
        )


async def read_body(response: Response, limit: int) -> bytes:
    """The whole body, of at most `limit` bytes.

    Raises:
        ChannelError: It is larger, compressed, or the connection was lost.
    """
    check_coding(response)
    parts: list[bytes] = []
    size = 0
    while piece := await response.piece():
        size += len(piece)
        if size > limit:
            raise ChannelError(f"the server's answer exceeds {limit} bytes", sent=True)

        parts.append(piece)

    return parts[0] if len(parts) == 1 else b"".join(parts)


async def read_beginning(response: Response, limit: int) -> bytes:
    """The first `limit` bytes of the body, or fewer: as many as come before anything fails."""
    parts: list[bytes] = []
    size = 0
    try:
        check_coding(response)
        while size < limit and (piece := await response.piece()):
            parts.append(piece)
            size += len(piece)
    except ChannelError:
        pass  # what came is all there is to show

    return b"".join(parts)[:limit]


async def finish(response: Response, limit: int, seconds: float) -> None:
    """Read a body that nobody needs to its end, so that its connection can be used again."""
    with anyio.move_on_after(seconds):
        await read_beginning(response, limit)


class EventStream:
    """The server-sent events of one response, each of at most `limit` bytes.

    `end_within` may be called when the rest is of no interest: the iteration then ends after so
    many more bytes, at the latest.
    """

    def __init__(self, response: Response, limit: int) -> None:
        self._counted = _CountedPieces(response, limit)

    async def events(self) -> AsyncGenerator[ServerSentEvent]:
        """The events in order, also such without data: they may carry an id or a retry time.

        Raises:
            ChannelError: An event is too large, or the connection was lost.
        """
        # The reader gets a response of the library it was written for, of which it may see the
        # bytes alone: events are UTF-8, whatever the server's headers say (HTML, 9.2.6).
        response = httpx.Response(200, headers={"content-type": EVENT_STREAM}, stream=self._counted)
        source = EventSource(response).aiter_sse()
        try:
            async for event in source:
                yield event
        finally:
            # Without bytes the iterators nested in there end by themselves, here and now.
            self._counted.end_within(0)
            async for _ in source:
                pass

    def end_within(self, count: int) -> None:
        """Let the events end once `count` more bytes have come."""
        self._counted.end_within(count)


class _CountedPieces(httpx.AsyncByteStream):
    """Passes bytes on and measures events: from one blank line to the next."""

    def __init__(self, response: Response, limit: int) -> None:
        self._response = response
        self._limit = limit
        self._size = 0
        self._tail = b""
        self._left: int | None = None
        self._is_first = True

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._left is not None and self._left <= 0:
            raise StopAsyncIteration

        if not (piece := await self._response.piece()):
            raise StopAsyncIteration

        if self._is_first:
            piece = await self._begin(piece)

        if self._left is not None:
            self._left -= len(piece)

        self._measure(piece)
        return piece

    async def _begin(self, piece: bytes) -> bytes:
        """The first piece, without the byte order mark that a stream may begin with."""
        self._is_first = False
        check_coding(self._response)
        while len(piece) < len(BYTE_ORDER_MARK) and BYTE_ORDER_MARK.startswith(piece):
            if not (more := await self._response.piece()):
                break

            piece += more

        return piece.removeprefix(BYTE_ORDER_MARK)

    def end_within(self, count: int) -> None:
        self._left = count

    def _measure(self, piece: bytes) -> None:
        window = self._tail + piece
        start = len(self._tail)
        begin = 0
        for blank in BLANK_LINE.finditer(window):
            self._grow(blank.end() - start)
            self._size = 0
            start = begin = blank.end()

        self._grow(len(window) - start)
        self._tail = window[max(begin, len(window) - SPLIT_BLANK_LINE) :]

    def _grow(self, count: int) -> None:
        self._size += count
        if self._size > self._limit:
            raise ChannelError(f"the server's event exceeds {self._limit} bytes", sent=True)
