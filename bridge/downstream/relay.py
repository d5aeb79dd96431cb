"""One HTTP request that landed on the wrong process, there and back over a Unix socket.

A JSON line goes there, a JSON line with the status and the headers comes back, and then the body
until the end.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import anyio
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.types import Message as Event

from bridge.core.wire import escaped, loads
from bridge.downstream.asker import PRINCIPAL
from bridge.downstream.guard import BODY, HEADERS, TWICE, Refused
from bridge.downstream.neighbours import FORWARDED
from bridge.telemetry import log

LONGEST_LINE: Final = 64 * 1024 * 1024
LOST: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError)
NAMES: Final = (anyio.IncompleteRead, anyio.DelimiterNotFound)


def described(scope: Scope) -> dict[str, Any]:
    """A request as its line has it."""
    return {
        "method": scope["method"],
        "path": scope["path"],
        "headers": scope[HEADERS],
        "principal": scope[PRINCIPAL],
        "twice": list(scope.get(TWICE, ())),
        "body": scope[BODY].decode() if BODY in scope else None,
    }


def _rebuilt(head: dict[str, Any]) -> Scope:
    scope: Scope = {
        "type": "http",
        FORWARDED: True,
        "method": head["method"],
        "path": head["path"],
        HEADERS: head["headers"],
        PRINCIPAL: head["principal"],
        TWICE: head["twice"],
    }
    if head["body"] is not None:
        scope[BODY] = head["body"].encode()

    return scope


async def serve_request(app: ASGIApp, head: dict[str, Any], stream: ByteStream) -> None:
    """Answer a request that a neighbour sent."""
    scope = _rebuilt(head)

    async def receive() -> Event:
        with suppress(*LOST):
            while True:
                await stream.receive()

        return {"type": "http.disconnect"}

    async def send(event: Event) -> None:
        with suppress(*LOST):
            if event["type"] == "http.response.start":
                headers = [(name.decode(), value.decode()) for name, value in event["headers"]]
                await stream.send(escaped({"status": event["status"], "headers": headers}) + b"\n")
            elif event.get("body"):
                await stream.send(event["body"])

    try:
        await app(scope, receive, send)
    except Refused as refused:
        await refused.response(scope, receive, send)
    except Exception:  # as any server of an app would: one request fails, not its neighbours
        log.exception("a request that a neighbour sent failed")


async def relay(stream: ByteStream, send: Send) -> None:
    """Pass a neighbour's answer on to the client.

    Raises:
        Refused: 502 it ended before it answered.
    """
    lines = BufferedByteReceiveStream(stream)
    try:
        head = loads(await lines.receive_until(b"\n", LONGEST_LINE))
    except (*LOST, *NAMES):
        text = "the process that had this ended before it answered"
        raise Refused(502, text) from None

    headers = [(name.encode(), value.encode()) for name, value in head["headers"]]
    await send({"type": "http.response.start", "status": head["status"], "headers": headers})
    with suppress(*LOST):
        while True:
            body = await lines.receive()
            await send({"type": "http.response.body", "body": body, "more_body": True})

    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def until_left(receive: Receive, scope: anyio.CancelScope) -> None:
    """Cancel what runs for a client once it leaves."""
    while (await receive())["type"] != "http.disconnect":
        pass

    scope.cancel()
