"""A coroutine's first step, and the rest of it."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from bridge.core.begun import Begun
from bridge.core.ending import Ending


async def at_once(value: int) -> int:
    return value


async def later(event: anyio.Event, seen: list[str]) -> int:
    try:
        await event.wait()
        await anyio.lowlevel.checkpoint()
    finally:
        seen.append("left")

    return 3


async def test_what_does_not_wait_is_done_at_once() -> None:
    begun = Begun(at_once(3))

    assert begun.is_done
    assert begun.result == 3


async def test_what_waits_goes_on_where_it_is_awaited() -> None:
    event, seen = anyio.Event(), list[str]()
    begun = Begun(later(event, seen))
    assert not begun.is_done

    async def wake() -> None:
        event.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wake)
        assert await begun == 3

    assert seen == ["left"]


async def test_its_errors_come_where_they_happen() -> None:
    async def fails(*, first: bool) -> None:
        if first:
            raise KeyError("first")

        await anyio.lowlevel.checkpoint()
        raise KeyError("then")

    with pytest.raises(KeyError, match="first"):
        Begun(fails(first=True))

    begun = Begun(fails(first=False))
    with pytest.raises(KeyError, match="then"):
        await begun


async def test_what_ends_the_wait_ends_the_work() -> None:
    event, seen = anyio.Event(), list[str]()
    begun = Begun(later(event, seen))
    with Ending(0.01) as ending:
        await begun

    assert ending.is_cancelled
    assert seen == ["left"]

    begun = Begun(later(event, seen))
    with anyio.move_on_after(0.01) as scope:
        await begun

    assert scope.cancelled_caught
    assert seen == ["left", "left"]
