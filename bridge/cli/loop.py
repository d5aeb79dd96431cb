"""The event loops that commands run in, and how a signal ends what runs there.

Serving gets uvloop's loop where that is installed, which is the faster.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, TypeVar, TypeVarTuple

import anyio

from bridge.cli.memory import give_back_large_blocks
from bridge.cli.output import note

LOOKED_FOR: Final = 20_000
"""Objects made and not yet freed before the garbage collector looks for rings among them."""

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


def run_async(work: Callable[[*Arguments], Awaitable[T]], *arguments: *Arguments) -> T:
    """Run `work` in a new event loop until it ends, and return what it returns.

    What is loaded by now stays until the end: the garbage collector need not walk all of it again
    and again, while clients wait. Nor need it look so often for rings among what a call leaves:
    there are next to none.
    """
    give_back_large_blocks()
    gc.collect()
    gc.freeze()
    gc.set_threshold(LOOKED_FOR)
    has_uvloop = importlib.util.find_spec("uvloop") is not None
    return anyio.run(work, *arguments, backend_options={"use_uvloop": has_uvloop})


def run_command(work: Callable[[*Arguments], Awaitable[T]], *arguments: *Arguments) -> T:
    """Run `work` in a new event loop until it ends, and return what it returns.

    Raises:
        KeyboardInterrupt: Ctrl-C ended it.
    """
    returned: list[T] = []

    async def whole() -> None:
        returned.append(await work(*arguments))

    if anyio.run(until_told, whole, signal.SIGINT):
        raise KeyboardInterrupt

    return returned[0]


async def until_told(
    work: Callable[[], Awaitable[object]], *numbers: signal.Signals
) -> signal.Signals | None:
    """Run `work` until it ends, or until one of these signals comes, which is returned.

    A second signal ends the process at once. Signals are heard through the loop's own pipe:
    without it, one that comes just as the loop falls asleep would not wake it.
    """
    failure: Exception | None = None
    working = anyio.CancelScope()
    told: list[signal.Signals] = []
    async with anyio.create_task_group() as beside:
        with anyio.open_signal_receiver(*numbers) as signals:
            beside.start_soon(_obey, signals, working, told)
            with working:
                try:
                    await work()
                except Exception as exc:
                    failure = exc  # raised below, outside the task group, so that it stays itself

            beside.cancel_scope.cancel()

    if failure is not None:
        raise failure

    return told[0] if told else None


async def _obey(
    signals: AsyncIterator[signal.Signals], working: anyio.CancelScope, told: list[signal.Signals]
) -> None:
    async for number in signals:
        if told:
            os._exit(128 + number)  # at once: the guards see to the upstreams

        told.append(number)
        note("ending …")
        working.cancel()
