"""Every file in configs/ runs as it is, and offers what its comments promise."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bridge import FunctionCall, Outcome, execute, local_context, open_toolset
from bridge.errors import ConfirmationRequired
from tests.conftest import Everything

CONFIGS = Path(__file__).resolve().parent.parent / "configs"
TOOLS = ["buy_report", "forecast", "get_weather", "radar", "storm_alert"]
OFFERED = {
    "agent.yaml": [f"weather__{name}" for name in TOOLS],
    "demo.yaml": [f"weather__{name}" for name in TOOLS],
    "minimal.yaml": [f"weather__{name}" for name in TOOLS],
    "gateway.yaml": ["buy_report", "forecast", "now", "radar"],
}


@asynccontextmanager
async def tools_of(*paths: Path) -> AsyncIterator[dict[str, Any]]:
    async with open_toolset(*paths) as toolset:
        yield {tool.name: tool for tool in await toolset.tools(local_context())}


async def call(tools: dict[str, Any], name: str, **args: Any) -> Outcome:
    (outcome,) = await execute([FunctionCall("c1", name, args)], tools, local_context())
    return outcome


def test_every_file_in_configs_has_its_test() -> None:
    assert {path.name for path in CONFIGS.iterdir()} == OFFERED.keys()


@pytest.mark.parametrize("file", OFFERED)
async def test_a_configuration_offers_what_it_promises(file: str) -> None:
    async with tools_of(CONFIGS / file) as tools:
        assert sorted(tools) == OFFERED[file]


@pytest.mark.parametrize(
    ("file", "tool", "asks"),
    [
        ("agent.yaml", "weather__buy_report", True),
        ("demo.yaml", "weather__buy_report", True),
        ("minimal.yaml", "weather__buy_report", False),
        ("gateway.yaml", "buy_report", True),
    ],
)
async def test_a_purchase_waits_for_a_person_where_the_file_says_so(
    file: str, tool: str, asks: bool
) -> None:
    async with tools_of(CONFIGS / file) as tools:
        outcome = await call(tools, tool, city="Lima")

    assert isinstance(outcome.error, ConfirmationRequired) is asks
    assert ("R-0001" in json.dumps(outcome.response)) is not asks


async def test_the_demo_speaks_in_the_units_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("UNITS", "imperial")
    async with tools_of(CONFIGS / "demo.yaml") as tools:
        outcome = await call(tools, "weather__get_weather", city="Tokyo")

    assert outcome.error is None
    assert outcome.response == {
        "output": {
            "city": "Tokyo",
            "units": "imperial",
            "temperature": 69.8,
            "wind": 5.6,
            "humidity": 66,
            "condition": "clear",
        }
    }


async def test_the_gateway_renames_and_describes() -> None:
    async with tools_of(CONFIGS / "gateway.yaml") as tools:
        outcome = await call(tools, "now", city="Tokyo")
        described = tools["now"].description

    assert described == "The weather in a city, as it is now."
    assert '"condition": "clear"' in json.dumps(outcome.response)


async def test_the_gateway_runs_with_its_other_servers_switched_on(
    time_server: list[str], everything: Everything, tmp_path: Path
) -> None:
    # The commands are those of the tests' own copies; all else is what the file says.
    on = {
        "time": {"enabled": True, "command": time_server},
        "everything": {"enabled": True, "command": everything.stdio},
    }
    more = {"upstreams": on, "serve": {"startup_wait": "60s"}}  # all of them are wanted here
    (tmp_path / "on.yaml").write_text(json.dumps(more), "utf-8")
    async with tools_of(CONFIGS / "gateway.yaml", tmp_path / "on.yaml") as tools:
        time = await call(tools, "time__get_current_time", timezone="UTC")
        echo = await call(tools, "everything__echo", message="hello")

    assert time.error is None
    assert "hello" in json.dumps(echo.response)
    assert set(OFFERED["gateway.yaml"]) < tools.keys()
    assert "everything__get-env" not in tools
