"""A modern server that needs to know something, in front of clients of both eras and of none."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.core.content import Result
from bridge.core.rpc import rpc_error
from bridge.errors import OutcomeUnknown, UpstreamError
from bridge.upstream.channel import Limits, Options
from bridge.upstream.command import Command
from bridge.upstream.connection import Connection
from bridge.upstream.inputs import MOST_ROUNDS, request
from bridge.upstream.sessions import Sessions
from tests import nursery
from tests.upstream.clients import FORM, Client, Json

ASKING = str(Path(__file__).parent.parent / "servers" / "asking.py")
QUESTION: Json = {"mode": "form", "message": "Really?", "requestedSchema": {"type": "object"}}
ELICIT: Json = {"method": "elicitation/create", "params": QUESTION}
SAMPLE: Json = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
ROOTS: Json = {"method": "roots/list"}
EVERYTHING: Json = {**FORM, "sampling": {}, "roots": {}}
TASKS: Json = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


@asynccontextmanager
async def upstream(era: str = "modern") -> AsyncIterator[Sessions]:
    """A server that answers with `input_required` as often as it is told to."""
    command = Command(tuple(nursery.server(ASKING, era)))
    sessions = Sessions(Connection("up", command, limits=Limits(close_grace=0.5)))
    try:
        yield sessions
    finally:
        await sessions.aclose()
        await sessions.shared.aclose()


async def call(
    sessions: Sessions, caller: Client | None, arguments: Json, seconds: float | None = 60
) -> Result:
    params = {"name": "do", "arguments": arguments}
    return await request(sessions, "tools/call", params, Options(seconds, caller=caller))


def asked_again(rounds: list[Any]) -> Json:
    return {"rounds": rounds}


async def test_modern_client_gets_the_servers_words_as_they_are_and_answers_itself() -> None:
    client = Client(modern=True)
    async with upstream() as sessions:
        first = await call(sessions, client, asked_again([{"q": ELICIT}]))
        client.brought = {"inputResponses": {"q": {"action": "accept"}}, "requestState": "[]"}
        second = await call(sessions, client, asked_again([{"q": ELICIT}]))

    assert first == {
        "resultType": "input_required",
        "requestState": "[]",
        "inputRequests": {"q": ELICIT},
    }
    assert second["structuredContent"]["answers"] == [{"q": {"action": "accept"}}]
    assert client.asked == []


async def test_legacy_client_is_asked_and_the_call_repeated_with_the_exact_state() -> None:
    client = Client(capabilities=EVERYTHING)
    rounds = [{"one": ELICIT, "two": SAMPLE}, {"three": ROOTS}]
    async with upstream() as sessions:
        answer = await call(sessions, client, asked_again(rounds))

    def said(method: str) -> Json:
        return {"action": "accept", "content": {"method": method}}

    first = {"one": said(ELICIT["method"]), "two": said(SAMPLE["method"])}
    second = {"three": said("roots/list")}
    assert answer["structuredContent"]["answers"] == [first, second]
    came = answer["structuredContent"]["came"]
    assert (came["inputResponses"], came["requestState"]) == (second, json.dumps([first]))
    expected = [(one["method"], one.get("params", {})) for one in (ELICIT, SAMPLE, ROOTS)]
    assert client.asked == expected


@pytest.mark.parametrize("method", ["prompts/get", "resources/read"])
async def test_prompts_and_resources_ask_as_tools_do(method: str) -> None:
    client = Client()
    params = {"name": "x", "uri": "x:y", "arguments": asked_again([{"q": ELICIT}])}
    async with upstream() as sessions:
        answer = await request(sessions, method, params, Options(60, caller=client))

    assert len(answer["structuredContent"]["answers"]) == len(client.asked) == 1


async def test_server_that_asks_nothing_is_asked_again_with_its_state_alone() -> None:
    async with upstream() as sessions:
        answer = await call(sessions, Client(), asked_again([None, {}]))

    assert answer["structuredContent"]["answers"] == [None, None]


@pytest.mark.parametrize("extra", [0, 1])
async def test_rounds_have_a_bound(extra: int) -> None:
    client = Client()
    rounds = asked_again([{"q": ELICIT}] * (MOST_ROUNDS + extra))
    async with upstream() as sessions:
        if extra:
            with pytest.raises(UpstreamError, match="input_required more than 10 times"):
                await call(sessions, client, rounds)
        else:
            answer = await call(sessions, client, rounds)
            assert len(answer["structuredContent"]["answers"]) == MOST_ROUNDS

    assert len(client.asked) == MOST_ROUNDS


async def test_nobody_can_be_asked_where_no_client_waits() -> None:
    needs = "which needs a client that can be asked"
    said = f"""upstream "up" answered "do" with 'input_required', {needs}"""
    async with upstream() as sessions:
        with pytest.raises(UpstreamError) as raised:
            await call(sessions, None, asked_again([{"q": ELICIT}]))

    answer = {"content": [{"type": "text", "text": said}], "isError": True}
    assert (str(raised.value), raised.value.raw) == (said, answer)
    assert not raised.value.is_protocol_error


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (SAMPLE, "'sampling/createMessage': the client behind bridge does not take"),
        ({"method": "tools/list"}, "'tools/list': the client behind bridge does not take"),
        ({"method": "elicitation/create", "params": {"mode": "url"}}, "declare url elicitation"),
        ("junk", "'': the client behind bridge does not take"),
    ],
)
async def test_client_is_asked_nothing_that_it_did_not_declare(asked: Any, said: str) -> None:
    client = Client()
    async with upstream() as sessions:
        with pytest.raises(UpstreamError, match=said):
            await call(sessions, client, asked_again([{"q": asked}]))

    assert client.asked == []


async def refuses(method: str, params: Json) -> Result:
    raise rpc_error(-1, "the person went away")


async def test_client_that_shows_no_form_has_made_no_choice() -> None:
    async with upstream() as sessions:
        answer = await call(sessions, Client(answer=refuses), asked_again([{"q": ELICIT}]))

    assert answer["structuredContent"]["answers"] == [{"q": {"action": "cancel"}}]


async def test_client_that_refuses_what_has_no_answer_for_it_ends_the_call() -> None:
    client = Client(capabilities=EVERYTHING, answer=refuses)
    async with upstream() as sessions:
        with pytest.raises(UpstreamError, match="refused sampling/createMessage: the person went"):
            await call(sessions, client, asked_again([{"q": SAMPLE}]))


async def test_visit_to_a_url_gets_the_id_that_legacy_clients_need() -> None:
    client = Client(capabilities={"elicitation": {"url": {}}})
    params = {"mode": "url", "message": "?", "url": "https://x.example/"}
    asked = {"method": "elicitation/create", "params": params}
    async with upstream() as sessions:
        await call(sessions, client, asked_again([{"q": asked}]))

    ((_, seen),) = client.asked
    assert len(seen.pop("elicitationId")) == 32
    assert seen == params


@pytest.mark.parametrize(
    ("client", "passes"),
    [
        (Client(modern=True, capabilities=TASKS), True),
        (Client(modern=True), False),
        (Client(capabilities=TASKS), False),
        (None, False),
    ],
)
async def test_task_is_for_modern_clients_that_follow_tasks(
    client: Client | None, passes: bool
) -> None:
    task = {"resultType": "task", "taskId": "t", "unknown": [None]}
    async with upstream() as sessions:
        if passes:
            assert await call(sessions, client, {"result": task}) == task
        else:
            with pytest.raises(UpstreamError, match="'task', which needs a client that follows"):
                await call(sessions, client, {"result": task})


@pytest.mark.parametrize("modern", [True, False])
async def test_unknown_kind_of_answer_is_refused(modern: bool) -> None:
    async with upstream() as sessions:
        with pytest.raises(UpstreamError, match="'riddle', which is not known here"):
            await call(sessions, Client(modern=modern), {"result": {"resultType": "riddle"}})


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "did not say what it needs"),
        ({"inputRequests": [ELICIT]}, "no map of at most 32 requests"),
        ({"inputRequests": dict.fromkeys(map(str, range(33)), ELICIT)}, "no map of at most 32"),
    ],
)
async def test_question_that_makes_no_sense_ends_the_call(more: Json, said: str) -> None:
    async with upstream() as sessions:
        with pytest.raises(UpstreamError, match=said):
            await call(sessions, Client(), {"result": {"resultType": "input_required", **more}})


async def test_time_that_people_take_is_not_the_servers() -> None:
    async def thinks(method: str, params: Json) -> Result:
        await anyio.sleep(1.2)
        return {"action": "accept"}

    async with upstream() as sessions:
        await call(sessions, None, {})
        await call(sessions, Client(answer=thinks), asked_again([{"q": ELICIT}]), 1.0)


async def test_time_that_the_server_takes_is_bounded_over_all_rounds() -> None:
    async with upstream() as sessions:
        await call(sessions, None, {})
        with pytest.raises(OutcomeUnknown, match=r"within 0\.5 s"):
            await call(sessions, Client(), asked_again([None] * 9), 0.5)


async def test_legacy_server_is_brought_nothing_of_the_modern_era() -> None:
    brought = {"requestState": "s", "inputResponses": {}}
    client = Client(modern=True, meta={"example.com/k": 1}, brought=brought)
    async with upstream("legacy") as sessions:
        await sessions.shared.link()
        sessions.policy = "shared"
        answer = await call(sessions, client, {"do": []})

    assert answer["structuredContent"]["came"] == {"_meta": {"example.com/k": 1}}
