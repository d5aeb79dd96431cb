"""A server's tool, called for a client: what the client hears, and what a model hears instead."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from bridge.calls.call import Outcome, execute
from bridge.core.content import FunctionCall
from bridge.core.context import local_context
from bridge.errors import UpstreamError
from bridge.upstream.capabilities import runs_calls_as_tasks
from bridge.upstream.channel import Limits
from bridge.upstream.connection import Connection
from bridge.upstream.sessions import Sessions
from bridge.upstream.target import to_target
from bridge.upstream.tool import MCPTool, tools_from
from tests import nursery
from tests.conftest import Everything
from tests.upstream.clients import FORM, Client, Json

ASKING = str(Path(__file__).parent.parent / "servers" / "asking.py")
DEFINITION: Json = {"name": "do", "inputSchema": {"type": "object"}}
ELICITS = "trigger-elicitation-request"
ELICIT: Json = {"method": "elicitation/create", "params": {"message": "?"}}
INPUT_REQUIRED: Json = {
    "resultType": "input_required",
    "requestState": "opaque",
    "inputRequests": {"q": ELICIT},
    "unknown": {"kept": [None]},
    "_meta": {"example.com/k": 1},
}


@asynccontextmanager
async def tool(target: list[str] | str, name: str = "do") -> AsyncIterator[MCPTool]:
    """One tool of a server that was connected once, as a listing does."""
    connection = Connection("up", to_target(target), limits=Limits(close_grace=0.5))
    sessions = Sessions(connection)
    (made,) = tools_from(sessions, [{**DEFINITION, "name": name}], 60)
    try:
        await connection.link()
        yield made
    finally:
        await sessions.aclose()
        await connection.aclose()


def asking(era: str) -> list[str]:
    return nursery.server(ASKING, era)


async def run(made: MCPTool, args: Json, caller: Client | None) -> Outcome:
    """What becomes of a call of it."""
    calls = [FunctionCall("1", made.name, args)]
    (outcome,) = await execute(calls, {made.name: made}, local_context(), caller=caller)
    return outcome


async def test_modern_client_gets_what_the_server_needs_to_know_untouched() -> None:
    async with tool(asking("modern")) as made:
        outcome = await run(made, {"result": INPUT_REQUIRED}, Client(modern=True))

    assert outcome.raw == INPUT_REQUIRED
    assert isinstance(outcome.error, UpstreamError)
    assert (outcome.error.raw, outcome.error.is_protocol_error) == (INPUT_REQUIRED, False)
    assert str(outcome.error) == 'upstream "up": "do" goes on when its client has come back'


async def test_model_hears_that_it_cannot_be_asked() -> None:
    async with tool(asking("modern")) as made:
        outcome = await run(made, {"result": INPUT_REQUIRED}, None)

    said = """upstream "up" answered "do" with 'input_required', which needs a client that can be"""
    assert outcome.response == {"error": f"{said} asked"}
    assert outcome.raw == {"content": [{"type": "text", "text": f"{said} asked"}], "isError": True}


async def test_legacy_client_is_asked_and_gets_the_answer() -> None:
    client = Client()
    async with tool(asking("modern")) as made:
        outcome = await run(made, {"rounds": [{"q": ELICIT}]}, client)

    assert outcome.raw is not None
    answers = outcome.raw["structuredContent"]["answers"]
    assert answers == [{"q": await client.answer(ELICIT["method"], {})}]
    assert client.asked == [(ELICIT["method"], ELICIT["params"])]


@pytest.mark.parametrize("modern", [True, False])
async def test_legacy_server_asks_the_client_of_a_call_on_its_own_session(modern: bool) -> None:
    client = Client(modern=modern)
    async with tool(asking("legacy")) as made:
        outcome = await run(made, {"do": [["ask", ELICIT["method"], ELICIT["params"]]]}, client)
        assert made.may_ask(client)

    assert outcome.raw is not None
    reply = {"result": await client.answer(ELICIT["method"], {})}
    assert outcome.raw["structuredContent"]["replies"] == [reply]


async def test_meta_of_the_client_reaches_the_server() -> None:
    client = Client(capabilities={}, meta={"traceparent": "00-1-2-03", "example.com/k": [None]})
    async with tool(asking("legacy")) as made:
        outcome = await run(made, {}, client)

    assert outcome.raw is not None
    assert outcome.raw["structuredContent"]["came"] == {"_meta": client.meta}


@pytest.mark.parametrize(
    ("era", "caller", "may"),
    [
        ("legacy", Client(), True),
        ("legacy", Client(modern=True, capabilities={"roots": {}}), True),
        ("legacy", Client(capabilities={"experimental": {}}), False),
        ("legacy", None, False),
        ("modern", Client(), False),
    ],
)
async def test_tool_knows_whether_its_server_may_ask(
    era: str, caller: Client | None, may: bool
) -> None:
    async with tool(asking(era)) as made:
        assert made.may_ask(caller) is may
        assert made.relabelled("other").may_ask(caller) is may


EVERYTHING: Json = {**FORM, "sampling": {}, "roots": {}}
SAMPLED: Json = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "splendid"}}
FILLED_IN: Json = {"action": "accept", "content": {"name": "splendid"}}


@pytest.mark.npm
@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
async def test_real_legacy_server_asks_the_client_behind_its_call(
    everything: Everything, transport: str
) -> None:
    async def answers(method: str, params: Json) -> Json:
        return {"sampling/createMessage": SAMPLED, "roots/list": {"roots": []}}.get(
            method, FILLED_IN
        )

    client = Client(capabilities=EVERYTHING, answer=answers)
    async with AsyncExitStack() as stack:
        target: list[str] | str = everything.stdio
        if transport != "stdio":
            opened = everything.http() if transport == "http" else everything.sse()
            target = (await stack.enter_async_context(opened)).url

        made = await stack.enter_async_context(tool(target, "trigger-sampling-request"))
        sampled = await run(made, {"prompt": "What?", "maxTokens": 5}, client)
        other = tools_from(made.sessions, [{**DEFINITION, "name": ELICITS}], 60)[0]
        filled_in = await run(other, {}, client)

    asked = [method for method, _ in client.asked if method != "roots/list"]
    assert asked == ["sampling/createMessage", "elicitation/create"]
    assert "splendid" in str(sampled.raw)
    assert "splendid" in str(filled_in.raw)


async def test_wish_for_a_task_goes_with_the_call_and_changes_no_other() -> None:
    client = Client()
    async with tool(asking("legacy")) as made:
        wished = await run(made.as_task({"ttl": 5, "unknown": None}), {}, client)
        plain = await run(made, {}, client)

    assert wished.raw is not None
    assert plain.raw is not None
    assert wished.raw["structuredContent"]["came"] == {"task": {"ttl": 5, "unknown": None}}
    assert plain.raw["structuredContent"]["came"] == {}


@pytest.mark.parametrize(
    ("declared", "runs"),
    [
        ({"tasks": {"requests": {"tools": {"call": {}}}}}, True),
        ({"tasks": {"requests": {"tools": {"call": True}}}}, False),
        ({"tasks": {"list": {}, "requests": {"sampling": {"createMessage": {}}}}}, False),
        ({"tasks": []}, False),
        ({"extensions": {"io.modelcontextprotocol/tasks": {}}}, False),
    ],
)
def test_server_runs_calls_as_tasks_if_it_declares_just_that(declared: Json, runs: bool) -> None:
    assert runs_calls_as_tasks(declared) is runs
