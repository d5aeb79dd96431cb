from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from bridge.core.ending import Ending


async def test_time_ends_the_block_and_the_task_goes_on_behind_it() -> None:
    with Ending(0.01):
        await anyio.sleep_forever()

    await anyio.lowlevel.checkpoint()  # nothing of the cancellation is left


async def test_a_deadline_may_be_moved() -> None:
    with Ending(0.01) as block:
        block.deadline = float("inf")
        with anyio.move_on_after(0.05) as waiting:
            await anyio.sleep_forever()

    assert waiting.cancelled_caught
    assert not block.is_cancelled


async def test_another_task_ends_the_block_and_nothing_around_it() -> None:
    block, after = Ending(), anyio.Event()

    async def work() -> None:
        with block:
            await anyio.sleep_forever()

        await anyio.lowlevel.checkpoint()
        after.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        await anyio.wait_all_tasks_blocked()
        block.cancel()
        block.cancel()
        await after.wait()


async def test_a_cancellation_by_somebody_else_is_heard() -> None:
    block, went_on = Ending(), False

    async def work() -> None:
        nonlocal went_on
        with block:
            await anyio.sleep_forever()

        went_on = True

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()

    assert not went_on
    assert not block.is_cancelled


async def test_what_the_block_raises_comes_out() -> None:
    with pytest.raises(KeyError), Ending(60):
        raise KeyError


async def test_a_block_does_not_end_itself() -> None:
    with Ending() as block:
        block.cancel()
        await anyio.lowlevel.checkpoint()

    assert not block.is_cancelled
