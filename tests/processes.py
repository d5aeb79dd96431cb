"""Real processes for tests: started, waited for, and ended by their own id."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import anyio
import psutil

from tests.waiting import eventually

GRACE = 10.0  # seconds between SIGTERM and SIGKILL


@dataclass(frozen=True, slots=True)
class Running:
    """A process that a test started."""

    process: subprocess.Popen[bytes]
    log: IO[bytes]

    @property
    def pid(self) -> int:
        """The process's id."""
        return self.process.pid

    def output(self) -> str:
        """All it has written so far, stdout and stderr."""
        return Path(self.log.name).read_text("utf-8", errors="replace")

    def kill(self) -> None:
        """End it with SIGKILL, and wait until it is gone."""
        self.process.kill()
        self.process.wait()


def unused_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_alive(pid: int) -> bool:
    """Whether a process of that id runs; one that ended and was not waited for does not."""
    try:
        return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


@asynccontextmanager
async def started(
    argv: Sequence[str],
    env: Mapping[str, str] | None = None,
    *,
    port: int | None = None,
    cwd: Path | None = None,
) -> AsyncIterator[Running]:
    """Run a command until the block ends; `env` is added to the tests' own environment.

    With `port`, the block begins when 127.0.0.1 answers there.

    Raises:
        AssertionError: It ended, or nothing answered, before the block began.
    """
    with tempfile.NamedTemporaryFile(prefix="bridge-test-") as log:
        running = Running(_start(argv, {**os.environ, **(env or {})}, cwd, log.file), log.file)
        try:
            if port is not None:
                await _answers(running, port)

            yield running
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_end, running.process)


def _start(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path | None, log: IO[bytes]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


async def _answers(running: Running, port: int) -> None:
    def listening() -> bool:
        if running.process.poll() is not None:
            return True

        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", port)) == 0

    await eventually(listening)
    status = running.process.poll()
    assert status is None, f"ended with status {status}: {running.output()}"


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
