"""HTTP/1.1 for clients that send the same head again and again, as clients of MCP do.

Uvicorn's protocol for httptools reads the first request of each kind, and whatever is not plain.
A head that came on its connection before, but for the length of the body, is not read again: what
was read of it, and the guard's verdict on it, hold for this one too. Its body may come with it or
after it. It is answered in one piece where it can be.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bridge.downstream.guard import BODY, CONTENT_LENGTH
from bridge.downstream.in_one_piece import EXTENSIONS, Cycle
from bridge.downstream.reply import LONGEST_WHOLE

POST: Final = b"POST "
END: Final = b"\r\n\r\n"
DIGITS: Final = 9
LENGTH: Final = re.compile(rb"\r\ncontent-length: *([0-9]{1,%d})\r\n" % DIGITS, re.IGNORECASE)
LONGEST_HEAD: Final = 8192
MOST_HEADS: Final = 8
"""How many are known of one connection: a modern client's name the tool that is called."""

PATIENCE: Final = 2 * MOST_HEADS
"""How many are learnt in a row that do not come again, until a connection's are learnt no more."""

NOT_PLAIN: Final = frozenset({b"expect", b"proxy-connection", b"transfer-encoding", b"upgrade"})
"""What may change how a message is read, or what becomes of its connection."""

CONNECTION: Final = b"connection"
KEPT: Final = b"keep-alive"
"""Of the header that says most of a connection, only this changes nothing in HTTP/1.1."""


class Head:
    """The head of a request that was read, with a gap where the length of the body stands.

    `scope` is that very request's: the guard writes there what it finds, and it is used again only
    once that request was answered. What the guard has refused, it has not written.
    """

    __slots__ = ("_after", "_after_length", "_before", "_gap", "headers", "scope")

    def __init__(self, before: bytes, after: bytes, scope: Any) -> None:
        self._before = before
        self._after = after
        self._gap = len(before)
        self._after_length = len(after)
        self.scope = scope
        self.headers = [pair for pair in scope["headers"] if pair[0] != CONTENT_LENGTH]

    def split(self, data: bytes) -> tuple[int, bytes] | None:
        """The length of the body and what is there of it, if `data` begins with this head.

        None also if there is more than this one request.
        """
        if not data.startswith(self._before):
            return None

        gap = self._gap
        end = data.find(b"\r", gap, gap + DIGITS + 1)
        digits = data[gap:end]
        if end < 0 or not digits.isdigit() or not data.startswith(self._after, end):
            return None

        length, body = int(digits), data[end + self._after_length :]
        return (length, body) if len(body) <= length else None


def head_of(data: bytes, scope: Any) -> Head | None:
    """The head of the one request that `data` was read as; None if it is not plain.

    It is if each of its lines is one of the headers that the parser has read, with no line folded
    or ended in another way, if it says once how long the body is, and nothing else of how it is
    to be read.
    """
    end = data.find(END, 0, LONGEST_HEAD)
    headers = scope["headers"]
    names = [name for name, _ in headers]
    if end < 0 or not data.startswith(POST) or not NOT_PLAIN.isdisjoint(names):
        return None

    if any(name == CONNECTION and value.lower() != KEPT for name, value in headers):
        return None

    head = data[: end + len(END)]
    length = LENGTH.search(head)
    lines_of_others = 2  # the first, and the empty one
    is_as_read = head.count(b"\n") == len(names) + lines_of_others
    if length is None or not is_as_read or names.count(CONTENT_LENGTH) != 1:
        return None

    if scope["http_version"] != "1.1":
        return None

    start, after = length.span(1)
    return Head(head[:start], head[after:], scope)


class HttpProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **options: Any) -> None:
        """As uvicorn makes it."""
        super().__init__(*args, **options)
        self._heads: list[Head] = []
        self._learnt_in_vain = 0
        self._missing = 0
        self._requests = 0
        self._is_reading = False
        self._idle_since = 0.0

    def data_received(self, data: bytes) -> None:
        """Take what the client sent."""
        if self._missing:
            data = self._without_body(data)

        if data and not self._is_known(data):
            self._parse(data)

    def on_message_begin(self) -> None:
        """The parser has seen the first byte of a request."""
        self._requests += 1
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

    def _parse(self, data: bytes) -> None:
        """Have the parser read it, and keep the head where it is all of one plain request.

        It is all of one if the parser stood between two requests before, has seen one begin and
        stands between two again.
        """
        was_reading, requests = self._is_reading, self._requests
        super().data_received(data)
        is_one = not was_reading and not self._is_reading and self._requests == requests + 1
        if is_one and self._learnt_in_vain < PATIENCE:
            self._learn(head_of(data, self.scope))

    def _learn(self, head: Head | None) -> None:
        self._learnt_in_vain += 1
        if self._learnt_in_vain == PATIENCE:
            self._heads.clear()
        elif head is not None:
            self._heads = [head, *self._heads[: MOST_HEADS - 1]]

    def _is_known(self, data: bytes) -> bool:
        """Begin the request, if its head is known; the body may follow, if it is not long."""
        if not self._heads or self._is_reading or not self._may_begin():
            return False

        for known in self._heads:
            found = known.split(data)
            if found is not None:
                break
        else:
            return False

        length, body = found
        missing = length - len(body)
        self._learnt_in_vain = 0
        if missing and length > LONGEST_WHOLE:
            return False

        self._missing = missing
        self._begin(known, None if missing else body)
        if missing:
            self.cycle.body += body

        return True

    def _without_body(self, data: bytes) -> bytes:
        """Take the rest of a body, as far as it is there; return what comes after it."""
        part, rest = data[: self._missing], data[self._missing :]
        self._missing -= len(part)
        self.cycle.body += part
        self.cycle.more_body = self._missing > 0
        self.cycle.message_event.set()
        return rest

    def _may_begin(self) -> bool:
        """Whether there is room for another request, here and in the whole server."""
        limit = self.limit_concurrency
        is_full = limit is not None and max(len(self.connections), len(self.tasks)) >= limit
        return self.cycle.response_complete and not is_full and not self.transport.is_closing()

    def _begin(self, head: Head, body: bytes | None) -> None:
        """As uvicorn does once it has read a head; nothing of it is logged here."""
        scope: Any = {**head.scope, "headers": head.headers, "extensions": EXTENSIONS}
        scope.pop(BODY, None)  # that of another request, if it is still there
        if body is not None:
            scope[BODY] = body

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
