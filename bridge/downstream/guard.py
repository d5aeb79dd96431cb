"""What every HTTP request passes before any of our fronts: names, token, size, time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import anyio
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bridge.core.begun import Begun
from bridge.core.ending import Ending
from bridge.downstream.asker import PRINCIPAL
from bridge.downstream.auth import TokenCheck
from bridge.downstream.names import Names
from bridge.errors import Unauthorized

CHALLENGE = 'Bearer realm="bridge"'  # RFC 6750, section 3
BODY = "bridge.body"
HEADERS = "bridge.headers"
"""Where the guard writes in a request's scope what it has read of it."""

CONTENT_LENGTH = b"content-length"

SINGLE = frozenset({"host", "origin", "authorization", "content-length", "mcp-session-id"})
SINGLE |= {"mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id"}
"""The headers that mean something here; one that comes twice could be read in two ways."""

TWICE = "bridge.twice"
"""The names of headers that came more than once though they must not."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of an HTTP front, in bytes and seconds.

    `calls` is how many run at once before further ones are refused; `grace` is how long they
    may go on after the server was told to end.
    """

    body_bytes: int = 4 * 1024 * 1024
    head_seconds: float = 30.0
    body_seconds: float = 30.0
    connections: int = 20_000
    calls: int = 1024
    sessions: int = 10_000
    session_seconds: float = 1800.0
    grace: int = 3


@dataclass(frozen=True, slots=True)
class Closing:
    """How far the end of a server is: once it has begun, nothing new is taken."""

    begun: anyio.Event = field(default_factory=anyio.Event)


class Refused(Exception):
    """A request ends here with this answer."""

    def __init__(self, status: int, text: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(text)
        self.response: Response = PlainTextResponse(f"{text}\n", status, headers)


class Guard:
    """Lets a request through to `app`, or answers it here.

    `app` finds in the scope the whole body of a POST, the headers as text with the whitespace
    around them gone, and the principal. Where these are there already, the very same head has
    been let in before: `downstream.repeated` alone puts them there, no client can.
    """

    def __init__(
        self, app: ASGIApp, names: Names, token: TokenCheck, bounds: Bounds, closing: Closing
    ) -> None:
        self._app = app
        self._names = names
        self._token = token
        self._bounds = bounds
        self._closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection; only HTTP is spoken here."""
        if scope["type"] != "http":
            return

        try:
            if PRINCIPAL not in scope:  # else the very same head has been let in before
                headers = scope[HEADERS] = self._headers(scope)
                scope[PRINCIPAL] = self._principal(scope, headers)

            if self._closing.begun.is_set():
                raise closed()

            if BODY in scope:
                self._check(len(scope[BODY]))
            elif scope["method"] == "POST":
                body = await self._body(scope[HEADERS], receive)
                if body is None:
                    return

                scope[BODY] = body

            await self._app(scope, receive, send)
        except Refused as refused:
            await refused.response(scope, receive, send)
        finally:
            scope.pop(BODY, None)  # it may be large, and the scope stays with its connection

    def _headers(self, scope: Scope) -> dict[str, str]:
        """The headers by lower-case name. Not every parser strips them (RFC 9110, section 5.5)."""
        raw = scope["headers"]
        headers = {
            name.decode("latin-1"): value.decode("latin-1").strip(" \t") for name, value in raw
        }
        if len(headers) != len(raw):
            names = Counter(name.decode("latin-1") for name, _ in raw)
            scope[TWICE] = [
                name
                for name, times in names.items()
                if times > 1 and (name in SINGLE or name.startswith("mcp-param-"))
            ]

        return headers

    def _principal(self, scope: Scope, headers: Mapping[str, str]) -> str:
        """Who asks.

        Raises:
            Refused: It may not: 421 wrong Host, 403 foreign Origin, 401 token.
        """
        twice = scope.get(TWICE, ())
        host, origin = headers.get("host"), headers.get("origin")
        if host is None or "host" in twice or not self._names.accepts_host(host):
            raise Refused(421, "this Host is not ours: name it in serve.http.allowed_hosts")

        if origin is not None and ("origin" in twice or not self._names.accepts_origin(origin)):
            raise Refused(403, "this Origin may not call: name it in serve.http.allowed_origins")

        sent = [headers["authorization"]] if "authorization" in headers else []
        try:
            return self._token.principal(sent * 2 if "authorization" in twice else sent)
        except Unauthorized as exc:
            challenge = CHALLENGE + (', error="invalid_token"' if sent else "")
            raise Refused(401, str(exc), {"WWW-Authenticate": challenge}) from None

    async def _body(self, headers: dict[str, str], receive: Receive) -> bytes | None:
        """The whole body; None if the client left before it was there.

        With it the header that announced its length has served, and is taken out.

        Raises:
            Refused: It is too long (413), or too slow (408).
        """
        declared = headers.pop("content-length", "")
        if declared.isdecimal():
            self._check(int(declared))

        reading = Begun(self._whole(receive))
        if reading.is_done:  # as nearly always: it came with the headers
            return reading.result

        with Ending(self._bounds.body_seconds):
            return await reading

        too_slow = f"the body took longer than {self._bounds.body_seconds:g} s"
        raise Refused(408, too_slow, {"Connection": "close"})

    async def _whole(self, receive: Receive) -> bytes | None:
        message = await receive()
        if message["type"] == "http.request" and not message.get("more_body", False):
            only: bytes = message.get("body", b"")
            self._check(len(only))
            return only

        body = bytearray()
        while message["type"] == "http.request":
            body += message.get("body", b"")
            self._check(len(body))
            if not message.get("more_body", False):
                return bytes(body)

            message = await receive()

        return None

    def _check(self, length: int) -> None:
        if length > self._bounds.body_bytes:
            raise Refused(413, f"the body is longer than {self._bounds.body_bytes} bytes")


def closed() -> Refused:
    """What is said to whoever comes when the server is about to end."""
    return Refused(503, "this server is closing", {"Retry-After": "1"})
