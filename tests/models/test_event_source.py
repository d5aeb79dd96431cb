"""Bodies that are read within bounds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

import httpx
import pytest

from bridge.models.event_source import BadAnswer, Bounded, event_data, read_beginning


class Pieces(httpx.AsyncByteStream):
    """A body that comes in pieces and notes how many were taken; an exception is raised."""

    def __init__(self, *pieces: bytes | Exception) -> None:
        self.pieces = pieces
        self.taken = 0
        self.is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            self.taken += 1
            if isinstance(piece, Exception):
                raise piece

            yield piece

    async def aclose(self) -> None:
        self.is_closed = True


def response(stream: httpx.AsyncByteStream) -> httpx.Response:
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=stream)


async def data(stream: httpx.AsyncByteStream) -> list[str]:
    return [event async for event in event_data(response(Bounded(stream)))]


async def test_events_are_read_across_pieces_and_line_ends() -> None:
    body = ": hello\n\ndata: ü1\r\n\r\nevent: x\rdata: 2\rdata: 3\r\rid: 7\n\ndata: 4\n\n".encode()

    assert await data(Pieces(*(body[n : n + 1] for n in range(len(body))))) == ["ü1", "2\n3", "4"]


async def test_a_body_larger_than_its_bound_is_no_answer() -> None:
    stream = Pieces(b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n")

    with pytest.raises(BadAnswer, match="larger than 20 bytes"):
        async for _ in event_data(response(Bounded(stream, 20))):
            pass

    assert stream.taken == 3


async def test_events_can_be_left_before_their_end() -> None:
    stream = Pieces(b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n")
    answer = response(Bounded(stream))

    async with aclosing(event_data(answer)) as events:
        assert await anext(events) == "1"

    await answer.aclose()
    assert (stream.taken, stream.is_closed) == (1, True)


async def test_only_the_beginning_of_an_error_is_read() -> None:
    stream = Pieces(b"12345", b"67890", b"never")

    assert await read_beginning(response(stream), 8) == b"12345678"
    assert stream.taken == 2


async def test_what_came_before_a_body_failed_is_kept() -> None:
    stream = Pieces(b"12345", httpx.ReadError("lost"))

    assert await read_beginning(response(stream), 8) == b"12345"
