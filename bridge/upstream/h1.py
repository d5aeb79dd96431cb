"""Reads HTTP/1.1 responses from bytes (RFC 9112), without I/O: heads parsed, bodies unframed.

Everything has a bound but the body, which is handed on as it comes and is the caller's to bound.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from bridge.upstream.wording import excerpt

HEAD_BYTES = 64 * 1024
CHUNK_LINE_BYTES = 4096
INTERIM_HEADS = 32
SHORT_HEAD_BYTES = 2048
KNOWN_HEADS = 128
HEAD_END = re.compile(rb"\n\r?\n")  # found five times faster than what begins with an option
FOLD = re.compile(r"\r?\n[ \t]+")
VERSION = b"HTTP/1."
STATUS_LINE = re.compile(r"HTTP/1\.([01]) ([1-9][0-9]{2})(?: .*)?")
LENGTH = re.compile(r"[0-9]{1,18}")
CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?")


class NotHttp(Exception):
    """What came is no HTTP/1.1 response; the text says how it began, or what is wrong."""


class Head(NamedTuple):
    """A status and headers, named in lower case; one that was repeated holds all its values."""

    minor: int
    status: int
    headers: Mapping[str, str]


class _Stage(Enum):
    HEAD = auto()
    LENGTH = auto()  # `_left` bytes to come
    TO_CLOSE = auto()  # as long as the connection
    CHUNK_LINE = auto()
    CHUNK = auto()  # `_left` bytes to come
    CHUNK_END = auto()
    TRAILERS = auto()
    DONE = auto()


class _Begin(NamedTuple):
    """What a head says of what comes behind it: the stage, its bytes, if the connection stays."""

    head: Head
    stage: _Stage
    left: int
    stays: bool


class ResponseReader:
    """Reads one final response; `head` is None until its head is complete.

    `is_reusable` tells whether the connection can carry another request once `is_done`.
    """

    __slots__ = ("_buffer", "_interim", "_left", "_stage", "_trailers", "head", "is_reusable")

    def __init__(self) -> None:
        self.head: Head | None = None
        self.is_reusable = False
        self._buffer = b""
        self._interim = 0
        self._left = 0
        self._trailers = 0
        self._stage = _Stage.HEAD

    @property
    def is_done(self) -> bool:
        """Whether the response is complete."""
        return self._stage is _Stage.DONE

    def feed(self, data: bytes) -> bytes:
        """Take what came; return what of the body is in it.

        Raises:
            NotHttp: It breaks the protocol, or one of the bounds.
        """
        if self._buffer:
            seen = len(self._buffer)
            data = self._buffer + data
            self._buffer = b""
        else:
            seen = 0

        if self.head is None and not (data := self._read_heads(data, seen)):
            return b""

        if self._stage is _Stage.LENGTH:
            return self._take(data)

        if self._stage is _Stage.TO_CLOSE:
            return data

        if self._stage is not _Stage.DONE:
            return self._unchunk(data)

        self.is_reusable = False  # nobody asked for more
        return b""

    def end(self) -> bool:
        """The connection ended; return whether the response is complete with that."""
        if self._stage is _Stage.TO_CLOSE:
            self._stage = _Stage.DONE

        return self.is_done

    def _read_heads(self, data: bytes, seen: int) -> bytes:
        """Read up to the final head; return what came behind it. `seen` bytes hold no end."""
        while self.head is None:
            found = HEAD_END.search(data, max(0, seen - 3))
            if len(data) > HEAD_BYTES and (found is None or found.start() > HEAD_BYTES):
                raise NotHttp(f"its headers exceed {HEAD_BYTES} bytes")

            if found is None:
                if data[: len(VERSION)] != VERSION[: len(data)]:
                    raise NotHttp(f"what came is not HTTP/1.1: {excerpt(data)}")

                self._buffer = data
                return b""

            begin = _begin(data[: found.start()])
            head = begin.head
            data = data[found.end() :]
            seen = 0
            if head.status >= 200:
                self.head, self._stage, self._left, self.is_reusable = begin
            elif head.status == 101 or self._interim == INTERIM_HEADS:
                raise NotHttp(f"an HTTP status {head.status} that nobody asked for")
            else:
                self._interim += 1

        return data

    def _take(self, data: bytes) -> bytes:
        left = self._left - len(data)
        if left > 0:
            self._left = left
            return data

        self._stage = _Stage.DONE
        if left == 0:
            return data

        self.is_reusable = False
        return data[:left]

    def _unchunk(self, data: bytes) -> bytes:
        pieces: list[bytes] = []
        at = 0
        while at < len(data):
            if self._stage is _Stage.CHUNK:
                piece = data[at : at + self._left]
                pieces.append(piece)
                at += len(piece)
                self._left -= len(piece)
                if not self._left:
                    self._stage = _Stage.CHUNK_END
            elif self._stage is _Stage.DONE:
                self.is_reusable = False
                break
            else:
                end = data.find(b"\n", at, at + CHUNK_LINE_BYTES)
                if end < 0:
                    self._keep(data[at:])
                    break

                self._line(data[at:end].removesuffix(b"\r"))
                at = end + 1

        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _keep(self, data: bytes) -> None:
        if len(data) >= CHUNK_LINE_BYTES:
            raise NotHttp(f"a line between chunks exceeds {CHUNK_LINE_BYTES} bytes")

        self._buffer = data

    def _line(self, line: bytes) -> None:
        """Take a line between chunks: a size, nothing, or a trailer, which says nothing to us."""
        if self._stage is _Stage.CHUNK_LINE:
            match = CHUNK_LINE.fullmatch(line)
            if match is None:
                raise NotHttp(f"the size of a chunk is no number: {excerpt(line)}")

            self._left = int(match[1], 16)
            self._stage = _Stage.CHUNK if self._left else _Stage.TRAILERS
        elif self._stage is _Stage.CHUNK_END:
            if line:
                raise NotHttp("a chunk is longer than was said")

            self._stage = _Stage.CHUNK_LINE
        elif line:
            self._trailers += len(line)
            if self._trailers > HEAD_BYTES:
                raise NotHttp(f"its trailers exceed {HEAD_BYTES} bytes")
        else:
            self._stage = _Stage.DONE


def parse_head(data: bytes) -> Head:
    """A head without the blank line at its end.

    Raises:
        NotHttp: It is none.
    """
    text = data.decode("latin-1")
    if "\n " in text or "\n\t" in text:
        text = FOLD.sub(" ", text)

    first, *lines = text.split("\n")
    status = STATUS_LINE.fullmatch(first.rstrip("\r"))
    if status is None:
        raise NotHttp(f"what came is not HTTP/1.1: {excerpt(first)}")

    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name or " " in name or "\t" in name:
            raise NotHttp(f"a line of its headers is none: {excerpt(name)}")

        value = value.strip(" \t\r")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value

    return Head(int(status[1]), int(status[2]), headers)


def _begin(data: bytes) -> _Begin:
    """Parse a head. A server that answers often says most of them again, to the same second."""
    return _known_begin(data) if len(data) <= SHORT_HEAD_BYTES else _new_begin(data)


def _new_begin(data: bytes) -> _Begin:
    """Parse a head, and find how the body behind it is framed (RFC 9112, 6.3)."""
    head = parse_head(data)
    headers = head.headers
    if head.status < 200:  # there is none, and another head follows
        return _Begin(head, _Stage.HEAD, 0, False)

    options = headers.get("connection", "").lower()
    stays = "close" not in options if head.minor else "keep-alive" in options
    coding = headers.get("transfer-encoding")
    length = headers.get("content-length")
    if head.status in {204, 304}:
        return _Begin(head, _Stage.DONE, 0, stays)

    if coding is not None:
        if coding.lower() != "chunked":
            raise NotHttp(f"the transfer coding {excerpt(coding)!r}, which bridge cannot read")

        return _Begin(head, _Stage.CHUNK_LINE, 0, stays and length is None)

    if length is None:
        return _Begin(head, _Stage.TO_CLOSE, 0, False)

    left = _length(length)
    return _Begin(head, _Stage.LENGTH if left else _Stage.DONE, left, stays)


_known_begin = lru_cache(maxsize=KNOWN_HEADS)(_new_begin)


def _length(text: str) -> int:
    """The value of Content-Length, which a careless server may say twice, but not differently."""
    value, *others = [value.strip() for value in text.split(",")]
    if any(other != value for other in others) or LENGTH.fullmatch(value) is None:
        raise NotHttp(f"the length of its body is no number: {excerpt(text)}")

    return int(value)
