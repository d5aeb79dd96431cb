"""One of several processes that serve a configuration together, from its task to its end."""

from __future__ import annotations

import os
import pickle
import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio

from bridge.config.settings import Settings
from bridge.downstream.http import serve_http
from bridge.downstream.peers import open_peers
from bridge.downstream.polling import Poll
from bridge.gateway.assembly import assemble
from bridge.gateway.keeping import keeping
from bridge.gateway.live import running
from bridge.gateway.observing import observing
from bridge.gateway.offerings import to_handlers
from bridge.gateway.sealing import sealing

LAST_SECONDS = 6.0
"""Seconds after which a process ends in any case, once the one that started it is gone."""

READY = b"r"


@dataclass(frozen=True, slots=True)
class Task:
    """What one process does: its mark, the socket it listens on, and where the others are.

    `directory` is private to them; the host of the upstreams' conversations is in it. `count` is
    how many processes serve together.
    """

    settings: Settings
    mark: str
    directory: str
    listening: int
    host: str
    port: int
    count: int


def host_in(directory: str) -> str:
    """The Unix socket of whoever keeps the conversations with upstreams."""
    return os.path.join(directory, "host.sock")


def sent(task: Task) -> bytes:
    """A task as it is sent to the process that does it: its length, and a pickle."""
    body = pickle.dumps(task)
    return len(body).to_bytes(8) + body


def received(life: socket.socket) -> Task:
    """The task that comes over a socket from whoever started this process.

    Raises:
        EOFError: That one is gone.
    """
    task: Task = pickle.loads(_read(life, int.from_bytes(_read(life, 8))))
    return task


async def serve_task(task: Task, on_ready: Callable[[str], None]) -> None:
    """Serve until cancelled; `on_ready` takes the endpoint's URL once it answers.

    Raises:
        ConfigError: The configuration cannot be served.
        StoreError: The store of what is shared with other bridges cannot be reached.
    """
    http = task.settings.serve.http
    listening = socket.socket(fileno=task.listening)
    assembly = assemble(task.settings, host=host_in(task.directory))
    group = os.path.basename(task.directory)
    async with (
        open_peers(Path(task.directory), task.mark) as peers,
        observing(assembly, "http", Poll(peers, task.count)) as seen,
        keeping(task.settings.results, group) as large,
        sealing(task.settings.serve.state) as seals,
        running(assembly) as gateway,
    ):
        settle = partial(gateway.gathered, task.settings.serve.startup_wait)
        await serve_http(
            to_handlers(gateway.assembly, settle, seen.observers, large, seals),
            task.host,
            task.port,
            http.path,
            token=None if http.token is None else http.token.get_secret_value(),
            allowed_hosts=http.allowed_hosts,
            allowed_origins=http.allowed_origins,
            on_ready=on_ready,
            pages=seen.pages,
            neighbours=peers,
            listening=listening,
        )


async def until_orphaned(
    life: socket.socket, directory: str, told_to_end: Callable[[], bool], end: Callable[[], None]
) -> None:
    """Call `end` when whoever started this process is gone; and soon after, the process ends.

    If it was told to end already, and is given up on, it ends at once.
    """
    await anyio.wait_readable(life)  # nothing is sent after the task: this is the end
    shutil.rmtree(directory, ignore_errors=True)
    if told_to_end():
        os._exit(1)

    end()
    with anyio.CancelScope(shield=True):
        await anyio.sleep(LAST_SECONDS)
        os._exit(1)


def _read(life: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = life.recv(min(size, 1 << 20))
        if not part:
            raise EOFError("whoever started this process is gone")

        parts.append(part)
        size -= len(part)

    return b"".join(parts)
