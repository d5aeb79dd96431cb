"""What every HTTP request passes before any of our fronts: names, token, size, time."""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bridge.downstream.asker import PRINCIPAL
from bridge.downstream.auth import TokenCheck
from bridge.downstream.names import Names
from bridge.errors import Unauthorized

CHALLENGE = 'Bearer realm="bridge"'  # RFC 6750, section 3
DISCONNECTED: Message = {"type": "http.disconnect"}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of an HTTP front, in bytes and seconds.

    `calls` is how many run at once before further ones are refused; `grace` is how long they
    may go on after the server was told to end.
    """

    body_bytes: int = 4 * 1024 * 1024
    body_seconds: float = 30.0
    connections: int = 1000
    calls: int = 1024
    grace: int = 3


@dataclass(frozen=True, slots=True)
class Closing:
    """How far the end of a server is: it takes nothing new, then it ends its open streams."""

    begun: anyio.Event = field(default_factory=anyio.Event)
    over: anyio.Event = field(default_factory=anyio.Event)


class Refused(Exception):
    """A request ends here with this answer."""

    def __init__(self, status: int, text: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(text)
        self.response: Response = PlainTextResponse(f"{text}\n", status, headers)


class Guard:
    """Lets a request through to `app`, or answers it here.

    `app` sees the whole body at once. When the server is over, a stream that is no answer to a
    POST sees its client leave.
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

        serve = self._post if scope["method"] == "POST" else self._stream
        try:
            await serve(self._passed(scope), receive, send)
        except Refused as refused:
            await refused.response(scope, receive, send)

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await self._body(scope, receive)
        if body is not None:
            await self._app(scope, _after(body, receive), send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = _Reply(send)
        await self._app(scope, self._until_over(receive), reply)
        if self._closing.over.is_set():
            await reply.finish(scope, receive)

    def _passed(self, scope: Scope) -> Scope:
        """The scope of a request that may go on, with its principal and clean headers.

        Raises:
            Refused: It may not: 421 wrong Host, 403 foreign Origin, 401 token, 503 closing.
        """
        hosts = _values(scope, b"host")
        if len(hosts) != 1 or not self._names.accepts_host(hosts[0]):
            raise Refused(421, "this Host is not ours: name it in serve.http.allowed_hosts")

        origins = _values(scope, b"origin")
        if len(origins) > 1 or not all(map(self._names.accepts_origin, origins)):
            raise Refused(403, "this Origin may not call: name it in serve.http.allowed_origins")

        sent = _values(scope, b"authorization")
        try:
            principal = self._token.principal(sent)
        except Unauthorized as exc:
            challenge = CHALLENGE + (', error="invalid_token"' if sent else "")
            raise Refused(401, str(exc), {"WWW-Authenticate": challenge}) from None

        if self._closing.begun.is_set():
            raise _closed()

        # Not every HTTP parser strips the optional whitespace around a value (RFC 9110, 5.5).
        headers = [
            (name, value.strip(b" \t") if name.startswith(b"mcp-") else value)
            for name, value in scope["headers"]
        ]
        return {**scope, "headers": headers, PRINCIPAL: principal}

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body; None if the client left before it was there.

        Raises:
            Refused: It is too long (413), or too slow (408).
        """
        most = self._bounds.body_bytes
        too_long = Refused(413, f"the body is longer than {most} bytes")
        declared = _values(scope, b"content-length")
        if declared and declared[0].isdecimal() and int(declared[0]) > most:
            raise too_long

        body = bytearray()
        with anyio.move_on_after(self._bounds.body_seconds):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return None

                body += message.get("body", b"")
                if len(body) > most:
                    raise too_long

                if not message.get("more_body", False):
                    return bytes(body)

        too_slow = f"the body took longer than {self._bounds.body_seconds:g} s"
        raise Refused(408, too_slow, {"Connection": "close"})

    def _until_over(self, receive: Receive) -> Receive:
        """Receive that reports the client gone when the server is over."""

        async def receive_until_over() -> Message:
            message = DISCONNECTED
            async with anyio.create_task_group() as group:

                async def watch() -> None:
                    await self._closing.over.wait()
                    group.cancel_scope.cancel()

                group.start_soon(watch)
                message = await receive()
                group.cancel_scope.cancel()

            return message

        return receive_until_over


class _Reply:
    """A `send` that knows how far its response is."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._has_begun = False
        self._is_whole = False

    async def __call__(self, message: Message) -> None:
        self._has_begun = True
        if message["type"] == "http.response.body":
            self._is_whole = not message.get("more_body", False)

        await self._send(message)

    async def finish(self, scope: Scope, receive: Receive) -> None:
        """End a response that was cut short because the server is over."""
        if not self._has_begun:
            await _closed().response(scope, receive, self._send)
        elif not self._is_whole:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def _closed() -> Refused:
    return Refused(503, "this server is closing", {"Retry-After": "1"})


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _after(body: bytes, receive: Receive) -> Receive:
    """Receive that first gives a body which was read already."""
    unread = [body]

    async def receive_after() -> Message:
        if unread:
            return {"type": "http.request", "body": unread.pop(), "more_body": False}

        return await receive()

    return receive_after
