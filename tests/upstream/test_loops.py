"""One toolset in several event loops at once: each has its own connection, and keeps it."""

from __future__ import annotations

import gc
import json
import threading
import weakref
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import psutil
import pytest
from anyio.from_thread import start_blocking_portal
from anyio.lowlevel import current_token

from bridge.core.context import local_context
from bridge.errors import ToolsetError
from bridge.upstream.channel import Limits
from bridge.upstream.owner import PerLoop
from bridge.upstream.toolset import MCPToolset
from tests.processes import is_alive
from tests.waiting import eventually

pytestmark = pytest.mark.embedding

Odd = Callable[..., list[str]]
HASTE = Limits(close_grace=0.2)
CTX = local_context()


def opened(argv: list[str]) -> MCPToolset:
    return MCPToolset(argv, limits=HASTE, connect_timeout=60)


async def names(toolset: MCPToolset) -> list[str]:
    return [tool.name for tool in await toolset.tools(CTX)]


async def odd(toolset: MCPToolset, way: str) -> None:
    link = await toolset.connection.link()
    await link.request("tools/call", {"name": "odd", "arguments": {"way": way}})


def journal_of(path: Path, key: str) -> list[Any]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line[key] for line in lines if key in line]


async def test_loops_that_take_turns_keep_a_connection_and_a_listing_each(
    odd_server: Odd, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    toolset = opened(odd_server("noise", "--journal", str(journal)))
    with start_blocking_portal() as portal:

        async def there(ask: Callable[[MCPToolset], Awaitable[Any]]) -> Any:
            return await anyio.to_thread.run_sync(lambda: portal.call(ask, toolset))

        links = [(await toolset.connection.link(), await there(link_of)) for _ in range(3)]
        listings = [(await toolset.tools(CTX), await there(tools_of)) for _ in range(3)]

        assert len({id(here) for here, _ in links}) == len({id(far) for _, far in links}) == 1
        assert len({id(listing) for pair in listings for listing in pair}) == 1
        assert journal_of(journal, "method").count("tools/list") == 2
        assert len(journal_of(journal, "started")) == 2

        await there(grow)
        await eventually(lambda: there(grown))
        assert await names(toolset) == ["echo", "odd"], "the other loop's server did not grow"

        await toolset.aclose()
        with pytest.raises(ToolsetError, match="is closed"):
            await there(tools_of)

        await there(MCPToolset.aclose)


async def link_of(toolset: MCPToolset) -> Any:
    return await toolset.connection.link()


async def tools_of(toolset: MCPToolset) -> Any:
    return await toolset.tools(CTX)


async def grow(toolset: MCPToolset) -> None:
    await odd(toolset, "grow")


async def grown(toolset: MCPToolset) -> bool:
    return await names(toolset) == ["echo", "odd", "echo_2"]


async def test_closing_in_one_loop_ends_the_processes_of_the_others(
    odd_server: Odd, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    toolset = opened(odd_server("noise", "--journal", str(journal)))
    with start_blocking_portal() as portal:
        await names(toolset)
        await anyio.to_thread.run_sync(lambda: portal.call(names, toolset))
        assert len(servers(journal)) >= 2, "one of each loop, and its guard"

        await toolset.aclose()
        await eventually(lambda: servers(journal) == [])
        await anyio.to_thread.run_sync(lambda: portal.call(toolset.aclose))


def servers(journal: Path) -> list[int]:
    """The ids of the live processes that write this journal."""
    children = psutil.Process().children(recursive=True)
    return [one.pid for one in children if is_alive(one.pid) and str(journal) in one.cmdline()[1:]]


def test_what_lived_in_a_closed_loop_is_dropped() -> None:
    values: PerLoop[list[Any]] = PerLoop(list)
    made = []

    async def make() -> None:
        value = values.here()
        assert values.here() is value
        value.append(asyncio_loop())  # as what waits in a loop does
        made.append(weakref.ref(value[0]))

    for _ in range(3):
        anyio.run(make)

    gc.collect()
    assert [ref() is None for ref in made] == [True, True, False]
    assert values.peek() is None, "the last one's loop is closed, too"


def asyncio_loop() -> object:
    return current_token().native_token


def test_keeper_hears_only_of_changes_in_its_own_loop(odd_server: Odd) -> None:
    told: list[int] = []

    async def main() -> None:
        async with opened(odd_server("noise")) as toolset, anyio.create_task_group() as tasks:
            tasks.start_soon(toolset.keep, lambda: told.append(threading.get_ident()))
            await eventually(lambda: toolset.status().state == "ready" and told)
            with start_blocking_portal() as portal:
                far = await anyio.to_thread.run_sync(lambda: portal.call(grow_and_list, toolset))
                assert far == ["echo", "odd", "echo_2"]
                assert await names(toolset) == ["echo", "odd"]
                tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(lambda: portal.call(toolset.aclose))

    anyio.run(main)
    assert set(told) == {threading.get_ident()}


async def grow_and_list(toolset: MCPToolset) -> list[str]:
    await names(toolset)
    await grow(toolset)
    await eventually(lambda: grown(toolset))
    return await names(toolset)
