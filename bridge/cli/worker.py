"""One of the processes of `bridge serve --workers`: started by it, and by nobody else."""

from __future__ import annotations

import os
import signal
import socket
import sys

import anyio

from bridge.cli.loop import run_async
from bridge.cli.output import complain, show_log
from bridge.errors import BridgeError
from bridge.gateway.workers_process import READY, Task, received, serve_task, until_orphaned

IN = 0


def main() -> int:
    """Do the task that comes over standard input, a socket, for as long as that is open."""
    show_log()
    life = socket.socket(fileno=os.dup(IN))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, IN)
    os.close(nothing)
    with life:
        try:
            return run_async(_serve, received(life), life)
        except EOFError:
            return 1
        except BridgeError as exc:
            complain(str(exc))
            return exc.exit_code


async def _serve(task: Task, life: socket.socket) -> int:
    failure: Exception | None = None
    told = anyio.Event()
    serving = anyio.CancelScope()
    async with anyio.create_task_group() as beside:
        beside.start_soon(_obey, told, serving)
        beside.start_soon(until_orphaned, life, task.directory, told.is_set, serving.cancel)
        with serving:
            try:
                await serve_task(task, lambda url: life.sendall(READY))
            except Exception as exc:
                failure = exc  # raised below, outside the task group, so that it stays itself

        beside.cancel_scope.cancel()

    if failure is not None:
        raise failure

    return 0


async def _obey(told: anyio.Event, serving: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            if told.is_set():
                os._exit(128 + number)

            told.set()
            serving.cancel()


if __name__ == "__main__":
    sys.exit(main())
