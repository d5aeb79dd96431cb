"""A listening socket with one of our HTTP fronts behind it, from its first byte to its last."""

from __future__ import annotations

import errno
import socket
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

import anyio
import uvicorn
from anyio.lowlevel import checkpoint
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from bridge.downstream.auth import TokenCheck, token_check
from bridge.downstream.front import Front
from bridge.downstream.guard import Bounds, Closing, Guard
from bridge.downstream.heads import end_slow_heads
from bridge.downstream.names import WILDCARDS, Names, names_of
from bridge.errors import ConfigError

PARSER: Any = "h11"
"""What reads HTTP: httptools where it is installed, which is several times as fast as h11."""

with suppress(ImportError):
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    PARSER = HttpToolsProtocol  # as it comes, should a later uvicorn be another than ours builds on
    from bridge.downstream.repeated import HttpProtocol

    PARSER = HttpProtocol

LAST_WORDS = 1
"""Seconds that calls get to tell their clients that they were ended."""

TURNS = 100
"""Turns of the event loop that an answer gets on its way from a call to the socket."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens, under which names, and what a client must show.

    Port 0 is any free one. `allowed_hosts` are `name[:port]`, `allowed_origins` are
    `scheme://name[:port]`; the loopback names are allowed without being listed.
    """

    host: str
    port: int
    path: str
    token: str | None
    allowed_hosts: Iterable[str]
    allowed_origins: Iterable[str]


@dataclass(frozen=True, slots=True)
class Door:
    """A socket that listens already, and what is checked of whoever comes through it."""

    socket: socket.socket
    url: str
    names: Names
    token: TokenCheck


class App(Protocol):
    """One of our fronts, behind the guard."""

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer one HTTP request."""
        ...

    async def run(self) -> None:
        """Do what has to be done beside the requests, until cancelled."""
        ...

    def end_streams(self) -> None:
        """End every response that is no answer to a request."""
        ...


async def open_door(address: Address, listening: socket.socket | None = None) -> Door:
    """Listen, before anything else is started; on a socket that does already, if one is given.

    Raises:
        ConfigError: The address cannot be used, or not like this.
    """
    token = token_check(address.host, address.token)
    try:
        names = names_of(address.host, address.allowed_hosts, address.allowed_origins)
    except ValueError as exc:
        raise ConfigError(str(exc)) from exc

    sock = listening or await bound_socket(address.host, address.port)
    return Door(sock, _url(sock, address), names, token)


async def serve_app(
    front: Front,
    app: App,
    door: Door,
    on_ready: Callable[[str], None],
    bounds: Bounds,
) -> None:
    """Serve `app` until cancelled; `on_ready` takes the endpoint's URL once it answers.

    At the end nothing new is taken, calls may go on for the grace, then everything is ended.
    """
    closing = Closing()
    guard = Guard(app, door.names, door.token, bounds, closing)
    server = _Uvicorn(_uvicorn_config(guard, bounds))
    async with anyio.create_task_group() as group:
        group.start_soon(_Life(front, app, server, closing, bounds).run, door.socket)
        try:
            await server.listening.wait()
            on_ready(door.url)
            await anyio.sleep_forever()
        finally:
            server.told_to_end.set()


async def bound_socket(host: str, port: int, *, listens: bool = True) -> socket.socket:
    """A TCP socket that listens, or is bound alone, which keeps the port from others.

    Raises:
        ConfigError: No socket can listen there; the text says why and what to do.
    """
    try:
        found = await anyio.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError) as exc:
        raise ConfigError(
            f'"{host}" is no address of this machine ({exc}): listen on 127.0.0.1'
        ) from exc

    family, kind, protocol, _, target = found[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(target)
        if listens:
            sock.listen(128)
    except OSError as exc:
        sock.close()
        raise ConfigError(_why_not(exc, host, port)) from exc

    return sock


def not_here(endpoint: str) -> ASGIApp:
    """An app that answers every request with where the endpoint is: 200 at /, else 404."""
    text = f"This is an MCP server. Its endpoint is {endpoint}\n"

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        is_root = scope["path"] == "/" and scope["method"] in ("GET", "HEAD")
        await PlainTextResponse(text, 200 if is_root else 404)(scope, receive, send)

    return answer


class _Uvicorn(uvicorn.Server):
    """Uvicorn that leaves signals to whoever owns the process, and says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = anyio.Event()
        self.told_to_end = anyio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    def connections(self) -> Collection[Any]:
        """Every connection that is open, as its protocol."""
        return self.server_state.connections

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


@dataclass(frozen=True, slots=True)
class _Life:
    """A server between its first and its last request, out of reach of its owner's cancellation.

    So sessions, and the calls in them, end in order instead of all at once.
    """

    front: Front
    app: App
    server: _Uvicorn
    closing: Closing
    bounds: Bounds

    async def run(self, sock: socket.socket) -> None:
        """Serve until told to end, and then until the end."""
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as group:
                group.start_soon(self.front.run)
                group.start_soon(self.app.run)
                group.start_soon(self._close)
                group.start_soon(end_slow_heads, self.server.connections, self.bounds.head_seconds)
                await self.server.serve(sockets=[sock])
                group.cancel_scope.cancel()

    async def _close(self) -> None:
        await self.server.told_to_end.wait()
        self.closing.begun.set()
        self.server.should_exit = True
        self.front.wind_down()
        with anyio.move_on_after(self.bounds.grace):
            await self.front.wait_idle()

        with anyio.move_on_after(LAST_WORDS):
            await self.front.end_calls()

        for _ in range(TURNS):
            await checkpoint()

        self.app.end_streams()


def _uvicorn_config(app: ASGIApp, bounds: Bounds) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=PARSER,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=bounds.connections,
        # We end everything by ourselves; what uvicorn cuts off after that was stuck.
        timeout_graceful_shutdown=bounds.grace + LAST_WORDS + 1,
    )


def _url(sock: socket.socket, address: Address) -> str:
    host = address.host
    if host in WILDCARDS:
        host = "127.0.0.1" if sock.family == socket.AF_INET else "::1"

    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{sock.getsockname()[1]}{address.path}"


def _why_not(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} on {host or 'every address'} is in use: stop what listens there, or "
            "choose another with --port (0 takes a free one)"
        )

    if error.errno == errno.EACCES:
        return f"port {port} is not open to this user: choose one above 1023 with --port"

    return f'"{host}", port {port}, cannot be listened on ({error.strerror}): choose another'
