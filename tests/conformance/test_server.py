"""The server that the conformance suite is run against is what it is taken for."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests import nursery
from tests.clients import Mode
from tests.conformance.suite import ROOT
from tests.processes import started, unused_port

MODULE = ("-m", "tests.servers.everything")
VERSIONS = {"modern": "2026-07-28", "legacy": "2025-11-25"}
ASKING = [
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_sampling",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_capabilities",
]


async def fill_in(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    fields = getattr(params, "requested_schema", {})["properties"]
    return types.ElicitResult(action="accept", content=dict.fromkeys(fields, "something"))


async def answer(context: Any, params: types.CreateMessageRequestParams) -> Any:
    words = types.TextContent(text="An answer.")
    return types.CreateMessageResult(role="assistant", content=words, model="none")


async def list_roots(context: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///root")])


@asynccontextmanager
async def connected(transport: str, *options: str, mode: Mode = "auto") -> AsyncIterator[Client]:
    """A client that can be asked anything, of a server of its own."""
    callbacks: dict[str, Any] = {
        "elicitation_callback": fill_in,
        "sampling_callback": answer,
        "list_roots_callback": list_roots,
    }
    if transport == "stdio":
        program, *argv = nursery.server(*MODULE, "stdio", *options)
        server = StdioServerParameters(command=program, args=argv, cwd=ROOT)
        with open(os.devnull, "w") as log:  # noqa: ASYNC230
            async with Client(stdio_client(server, log), mode=mode, **callbacks) as client:
                yield client

        return

    port = unused_port()
    argv = nursery.server(*MODULE, "--port", str(port), *options)
    async with (
        started(argv, port=port, cwd=ROOT),
        Client(f"http://127.0.0.1:{port}/mcp", mode=mode, **callbacks) as client,
    ):
        yield client


@pytest.mark.parametrize("era", VERSIONS)
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_pinned_to_an_era_it_speaks_that_one(transport: str, era: str) -> None:
    async with connected(transport, "--era", era) as client:
        assert client.protocol_version == VERSIONS[era]


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_pinned_to_the_modern_era_it_refuses_the_handshake(transport: str) -> None:
    def is_the_refusal(error: MCPError) -> bool:
        return error.code == types.UNSUPPORTED_PROTOCOL_VERSION

    refusal = pytest.RaisesExc(MCPError, check=is_the_refusal)
    with pytest.RaisesGroup(refusal, flatten_subgroups=True):
        async with connected(transport, "--era", "modern", mode="legacy"):
            pass


async def test_every_question_has_the_same_answer_in_both_eras() -> None:
    answers: dict[Mode, list[Any]] = {"auto": [], "legacy": []}
    for mode, found in answers.items():
        async with connected("stdio", mode=mode) as client:
            for name in ASKING:
                answered = await client.call_tool(name, {})
                found.append((name, answered.is_error, answered.content))

    assert answers["auto"] == answers["legacy"]
    assert not any(is_error for _, is_error, _ in answers["auto"])
