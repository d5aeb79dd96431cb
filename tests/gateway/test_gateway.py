"""A whole configuration at work: many upstreams, some of them bad, one of them killed."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from mcp import Client

from bridge.calls.call import Outcome, execute
from bridge.config.load import load
from bridge.core.content import FunctionCall
from bridge.core.context import local_context
from bridge.errors import ConfigError
from bridge.gateway.assembly import assemble
from bridge.gateway.embedded import open_toolset
from bridge.gateway.live import Gateway, running
from tests.conftest import Everything
from tests.processes import is_alive, started, unused_port
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parent.parent.parent
PLAIN = str(ROOT / "tests" / "servers" / "plain.py")

Odd = Callable[..., list[str]]


def write(place: Path, upstreams: dict[str, Any], **more: Any) -> Path:
    path = place / "bridge.yaml"
    path.write_text(json.dumps({"upstreams": upstreams, **more}), "utf-8")
    return path


async def call(gateway: Gateway, tool: str, **args: Any) -> Outcome:
    asked = FunctionCall("c1", tool, args)
    [outcome] = await execute([asked], gateway.catalog.tools, local_context())
    return outcome


@pytest.mark.timeout(300)
async def test_mixed_fleet_is_listed_called_and_survives_the_loss_of_one(
    tmp_path: Path,
    everything: Everything,
    time_server: list[str],
    git_server: Callable[[], list[str]],
) -> None:
    patient = {"connect_timeout": "60s"}
    git = git_server()
    config = write(
        tmp_path,
        {
            "all": {"command": everything.stdio, **patient},
            "time": {"command": time_server, **patient},
            "git": {"command": git, **patient},
            "gone": {"command": ["no-such-program"]},
        },
    )

    async with running(assemble(load([config]))) as gateway:
        await gateway.settled()
        states = {one.name: (one.state, one.era) for one in gateway.statuses()}
        assert states == {
            "all": ("ready", "legacy"),
            "time": ("ready", "modern"),
            "git": ("ready", "modern"),
            "gone": ("failed", ""),
        }
        assert any("no-such-program" in problem for problem in gateway.catalog.problems)

        async def one_of_each() -> None:
            echoed = await call(gateway, "all__echo", message="hi")
            now = await call(gateway, "time__get_current_time", timezone="UTC")
            repo = git[git.index("--repository") + 1]
            status = await call(gateway, "git__git_status", repo_path=repo)
            assert [echoed.error, now.error, status.error] == [None, None, None]

        await one_of_each()
        victims = [p for p in psutil.Process().children(True) if "mcp-server-git" in p.name()]
        for victim in victims or _running("mcp-server-git"):
            victim.send_signal(signal.SIGKILL)

        now = await call(gateway, "time__get_current_time", timezone="UTC")
        assert now.error is None
        assert "all__echo" in gateway.catalog.tools

        async def back() -> bool:
            repo = git[git.index("--repository") + 1]
            return (await call(gateway, "git__git_status", repo_path=repo)).error is None

        await eventually(back, within=60)


def _running(word: str) -> list[psutil.Process]:
    children = psutil.Process().children(recursive=True)
    return [child for child in children if any(word in part for part in child.cmdline())]


async def test_upstream_that_hangs_delays_no_other(tmp_path: Path, odd_server: Odd) -> None:
    config = write(
        tmp_path,
        {
            "mute": {"command": odd_server("mute"), "connect_timeout": "1h"},
            "odd": {"command": odd_server("noise")},
        },
    )

    async with running(assemble(load([config]))) as gateway:
        assert await gateway.offered("odd__echo")
        assert (await call(gateway, "odd__echo", text="x")).error is None
        assert {one.name: one.state for one in gateway.statuses()}["mute"] == "connecting"
        await gateway.gathered(0.1)


async def test_tools_of_an_upstream_come_when_it_comes_back(
    tmp_path: Path, odd_server: Odd
) -> None:
    program = tmp_path / "late-server"
    config = write(
        tmp_path,
        {"late": {"command": [str(program)]}, "odd": {"command": odd_server("noise")}},
    )

    async with running(assemble(load([config]))) as gateway:
        await gateway.settled()
        assert "late__echo" not in gateway.catalog.tools
        words = " ".join(odd_server("noise"))
        program.write_text(f"#!/bin/sh\nexec {words}\n")
        program.chmod(0o755)
        await eventually(lambda: "late__echo" in gateway.catalog.tools)
        assert (await call(gateway, "late__echo", text="x")).error is None


async def test_two_upstreams_that_offer_one_name_are_both_named_and_nothing_is_guessed(
    tmp_path: Path, odd_server: Odd
) -> None:
    command = odd_server("noise")
    config = write(
        tmp_path,
        {"a": {"command": command, "prefix": ""}, "b": {"command": command, "prefix": ""}},
    )

    async with running(assemble(load([config]))) as gateway:
        await gateway.settled()
        assert dict(gateway.catalog.tools) == {}
        problem = gateway.catalog.problems[0]

    assert '"echo" of upstream "a"' in problem
    assert '"echo" of upstream "b"' in problem


async def test_rules_of_the_file_speak_of_the_upstreams_own_names(
    tmp_path: Path, odd_server: Odd
) -> None:
    config = write(
        tmp_path,
        {
            "odd": {
                "command": odd_server("noise"),
                "prefix": "x_",
                "tools": {
                    "allow": ["e*", "odd"],
                    "deny": ["odd"],
                    "rename": {"echo": "say"},
                    "describe": {"echo": "Say it again."},
                    "confirm": ["echo"],
                },
            }
        },
        tools=[
            "tests.gateway.functions:add",
            {"function": "tests.gateway.functions:drop", "name": "drop_table", "confirm": True},
        ],
    )

    async with open_toolset(config) as toolset:
        tools = {tool.name: tool for tool in await toolset.tools(local_context())}
        assert set(tools) == {"x_say", "add", "drop_table"}
        assert tools["x_say"].description == "Say it again."
        asked = [
            FunctionCall("1", "x_say", {"text": "x"}),
            FunctionCall("2", "add", {"a": 1, "b": 2}),
        ]
        said, added = await execute(asked, tools, local_context())

    assert added.response == {"result": 3}
    assert said.actions.requested_tool_confirmations["1"].payload["tool"] == "echo"


async def test_provider_that_the_file_names_decides_call_by_call(
    tmp_path: Path, odd_server: Odd
) -> None:
    rules = {"confirm": "tests.gateway.functions:asks_for_secrets"}
    config = write(tmp_path, {"odd": {"command": odd_server("noise"), "tools": rules}})

    async with running(assemble(load([config]))) as gateway:
        assert await gateway.offered("odd__echo")
        assert (await call(gateway, "odd__echo", text="plain")).error is None
        waiting = await call(gateway, "odd__echo", text="secret")

    assert waiting.actions.requested_tool_confirmations["c1"].confirmed is False


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("no.such.module:f", 'cannot import "no.such.module"'),
        ("tests.gateway.functions:nothing", 'has no function "nothing"'),
        ("tests.gateway.functions:__doc__", "no tool can be made of"),
    ],
)
def test_function_that_is_not_there_is_a_configuration_error(
    tmp_path: Path, function: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        open_toolset(write(tmp_path, {}, tools=[function]))


@pytest.mark.parametrize("name", ["demo.yaml", "minimal.yaml", "gateway.yaml"])
async def test_configuration_that_is_shipped_runs(name: str) -> None:
    async with running(assemble(load([ROOT / "configs" / name]))) as gateway:
        await gateway.settled()
        assert [one.state for one in gateway.statuses()] == ["ready"] * len(gateway.statuses())
        assert gateway.catalog.problems == ()
        assert gateway.catalog.tools


@pytest.mark.skipif(sys.platform != "linux", reason="the guard is for Linux")
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
async def test_nothing_survives_the_end_of_bridge_serve(
    tmp_path: Path, odd_server: Odd, ending: signal.Signals
) -> None:
    journal, port = tmp_path / "journal", unused_port()
    stubborn = odd_server("stubborn", "--journal", str(journal))
    config = write(tmp_path, {"stubborn": {"command": stubborn}})
    argv = [sys.executable, "-m", "bridge", "serve", str(config), "--port", str(port)]

    async with started(argv, port=port) as serving:
        await eventually(lambda: journal.exists() and "tools/list" in journal.read_text())
        grandchild = json.loads(journal.read_text().splitlines()[0])["grandchild"]
        family = [grandchild, *(p.pid for p in psutil.Process(serving.pid).children(True))]
        assert len(family) >= 3
        os.kill(serving.pid, ending)
        code = await anyio.to_thread.run_sync(serving.process.wait)
        await eventually(lambda: not any(is_alive(pid) for pid in family), within=5)
        assert "Traceback" not in serving.output()
        assert code == {signal.SIGTERM: 0, signal.SIGINT: 130, signal.SIGKILL: -9}[ending]


@pytest.mark.skipif(sys.platform != "linux", reason="the guard is for Linux")
async def test_second_signal_ends_bridge_serve_at_once(tmp_path: Path, odd_server: Odd) -> None:
    journal, port = tmp_path / "journal", unused_port()
    stubborn = odd_server("stubborn", "--journal", str(journal))
    config = write(tmp_path, {"stubborn": {"command": stubborn}})
    argv = [sys.executable, "-m", "bridge", "serve", str(config), "--port", str(port)]

    async with started(argv, port=port) as serving:
        await eventually(lambda: journal.exists() and "tools/list" in journal.read_text())
        os.kill(serving.pid, signal.SIGTERM)
        await eventually(lambda: "ending" in serving.output())
        os.kill(serving.pid, signal.SIGTERM)
        assert await anyio.to_thread.run_sync(serving.process.wait) == 128 + signal.SIGTERM
        grandchild = json.loads(journal.read_text().splitlines()[0])["grandchild"]
        await eventually(lambda: not is_alive(grandchild))


async def test_client_that_comes_at_once_sees_the_tools_of_a_slow_start(
    tmp_path: Path, odd_server: Odd
) -> None:
    port = unused_port()
    slow = {"command": odd_server("slow-start", "--delay", "2"), "connect_timeout": "60s"}
    config = write(tmp_path, {"slow": slow})
    argv = [sys.executable, "-m", "bridge", "serve", str(config), "--port", str(port)]

    async with started(argv, port=port), Client(f"http://127.0.0.1:{port}/mcp") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [
            "slow__echo",
            "slow__odd",
        ]
