"""Toolsets asked side by side: how long each may hold up the others."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import anyio.lowlevel

from bridge.core.context import ReadonlyContext, local_context
from bridge.core.tool import Tool
from bridge.tools.function import function_tool
from bridge.tools.toolsets import CombinedToolset, StaticToolset

CTX = local_context()


def one() -> int:
    """One."""
    return 1


class Slow:
    """A toolset that answers when it is told to, and counts who gave up."""

    name = "slow"

    def __init__(self) -> None:
        self.comes = anyio.Event()
        self.asked = self.left = 0

    async def tools(self, ctx: ReadonlyContext) -> Sequence[Tool]:
        self.asked += 1
        if not self.comes.is_set():
            try:
                await self.comes.wait()
            except anyio.get_cancelled_exc_class():
                self.left += 1
                raise

        return (function_tool(one, name="slow_one"),)


def combined(slow: Slow, patience: float) -> CombinedToolset:
    fast = StaticToolset([function_tool(one)], name="fast")
    return CombinedToolset([slow, fast], on_failure="report", patience=patience)


async def names(toolset: CombinedToolset) -> list[str]:
    return [tool.name for tool in await toolset.tools(CTX)]


async def test_one_that_hangs_is_waited_for_once_and_is_there_when_it_answers() -> None:
    slow = Slow()
    toolset = combined(slow, 0.05)

    assert await names(toolset) == ["one"]
    assert "has not answered yet" in str(toolset.failures["slow"])
    toolset._asking._patience = 3600  # from here on, waiting would be noticed
    with anyio.fail_after(30):
        assert await names(toolset) == ["one"]

    slow.comes.set()
    assert await names(toolset) == ["slow_one", "one"]
    assert (slow.asked, slow.left) == (3, 2)
    assert dict(toolset.failures) == {}


async def test_one_that_is_slow_but_comes_in_time_is_waited_for() -> None:
    slow = Slow()
    toolset = combined(slow, 60)
    async with anyio.create_task_group() as tasks:

        async def listed() -> None:
            assert await names(toolset) == ["slow_one", "one"]

        tasks.start_soon(listed)
        while not slow.asked:
            await anyio.lowlevel.checkpoint()

        slow.comes.set()


async def test_a_caller_who_leaves_is_not_held_by_those_that_hang() -> None:
    toolset = combined(Slow(), 3600)
    with anyio.move_on_after(0.05) as scope:
        await names(toolset)

    assert scope.cancelled_caught
