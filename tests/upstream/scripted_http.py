"""A small real HTTP server whose every byte a test decides: `async with scripted(handler)`."""

from __future__ import annotations

import json
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import ByteStream, SocketAttribute
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.tls import TLSListener

Json = dict[str, Any]
LONGEST_HEAD = 64 * 1024
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Request:
    """What a client sent; header names are in lower case."""

    connection: int
    verb: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def message(self) -> Json:
        """The body as JSON; an empty object where there is none."""
        return json.loads(self.body) if self.body else {}


class Peer:
    """The client at the other end of one connection, for as long as one request of it lasts."""

    def __init__(self, stream: ByteStream, connection: int) -> None:
        self._stream = stream
        self.connection = connection
        self.is_closed = False

    async def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        await self._stream.send(data)

    async def respond(
        self, status: int, body: bytes | str = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a whole response."""
        data = body.encode() if isinstance(body, str) else body
        await self.head(status, {"Content-Length": str(len(data)), **(headers or {})})
        await self.write(data)

    async def respond_json(
        self, value: object, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a whole response that is JSON."""
        headers = {"Content-Type": "application/json", **(headers or {})}
        await self.respond(status, json.dumps(value), headers)

    async def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the status line and the headers."""
        lines = [f"HTTP/1.1 {status} Scripted", *(f"{k}: {v}" for k, v in headers.items())]
        await self.write("\r\n".join([*lines, "", ""]).encode())

    async def open_events(self, headers: Mapping[str, str] | None = None) -> None:
        """Begin a response that is an event stream, in chunks."""
        chunked = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
        await self.head(200, {**chunked, **(headers or {})})

    async def chunk(self, data: bytes | str) -> None:
        """Send one chunk of the body."""
        data = data.encode() if isinstance(data, str) else data
        await self.write(b"%x\r\n%s\r\n" % (len(data), data))

    async def event(self, value: object, event_id: str = "") -> None:
        """Send one event whose data is JSON."""
        mark = f"id: {event_id}\n" if event_id else ""
        await self.chunk(f"event: message\n{mark}data: {json.dumps(value)}\n\n")

    async def end(self) -> None:
        """End a body of chunks."""
        await self.write(b"0\r\n\r\n")

    async def close(self) -> None:
        """End the connection in good order."""
        self.is_closed = True
        await self._stream.aclose()

    async def reset(self) -> None:
        """End the connection as a crash does."""
        raw: socket.socket = self._stream.extra(SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        await self.close()

    async def gone(self) -> None:
        """Return when the client has closed the connection."""
        try:
            while True:
                await self._stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            await self.close()


Handler = Callable[[Request, Peer], Awaitable[None]]


@dataclass
class Scripted:
    """The running server, and what it has seen."""

    port: int
    scheme: str = "http"
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    open_connections: int = 0

    @property
    def url(self) -> str:
        """Where a channel is to go."""
        return f"{self.scheme}://127.0.0.1:{self.port}/mcp"

    def messages(self, method: str) -> list[Json]:
        """The messages of one method that have arrived."""
        return [r.message for r in self.requests if r.message.get("method") == method]


@asynccontextmanager
async def scripted(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[Scripted]:
    """Serve on a free port; `handler` answers each request, or does not."""
    plain = await anyio.create_tcp_listener(local_host="127.0.0.1")
    listener = plain if tls is None else TLSListener(plain, tls, standard_compatible=False)
    port = plain.extra(SocketAttribute.local_port)
    server = Scripted(port, "http" if tls is None else "https")

    async def serve(stream: ByteStream) -> None:
        server.connections += 1
        server.open_connections += 1
        peer = Peer(stream, server.connections)
        try:
            async with stream:
                reader = BufferedByteReceiveStream(stream)
                while not peer.is_closed:
                    request = await _read(reader, peer.connection)
                    server.requests.append(request)
                    await handler(request, peer)
        except (anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the client went away
        finally:
            server.open_connections -= 1

    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield server
        tasks.cancel_scope.cancel()


async def _read(reader: BufferedByteReceiveStream, connection: int) -> Request:
    head = await reader.receive_until(b"\r\n\r\n", LONGEST_HEAD)
    first, *lines = head.decode("latin-1").split("\r\n")
    verb, target, _ = first.split(" ")
    pairs = (line.split(":", 1) for line in lines)
    headers = {name.lower(): value.strip() for name, value in pairs}
    body = await reader.receive_exactly(int(headers.get("content-length", "0")))
    return Request(connection, verb, target, headers, body)


def answer(request: Request, **result: Any) -> Json:
    """The answer to a request."""
    return {"jsonrpc": "2.0", "id": request.message["id"], "result": result}


def notification(method: str, **params: Any) -> Json:
    """A notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}
