"""stdio: one client, the process that started this one. Nothing but protocol on its stdout.

The SDK's own stdio transport reads in a thread that nobody can interrupt, so a server told to
end would wait for its client's next line. This one waits for readiness instead.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

import anyio
from anyio.lowlevel import checkpoint

from bridge.core.rpc import INVALID_REQUEST, PARSE_ERROR
from bridge.core.wire import loads
from bridge.downstream.client import Client, Message, Post
from bridge.downstream.duplex import Duplex
from bridge.downstream.encoding import encoded
from bridge.downstream.front import Front, error_response
from bridge.downstream.handlers import Handlers

LINE_BYTES = 32 * 1024 * 1024
CHUNK_BYTES = 64 * 1024
# What a pipe that is ready to be written takes at once, without blocking (POSIX, PIPE_BUF).
WRITE_BYTES = 4096
LAST_ANSWERS = 1.0
"""Seconds that requests may go on after the client has closed our stdin."""

MOST_WAITING: Final = 1000
"""Lines that are held for a client that does not read."""


async def serve_stdio(handlers: Handlers, *, confirm_wait: float = 300.0) -> None:
    """Serve the client at our stdin and stdout until it leaves, or until cancelled.

    `confirm_wait` is how long a legacy client's person may think before a call is refused.
    """
    with _claimed_stdio() as (source, sink):
        await serve_lines(handlers, source, sink, confirm_wait=confirm_wait)


async def serve_lines(
    handlers: Handlers, source: int, sink: int, *, confirm_wait: float = 300.0
) -> None:
    """Serve one client over two file descriptors, one message a line, as `serve_stdio` does."""
    front = Front(handlers, confirm_wait=confirm_wait)
    outgoing = _Outgoing(sink)
    async with anyio.create_task_group() as group:
        duplex = Duplex(front, Client(), outgoing.post, group)
        group.start_soon(front.run)
        group.start_soon(_write_until_unread, outgoing, group.cancel_scope)
        await _read(source, duplex, outgoing.post)
        front.wind_down()
        with anyio.move_on_after(LAST_ANSWERS):
            await duplex.settled()

        await duplex.aclose()
        with anyio.move_on_after(LAST_ANSWERS):
            await outgoing.written()

        group.cancel_scope.cancel()


async def _read(source: int, duplex: Duplex, post: Post) -> None:
    """Hand on each message until the client closes its end."""
    lines = _Lines(source)
    while True:
        try:
            line = await lines.read()
            if line is None:
                return

            message = loads(line)
        except _TooLong:
            text = f"a message is longer than {LINE_BYTES} bytes"
            post(error_response(None, INVALID_REQUEST, text))
        except ValueError:
            post(error_response(None, PARSE_ERROR, "a line is not JSON"))
        else:
            duplex.take(message)
            await checkpoint()  # a client that floods us does not keep its own answers waiting


async def _write_until_unread(outgoing: _Outgoing, scope: anyio.CancelScope) -> None:
    """Write what there is; a client that has closed its end is gone, and all ends with it."""
    try:
        await outgoing.run()
    except BrokenPipeError:
        scope.cancel()


class _Outgoing:
    """The lines on their way to the client.

    A client that does not read loses notifications, never answers.
    """

    def __init__(self, sink: int) -> None:
        self._sink = sink
        self._waiting: deque[bytes] = deque()
        self._changed = anyio.Event()
        self._is_empty = anyio.Event()
        self._is_empty.set()

    def post(self, message: Message) -> None:
        """Take one message; see `Post`."""
        if len(self._waiting) >= MOST_WAITING and "id" not in message:
            return

        self._waiting.append(encoded(message) + b"\n")
        if self._is_empty.is_set():
            self._is_empty = anyio.Event()

        self._changed.set()

    async def run(self) -> None:
        """Write each message as one line, until cancelled.

        Raises:
            BrokenPipeError: Nobody reads them.
        """
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            while self._waiting:
                lines = b"".join(self._waiting)
                self._waiting.clear()
                await _write(self._sink, lines)

            self._is_empty.set()

    async def written(self) -> None:
        """Return when everything that was posted is written."""
        await self._is_empty.wait()


class _TooLong(Exception):
    """A line was longer than LINE_BYTES; it is skipped."""


class _Lines:
    """Reads lines of a file descriptor, each at most LINE_BYTES long, without blocking."""

    def __init__(self, source: int) -> None:
        self._source = source
        self._buffer = bytearray()
        self._searched = 0
        self._is_skipping = False
        self._is_at_end = False

    async def read(self) -> bytes | None:
        """The next line that is not blank, without its end; None at the end of the input.

        Raises:
            _TooLong: A line was too long; it is skipped.
        """
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end < 0:
                if self._is_at_end:
                    return None

                await self._refill()
            elif line := self._take(end):
                return line

    def _take(self, end: int) -> bytes:
        """Take a whole line out of the buffer; empty if it was blank."""
        line = bytes(self._buffer[:end]).strip()
        del self._buffer[: end + 1]
        self._searched = 0
        if self._is_skipping:
            self._is_skipping = False
            raise _TooLong

        return line

    async def _refill(self) -> None:
        if len(self._buffer) > LINE_BYTES:
            self._buffer.clear()
            self._is_skipping = True

        self._searched = len(self._buffer)
        chunk = await _read_some(self._source)
        self._is_at_end = not chunk
        self._buffer += chunk or b"\n"  # the last line may have no end of its own


async def _read_some(source: int) -> bytes:
    while True:
        with suppress(OSError):  # a file is always ready, and cannot be waited for
            await anyio.wait_readable(source)

        with suppress(BlockingIOError):
            return os.read(source, CHUNK_BYTES)


async def _write(sink: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        with suppress(OSError):  # a file is always ready, and cannot be waited for
            await anyio.wait_writable(sink)

        with suppress(BlockingIOError):
            rest = rest[os.write(sink, rest[:WRITE_BYTES]) :]


@contextmanager
def _claimed_stdio() -> Generator[tuple[int, int]]:
    """Our stdin and stdout as private descriptors, while 0 reads nothing and 1 is stderr.

    So what a tool or its child prints cannot break the protocol, nor can it eat our input.
    """
    source, sink = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (0, 1))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # stderr is closed
        os.dup2(nothing, 1)

    os.close(nothing)
    try:
        yield source, sink
    finally:
        with suppress(OSError, ValueError, AttributeError):  # what was printed is no protocol
            sys.stdout.flush()

        os.dup2(source, 0)
        os.dup2(sink, 1)
        os.close(source)
        os.close(sink)
