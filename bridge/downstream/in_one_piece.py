"""Responses that go out in one piece, where a client can take them and they are not long."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, TypeAlias

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from bridge.downstream.guard import CONTENT_LENGTH
from bridge.downstream.reply import LONGEST_WHOLE, WHOLE

Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]
EXTENSIONS: Final[dict[str, dict[object, object]]] = {WHOLE: {}}
"""What a request's scope says of it (ASGI, extensions)."""


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

        length = b"content-length: %d\r\n\r\n" % len(body)
        standing = LINES.of(self.default_headers)
        whole = b"".join((STATUS_LINE[status], standing, lines(headers), length, body))
        self.response_started = self.response_complete = True
        self.transport.write(whole)
        self.message_event.set()
        self.on_response()


class Lines:
    """Headers that stand for a while, as they go out: uvicorn makes a new list of them each second,

    and until then it is the same list.
    """

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
