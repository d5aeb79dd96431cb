"""Responses that go out in one piece, where a client can take them and they are not long."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, TypeAlias

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from bridge.downstream.reply import LONGEST_WHOLE, WHOLE, in_two

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
            plain: Any = super().send
            await in_two(plain, status, headers, body)
            return

        length = b"content-length: %d\r\n\r\n" % len(body)
        standing = lines(tuple(self.default_headers))
        whole = b"".join((STATUS_LINE[status], standing, lines(headers), length, body))
        self.response_started = self.response_complete = True
        self.transport.write(whole)
        self.message_event.set()
        self.on_response()


@lru_cache(maxsize=1024)
def lines(headers: Headers) -> bytes:
    """Headers as they go out: those of a session, and uvicorn's own of one second, are the same."""
    return b"".join([b"%s: %s\r\n" % pair for pair in headers])
