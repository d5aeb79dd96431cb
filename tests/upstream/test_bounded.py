"""Bodies read within bounds, whatever pieces they come in."""

from __future__ import annotations

from contextlib import aclosing
from itertools import pairwise

import anyio
import anyio.lowlevel
import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.upstream.bounded import EventStream, read_beginning, read_body
from bridge.upstream.channel import ChannelError

LIMIT = 50
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


class Pieces:
    """A response whose body comes in these pieces."""

    status = 200
    is_success = True
    is_whole = False
    url = httpx2.URL("http://127.0.0.1/mcp")

    def __init__(self, *pieces: bytes, coding: str = "") -> None:
        self._pieces = list(pieces)
        self._coding = coding

    def header(self, name: str) -> str:
        """The coding, which is the only header."""
        return self._coding if name == "content-encoding" else ""

    async def piece(self) -> bytes:
        """What comes next."""
        await anyio.lowlevel.checkpoint()
        return self._pieces.pop(0) if self._pieces else b""

    async def aclose(self) -> None:
        """Nothing is held."""


async def read(*pieces: bytes) -> list[str]:
    """The data of each event."""
    return [e.data async for e in EventStream(Pieces(*pieces), LIMIT).events() if e.data]


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
    stream = EventStream(Pieces(b"data: 1\n\ndata: 2\n\n", b"data: 3\n\n"), LIMIT)
    async with aclosing(stream.events()) as events:
        assert (await anext(events)).data == "1"

    del events, stream
    await anyio.lowlevel.checkpoint()
    assert anyio.get_running_tasks() == before


async def test_stream_ends_once_its_rest_is_of_no_interest() -> None:
    pieces = [b"data: %d\n\n" % n for n in range(9)]
    stream = EventStream(Pieces(*pieces), LIMIT)
    got = []
    async for event in stream.events():
        got.append(event.data)
        if event.data == "2":
            stream.end_within(20)

    assert got == ["0", "1", "2", "3", "4", "5"]


async def test_beginning_is_no_longer_than_asked_for_and_survives_failure() -> None:
    assert await read_beginning(Pieces(b"abc", b"def"), 4) == b"abcd"
    assert await read_beginning(Pieces(b"abc", b"def"), 9) == b"abcdef"

    assert await read_beginning(Pieces(b"abc", coding="br"), 9) == b""


async def test_body_is_refused_one_byte_over_its_bound() -> None:
    assert await read_body(Pieces(b"abc", b"def"), 6) == b"abcdef"
    with pytest.raises(ChannelError, match="answer exceeds 5 bytes"):
        await read_body(Pieces(b"abc", b"def"), 5)
