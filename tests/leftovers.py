"""What a test's own process holds, so that a test can say that something left nothing behind."""

from __future__ import annotations

import gc
from typing import NamedTuple

import anyio
import psutil

from tests.waiting import eventually


class Held(NamedTuple):
    """Counts of what this process holds."""

    descriptors: int
    children: int
    tasks: int


def held() -> Held:
    """What this process holds now, without what only the garbage collector still knows."""
    gc.collect()
    me = psutil.Process()
    return Held(
        descriptors=me.num_fds(),
        children=len(me.children(recursive=True)),
        tasks=len(anyio.get_running_tasks()),
    )


async def no_more_than(before: Held) -> None:
    """Wait until this process holds no more than before.

    Less is no leak: what an earlier test left to end by itself may end meanwhile.

    Raises:
        AssertionError: It still holds more; the message tells of what.
    """

    def given_back() -> bool:
        now = held()
        assert all(had >= has for had, has in zip(before, now, strict=True)), f"{now}, not {before}"
        return True

    await eventually(given_back)
