"""Bytes become lines, however they arrive."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.upstream.lines import LineSplitter, printable


@given(st.lists(st.binary(max_size=40), max_size=30))
def test_pieces_make_the_same_lines_as_the_whole(pieces: list[bytes]) -> None:
    splitter = LineSplitter(10_000)

    lines = [line for piece in pieces for line in splitter.feed(piece)]

    assert lines == b"".join(pieces).split(b"\n")[:-1]


def test_line_that_is_too_long_is_refused_before_it_ends() -> None:
    splitter = LineSplitter(10)

    with pytest.raises(OverflowError):
        list(splitter.feed(b"x" * 11))


def test_line_that_fits_exactly_passes() -> None:
    assert list(LineSplitter(10).feed(b"x" * 10 + b"\n")) == [b"x" * 10]


def test_cut_line_keeps_its_beginning_and_the_next_line_is_whole() -> None:
    splitter = LineSplitter(4, cut=True)

    assert [*splitter.feed(b"abcdef"), *splitter.feed(b"gh\nxy\n")] == [b"abcd", b"xy"]


def test_control_characters_are_shown_not_obeyed() -> None:
    assert printable(b"\x1b[2Jred\x07 \xff\r\n") == "\\x1b[2Jred\\x07 \ufffd"


def test_line_in_many_pieces_is_never_held_twice() -> None:
    splitter, size = LineSplitter(2**24), 64 * 1024
    tracemalloc.start()
    try:
        for _ in range(64):
            list(splitter.feed(b"x" * size))

        lines = list(splitter.feed(b"\n"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert lines == [b"x" * 64 * size]
    assert peak < 1.5 * 64 * size
