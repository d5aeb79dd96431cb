"""What requests carry for the clients behind them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.upstream.channel import Limits, Options
from bridge.upstream.command import Command
from bridge.upstream.connection import Connection
from bridge.upstream.envelope import legacy_params, modern_params, takes_tasks
from bridge.upstream.protocol import ENVELOPE
from tests import nursery
from tests.upstream.clients import FORM, Client, Json

ASKING = str(Path(__file__).parent.parent / "servers" / "asking.py")
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
TRACE = {"traceparent": "00-1-2-03", "tracestate": "a=b", "baggage": "c=d"}


def test_envelope_is_one_constant_where_no_client_waits() -> None:
    assert modern_params("tools/call", {"name": "x"}, None)["_meta"] is ENVELOPE
    assert modern_params("tools/call", {"_meta": {"a": 1}}, None)["_meta"] == {"a": 1, **ENVELOPE}


def test_modern_request_carries_what_its_modern_client_declared_as_it_is() -> None:
    declared = {"elicitation": {"url": {}}, "roots": {"listChanged": True}, "new": {"x": [None]}}
    made = modern_params("tools/call", {}, Client(modern=True, capabilities=declared))

    assert made == {"_meta": {**ENVELOPE, CAPABILITIES: declared}}


TASKS_TOO: Json = {"io.modelcontextprotocol/tasks": {}, "io.modelcontextprotocol/ui": {"x": 1}}


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ({}, {}),
        (
            {"elicitation": {}, "sampling": {"tools": {}}},
            {"elicitation": {}, "sampling": {"tools": {}}},
        ),
        ({"roots": {"listChanged": True}}, {"roots": {}}),
        ({"tasks": {"list": {}}, "made-up": {}}, {}),
        ({"experimental": {"x": {}}}, {"experimental": {"x": {}}}),
        ({"extensions": TASKS_TOO}, {"extensions": {"io.modelcontextprotocol/ui": {"x": 1}}}),
        ({"extensions": {"io.modelcontextprotocol/tasks": {}}}, {}),
    ],
)
def test_modern_request_carries_what_is_modern_of_its_legacy_clients(
    declared: Json, told: Json
) -> None:
    made = modern_params("tools/call", {}, Client(capabilities=declared))

    assert made == {"_meta": {**ENVELOPE, CAPABILITIES: told}}


def test_modern_request_carries_the_log_level_and_the_rest_of_the_clients_meta() -> None:
    theirs = {**TRACE, "example.com/k": [1]}
    quiet = modern_params("x", {"_meta": {"mine": 1}}, Client(capabilities={}, meta=theirs))
    loud = modern_params("x", {}, Client(capabilities={}, meta=theirs, log_level="notice"))

    assert quiet == {"_meta": {**theirs, "mine": 1, **ENVELOPE}}
    level = {"io.modelcontextprotocol/logLevel": "notice"}
    assert loud == {"_meta": {**theirs, **ENVELOPE, **level}}


@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "resources/read", "tools/list"])
def test_what_a_client_brought_is_in_the_params_of_what_can_be_resumed(method: str) -> None:
    brought = {"inputResponses": {"q": {"action": "accept"}}, "requestState": "théir state"}
    made = modern_params(method, {"name": "x"}, Client(modern=True, brought=brought))

    told = {CAPABILITIES: FORM}
    expected = {"name": "x", "_meta": {**ENVELOPE, **told}}
    assert made == ({**brought, **expected} if method != "tools/list" else expected)


def test_legacy_request_carries_the_clients_meta_and_nothing_else() -> None:
    assert legacy_params({"a": 1}, Client(meta=TRACE)) == {"a": 1, "_meta": TRACE}
    assert legacy_params({"a": 1}, Client()) == {"a": 1}
    assert legacy_params({"_meta": {"b": 2}}, Client(meta=TRACE))["_meta"] == {**TRACE, "b": 2}


def test_tasks_are_followed_by_modern_clients_that_declare_them() -> None:
    tasks = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    assert takes_tasks(Client(modern=True, capabilities=tasks))
    assert not takes_tasks(Client(modern=False, capabilities=tasks))
    assert not takes_tasks(Client(modern=True, capabilities={"extensions": {}}))


async def test_legacy_server_is_told_the_most_talkative_level_that_a_client_wants() -> None:
    command = Command(tuple(nursery.server(ASKING, "legacy")))
    connection = Connection("up", command, limits=Limits(close_grace=0.5))
    params = {"name": "do", "arguments": {}}
    try:
        for level in (None, "error", "critical", "made-up", "info", "warning", "info"):
            options = Options(60, caller=Client(log_level=level))
            answer = await connection.request("tools/call", params, options)
    finally:
        await connection.aclose()

    told = answer["structuredContent"]["told"]
    levels = [one["params"] for one in told if one["method"] == "logging/setLevel"]
    assert levels == [{"level": "error"}, {"level": "info"}]
