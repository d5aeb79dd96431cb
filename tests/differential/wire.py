"""Raw JSON-RPC with a server over each transport: no models in between, so nothing is sieved."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urljoin

import anyio
import httpx
from anyio.abc import Process, TaskGroup
from httpx_sse import EventSource

Message: TypeAlias = dict[str, Any]
Transport: TypeAlias = Literal["stdio", "http", "sse"]

PATIENCE = 60.0  # seconds for one answer
GRACE = 10.0  # seconds in which a process ends by itself
ACCEPT = {"Accept": "application/json, text/event-stream"}
JSON_HEADERS = {**ACCEPT, "Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Command:
    """A server that speaks over its standard streams."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None


@dataclass(frozen=True, slots=True)
class Url:
    """A server that listens."""

    url: str
    transport: Literal["http", "sse"] = "http"


Where: TypeAlias = Command | Url


class Wire:
    """One conversation: sends messages, matches replies, keeps what else it hears."""

    def __init__(self) -> None:
        self.heard: list[Message] = []
        self._waiting: dict[Any, anyio.Event] = {}
        self._replies: dict[Any, Message] = {}

    async def post(self, message: Message, headers: Mapping[str, str]) -> None:
        """Send one message."""
        raise NotImplementedError

    async def exchange(self, message: Message, headers: Mapping[str, str]) -> Message:
        """Send a request, and return its reply, as it came.

        Raises:
            TimeoutError: There was none.
        """
        number = message["id"]
        arrived = self._waiting[number] = anyio.Event()
        with anyio.fail_after(PATIENCE):
            await self.post(message, headers)
            await arrived.wait()

        del self._waiting[number]
        return self._replies.pop(number)

    def take(self, text: str | bytes) -> None:
        """Take one message that came."""
        message = json.loads(text)
        number = message.get("id")
        if "method" not in message and number in self._waiting:
            self._replies[number] = message
            self._waiting[number].set()
        else:
            self.heard.append(message)


@asynccontextmanager
async def connected(where: Where) -> AsyncIterator[Wire]:
    """A conversation with a server, which is started for it if it is a command."""
    if isinstance(where, Command):
        opened: Any = _over_stdio(where)
    else:
        opened = _over_sse(where.url) if where.transport == "sse" else _over_http(where.url)

    async with opened as wire:
        yield wire


class _Stdio(Wire):
    def __init__(self, process: Process) -> None:
        super().__init__()
        self._process = process

    async def post(self, message: Message, headers: Mapping[str, str]) -> None:
        assert self._process.stdin is not None
        await self._process.stdin.send(_encoded(message) + b"\n")

    async def read(self) -> None:
        assert self._process.stdout is not None
        rest = b""
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async for chunk in self._process.stdout:
                *lines, rest = (rest + chunk).split(b"\n") if b"\n" in chunk else (rest + chunk,)
                for line in lines:
                    if line.strip():
                        self.take(line)


@asynccontextmanager
async def _over_stdio(command: Command) -> AsyncIterator[Wire]:
    process = await anyio.open_process(
        command.argv,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **command.env},
        cwd=command.cwd,
        start_new_session=True,
    )
    wire = _Stdio(process)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(wire.read)
            try:
                yield wire
            finally:
                with anyio.CancelScope(shield=True):
                    await _ended(process)

                group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await process.aclose()


async def _ended(process: Process) -> None:
    """Hang up, and see the process end."""
    assert process.stdin is not None
    await process.stdin.aclose()
    for end in (process.terminate, process.kill):
        with anyio.move_on_after(GRACE):
            await process.wait()
            return

        with suppress(ProcessLookupError):
            end()

    await process.wait()


class _Http(Wire):
    """Streamable HTTP: each request has a response of its own, which may be a stream."""

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        super().__init__()
        self._client = client
        self._url = url
        self._session: dict[str, str] = {}

    async def post(self, message: Message, headers: Mapping[str, str]) -> None:
        sent = {**JSON_HEADERS, **self._session, **headers}
        body = _encoded(message)
        async with self._client.stream("POST", self._url, content=body, headers=sent) as response:
            if (session := response.headers.get("mcp-session-id")) is not None:
                self._session = {"Mcp-Session-Id": session}

            kind = response.headers.get("content-type", "")
            if kind.startswith("text/event-stream"):
                await self._follow(response, message.get("id"))
            elif body := await response.aread():
                self.take(body)
            elif response.is_error:
                raise AssertionError(f"HTTP {response.status_code} to {message}")

    async def _follow(self, response: httpx.Response, number: Any) -> None:
        async for event in EventSource(response).aiter_sse():
            if event.data:
                self.take(event.data)
                if number in self._replies:
                    return

    async def leave(self) -> None:
        """End the session, if there is one."""
        if self._session:
            await self._client.delete(self._url, headers=self._session)


@asynccontextmanager
async def _over_http(url: str) -> AsyncIterator[Wire]:
    async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as client:
        wire = _Http(client, url)
        yield wire
        await wire.leave()


class _Sse(Wire):
    """HTTP+SSE: one stream for all that comes, and an address for what is sent."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        super().__init__()
        self._client = client
        self._endpoint = ""
        self.ready = anyio.Event()

    async def post(self, message: Message, headers: Mapping[str, str]) -> None:
        sent = {**JSON_HEADERS, **headers}
        response = await self._client.post(self._endpoint, content=_encoded(message), headers=sent)
        assert not response.is_error, f"HTTP {response.status_code} to {message}"

    async def read(self, url: str) -> None:
        async with self._client.stream("GET", url, headers={"Accept": "text/event-stream"}) as got:
            async for event in EventSource(got).aiter_sse():
                if event.event == "endpoint":
                    self._endpoint = urljoin(url, event.data)
                    self.ready.set()
                elif event.data:
                    self.take(event.data)


@asynccontextmanager
async def _over_sse(url: str) -> AsyncIterator[Wire]:
    async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as client:
        wire = _Sse(client)
        group: TaskGroup
        async with anyio.create_task_group() as group:
            group.start_soon(wire.read, url)
            with anyio.fail_after(PATIENCE):
                await wire.ready.wait()

            yield wire
            group.cancel_scope.cancel()


def _encoded(message: Message) -> bytes:
    return json.dumps(message, ensure_ascii=True, allow_nan=False).encode()
