"""Bytes from a pipe, as lines of bounded length."""

from __future__ import annotations

from collections.abc import Iterator


class LineSplitter:
    """Splits what arrives in pieces at newlines, each byte looked at once.

    A line of more than `limit` bytes raises OverflowError, or, with `cut`, is cut short.
    """

    def __init__(self, limit: int, *, cut: bool = False) -> None:
        self._limit = limit
        self._cut = cut
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that `data` completes, without their newlines.

        Raises:
            OverflowError: A line is too long.
        """
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            yield self._complete(data[start:end])
            start = end + 1

        if start < len(data):
            self._keep(data[start:])

    def rest(self) -> bytes:
        """What came after the last newline, taken out."""
        return self._complete(b"")

    def _complete(self, piece: bytes) -> bytes:
        if not self._parts and len(piece) <= self._limit:
            return piece

        self._keep(piece)
        line = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return line

    def _keep(self, piece: bytes) -> None:
        room = self._limit - self._size
        if len(piece) > room:
            if not self._cut:
                raise OverflowError(f"a line of more than {self._limit} bytes")

            piece = piece[:room]

        if piece:
            self._size += len(piece)
            self._parts.append(piece)


def printable(data: bytes) -> str:
    """`data` as one line of text that no terminal obeys: control characters are escaped."""
    text = data.decode(errors="replace").rstrip("\r\n")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
