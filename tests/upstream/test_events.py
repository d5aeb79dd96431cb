"""Server-sent events read from bytes, whatever pieces they come in and however lines end."""

from __future__ import annotations

from itertools import pairwise

import anyio
import httpx
import pytest
from httpx_sse import EventSource
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.upstream.channel import ChannelError
from bridge.upstream.events import EventReader

LIMIT = 50
LINES = st.sampled_from(
    [
        "",
        "",
        "data: 1",
        "data:{}",
        "data:  two",
        "data",
        "event: other",
        "event:",
        "id: 7",
        "id",
        "id: \0",
        "retry: 12",
        "retry: x",
        ": comment",
        "unknown: ü",
        "data: ä€😀",
    ]
)
Events = list[tuple[str, str, str, int | None]]


def read(*pieces: bytes, limit: int = 1000) -> Events:
    """The events in these pieces."""
    reader = EventReader(limit)
    events = [event for piece in pieces for event in reader.feed(piece)]
    return [(e.event, e.data, e.id, e.retry) for e in events]


async def read_by_library(data: bytes) -> Events:
    """The events as the library for it reads them."""
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=data)
    return [(e.event, e.data, e.id, e.retry) async for e in EventSource(response).aiter_sse()]


def cut(data: bytes, marks: list[int]) -> list[bytes]:
    """`data` in pieces."""
    bounds = sorted({0, len(data), *(mark for mark in marks if mark < len(data))})
    return [data[a:b] for a, b in pairwise(bounds)]


@given(
    lines=st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n", "\r"])), max_size=20),
    marks=st.lists(st.integers(0, 300), max_size=40),
)
@settings(max_examples=300, deadline=None)
def test_events_are_those_that_the_library_reads(
    lines: list[tuple[str, str]], marks: list[int]
) -> None:
    data = "".join(line + end for line, end in lines).encode()
    theirs = [event for event in anyio.run(read_by_library, data) if event[1]]

    assert [event for event in read(*cut(data, marks)) if event[1]] == theirs


@given(
    sizes=st.lists(st.integers(1, LIMIT), max_size=5),
    marks=st.lists(st.integers(0, 400), max_size=40),
)
@settings(max_examples=150, deadline=None)
def test_event_is_measured_alone_however_the_stream_is_cut(
    sizes: list[int], marks: list[int]
) -> None:
    data = b"".join([b"data:%s\n\n" % (b"x" * size) for size in sizes])
    small = [("message", "x" * size, "", None) for size in sizes]

    if any(len("data:") + size + 2 > LIMIT for size in sizes):
        with pytest.raises(ChannelError, match="event exceeds 50 bytes"):
            read(*cut(data, marks), limit=LIMIT)
    else:
        assert read(*cut(data, marks), limit=LIMIT) == small


def test_line_that_never_ends_is_given_up() -> None:
    with pytest.raises(ChannelError, match="event exceeds 50 bytes"):
        read(*[b"x"] * 51, limit=LIMIT)


def test_event_is_there_with_its_last_byte() -> None:
    reader = EventReader(LIMIT)
    assert [event.data for event in reader.feed(b"data: 1\r\r")] == ["1"]
    assert [event.data for event in reader.feed(b"\ndata: 2\r\n\r")] == ["2"]
    assert [event.data for event in reader.feed(b"\ndata: 3")] == []


def test_events_before_one_that_is_too_large_are_still_heard() -> None:
    got = []
    with pytest.raises(ChannelError):
        for event in EventReader(LIMIT).feed(b"data: 1\n\ndata: 2\n\n" + b"x" * 60):
            got.append(event.data)  # noqa: PERF401 - the generator fails on the way

    assert got == ["1", "2"]


def test_stream_may_begin_with_a_byte_order_mark_and_hold_what_is_no_text() -> None:
    mark = b"\xef\xbb\xbf"
    pieces = [mark[:1], mark[1:], b"data: 1\n\n", mark + b"data: 2\n\ndata: \xff\n\n"]
    assert read(*pieces) == [("message", "1", "", None), ("message", "\ufffd", "", None)]
