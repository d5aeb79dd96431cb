"""Completions, by whoever has the prompt or the template."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.downstream.asker import Asker
from bridge.downstream.completion import Completion
from bridge.downstream.handlers import settled
from bridge.downstream.jsonrpc import InvalidParams, JsonRpcError
from bridge.downstream.prompts import Prompts
from tests.downstream.sources import STAMP, StandIn, addressed

LEGACY = Asker(modern=False)
ANSWER = {"completion": {"values": ["paris"], "odd": 1}, "odd": 2}
ARGUMENT = {"name": "city", "value": "p"}


def completion_of(*servers: StandIn) -> Completion:
    addresses = addressed(*servers)
    return Completion(addresses, Prompts(addresses, STAMP, settled), STAMP, settled)


def able(name: str, **more: Any) -> StandIn:
    server = StandIn(name, **more)
    server.answers["completion/complete"] = ANSWER
    return server


async def test_prompts_argument_is_completed_by_its_server_under_its_own_name() -> None:
    one, two = able("one", prompts=["p"]), able("two", prompts=["p"])
    ref = {"type": "ref/prompt", "name": "two__p", "title": "T"}
    params = {"ref": ref, "argument": ARGUMENT, "context": {"arguments": {"a": "b"}}}

    answer = await completion_of(one, two).complete(LEGACY, params)

    assert answer == ANSWER
    assert one.asked == []
    assert two.asked == [("completion/complete", {**params, "ref": {**ref, "name": "p"}})]


async def test_template_that_two_claim_is_completed_by_the_one_that_was_meant() -> None:
    one, two = able("one", templates=["x://{city}"]), able("two", templates=["x://{town}"])
    ref = {"type": "ref/resource", "uri": "two+x://{town}"}

    await completion_of(one, two).complete(LEGACY, {"ref": ref, "argument": ARGUMENT})

    assert one.asked == []
    assert two.asked[0][1]["ref"] == {"type": "ref/resource", "uri": "x://{town}"}


async def test_server_without_completions_completes_nothing() -> None:
    mute = StandIn("mute", prompts=["p"], capabilities={"prompts": {}})
    params = {"ref": {"type": "ref/prompt", "name": "mute__p"}, "argument": ARGUMENT}

    answer = await completion_of(mute, able("able")).complete(LEGACY, params)

    assert answer == {"completion": {"values": [], "total": 0, "hasMore": False}}
    assert mute.asked == []


async def test_where_no_server_completes_there_is_no_such_method() -> None:
    completion = completion_of(StandIn("mute", capabilities={"prompts": {}}))

    assert completion.capabilities() == {}
    with pytest.raises(JsonRpcError) as caught:
        await completion.complete(LEGACY, {})

    assert caught.value.code == -32601


@pytest.mark.parametrize(
    "ref",
    [
        None,
        {"type": "ref/prompt", "name": "gone"},
        {"type": "ref/prompt", "name": 7},
        {"type": "ref/resource"},
        {"type": "ref/else", "uri": "x://a"},
    ],
)
async def test_reference_to_nothing_is_refused(ref: Any) -> None:
    with pytest.raises(InvalidParams):
        await completion_of(able("one")).complete(LEGACY, {"ref": ref, "argument": ARGUMENT})
