"""HTTP/1.1 for clients that send the same head again and again, as clients of MCP do.

Uvicorn's protocol for httptools reads the first request of each kind, and whatever is not plain.
A request that comes whole, with the head of the one before it on its connection but for the length
of its body, is not read again: what was read of that head, and the guard's verdict on it, hold for
this one too. It is answered in one piece where it can be.
"""

from __future__ import annotations

import asyncio
import re
from functools import lru_cache
from typing import Any, Final, TypeAlias

from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from bridge.downstream.guard import BODY, CONTENT_LENGTH
from bridge.downstream.reply import LONGEST_WHOLE, WHOLE

POST: Final = b"POST "
END: Final = b"\r\n\r\n"
LENGTH: Final = re.compile(rb"\r\ncontent-length: *([0-9]{1,9})\r\n", re.IGNORECASE)
LONGEST_HEAD: Final = 8192
NOT_PLAIN: Final = frozenset({b"connection", b"expect", b"transfer-encoding", b"upgrade"})
"""What may change how a message is read, or what becomes of its connection."""

Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]


class Head:
    """The head of a request that was read, with a gap where the length of the body stands.

    `scope` is that request's, with what the guard has written there.
    """

    __slots__ = ("_after", "_before", "_gap", "_start", "headers", "scope")

    def __init__(self, before: bytes, after: bytes, scope: Any) -> None:
        self._before = before
        self._after = after
        self._start = len(before)
        self._gap = len(after)
        self.scope = scope
        self.headers = [pair for pair in scope["headers"] if pair[0] != CONTENT_LENGTH]

    def body(self, data: bytes) -> bytes | None:
        """The body, if `data` is this head and the whole body after it, and nothing more."""
        if not data.startswith(self._before):
            return None

        start = self._start
        end = data.find(b"\r", start, start + 10)
        if end < 0 or not data.startswith(self._after, end):
            return None

        length, body = data[start:end], data[end + self._gap :]
        return body if length.isdigit() and int(length) == len(body) else None


def head_of(data: bytes, scope: Any) -> Head | None:
    """The head of a request that was read as `scope`, if `data` is all of it and it is plain."""
    end = data.find(END, 0, LONGEST_HEAD)
    names = [name for name, _ in scope["headers"]]
    if end < 0 or not data.startswith(POST) or not NOT_PLAIN.isdisjoint(names):
        return None

    head = data[: end + len(END)]
    length = LENGTH.search(head)
    is_as_read = head.count(b"\n") == len(names) + 2 and names.count(CONTENT_LENGTH) == 1
    if length is None or not is_as_read or scope["http_version"] != "1.1":
        return None

    start, after = length.span(1)
    return Head(head[:start], head[after:], scope)


class Cycle(RequestResponseCycle):
    """One request whose head is known, and its response."""

    async def send(self, message: Any) -> None:
        """See ASGI; a response in one message is known here too."""
        if message["type"] != WHOLE:
            await super().send(message)
            return

        status, headers, body = message["status"], message["headers"], message["body"]
        is_odd = self.response_started or self.disconnected or not self.keep_alive
        if is_odd or self.flow.write_paused or len(body) > LONGEST_WHOLE:
            headers = [*headers, (CONTENT_LENGTH, b"%d" % len(body))]
            start: Any = {"type": "http.response.start", "status": status, "headers": headers}
            await super().send(start)
            await super().send({"type": "http.response.body", "body": body})
            return

        standing, length = LINES.of(self.default_headers), b"content-length: %d\r\n\r\n" % len(body)
        self.response_started = self.response_complete = True
        self.transport.write(
            b"".join((STATUS_LINE[status], standing, lines(headers), length, body))
        )
        self.message_event.set()
        self.on_response()


class HttpProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **options: Any) -> None:
        """As uvicorn makes it."""
        super().__init__(*args, **options)
        self._known: Head | None = None
        self._begun = 0
        self._is_reading = False
        self._idle_since = 0.0

    def data_received(self, data: bytes) -> None:
        """Take what the client sent."""
        was_reading, begun, known = self._is_reading, self._begun, self._known
        if known is not None and self.cycle.response_complete and self._may_begin():
            body = known.body(data)
            if body is not None:
                self._begin(known, body)
                return

        self._known = None
        super().data_received(data)
        is_one = not was_reading and self._begun == begun + 1 and not self._is_reading
        if is_one and not self.transport.is_closing():
            self._known = head_of(data, self.scope)

    def on_message_begin(self) -> None:
        """The parser has seen the first byte of a request."""
        self._begun += 1
        self._is_reading = True
        super().on_message_begin()

    def on_message_complete(self) -> None:
        """The parser has seen the last one."""
        self._is_reading = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """A response is over; the connection waits for the next request, if it is there not yet.

        The timer of a connection that waits stays when the next request comes: to set one anew
        for each costs more than to look, when it rings, since when nothing has come.
        """
        if self._known is not None:
            self._known.scope.pop(BODY, None)  # which may be large

        if self.timeout_keep_alive_task is None or self.pipeline or self.flow.read_paused:
            super().on_response_complete()
        else:
            self.server_state.total_requests += 1

        self._idle_since = self.loop.time()

    def timeout_keep_alive_handler(self) -> None:
        """The timer rings: end the connection, if it has waited for as long."""
        self.timeout_keep_alive_task = None
        if not self.cycle.response_complete:
            return  # the end of the response sets it again

        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left <= 0:
            super().timeout_keep_alive_handler()
        else:
            self.timeout_keep_alive_task = self.loop.call_later(
                left, self.timeout_keep_alive_handler
            )

    def _may_begin(self) -> bool:
        """Whether there is room for another request, and its connection is not about to end."""
        limit = self.limit_concurrency
        is_full = limit is not None and max(len(self.connections), len(self.tasks)) >= limit
        return not is_full and not self.transport.is_closing()

    def _begin(self, head: Head, body: bytes) -> None:
        known = {"headers": head.headers, "extensions": EXTENSIONS, BODY: body}
        scope: Any = {**head.scope, **known}
        self.scope, self.headers = scope, head.headers
        self.cycle = cycle = Cycle(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=True,
            on_response=self.on_response_complete,
        )
        task = self.loop.create_task(cycle.run_asgi(self.app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)


class Lines:
    """Headers that stand for a while, as they go out: uvicorn makes a list of them each second."""

    def __init__(self) -> None:
        self._headers: list[tuple[bytes, bytes]] | None = None
        self._lines = b""

    def of(self, headers: list[tuple[bytes, bytes]]) -> bytes:
        """The lines of these headers, for which it is asked again and again."""
        if headers is not self._headers:
            self._headers, self._lines = headers, lines(tuple(headers))

        return self._lines


@lru_cache(maxsize=1024)
def lines(headers: Headers) -> bytes:
    """Headers as they go out. A session's answers have the same again and again."""
    return b"".join([b"%s: %s\r\n" % pair for pair in headers])


LINES: Final = Lines()
EXTENSIONS: Final[dict[str, dict[object, object]]] = {WHOLE: {}}
