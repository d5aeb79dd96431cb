"""What an upstream has beside its tools: listed, kept true, followed, whatever its era."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.core.context import local_context
from bridge.errors import ToolError, UpstreamError
from bridge.upstream.toolset import MCPToolset
from tests import nursery
from tests.processes import started, unused_port
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parent.parent.parent
SHARED = "shared://text"
ERAS = ("modern", "legacy")
TRANSPORTS = ("stdio", "http")
UPDATED = "notifications/resources/updated"


def command(*options: str) -> list[str]:
    return nursery.server("-m", "tests.servers.library", *options)


@asynccontextmanager
async def target(transport: str, *options: str) -> AsyncIterator[str | list[str]]:
    if transport == "stdio":
        yield command(*options)
        return

    port = unused_port()
    async with started(command("--http", str(port), *options), port=port):
        yield f"http://127.0.0.1:{port}/mcp"


@asynccontextmanager
async def kept(where: str | list[str], **options: Any) -> AsyncIterator[MCPToolset]:
    """An upstream that is kept, once it has come."""
    come = anyio.Event()
    toolset = MCPToolset(where, name="lib", connect_timeout=30, **options)
    async with toolset, anyio.create_task_group() as tasks:
        tasks.start_soon(toolset.keep, come.set)
        with anyio.fail_after(30):
            await come.wait()

        yield toolset
        tasks.cancel_scope.cancel()


async def call(toolset: MCPToolset, tool: str) -> Any:
    answer = await toolset.connection.request("tools/call", {"name": tool, "arguments": {}})
    return answer["structuredContent"]


@pytest.mark.parametrize("era", ERAS)
async def test_everything_that_is_declared_is_listed_page_by_page(era: str) -> None:
    async with kept(command("--era", era, "--pages", "3")) as toolset:
        listed = toolset.library.snapshot

    assert [one["name"] for one in listed.prompts] == ["prompt_0", "prompt_1", "prompt_2"]
    assert listed.prompts[0]["arguments"] == [{"name": "word"}]
    assert [one["uri"] for one in listed.resources] == [SHARED, "library://0"]
    assert [one["uriTemplate"] for one in listed.templates] == ["shared://made/{word}"]
    assert {"prompts", "resources", "completions", "tools"} <= listed.capabilities.keys()
    assert toolset.library.problems == ()


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_change_that_the_server_announces_is_listed_anew(era: str, transport: str) -> None:
    async with target(transport, "--era", era) as where, kept(where) as toolset:
        library = toolset.library
        await eventually(lambda: _is_heard(toolset))
        before, changes = library.version, list[int]()
        library.on_change.append(lambda: changes.append(library.version))

        await call(toolset, "grow")

        await eventually(lambda: len(library.snapshot.prompts) == 3)
        await eventually(lambda: len(library.snapshot.resources) == 3)
        assert changes == list(range(before + 1, library.version + 1))


async def _is_heard(toolset: MCPToolset) -> bool:
    """Follow something: once that is known, the server tells of its lists, too."""
    await toolset.connection.subscribe("x://nothing")
    return True


async def test_list_that_fails_hides_nothing_else_and_is_a_problem() -> None:
    async with kept(command("--broken", "resources/list")) as toolset:
        listed, problems = toolset.library.snapshot, toolset.status().problems

    assert (len(listed.prompts), len(listed.resources), len(listed.templates)) == (2, 0, 1)
    assert problems == ("its resources could not be listed: resources/list is broken",)


async def test_server_without_templates_is_in_order() -> None:
    async with kept(command("--lacks", "resources/templates/list")) as toolset:
        listed, problems = toolset.library.snapshot, toolset.status().problems

    assert (len(listed.resources), listed.templates, problems) == (2, (), ())


async def test_server_without_tools_is_ready_all_the_same() -> None:
    async with kept(command("--no-tools")) as toolset:
        tools, status = await toolset.tools(local_context()), toolset.status()
        listed = toolset.library.snapshot

    assert (list(tools), status.state, len(listed.prompts)) == ([], "ready", 2)


async def test_last_good_listing_outlives_the_server_and_is_renewed_when_it_is_back() -> None:
    port = unused_port()
    where = f"http://127.0.0.1:{port}/mcp"
    argv = [sys.executable, "-m", "tests.servers.library", "--http", str(port), "--era", "modern"]
    async with started(argv, port=port, cwd=ROOT) as first, kept(where) as toolset:
        before = toolset.library.snapshot
        first.kill()
        with pytest.raises(ToolError):
            await call(toolset, "grow")

        assert toolset.library.snapshot is before
        async with started([*argv, "--pages", "5"], port=port, cwd=ROOT):
            await eventually(lambda: len(toolset.library.snapshot.prompts) == 5, within=60)


async def test_embedded_toolset_asks_for_tools_alone() -> None:
    async with MCPToolset(command("--broken", "prompts/list"), connect_timeout=30) as toolset:
        assert len(await toolset.tools(local_context())) == 6
        await toolset.connection.request("tools/call", {"name": "grow", "arguments": {}})
        assert (toolset.library.version, toolset.library.problems) == (0, ())


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_resource_is_followed_once_for_all_and_told_of(era: str, transport: str) -> None:
    async with target(transport, "--era", era) as where, kept(where) as toolset:
        connection, heard = toolset.connection, list[Any]()
        connection.on_news.append(lambda method, params: heard.append((method, params.get("uri"))))

        await connection.subscribe(SHARED)
        await connection.subscribe(SHARED)
        assert await call(toolset, "followed") == {SHARED: 1}

        await call(toolset, "touch")
        await eventually(lambda: (UPDATED, SHARED) in heard)
        await connection.unsubscribe(SHARED)
        assert await call(toolset, "followed") == {SHARED: 1}, "one of two still follows it"

        await connection.unsubscribe(SHARED)
        await eventually(lambda: _none(toolset))
        await connection.unsubscribe(SHARED)
        assert await call(toolset, "followed") == {}


async def _none(toolset: MCPToolset) -> bool:
    return await call(toolset, "followed") == {}


@pytest.mark.parametrize("era", ERAS)
async def test_what_is_followed_is_followed_again_after_a_reconnect(era: str) -> None:
    async with kept(command("--era", era)) as toolset:
        connection, heard = toolset.connection, list[Any]()
        await connection.subscribe(SHARED)
        before = await connection.link()
        connection.on_news.append(lambda method, params: heard.append((method, params.get("uri"))))

        with pytest.raises(ToolError):
            await call(toolset, "die")

        async def again() -> bool:
            with suppress(ToolError):
                return bool(await call(toolset, "followed") == {SHARED: 1})

            return False

        await eventually(again)
        assert await connection.link() is not before
        await call(toolset, "touch")
        await eventually(lambda: (UPDATED, SHARED) in heard)


async def test_refusal_to_be_followed_is_told_and_nothing_is_kept_of_it(odd_server: Any) -> None:
    async with kept(odd_server("noise", "--era", "legacy")) as toolset:
        for _ in range(2):
            with pytest.raises(UpstreamError):
                await toolset.connection.subscribe(SHARED)
