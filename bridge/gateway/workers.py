"""Several processes that serve one address: started, kept, and ended together.

This process serves nothing itself. It keeps the conversations with upstreams, so that there is
one of each, and starts another process in the place of one that ends.
"""

from __future__ import annotations

import itertools
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.abc import Process

from bridge.config.settings import Settings
from bridge.downstream.peers import mark_of, socket_of
from bridge.downstream.web import Address, bound_socket, open_door
from bridge.errors import BridgeError
from bridge.gateway.assembly import assemble, to_target
from bridge.gateway.sealing import sealing
from bridge.gateway.workers_process import READY, Task, host_in, sent
from bridge.telemetry import log
from bridge.upstream.channel import Limits
from bridge.upstream.conversation import Hosting
from bridge.upstream.host import hosting

COMMAND = [sys.executable, "-m", "bridge.cli.worker"]
GRACE = 15.0
"""Seconds from telling a process to end until it is killed."""

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
STEADY_SECONDS = 60.0
"""Seconds after which a process that ends is one that had served well."""

SHARES_PORT = sys.platform == "linux"
"""Whether the system spreads connections over sockets that are bound to one port."""

BACKLOG = 2048


async def serve_workers(
    settings: Settings,
    count: int,
    host: str | None = None,
    port: int | None = None,
    on_ready: Callable[[str], None] = lambda endpoint: None,
) -> None:
    """Serve over Streamable HTTP with `count` processes, until cancelled.

    `host` and `port` win over the settings; `on_ready` takes the endpoint's URL once all answer.

    Raises:
        ConfigError: The configuration or the address cannot be used.
        BridgeError: A process ended before it served.
        StoreError: The store of what is shared with other bridges cannot be reached.
    """
    assemble(settings)  # what is wrong with it is said here, and once
    async with sealing(settings.serve.state):
        pass  # so is that its store cannot be used

    http = settings.serve.http
    host, port = host or http.host, http.port if port is None else port
    token = None if http.token is None else http.token.get_secret_value()
    address = Address(host, port, http.path, token, http.allowed_hosts, http.allowed_origins)
    with await bound_socket(host, port, listens=not SHARES_PORT) as held, _private() as directory:
        door = await open_door(address, held)
        if SHARES_PORT:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)

        async with hosting(hosted(settings), host_in(directory)):
            workers = Workers(settings, directory, host, held, count)
            await workers.run(lambda: on_ready(door.url))


def hosted(settings: Settings) -> Mapping[str, Hosting]:
    """The upstreams, as the host of their conversations takes them."""
    return {
        name: Hosting(
            to_target(name, one), one.connect_timeout, Limits(message_bytes=one.max_message)
        )
        for name, one in settings.upstreams.items()
        if one.enabled
    }


@dataclass(slots=True)
class Workers:
    """The processes, each in a task of its own here."""

    settings: Settings
    directory: str
    host: str
    held: socket.socket
    count: int
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def run(self, on_ready: Callable[[], None]) -> None:
        """Keep `count` processes until cancelled; `on_ready` is called once all serve.

        Raises:
            BridgeError: One of the first ended before it served.
        """
        failures: list[BridgeError] = []
        ready = [anyio.Event() for _ in range(self.count)]
        async with anyio.create_task_group() as tasks:

            async def keep(mine: anyio.Event) -> None:
                try:
                    await self._keep(mine)
                except BridgeError as exc:
                    failures.append(exc)  # raised below, so that it stays itself
                    tasks.cancel_scope.cancel()

            for mine in ready:
                tasks.start_soon(keep, mine)

            for mine in ready:
                await mine.wait()

            on_ready()

        if failures:
            raise failures[0]

    async def _keep(self, ready: anyio.Event) -> None:
        """One process, and again and again one in its place."""
        failures = 0
        while True:
            started = anyio.current_time()
            code = await self._one(ready)
            if not ready.is_set():
                raise BridgeError(f"a process ended with code {code} before it served")

            lived = anyio.current_time() - started
            failures = 0 if lived >= STEADY_SECONDS else failures + 1
            pause = 0.0 if not failures else min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (failures - 1))
            log.warning(
                "a serving process ended with code %s; the next begins in %g s", code, pause
            )
            await anyio.sleep(pause)

    async def _one(self, ready: anyio.Event) -> int:
        """One process from its start to its end; returns its exit code, negative for a signal."""
        mark = mark_of(next(self._numbers))
        ours, theirs = socket.socketpair()
        with ours:
            with theirs, self._listening() as listening:
                task = Task(
                    self.settings,
                    mark,
                    self.directory,
                    listening.fileno(),
                    self.host,
                    self.held.getsockname()[1],
                    self.count,
                )
                process = await anyio.open_process(
                    COMMAND,
                    stdin=theirs.fileno(),
                    stdout=None,
                    stderr=None,
                    pass_fds=[listening.fileno()],
                    start_new_session=True,  # the terminal's Ctrl-C is for us, who pass it on
                )

            try:
                async with anyio.create_task_group() as beside:
                    beside.start_soon(_brief, ours, task, ready)
                    code = await process.wait()
                    beside.cancel_scope.cancel()
            finally:
                await _end(process)
                socket_of(Path(self.directory), mark).unlink(missing_ok=True)

        return code

    @contextmanager
    def _listening(self) -> Iterator[socket.socket]:
        """A socket for one process, which has its own share of the connections where it can."""
        if not SHARES_PORT:
            yield self.held
            return

        with socket.socket(self.held.family, socket.SOCK_STREAM) as listening:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listening.bind(self.held.getsockname())
            listening.listen(BACKLOG)
            yield listening


async def _brief(life: socket.socket, task: Task, ready: anyio.Event) -> None:
    """Send a process its task, and wait until it serves, or is gone."""
    with suppress(OSError):
        await anyio.to_thread.run_sync(life.sendall, sent(task), abandon_on_cancel=True)
        await anyio.wait_readable(life)
        if life.recv(1) == READY:
            ready.set()


async def _end(process: Process) -> None:
    """End a process: tell it, wait for the grace, kill it."""
    with anyio.CancelScope(shield=True):
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.terminate()

            with anyio.move_on_after(GRACE):
                await process.wait()

        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()

        await process.aclose()


@contextmanager
def _private() -> Iterator[str]:
    """A directory that nobody else can look into, until the end."""
    directory = tempfile.mkdtemp(prefix="bridge-")
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
