"""Bytes from a pipe, as lines of bounded length."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO


class LineSplitter:
    """Splits what arrives in pieces at newlines, each byte looked at once.

    A line of more than `limit` bytes raises OverflowError, or, with `cut`, is cut short. A line in
    many pieces grows in one place, so that it is never held twice.
    """

    def __init__(self, limit: int, *, cut: bool = False) -> None:
        self._limit = limit
        self._cut = cut
        self._begun: BytesIO | None = None
        self._size = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that `data` completes, without their newlines.

        Raises:
            OverflowError: A line is too long.
        """
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            if self._begun is None and end - start <= self._limit:
                yield data[start:end]
            else:
                self._keep(memoryview(data)[start:end])
                yield self.rest()

            start = end + 1

        if start < len(data):
            self._keep(memoryview(data)[start:])

    def rest(self) -> bytes:
        """What came after the last newline, taken out."""
        begun, self._begun, self._size = self._begun, None, 0
        return b"" if begun is None else begun.getvalue()  # no copy: nobody writes to it again

    def _keep(self, piece: memoryview) -> None:
        room = self._limit - self._size
        if len(piece) > room:
            if not self._cut:
                raise OverflowError(f"a line of more than {self._limit} bytes")

            piece = piece[:room]

        if self._begun is None:
            self._begun = BytesIO()

        self._begun.write(piece)
        self._size += len(piece)


def printable(data: bytes) -> str:
    """`data` as one line of text that no terminal obeys: control characters are escaped."""
    text = data.decode(errors="replace").rstrip("\r\n")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
