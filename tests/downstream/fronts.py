"""Our fronts as tests run them, and stock clients of them, in both eras."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import anyio
import httpx2
from anyio.abc import SocketStream
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import ElicitResult, jsonrpc_message_adapter

from bridge.downstream.handlers import Handlers
from bridge.downstream.http import serve_http
from bridge.downstream.sse import serve_sse
from bridge.downstream.stdio import _Lines, _write, serve_lines
from tests import nursery
from tests.clients import over_sse
from tests.downstream.offer import Runs, Shelf, everything

ROOT = Path(__file__).resolve().parent.parent.parent
Transport: TypeAlias = Literal["http", "sse", "stdio"]
TRANSPORTS: tuple[Transport, ...] = ("http", "sse", "stdio")
ERAS = ("legacy", "2026-07-28")
Person: TypeAlias = Callable[[Any], Awaitable[ElicitResult]]


async def handlers_of(runs: Runs) -> Handlers:
    """Handlers over everything of `offer`."""
    return Handlers(await Shelf(*everything(runs)).offered(), name="tests", version="1")


@asynccontextmanager
async def serving(
    handlers: Handlers, transport: Transport = "http", **options: Any
) -> AsyncIterator[str]:
    """One of our HTTP fronts on a free port; gives its endpoint's URL."""
    serve = serve_http if transport == "http" else serve_sse
    async with listening(partial(serve, handlers, port=0, **options)) as url:
        yield url


@asynccontextmanager
async def listening(serve: Callable[..., Awaitable[None]]) -> AsyncIterator[str]:
    """Something that serves and calls `on_ready`, until the block ends; gives the URL it told."""
    ready: list[str] = []
    is_ready = anyio.Event()

    def on_ready(url: str) -> None:
        ready.append(url)
        is_ready.set()

    async with anyio.create_task_group() as group:
        group.start_soon(partial(serve, on_ready=on_ready))
        await is_ready.wait()
        try:
            yield ready[0]
        finally:
            group.cancel_scope.cancel()


async def dialled(url: str) -> SocketStream:
    """A connection to whoever serves there, for bytes as they are."""
    target = httpx2.URL(url)
    return await anyio.connect_tcp(str(target.host), int(target.port or 0))


@dataclass(frozen=True, slots=True)
class Piped:
    """Where a client finds a server over a pair of pipes, as over stdio: one server a client."""

    handlers: Handlers
    confirm_wait: float = 60.0


Where: TypeAlias = str | Piped


@asynccontextmanager
async def endpoint(
    transport: Transport, runs: Runs | None = None, **options: Any
) -> AsyncIterator[Where]:
    """Where a client of that transport finds everything of `offer`."""
    handlers = await handlers_of(runs or Runs())
    if transport == "stdio":
        yield Piped(handlers, **options)
        return

    async with serving(handlers, transport, **options) as url:
        yield url


def wire(
    transport: Transport, where: Where, token: str | None = None
) -> AbstractAsyncContextManager[Any]:
    """A stock client's transport to an endpoint, perhaps with a token."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    if isinstance(where, Piped):
        return _piped(where)

    return _http(where, headers) if transport == "http" else over_sse(where, headers)


def app(confirm_wait: float = 60) -> AbstractAsyncContextManager[Any]:
    """A stock client's transport to a server process of its own."""
    program, *argv = nursery.server("-m", "tests.downstream.stdio_app", str(confirm_wait))
    return stdio_client(StdioServerParameters(command=program, args=argv, cwd=ROOT))


@asynccontextmanager
async def _piped(where: Piped) -> AsyncIterator[tuple[Any, Any]]:
    """Both ends of the conversation in this process, and real pipes in between."""
    (client_in, server_out), (server_in, client_out) = os.pipe(), os.pipe()
    incoming, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception]()
    write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage]()

    async def serve() -> None:
        try:
            await serve_lines(
                where.handlers, server_in, server_out, confirm_wait=where.confirm_wait
            )
        finally:
            os.close(server_in)
            os.close(server_out)

    async def read() -> None:
        lines = _Lines(client_in)
        async with incoming:
            while (line := await lines.read()) is not None:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                await incoming.send(SessionMessage(message))

    async def write() -> None:
        async with outgoing:
            async for envelope in outgoing:
                body = envelope.message.model_dump_json(by_alias=True, exclude_unset=True)
                await _write(client_out, f"{body}\n".encode())

    async with incoming, read_stream, write_stream, outgoing, anyio.create_task_group() as group:
        for end in (serve, read, write):
            group.start_soon(end)

        yield read_stream, write_stream
        group.cancel_scope.cancel()

    os.close(client_in)
    os.close(client_out)


@asynccontextmanager
async def _http(where: str, headers: dict[str, str]) -> AsyncIterator[tuple[Any, Any]]:
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        streamable_http_client(where, http_client=http) as streams,
    ):
        yield streams


@asynccontextmanager
async def tapped(
    inner: AbstractAsyncContextManager[Any], seen: list[Any]
) -> AsyncIterator[tuple[Any, Any]]:
    """The same transport, with every message that comes in also put in `seen`, as it came."""
    async with inner as (read, write), anyio.create_task_group() as group:
        send, receive = anyio.create_memory_object_stream[SessionMessage | Exception]()

        async def pump() -> None:
            async with send:
                async for item in read:
                    if isinstance(item, SessionMessage):
                        seen.append(item.message)

                    await send.send(item)

        group.start_soon(pump)
        yield receive, write
        group.cancel_scope.cancel()


def answering(action: str, **content: Any) -> Person:
    """A person who always gives the same answer."""

    async def answer(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action=action, content=content or None)  # type: ignore[arg-type]

    return answer  # type: ignore[return-value]


@asynccontextmanager
async def connected(
    transport: Transport,
    where: Where,
    era: str,
    person: Any = None,
    token: str | None = None,
    **options: Any,
) -> AsyncIterator[Client]:
    """A stock client of an endpoint, in one era, perhaps with a person behind it."""
    inner = wire(transport, where, token)
    async with Client(inner, mode=era, elicitation_callback=person, **options) as client:
        yield client


async def counts(client: Client) -> dict[str, int]:
    """How often each tool ran, as the server itself counts."""
    result = await client.call_tool("counts", {})
    return dict(result.structured_content)
