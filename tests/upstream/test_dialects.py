"""A tool of an MCP server, as a model of each dialect reads it and calls it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bridge.calls.call import Outcome, execute
from bridge.core.content import FunctionCall
from bridge.core.context import local_context
from bridge.core.dialects.dialect import DIALECTS, Dialect
from bridge.core.tool import Tool
from bridge.errors import InvalidSchema, UpstreamError
from bridge.upstream.toolset import MCPToolset

SERVER = [
    sys.executable,
    str(Path(__file__).resolve().parent.parent / "servers" / "exacting.py"),
]
CTX = local_context()
SENT: dict[str, Any] = {
    "seat": "1A",
    "meal": None,
    "note": None,
    "bags": [{"kilos": 7, "name": None}],
}


async def listed(toolset: MCPToolset) -> dict[str, Any]:
    return {tool.name: tool for tool in await toolset.tools(CTX)}


async def booked(tools: dict[str, Tool], args: dict[str, Any]) -> Outcome:
    [outcome] = await execute([FunctionCall("c1", "book", args)], tools, CTX)
    return outcome


async def test_what_strict_makes_null_is_missing_again_where_the_server_reads_it() -> None:
    async with MCPToolset(SERVER, connect_timeout=60) as toolset:
        tools = await listed(toolset)
        told = tools["book"].declaration("openai-strict")
        as_sent = await booked(tools, SENT)
        outcome = await booked(tools, told.arguments(SENT))

    assert told.parameters_json_schema["required"] == ["seat", "meal", "note", "bags"]
    assert isinstance(as_sent.error, UpstreamError), "the server takes no null for a meal"
    assert outcome.error is None
    assert outcome.response is not None
    assert json.loads(outcome.response["output"]) == {
        "seat": "1A",
        "note": None,
        "bags": [{"kilos": 7}],
    }


@pytest.mark.parametrize("dialect", [None, *(one for one in DIALECTS if one != "openai-strict")])
async def test_what_a_model_of_any_other_dialect_sends_is_the_call(dialect: Dialect | None) -> None:
    async with MCPToolset(SERVER, connect_timeout=60) as toolset:
        tools = await listed(toolset)

    assert tools["book"].declaration(dialect).arguments(SENT) == SENT


async def test_one_schema_that_cannot_be_said_costs_its_tool_alone() -> None:
    said: dict[str, list[str]] = {}
    async with MCPToolset(SERVER, connect_timeout=60) as toolset:
        for name, tool in (await listed(toolset)).items():
            for dialect in DIALECTS:
                try:
                    tool.declaration(dialect)
                except InvalidSchema as exc:
                    assert f'tool "{name}" cannot be used as {dialect}: ' in str(exc)
                else:
                    said.setdefault(name, []).append(dialect)

    assert said == {"book": [*DIALECTS], "label": ["openai", "gemini", "anthropic"]}
