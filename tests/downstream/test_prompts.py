"""Prompts of several servers behind one."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.core.rpc import RpcError
from bridge.core.wire import dumps
from bridge.downstream.asker import Asker
from bridge.downstream.handlers import settled
from bridge.downstream.jsonrpc import InvalidParams, JsonRpcError
from bridge.downstream.prompts import Prompts
from tests.downstream.sources import MODERN, STAMP, StandIn, addressed

LEGACY = Asker(modern=False)
NEW = Asker()


def prompts_of(*servers: StandIn) -> Prompts:
    return Prompts(addressed(*servers), STAMP, settled)


async def names(prompts: Prompts) -> list[str]:
    return [one["name"] for one in (await prompts.list_prompts(LEGACY, {}))["prompts"]]


async def test_prompts_are_prefixed_and_sorted_and_keep_what_is_unknown() -> None:
    prompts = prompts_of(StandIn("b", prompts=["x", "a"]), StandIn("a", prompts=["z"]))

    listed = await prompts.list_prompts(LEGACY, {})

    assert listed == {
        "prompts": [
            {"name": "a__z", "unknown": {"kept": "z"}},
            {"name": "b__a", "unknown": {"kept": "a"}},
            {"name": "b__x", "unknown": {"kept": "x"}},
        ]
    }
    assert await prompts.list_prompts(NEW, {}) == {
        **listed,
        **MODERN,
        "ttlMs": 0,
        "cacheScope": "private",
    }


async def test_prompt_is_got_by_its_own_name_with_all_its_params() -> None:
    server = StandIn("a", prompts=["x"])
    server.answers["prompts/get"] = {"messages": [{"role": "user", "content": "odd"}], "more": 1}
    prompts = prompts_of(server, StandIn("b"))
    params = {"name": "a__x", "arguments": {"k": "v"}, "unknown": 1, "_meta": {"progressToken": 1}}

    answer = await prompts.get_prompt(LEGACY, params)

    assert answer == server.answers["prompts/get"]
    assert server.asked == [("prompts/get", {"name": "x", "arguments": {"k": "v"}, "unknown": 1})]


async def test_params_that_no_server_can_be_sent_are_the_clients_fault() -> None:
    class Wired(StandIn):
        async def request(self, asker: Asker, method: str, params: Any, *rest: Any) -> Any:
            dumps(params)
            return await super().request(asker, method, params, *rest)

    prompts = prompts_of(Wired("a", prompts=["x"]))

    with pytest.raises(InvalidParams, match="the params of prompts/get cannot be sent on"):
        await prompts.get_prompt(LEGACY, {"name": "a__x", "arguments": {"k": "\ud800"}})


async def test_how_a_call_is_to_run_is_nothing_that_a_prompt_takes() -> None:
    server = StandIn("a", prompts=["x"])
    server.answers["prompts/get"] = {"messages": []}
    await prompts_of(server).get_prompt(LEGACY, {"name": "a__x", "task": {"ttl": 1}})

    assert server.asked == [("prompts/get", {"name": "x"})]


async def test_what_a_modern_client_brings_reaches_the_server_and_is_no_param() -> None:
    server = StandIn("a", prompts=["x"])
    ask: dict[str, Any] = {"resultType": "input_required", "requestState": "s", "inputRequests": {}}
    server.answers["prompts/get"] = ask
    brought = {"inputResponses": {"q": {}}, "requestState": "s"}

    answer = await prompts_of(server).get_prompt(Asker(), {"name": "a__x", **brought})

    assert answer == {**ask, "_meta": MODERN["_meta"]}
    assert (server.asked, server.brought) == ([("prompts/get", {"name": "x"})], [brought])


async def test_progress_goes_on_to_the_client() -> None:
    server = StandIn("a", prompts=["x"])
    server.answers["prompts/get"] = {"messages": []}
    told: list[Any] = []

    async def tell(*news: Any) -> None:
        told.append(news)

    await prompts_of(server).get_prompt(LEGACY, {"name": "a__x"}, tell)

    assert told == [(1, 2, "a")]


async def test_two_prompts_of_one_name_are_both_left_out_and_said_to_be() -> None:
    one, two = StandIn("a", prompts=["x", "y"], prefix=""), StandIn("b", prompts=["x"], prefix="")

    prompts = prompts_of(one, two)

    assert await names(prompts) == ["y"]
    assert prompts.problems == (
        'two prompts are named "x": "x" of upstream "a" and "x" of upstream "b"; neither is '
        "offered: give one upstream a prefix of its own",
    )
    with pytest.raises(InvalidParams, match='unknown prompt "x"'):
        await prompts.get_prompt(LEGACY, {"name": "x"})


async def test_clients_hear_of_another_offer_and_only_then() -> None:
    server, told = StandIn("a", prompts=["x"]), list[Any]()
    prompts = prompts_of(server)
    prompts.on_news.append(lambda *news: told.append(news))

    server.relist(resources=[])
    assert told == []

    server.relist(prompts=[{"name": "y"}])
    assert told == [("notifications/prompts/list_changed", {})]
    assert await names(prompts) == ["a__y"]


async def test_without_prompts_anywhere_there_is_no_such_method() -> None:
    prompts = prompts_of(StandIn("a", capabilities={"resources": {}}))

    assert prompts.capabilities() == {}
    with pytest.raises(JsonRpcError) as caught:
        await prompts.list_prompts(LEGACY, {})

    assert caught.value.code == -32601


async def test_cursor_that_we_never_gave_is_refused() -> None:
    with pytest.raises(InvalidParams, match="unknown cursor"):
        await prompts_of(StandIn("a")).list_prompts(LEGACY, {"cursor": "c"})


async def test_server_that_is_away_says_so_and_one_that_refuses_is_quoted() -> None:
    server = StandIn("a", prompts=["x"])
    prompts = prompts_of(server)
    with pytest.raises(RpcError, match="no answer is written down") as quoted:
        await prompts.get_prompt(LEGACY, {"name": "a__x"})

    server.is_away = True
    with pytest.raises(RpcError, match='upstream "a" is not available'):
        await prompts.get_prompt(LEGACY, {"name": "a__x"})

    assert quoted.value.error == {"code": -32603, "message": "no answer is written down"}


def test_client_may_be_asked_by_the_server_of_the_prompt_alone() -> None:
    one, two = StandIn("a", prompts=["x"]), StandIn("b", prompts=["x"])
    two.can_ask = True
    prompts, asker = prompts_of(one, two), Asker(capabilities={"elicitation": {}})

    asked = [prompts.may_ask(asker, "prompts/get", {"name": f"{name}__x"}) for name in "abc"]

    assert asked == [False, True, False]
    assert not prompts.may_ask(asker, "tools/call", {"name": "b__x"})
