"""Bodies read within bounds, whatever pieces they come in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from itertools import pairwise

import anyio
import anyio.lowlevel
import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.upstream.bounded import EventStream, read_beginning
from bridge.upstream.channel import ChannelError

LIMIT = 50
URL = "http://127.0.0.1/mcp"
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


class Pieces(httpx2.AsyncByteStream):
    """A body that comes in these pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            await anyio.lowlevel.checkpoint()
            yield piece


def response(*pieces: bytes) -> httpx2.Response:
    """A response whose body comes in these pieces."""
    return httpx2.Response(200, stream=Pieces(*pieces), request=httpx2.Request("GET", URL))


async def read(*pieces: bytes) -> list[str]:
    """The data of each event."""
    return [e.data async for e in EventStream(response(*pieces), LIMIT).events() if e.data]


@given(
    sizes=st.lists(st.integers(1, LIMIT + 5), max_size=5),
    end=ENDS,
    cuts=st.lists(st.integers(0, 400), max_size=40),
)
@settings(max_examples=150, deadline=None)
def test_event_is_measured_alone_however_the_stream_is_cut(
    sizes: list[int], end: str, cuts: list[int]
) -> None:
    texts = [f"data:{'x' * size}" for size in sizes]
    stream = "".join(text + end + end for text in texts).encode()
    marks = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[a:b] for a, b in pairwise(marks)]
    too_large = any(len(text) + 2 * len(end) > LIMIT for text in texts)

    if too_large:
        with pytest.raises(ChannelError, match="event exceeds 50 bytes"):
            anyio.run(read, *pieces)
    else:
        assert anyio.run(read, *pieces) == ["x" * size for size in sizes]


async def test_reader_that_stops_early_leaves_nothing_to_clean_up() -> None:
    before = anyio.get_running_tasks()
    stream = EventStream(response(b"data: 1\n\ndata: 2\n\n", b"data: 3\n\n"), LIMIT)
    async with aclosing(stream.events()) as events:
        assert (await anext(events)).data == "1"

    del events, stream
    await anyio.lowlevel.checkpoint()
    assert anyio.get_running_tasks() == before


async def test_stream_ends_once_its_rest_is_of_no_interest() -> None:
    pieces = [b"data: %d\n\n" % n for n in range(9)]
    stream = EventStream(response(*pieces), LIMIT)
    got = []
    async for event in stream.events():
        got.append(event.data)
        if event.data == "2":
            stream.end_within(20)

    assert got == ["0", "1", "2", "3", "4", "5"]


async def test_beginning_is_no_longer_than_asked_for_and_survives_failure() -> None:
    assert await read_beginning(response(b"abc", b"def"), 4) == b"abcd"
    assert await read_beginning(response(b"abc", b"def"), 9) == b"abcdef"

    compressed = httpx2.Response(
        200,
        headers={"Content-Encoding": "br"},
        stream=Pieces(b"abc"),
        request=httpx2.Request("GET", URL),
    )
    assert await read_beginning(compressed, 9) == b""
