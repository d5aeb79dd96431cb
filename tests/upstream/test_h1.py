"""HTTP/1.1 responses read from bytes, whatever pieces they come in."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.upstream.h1 import (
    CHUNK_LINE_BYTES,
    HEAD_BYTES,
    INTERIM_HEADS,
    SHORT_HEAD_BYTES,
    Head,
    NotHttp,
    ResponseReader,
)

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
SIZED = OK + b"Content-Length: 5\r\n\r\nhello"


def cut(data: bytes, marks: list[int]) -> list[bytes]:
    """`data` in pieces."""
    bounds = sorted({0, len(data), *(mark for mark in marks if mark < len(data))})
    return [data[a:b] for a, b in pairwise(bounds)]


def read(*pieces: bytes, ends: bool = False) -> tuple[Head | None, bytes, bool, bool]:
    """Head, body, whether that is all, and whether the connection can be used again."""
    reader = ResponseReader()
    body = b"".join([reader.feed(piece) for piece in pieces])
    if ends:
        reader.end()

    return reader.head, body, reader.is_done, reader.is_reusable


CHUNKS = st.lists(st.binary(min_size=1, max_size=20), max_size=5)


@given(
    chunks=CHUNKS,
    interim=st.integers(0, 2),
    end=st.sampled_from([b"\r\n", b"\n"]),
    trailer=st.sampled_from([b"", b"X-Sum: 1\r\n"]),
    marks=st.lists(st.integers(0, 400), max_size=40),
)
@settings(max_examples=200, deadline=None)
def test_chunked_body_is_whole_however_it_is_cut(
    chunks: list[bytes], interim: int, end: bytes, trailer: bytes, marks: list[int]
) -> None:
    lines = b"%x;a=b%s%s%s"
    framed = b"".join([lines % (len(chunk), end, chunk, end) for chunk in chunks])
    heads = b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" * interim + CHUNKED
    data = heads + framed + b"0" + end + trailer + end
    head = Head(1, 200, {"transfer-encoding": "chunked"})

    assert read(*cut(data, marks)) == (head, b"".join(chunks), True, True)
    assert read(*cut(data[:-1], marks)) == (head, b"".join(chunks), False, True)


@given(body=st.binary(max_size=60), marks=st.lists(st.integers(0, 200), max_size=20))
@settings(max_examples=100, deadline=None)
def test_sized_body_is_whole_however_it_is_cut(body: bytes, marks: list[int]) -> None:
    data = OK + b"Content-Length: %d\r\n\r\n" % len(body) + body
    head = Head(1, 200, {"content-length": str(len(body))})

    assert read(*cut(data, marks)) == (head, body, True, True)
    assert read(*cut(data + b"HTTP", marks)) == (head, body, True, False)


@pytest.mark.parametrize(
    ("head", "body", "is_done", "is_reusable"),
    [
        (OK, b"rest", False, False),
        (OK + b"Content-Length: 4\r\n", b"rest", True, True),
        (OK + b"Content-Length: 4, 4\r\n", b"rest", True, True),
        (OK + b"Content-Length: 4\r\nContent-Length:4 \r\n", b"rest", True, True),
        (OK + b"Content-Length: 4\r\nConnection: Close\r\n", b"rest", True, False),
        (OK + b"Content-Length: 4\r\nConnection: x, close\r\n", b"rest", True, False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n", b"rest", True, False),
        (b"HTTP/1.0 200\r\nContent-Length: 4\r\nConnection: Keep-Alive\r\n", b"rest", True, True),
        (OK + b"Content-Length: 0\r\n", b"", True, True),
        (b"HTTP/1.1 204 \r\n", b"", True, True),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n", b"", True, True),
    ],
)
def test_body_ends_where_its_head_says(
    head: bytes, body: bytes, is_done: bool, is_reusable: bool
) -> None:
    assert read(head + b"\r\n" + body)[1:] == (body, is_done, is_reusable)
    assert read(head + b"\r\n" + body, ends=True)[1:] == (body, True, is_reusable)


def test_coding_rules_over_length_and_the_connection_is_not_trusted() -> None:
    head = OK + b"Content-Length: 9\r\nTransfer-Encoding: Chunked\r\n\r\n"
    assert read(head + b"2\r\nab\r\n0\r\n\r\n")[1:] == (b"ab", True, False)


def test_headers_are_read_as_they_are_meant() -> None:
    head = (
        b"HTTP/1.1 401 \xfc\r\nX-Empty:\r\nWWW-Authenticate: Basic\r\nx-FOLDED: a\r\n\t b\r\n"
        b"www-authenticate: Bearer\r\nX-Colon: a:b\nX-Latin: \xfc\r\nContent-Length: 0"
    )
    assert read(head + b"\r\n\r\n")[0] == Head(
        1,
        401,
        {
            "x-empty": "",
            "www-authenticate": "Basic, Bearer",
            "x-folded": "a b",
            "x-colon": "a:b",
            "x-latin": "ü",
            "content-length": "0",
        },
    )


def test_head_of_any_length_is_read_alike_also_when_its_like_was_seen_before() -> None:
    lines = b"X-Same: 1\r\nVia: a\r\nX-Other: %d\r\nVia: b\r\n"
    for number, ballast in [(0, b""), (0, b""), (1, b""), (2, b"y" * SHORT_HEAD_BYTES), (0, b"")]:
        head = OK + lines % number + b"X-Long: " + ballast + b"\r\nContent-Length: 0\r\n\r\n"
        assert read(head)[0] == Head(
            1,
            200,
            {
                "x-same": "1",
                "via": "a, b",
                "x-other": str(number),
                "x-long": ballast.decode(),
                "content-length": "0",
            },
        )


@pytest.mark.parametrize("ballast", [b"", b"y" * SHORT_HEAD_BYTES])
def test_line_that_is_no_header_is_refused_each_time(ballast: bytes) -> None:
    for line in (b"no colon", b": unnamed", b"a b: c") * 2:
        with pytest.raises(NotHttp, match="a line of its headers is none"):
            read(OK + b"X: " + ballast + b"\r\n" + line + b"\r\n\r\n")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"<html>\x1b[31m", r"not HTTP/1\.1: <html>\\x1b\[31m"),
        (b"HTTP/2 200\r\n\r\n", r"not HTTP/1\.1: HTTP/2 200"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", r"not HTTP/1\.1"),
        (b"HTTP/1.1 101 Switching\r\n\r\n", "status 101 that nobody asked for"),
        (b"HTTP/1.1 100 \r\n\r\n" * (INTERIM_HEADS + 1), "status 100 that nobody asked for"),
        (OK + b"no colon\r\n\r\n", "a line of its headers is none: no colon"),
        (OK + b"Content-Length : 4\r\n\r\n", "a line of its headers is none"),
        (OK + b"Content-Length: 4, 5\r\n\r\n", "length of its body is no number"),
        (OK + b"Content-Length: -4\r\n\r\n", "length of its body is no number: -4"),
        (OK + b"Content-Length: 9999999999999999999\r\n\r\n", "length of its body is no number"),
        (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n", "the transfer coding 'gzip, chunked'"),
        (CHUNKED + b"x\r\n", "size of a chunk is no number: x"),
        (CHUNKED + b"-1\r\n", "size of a chunk is no number"),
        (CHUNKED + b"1234567890123456\r\n", "size of a chunk is no number"),
        (CHUNKED + b"1\r\nab\r\n", "a chunk is longer than was said"),
        (CHUNKED + b"1" * CHUNK_LINE_BYTES, "between chunks exceeds 4096 bytes"),
        (CHUNKED + b"0\r\n" + b"X: y\r\n" * HEAD_BYTES, "trailers exceed 65536 bytes"),
        (OK + b"X: " + b"y" * HEAD_BYTES, "headers exceed 65536 bytes"),
        (OK + b"X: " + b"y" * HEAD_BYTES + b"\r\n\r\n", "headers exceed 65536 bytes"),
    ],
)
def test_what_is_no_response_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(NotHttp, match=says):
        read(data)


def test_what_comes_behind_a_response_spoils_its_connection() -> None:
    reader = ResponseReader()
    assert (reader.feed(SIZED), reader.is_reusable) == (b"hello", True)
    assert (reader.feed(b"H"), reader.is_reusable) == (b"", False)
