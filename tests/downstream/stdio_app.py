"""A server over stdio for tests: everything of `offer`, until its client leaves or SIGTERM.

The first argument says after how many seconds a person's silence is taken as no answer.
"""

from __future__ import annotations

import signal
import sys

import anyio

from bridge.core.content import Args, Result
from bridge.core.context import ToolContext
from bridge.downstream.handlers import Handlers
from bridge.downstream.stdio import serve_stdio
from tests.downstream.offer import Runs, Shelf, everything, servers_tool, text


async def end_by_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


async def main() -> None:
    async def noisy(ctx: ToolContext, args: Args) -> Result:
        print("a stray line")  # noqa: T201
        sys.stdout.flush()
        return text(f"read {sys.stdin.readline()!r}")

    catalog = await Shelf(*everything(Runs()), servers_tool("noisy", noisy)).offered()
    handlers = Handlers(catalog, name="tests", version="1")
    async with anyio.create_task_group() as group:
        group.start_soon(end_by_signal, group.cancel_scope)
        await serve_stdio(handlers, confirm_wait=float(sys.argv[1]))
        group.cancel_scope.cancel()


anyio.run(main)
