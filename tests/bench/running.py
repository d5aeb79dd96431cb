"""Servers under measurement: started together, loaded in turns, ended by their own ids."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.processes import unused_port

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0  # seconds until a server must listen
GRACE = 15.0  # seconds between SIGTERM and SIGKILL
LONGEST_LOAD = 600.0
SETTLING = 1.0  # seconds that servers get to finish their start before the first is measured


@dataclass(frozen=True, slots=True)
class Server:
    """A process that listens on a port of 127.0.0.1."""

    process: subprocess.Popen[bytes]
    port: int
    log: IO[bytes]

    @property
    def pid(self) -> int:
        """The id of the process that is measured; its children are not."""
        return self.process.pid

    def output(self) -> str:
        """The end of what it wrote."""
        return Path(self.log.name).read_text("utf-8", errors="replace")[-2000:]


def end_in_order() -> None:
    """Let SIGTERM end the program as Ctrl-C does: not before what it started has ended."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


@contextmanager
def running(commands: Mapping[str, Sequence[str]]) -> Iterator[dict[str, Server]]:
    """Start every command, with a free port in the place of `{port}`, and wait until all listen.

    Raises:
        RuntimeError: One did not come up; says which, and what it wrote.
    """
    servers: dict[str, Server] = {}
    try:
        for name, argv in commands.items():
            servers[name] = start(argv)
            _wait(name, servers[name])

        time.sleep(SETTLING)
        yield servers
    finally:
        end(servers.values())


def start(argv: Sequence[str]) -> Server:
    """Start one server and return at once."""
    port = unused_port()
    log = tempfile.NamedTemporaryFile(prefix="bench-")  # noqa: SIM115 — `end` closes it
    process = subprocess.Popen(
        [part.replace("{port}", str(port)) for part in argv],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    return Server(process, port, log)


def end(servers: Iterable[Server]) -> None:
    """End them all, together, and wait until each is gone."""
    ending = list(servers)
    for server in ending:
        server.process.terminate()

    for server in ending:
        try:
            server.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            server.process.kill()
            server.process.wait()

        server.log.close()


def _wait(name: str, server: Server) -> None:
    deadline = time.monotonic() + PATIENCE
    while not listens(server.port):
        if server.process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f'"{name}" did not come up; it wrote: {server.output()}')

        time.sleep(0.05)


def listens(port: int) -> bool:
    """Whether somebody answers there."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def load(server: Server, era: str, calls: int, clients: int, **others: Any) -> dict[str, Any]:
    """Put load on one server, from a process of its own; see `tests.bench.load`.

    Raises:
        RuntimeError: The load itself failed, as it does where a server hangs up.
    """
    flags = {"port": server.port, "pid": server.pid, "era": era, "calls": calls} | others
    argv = [sys.executable, "-m", "tests.bench.load", "--clients", str(clients)]
    argv += [f"--{name}={value}" for name, value in flags.items()]
    done = subprocess.run(
        argv, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_LOAD, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{done.stderr[-600:]}\nthe server wrote: {server.output()}")

    found: dict[str, Any] = json.loads(done.stdout)
    return found
