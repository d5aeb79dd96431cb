"""A whole configuration inside somebody else's program: who waits for whom, and what is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from bridge.core.context import local_context
from bridge.gateway.embedded import ConfiguredToolset, open_toolset
from tests.waiting import eventually

Odd = Callable[..., list[str]]


def write(place: Path, upstreams: dict[str, Any], **more: Any) -> Path:
    path = place / "bridge.yaml"
    path.write_text(json.dumps({"upstreams": upstreams, **more}), "utf-8")
    return path


async def names(toolset: ConfiguredToolset) -> list[str]:
    return [tool.name for tool in await toolset.tools(local_context())]


async def test_upstream_that_hangs_holds_up_the_tools_of_the_others_once(
    tmp_path: Path, odd_server: Odd
) -> None:
    mute = {"command": odd_server("mute"), "connect_timeout": "1h"}
    odd = {"command": odd_server("noise")}
    config = write(tmp_path, {"mute": mute, "odd": odd}, serve={"startup_wait": "100ms"})

    async with open_toolset(config) as toolset:
        with anyio.fail_after(60):
            assert await names(toolset) == ["odd__echo", "odd__odd"]

        toolset.assembly.toolset._asking._patience = 3600  # waiting again would be noticed
        with anyio.fail_after(60):
            for _ in range(3):
                assert await names(toolset) == ["odd__echo", "odd__odd"]

        assert [one.state for one in toolset.statuses()] == ["connecting", "ready"]


async def test_upstream_that_hung_at_first_connects_by_itself_and_is_in_a_later_listing(
    tmp_path: Path, odd_server: Odd
) -> None:
    journal = tmp_path / "journal"
    late = odd_server("slow-start", "--delay", "2", "--journal", str(journal))
    upstreams = {"late": {"command": late, "connect_timeout": "60s"}}
    config = write(
        tmp_path,
        upstreams,
        tools=["tests.gateway.functions:add"],
        serve={"startup_wait": "10ms"},
    )

    async with open_toolset(config) as toolset:
        assert await names(toolset) == ["add"]
        # Nobody asks again, and yet it is connected and listed.
        await eventually(lambda: journal.exists() and "tools/list" in journal.read_text())
        await eventually(lambda: toolset.statuses()[0].state == "ready")

        async def there() -> bool:
            return await names(toolset) == ["late__echo", "late__odd", "add"]

        await eventually(there)
        assert journal.read_text().count("tools/list") == 1


async def test_upstream_that_fails_unwatched_says_why_and_when_it_is_tried_again(
    tmp_path: Path, odd_server: Odd
) -> None:
    mute = {"command": odd_server("mute"), "connect_timeout": "1s"}
    config = write(
        tmp_path,
        {"mute": mute},
        tools=["tests.gateway.functions:add"],
        serve={"startup_wait": "10ms"},
    )

    async with open_toolset(config) as toolset:
        assert await names(toolset) == ["add"]
        await eventually(lambda: toolset.statuses()[0].state == "failed")
        [status] = toolset.statuses()

    assert status.reason == "no connection within 1 s"
    assert status.next_attempt is not None


async def test_rules_that_match_no_tool_of_the_upstream_are_told_once_it_is_listed(
    tmp_path: Path, odd_server: Odd
) -> None:
    rules = {
        "allow": ["e*", "search"],
        "deny": ["odd", "hidden"],
        "rename": {"echo": "say", "find": "search"},
        "describe": {"gone": "Nothing."},
        "confirm": ["odd", "drop_*"],
    }
    odd = {"command": odd_server("noise"), "tools": rules}
    config = write(tmp_path, {"odd": odd})

    async with open_toolset(config) as toolset:
        assert toolset.problems == ()
        assert await names(toolset) == ["odd__say"]

        assert toolset.problems == (
            '"odd": tools.allow: no tool here is named "search", so it has no effect',
            '"odd": tools.deny: no tool here is named "hidden", so it has no effect',
            '"odd": tools.rename: no tool here is named "find", so it has no effect',
            '"odd": tools.describe: no tool here is named "gone", so it has no effect',
            '"odd": tools.confirm: no tool here is named "drop_*", so it has no effect',
        )
