"""Answers read as they come: within bounds, whole or as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

import httpx
from httpx_sse import EventSource

ANSWER_BYTES: Final = 64 * 1024 * 1024
EVENT_STREAM: Final = "text/event-stream"


class BadAnswer(Exception):
    """What a provider sent is no answer; the text says why, and may quote it."""


class Bounded(httpx.AsyncByteStream):
    """A body of at most `limit` bytes, which can be made to end early.

    Raises:
        BadAnswer: It is larger.
    """

    def __init__(
        self, stream: httpx.AsyncByteStream | httpx.SyncByteStream, limit: int = ANSWER_BYTES
    ) -> None:
        if not isinstance(stream, httpx.AsyncByteStream):
            raise TypeError("not the body of an asynchronous response")

        self._stream = stream
        self._pieces: AsyncIterator[bytes] | None = None
        self._limit = limit
        self._left = limit
        self._is_over = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        self._pieces = aiter(self._stream)
        return self

    async def __anext__(self) -> bytes:
        if self._is_over or self._pieces is None:
            raise StopAsyncIteration

        piece = await anext(self._pieces)
        self._left -= len(piece)
        if self._left < 0:
            raise BadAnswer(f"the answer is larger than {self._limit} bytes")

        return piece

    def end(self) -> None:
        """Let whoever reads this come to its end now."""
        self._is_over = True

    async def aclose(self) -> None:
        await self._stream.aclose()


def is_event_stream(response: httpx.Response) -> bool:
    """Whether the body is a stream of events."""
    value: str = response.headers.get("content-type", "")
    return value.partition(";")[0].strip().lower() == EVENT_STREAM


async def event_data(response: httpx.Response) -> AsyncGenerator[str]:
    """The data of each event in a body that is `Bounded`, without such as have none."""
    events = EventSource(response).aiter_sse()
    try:
        async for event in events:
            if event.data:
                yield event.data
    finally:
        # Iterators are nested in there. Without bytes they end by themselves, here and now.
        if isinstance(response.stream, Bounded):
            response.stream.end()

        async for _ in events:
            pass


async def read_beginning(response: httpx.Response, limit: int) -> bytes:
    """The first `limit` bytes of a body, or as many as come before it fails."""
    response.stream = bounded = Bounded(response.stream)
    data = b""
    try:
        async for piece in response.aiter_bytes():
            data += piece
            if len(data) >= limit:
                bounded.end()
    except (httpx.HTTPError, BadAnswer):
        pass  # what came is all there is to show

    return data[:limit]
