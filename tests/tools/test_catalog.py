"""The last good listing, swapped whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from bridge.core.context import ReadonlyContext, local_context
from bridge.core.declaration import Declaration
from bridge.core.tool import Tool
from bridge.tools.catalog import Catalog
from bridge.tools.function import function_tool
from bridge.tools.gate import Rule
from bridge.tools.toolsets import CombinedToolset, StaticToolset
from tests.fakes import CustomTool, ScriptedToolset

CTX = local_context()


def catalog_of(*listings: Sequence[Tool] | Exception) -> Catalog:
    return Catalog(ScriptedToolset("scripted", list(listings)))


def state(catalog: Catalog) -> tuple[list[str], int, tuple[str, ...]]:
    return list(catalog.tools), catalog.version, catalog.problems


def test_a_fresh_catalog_is_empty() -> None:
    assert state(catalog_of(())) == ([], 0, ())


async def test_a_refresh_takes_over_what_is_listed_in_order() -> None:
    b, a = CustomTool("b"), CustomTool("a")
    catalog = catalog_of([b, a])

    assert await catalog.refresh(CTX) is True
    assert state(catalog) == (["b", "a"], 1, ())
    assert catalog.tools["a"] is a
    with pytest.raises(TypeError):
        catalog.tools["c"] = a  # a snapshot is not edited


async def test_a_refresh_without_change_is_no_new_version_but_takes_the_new_objects() -> None:
    old, new = CustomTool("a"), CustomTool("a")
    catalog = catalog_of([old], [new])
    changes: list[int] = []
    catalog.on_change.append(lambda: changes.append(catalog.version))

    await catalog.refresh(CTX)
    assert await catalog.refresh(CTX) is False

    assert (catalog.version, changes) == (1, [1])
    assert catalog.tools["a"] is new


@function_tool
def f(a: int) -> None:
    """Do it."""


@function_tool(name="f")
def g(a: float) -> None:
    """Do it."""


class Defined(CustomTool):
    definition: Any = None


def defined(title: str) -> Defined:
    tool = Defined("f")
    tool.definition = {"name": "f", "title": title}
    return tool


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([f], [f, CustomTool("x")]),
        ([f, CustomTool("x")], [f]),
        ([f], [g]),
        ([CustomTool("f", "Old.")], [CustomTool("f", "New.")]),
        ([defined("Old")], [defined("New")]),
        ([f], [f.with_rule(Rule("f", require=True))]),
    ],
)
async def test_whatever_is_told_of_a_tool_is_part_of_the_offer(before: Any, after: Any) -> None:
    catalog = catalog_of(before, after, after)
    await catalog.refresh(CTX)

    assert await catalog.refresh(CTX) is True
    assert await catalog.refresh(CTX) is False
    assert catalog.version == 2


async def test_a_failing_listing_keeps_the_last_good_one() -> None:
    a = CustomTool("a")
    catalog = catalog_of([a], RuntimeError("no route"), ValueError(), [a])
    await catalog.refresh(CTX)
    before = catalog.tools

    assert await catalog.refresh(CTX) is False
    assert catalog.tools is before
    assert catalog.problems == ("no route",)
    await catalog.refresh(CTX)
    assert catalog.problems == ("ValueError",)
    await catalog.refresh(CTX)
    assert state(catalog) == (["a"], 1, ())


class From(CustomTool):
    """A tool of an upstream."""

    upstream = ""
    own_name = ""


def from_upstream(name: str, upstream: str, own_name: str) -> From:
    tool = From(name)
    tool.upstream, tool.own_name = upstream, own_name
    return tool


async def test_two_tools_of_one_name_are_both_named_and_neither_is_offered() -> None:
    one, other = from_upstream("find", "docs", "search"), from_upstream("find", "web", "find")
    catalog = catalog_of([one, CustomTool("a"), other], [other, CustomTool("a"), one], [one])

    assert await catalog.refresh(CTX) is True
    [problem] = catalog.problems
    assert 'two tools are named "find"' in problem
    assert '"search" of upstream "docs" and "find" of upstream "web"' in problem
    assert list(catalog.tools) == ["a"]

    assert await catalog.refresh(CTX) is False, "which came first makes no difference"
    assert list(catalog.tools) == ["a"]

    assert await catalog.refresh(CTX) is True
    assert (list(catalog.tools), catalog.problems) == (["find"], ())


async def test_the_same_tool_listed_twice_is_one_tool() -> None:
    a = CustomTool("a")
    catalog = catalog_of([a, a])

    assert await catalog.refresh(CTX) is True
    assert state(catalog) == (["a"], 1, ())


async def test_a_tool_that_cannot_declare_itself_hides_itself_alone() -> None:
    class Broken(CustomTool):
        def declaration(self) -> Declaration:
            raise RuntimeError("no schema")

    catalog = catalog_of([Broken("bad"), CustomTool("good")])

    assert await catalog.refresh(CTX) is True
    assert list(catalog.tools) == ["good"]
    assert catalog.problems == (
        'the tool "bad" is left out, for it cannot declare itself: no schema',
    )


async def test_members_that_are_reported_show_as_problems() -> None:
    members = [ScriptedToolset("bad", [RuntimeError("away")]), StaticToolset([CustomTool("a")])]
    catalog = Catalog(CombinedToolset(members, on_failure="report"))

    assert await catalog.refresh(CTX) is True
    assert state(catalog) == (["a"], 1, ('"bad": away',))


class Gated(ScriptedToolset):
    """A toolset whose listings take until they are let go, one by one."""

    def __init__(self, *lines: Sequence[Tool]) -> None:
        super().__init__("gated", list(lines))
        self.begun = 0
        self.let_go = anyio.Semaphore(0)
        self.entered = anyio.Event()

    async def tools(self, ctx: ReadonlyContext) -> Sequence[Tool]:
        self.begun += 1
        self.entered.set()
        await self.let_go.acquire()
        return await super().tools(ctx)


async def test_refreshes_asked_for_during_one_become_one_after_it() -> None:
    toolset = Gated([CustomTool("a")], [CustomTool("b")], [CustomTool("c")])
    catalog, answers = Catalog(toolset), []

    async def refresh() -> None:
        answers.append(await catalog.refresh(CTX))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(refresh)
        await toolset.entered.wait()
        for _ in range(5):
            tasks.start_soon(refresh)
        await anyio.wait_all_tasks_blocked()
        toolset.let_go.release()
        toolset.let_go.release()

    assert toolset.begun == 2
    assert answers == [True] * 6
    assert state(catalog) == (["b"], 2, ())


async def test_a_refresh_that_is_cancelled_leaves_the_next_one_to_do_its_work() -> None:
    toolset = Gated([CustomTool("a")])
    catalog, answers = Catalog(toolset), []

    first = anyio.CancelScope()

    async def cancelled() -> None:
        with first:
            await catalog.refresh(CTX)

    async def refresh() -> None:
        answers.append(await catalog.refresh(CTX))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancelled)
        await toolset.entered.wait()
        tasks.start_soon(refresh)
        await anyio.wait_all_tasks_blocked()
        first.cancel()
        await anyio.wait_all_tasks_blocked()
        toolset.let_go.release()

    assert answers == [True]
    assert list(catalog.tools) == ["a"]
