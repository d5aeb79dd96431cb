from __future__ import annotations

from typing import Any

import anyio

from bridge.downstream.changes import Changes
from bridge.upstream.protocol import RESOURCE_UPDATED, TOOLS_CHANGED


async def settle() -> None:
    await anyio.wait_all_tasks_blocked()


async def test_many_changes_at_once_are_told_once_more_after_the_first() -> None:
    changes, told, twice = Changes(interval=0.01), list[str](), anyio.Event()

    def tell(method: str, params: dict[str, Any]) -> None:
        told.append(method)
        if len(told) == 2:
            twice.set()

    changes.follow(tell)
    async with anyio.create_task_group() as group:
        group.start_soon(changes.relay)
        changes.take(TOOLS_CHANGED, {})
        await settle()
        assert told == [TOOLS_CHANGED]
        for _ in range(100):
            changes.take(TOOLS_CHANGED, {})

        await twice.wait()
        await settle()
        assert told == [TOOLS_CHANGED, TOOLS_CHANGED]
        group.cancel_scope.cancel()


async def test_the_next_change_is_not_told_before_its_time() -> None:
    changes, told = Changes(interval=3600), list[str]()
    changes.follow(lambda method, params: told.append(method))
    async with anyio.create_task_group() as group:
        group.start_soon(changes.relay)
        for _ in range(3):
            await settle()
            changes.take(TOOLS_CHANGED, {})

        await settle()
        group.cancel_scope.cancel()

    assert told == [TOOLS_CHANGED]


async def test_each_resource_that_changed_is_told_once_and_to_nobody_who_has_left() -> None:
    changes, told, missed = Changes(interval=3600), list[Any](), list[Any]()
    changes.follow(lambda method, params: told.append((method, params)))
    leave = changes.follow(lambda method, params: missed.append(params))
    leave()
    for uri in ("a:1", "a:2", "a:1"):
        changes.take(RESOURCE_UPDATED, {"uri": uri})

    async with anyio.create_task_group() as group:
        group.start_soon(changes.relay)
        await settle()
        group.cancel_scope.cancel()

    assert told == [(RESOURCE_UPDATED, {"uri": "a:1"}), (RESOURCE_UPDATED, {"uri": "a:2"})]
    assert missed == []
