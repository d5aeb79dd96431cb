"""From a channel's progress notifications to whoever waits for the call, in order and bounded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from bridge.core.content import Result
from bridge.core.context import ProgressSink
from bridge.telemetry import log
from bridge.upstream.channel import Params

KEPT = 64


async def with_progress(
    call: Callable[[Callable[[Params], None]], Awaitable[Result]], sink: ProgressSink
) -> Result:
    """Run `call` with a listener whose news reach `sink`, all of them before the result does.

    A sink that is slower than the server loses the oldest news, never the newest.
    """
    send, receive = anyio.create_memory_object_stream[Params](KEPT)

    def listen(params: Params) -> None:
        if send.statistics().current_buffer_used == KEPT:
            receive.receive_nowait()

        send.send_nowait(params)

    async def tell() -> None:
        async with receive:
            async for params in receive:
                try:
                    await _tell(sink, params)
                except Exception as exc:  # who listens badly must not lose the answer
                    log.warning("progress could not be told: %s", exc)

    outcome: Result | Exception
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tell)
        try:
            outcome = await call(listen)
        except Exception as exc:
            outcome = exc  # raised below, outside the task group, so that it stays itself
        finally:
            send.close()

    if isinstance(outcome, Exception):
        raise outcome

    return outcome


async def _tell(sink: ProgressSink, params: Params) -> None:
    progress, total, message = (params.get(key) for key in ("progress", "total", "message"))
    if isinstance(progress, int | float):
        await sink(
            progress,
            total if isinstance(total, int | float) else None,
            message if isinstance(message, str) else None,
        )
