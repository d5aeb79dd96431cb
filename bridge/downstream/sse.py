"""HTTP+SSE of 2024-11-05, for clients that speak nothing newer: GET /sse, POST /messages/.

The protocol deprecates it, so it is served only when it is asked for.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from typing import Final
from urllib.parse import parse_qs

import anyio
from anyio.abc import TaskGroup
from starlette.types import Receive, Scope, Send

from bridge.core.rpc import PARSE_ERROR
from bridge.core.wire import loads
from bridge.downstream.asker import PRINCIPAL
from bridge.downstream.client import Client
from bridge.downstream.duplex import Duplex
from bridge.downstream.front import Front, error_response
from bridge.downstream.guard import BODY, Bounds, Refused
from bridge.downstream.handlers import Handlers
from bridge.downstream.leaving import Leaving
from bridge.downstream.reply import in_two
from bridge.downstream.streams import HEADERS, EventStream
from bridge.downstream.web import Address, not_here, open_door, serve_app

STREAM = "/sse"
MESSAGES = "/messages/"
SESSION = "session_id"
PLAIN_TEXT: Final = (b"content-type", b"text/plain")


async def serve_sse(
    handlers: Handlers,
    host: str = "127.0.0.1",
    port: int = 8808,
    token: str | None = None,
    allowed_hosts: Iterable[str] = (),
    allowed_origins: Iterable[str] = (),
    on_ready: Callable[[str], None] = lambda endpoint: None,
    *,
    confirm_wait: float = 300.0,
    bounds: Bounds | None = None,
) -> None:
    """Serve over HTTP+SSE until cancelled; see `Address` for the parameters.

    `confirm_wait` is how long a legacy client's person may think before a call is refused.

    Raises:
        ConfigError: The address cannot be used, or other machines could call without a token.
    """
    bounds = bounds or Bounds()
    front = Front(handlers, confirm_wait=confirm_wait, most_calls=bounds.calls)
    door = await open_door(Address(host, port, STREAM, token, allowed_hosts, allowed_origins))
    with door.socket:
        await serve_app(front, Endpoints(front, bounds), door, on_ready, bounds)


class Endpoints:
    """The two URLs of an HTTP+SSE server, as an ASGI app behind the guard."""

    def __init__(self, front: Front, bounds: Bounds) -> None:
        self._front = front
        self._bounds = bounds
        self._elsewhere = not_here(STREAM)
        self._open: dict[str, tuple[str, Duplex, EventStream]] = {}
        self._tasks: TaskGroup | None = None

    async def run(self) -> None:
        """Let requests run until cancelled. Run this in one task."""
        async with anyio.create_task_group() as self._tasks:
            await anyio.sleep_forever()

    def end_streams(self) -> None:
        """End every conversation."""
        for _, _, stream in self._open.values():
            stream.end()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request.

        Raises:
            Refused: It cannot be answered; the exception holds what is.
        """
        path, method = scope["path"], scope["method"]
        if path == STREAM and method == "GET":
            await self._converse(scope, receive, send)
        elif path == MESSAGES and method == "POST":
            self._take(scope)
            await in_two(send, 202, [PLAIN_TEXT], b"Accepted")
        elif path in (STREAM, MESSAGES):
            allowed = "GET" if path == STREAM else "POST"
            raise Refused(405, "method not allowed", {"Allow": allowed})
        else:
            await self._elsewhere(scope, receive, send)

    async def _converse(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._tasks is None or len(self._open) >= self._bounds.sessions:
            raise Refused(503, "too many clients are connected", {"Retry-After": "60"})

        name, stream = secrets.token_hex(16), EventStream()
        duplex = Duplex(self._front, Client(scope[PRINCIPAL], name), stream.post, self._tasks)
        self._open[name] = (scope[PRINCIPAL], duplex, stream)
        leaving = Leaving(receive, stream.wake)
        leaving.watch()
        try:
            endpoint = f"event: endpoint\ndata: {MESSAGES}?{SESSION}={name}\n\n".encode()
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await send({"type": "http.response.body", "body": endpoint, "more_body": True})
            await stream.write(send, lambda: leaving.is_gone)
        finally:
            leaving.end()
            del self._open[name]
            with anyio.CancelScope(shield=True):
                await duplex.aclose()

    def _take(self, scope: Scope) -> None:
        """Take one message of a client that has a stream.

        Raises:
            Refused: 400 it names no session, 404 there is none of that name for this principal.
        """
        named = parse_qs(scope["query_string"].decode("latin-1")).get(SESSION, [])
        if len(named) != 1:
            raise Refused(400, f"a message names its session: {MESSAGES}?{SESSION}=…")

        principal, duplex, stream = self._open.get(named[0], ("", None, None))
        if duplex is None or stream is None or principal != scope[PRINCIPAL]:
            raise Refused(404, "there is no such session (any more): open a new stream")

        try:
            message = loads(scope[BODY])
        except ValueError:
            stream.post(error_response(None, PARSE_ERROR, "a message is not JSON"))
            raise Refused(400, "the body is not JSON") from None

        duplex.take(message)
