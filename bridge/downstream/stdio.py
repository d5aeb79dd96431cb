"""stdio: one client, the process that started this one. Nothing but protocol on its stdout.

The SDK's own stdio transport reads in a thread that nobody can interrupt, so a server told to
end would wait for its client's next line. This one waits for readiness instead.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Self

import anyio
from anyio import BrokenResourceError, ClosedResourceError
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from bridge.core.wire import dumps, loads
from bridge.downstream.handlers import Handlers
from bridge.downstream.server import Front

LINE_BYTES = 32 * 1024 * 1024
CHUNK_BYTES = 64 * 1024
# What a pipe that is ready to be written takes at once, without blocking (POSIX, PIPE_BUF).
WRITE_BYTES = 4096
LAST_ANSWERS = 1.0
"""Seconds that requests may go on after the client has closed our stdin."""

CANCELLED = "notifications/cancelled"

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Outgoing = MemoryObjectReceiveStream[SessionMessage]


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
    incoming, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception]()
    write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage]()
    conversation = _Conversation(source, sink, incoming, write_stream.clone(), outgoing)
    async with read_stream, write_stream, conversation, anyio.create_task_group() as group:
        group.start_soon(front.relay_changes)
        group.start_soon(conversation.read, front)
        group.start_soon(conversation.write)
        options = front.server.create_initialization_options()
        await front.server.run(read_stream, write_stream, options)
        group.cancel_scope.cancel()


class _Unreadable(Exception):
    """A line that is no message; the JSON-RPC error to answer it with."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.answer = JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=text))


@dataclass(slots=True)
class _Conversation:
    """The lines of one client, in and out, and which of its requests have no answer yet."""

    source: int
    sink: int
    incoming: Incoming
    complaints: MemoryObjectSendStream[SessionMessage]
    outgoing: Outgoing
    unanswered: set[str | int] = field(default_factory=set)
    answered: anyio.Event = field(default_factory=anyio.Event)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for stream in (self.incoming, self.complaints, self.outgoing):
            stream.close()

    async def read(self, front: Front) -> None:
        """Hand on each message until the client closes its end; then let the last answers go."""
        lines = _Lines(self.source)
        async with self.incoming, self.complaints:
            with suppress(BrokenResourceError, ClosedResourceError):  # the server ended first
                while True:
                    try:
                        line = await lines.read()
                        if line is None:
                            break

                        message = _message(line)
                    except _Unreadable as exc:
                        await self.complaints.send(SessionMessage(exc.answer))
                    else:
                        self._expect(message)
                        await self.incoming.send(SessionMessage(message))

            front.wind_down()
            with anyio.move_on_after(LAST_ANSWERS):
                while self.unanswered:
                    self.answered = anyio.Event()
                    await self.answered.wait()

    async def write(self) -> None:
        """Write each message as one line. A client that has closed its end gets nothing more."""
        with suppress(BrokenPipeError):
            async with self.outgoing:
                async for envelope in self.outgoing:
                    message = envelope.message
                    body = message.model_dump(by_alias=True, exclude_unset=True)
                    await _write(self.sink, dumps(body) + b"\n")
                    if isinstance(message, JSONRPCResponse | JSONRPCError):
                        self._settle(message.id)

    def _expect(self, message: JSONRPCMessage) -> None:
        """Note a request as unanswered; one that its client cancels is never answered."""
        if isinstance(message, JSONRPCRequest):
            self.unanswered.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == CANCELLED:
            self._settle((message.params or {}).get("requestId"))

    def _settle(self, request_id: object) -> None:
        if isinstance(request_id, str | int):
            self.unanswered.discard(request_id)
            self.answered.set()


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
            _Unreadable: A line was too long; it is skipped.
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
            raise _Unreadable(INVALID_REQUEST, f"a message is longer than {LINE_BYTES} bytes")

        return line

    async def _refill(self) -> None:
        if len(self._buffer) > LINE_BYTES:
            self._buffer.clear()
            self._is_skipping = True

        self._searched = len(self._buffer)
        chunk = await _read(self._source)
        self._is_at_end = not chunk
        self._buffer += chunk or b"\n"  # the last line may have no end of its own


def _message(line: bytes) -> JSONRPCMessage:
    """One line's message.

    Raises:
        _Unreadable: It is not JSON, or not one JSON-RPC message.
    """
    try:
        value = loads(line)
    except ValueError:
        raise _Unreadable(PARSE_ERROR, "a line is not JSON") from None

    try:
        return jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValueError:
        raise _Unreadable(INVALID_REQUEST, "a line is not one JSON-RPC message") from None


async def _read(source: int) -> bytes:
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
