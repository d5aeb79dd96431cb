"""The server over Streamable HTTP: what it is pinned to, what it remembers of its streams."""

from __future__ import annotations

import json
from collections import deque
from typing import Any, Literal, TypeAlias

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp_types import (
    INVALID_REQUEST,
    UNSUPPORTED_PROTOCOL_VERSION,
    JSONRPCMessage,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

Era: TypeAlias = Literal["modern", "legacy"]
Parser: TypeAlias = Literal["h11", "httptools"]

VERSION = "mcp-protocol-version"
RETRY = 100  # milliseconds after which a client should come back for the rest of a stream
REMEMBERED = 1000  # events


class Events(EventStore):
    """The last events of all streams, for clients that come back."""

    def __init__(self) -> None:
        self._events: deque[tuple[int, str, JSONRPCMessage | None]] = deque(maxlen=REMEMBERED)
        self._next = 1

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """Remember an event; its id counts up over all streams."""
        number, self._next = self._next, self._next + 1
        self._events.append((number, stream_id, message))
        return str(number)

    async def replay_events_after(
        self, last_event_id: str, send_callback: EventCallback
    ) -> str | None:
        """Send what came after an event on its stream; None if the event is not known."""
        known = [event for event in self._events if str(event[0]) == last_event_id]
        if not known:
            return None

        last, stream_id, _ = known[0]
        for number, stream, message in [*self._events]:
            if stream == stream_id and number > last and message is not None:
                await send_callback(EventMessage(message, str(number)))

        return stream_id


def serve_http(server: Server[Any], port: int, parser: Parser, era: Era | None) -> None:
    """Serve on 127.0.0.1 until the process is told to end."""
    app = pinned(server.streamable_http_app(event_store=Events(), retry_interval=RETRY), era)
    uvicorn.run(
        trimmed(app),
        host="127.0.0.1",
        port=port,
        http=parser,
        log_level="warning",
        timeout_graceful_shutdown=1,
    )


def trimmed(app: ASGIApp) -> ASGIApp:
    """Header values without the space around them, which httptools leaves (RFC 9110 §5.5)."""

    async def trimming(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
            scope = {**scope, "headers": headers}

        await app(scope, receive, send)

    return trimming


def pinned(app: ASGIApp, era: Era | None) -> ASGIApp:
    """The server as one that was written for one era only; None leaves it both."""
    if era is None:
        return app

    async def pinning(scope: Scope, receive: Receive, send: Send) -> None:
        refusal = None if scope["type"] != "http" else await _refusal(Request(scope, receive), era)
        if refusal is None:
            await app(scope, receive, send)
        else:
            await refusal(scope, receive, send)

    return pinning


async def _refusal(request: Request, era: Era) -> Response | None:
    """How a server of one era answers a request of the other; None if it is its own."""
    version = request.headers.get(VERSION)
    speaks_modern = version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS
    if speaks_modern == (era == "modern"):
        return None

    if era == "legacy":
        known = ", ".join(HANDSHAKE_PROTOCOL_VERSIONS)
        why = f"Bad Request: Unsupported protocol version (supported versions: {known})"
        return _error(None, {"code": INVALID_REQUEST, "message": why})

    if request.method != "POST":
        return Response(status_code=405, headers={"Allow": "POST"})

    return await _too_old(request, version)


async def _too_old(request: Request, version: str | None) -> Response:
    message = json.loads(await request.body())
    asked = version or message.get("params", {}).get("protocolVersion", "unknown")
    why = {
        "code": UNSUPPORTED_PROTOCOL_VERSION,
        "message": f"Unsupported protocol version {asked}",
        "data": {"supported": [*MODERN_PROTOCOL_VERSIONS], "requested": asked},
    }
    return _error(message.get("id"), why)


def _error(request_id: object, error: dict[str, Any]) -> Response:
    return JSONResponse({"jsonrpc": "2.0", "id": request_id, "error": error}, 400)
