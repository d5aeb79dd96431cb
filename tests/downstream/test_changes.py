from __future__ import annotations

from collections.abc import Callable

import anyio

from bridge.downstream.changes import Changes


async def settle() -> None:
    await anyio.wait_all_tasks_blocked()


async def test_many_changes_at_once_are_told_once_more_after_the_first() -> None:
    changes, on_change, told = Changes(interval=0.01), list[Callable[[], None]](), anyio.Event()
    count = 0

    async def tell() -> None:
        nonlocal count
        count += 1
        if count == 2:
            told.set()

    async with anyio.create_task_group() as group:
        group.start_soon(changes.relay, on_change)
        group.start_soon(changes.follow, tell)
        await settle()
        on_change[0]()
        await settle()
        assert count == 1
        for _ in range(100):
            on_change[0]()

        await told.wait()
        await settle()
        assert count == 2
        group.cancel_scope.cancel()

    assert on_change == []


async def test_the_next_change_is_not_told_before_its_time() -> None:
    changes, on_change, count = Changes(interval=3600), list[Callable[[], None]](), 0

    async def tell() -> None:
        nonlocal count
        count += 1

    async with anyio.create_task_group() as group:
        group.start_soon(changes.relay, on_change)
        group.start_soon(changes.follow, tell)
        for _ in range(3):
            await settle()
            if on_change:
                on_change[0]()

        await settle()
        group.cancel_scope.cancel()

    assert count == 1


async def test_one_client_that_does_not_read_holds_up_no_other() -> None:
    changes, on_change = Changes(interval=0), list[Callable[[], None]]()
    stuck, count, thrice = anyio.Event(), 0, anyio.Event()

    async def hang() -> None:
        stuck.set()
        await anyio.sleep_forever()

    async def tell() -> None:
        nonlocal count
        count += 1
        if count == 3:
            thrice.set()

    async with anyio.create_task_group() as group:
        group.start_soon(changes.relay, on_change)
        group.start_soon(changes.follow, hang)
        group.start_soon(changes.follow, tell)
        await settle()
        for wanted in (1, 2, 3):
            on_change[0]()
            while count < wanted:
                await settle()

        await stuck.wait()
        await thrice.wait()
        group.cancel_scope.cancel()
