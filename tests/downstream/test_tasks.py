"""Tasks, forwarded to the server that made them, for whoever got them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bridge.downstream.asker import Asker
from bridge.downstream.declared import Declared
from bridge.downstream.eras import capabilities_for
from bridge.downstream.jsonrpc import JsonRpcError
from bridge.downstream.passing import Passing
from bridge.downstream.tasks import METHODS, Tasks
from tests.downstream.sources import ALL, MODERN, STAMP, StandIn, addressed

TASK = {"resultType": "task", "taskId": "t1", "status": "working"}
EXTENSION = "io.modelcontextprotocol/tasks"
ABLE = {"extensions": {EXTENSION: {}}}


async def forwarded(tasks: Tasks, asker: Asker, method: str, **params: Any) -> Any:
    return await tasks.methods[method](asker, {"taskId": "t1", **params}, None)


@pytest.mark.parametrize("method", METHODS)
async def test_task_is_followed_with_its_own_server_word_for_word(method: str) -> None:
    one, two = StandIn("one"), StandIn("two", capabilities=ABLE)
    two.answers[method] = {"taskId": "t1", "status": "completed", "odd": 1}
    addresses = addressed(one, two)
    tasks = Tasks(addresses, STAMP)
    Passing(addresses, tasks).answer(Asker(), SimpleNamespace(upstream="two"), TASK)

    answer = await forwarded(tasks, Asker(), method, inputResponses={"k": {}}, _meta={"m": 1})

    assert answer == {**two.answers[method], **MODERN}
    assert one.asked == []
    assert two.asked == [(method, {"taskId": "t1", "inputResponses": {"k": {}}})]
    assert two.brought == [{}]


async def test_task_is_nobody_elses() -> None:
    one = StandIn("one", capabilities=ABLE)
    tasks = Tasks(addressed(one), STAMP)
    tasks.remember(Asker("ann"), "one", TASK)
    tasks.remember(Asker("ann"), "one", {"resultType": "complete", "taskId": "t2"})

    for asker, task in [(Asker("bob"), "t1"), (Asker("ann"), "t2")]:
        with pytest.raises(JsonRpcError, match="there is no task"):
            await forwarded(tasks, asker, "tasks/get", taskId=task)

    with pytest.raises(JsonRpcError, match="there is no method"):
        await forwarded(tasks, Asker("ann", modern=False), "tasks/get")

    assert one.asked == []


async def test_where_no_server_makes_tasks_there_is_no_such_method() -> None:
    with pytest.raises(JsonRpcError) as caught:
        await forwarded(Tasks(addressed(StandIn("one")), STAMP), Asker(), "tasks/get")

    assert caught.value.code == -32601


async def test_result_inside_a_task_reads_like_any_other() -> None:
    one = StandIn("one", resources=["x://a"])
    two = StandIn("two", resources=["x://a"], capabilities={**ALL, **ABLE})
    link = {"type": "resource_link", "uri": "x://a", "name": "a"}
    two.answers["tasks/get"] = {"status": "completed", "result": {"content": [link]}}
    tasks = Tasks(addressed(one, two), STAMP)
    tasks.remember(Asker(), "two", TASK)

    answer = await forwarded(tasks, Asker(), "tasks/get")

    assert answer["result"] == {"content": [{**link, "uri": "two+x://a"}]}


def test_extensions_of_all_servers_are_declared_but_legacy_clients_get_no_tasks() -> None:
    one = StandIn("one", capabilities={"extensions": {"x/a": {"k": 1}, EXTENSION: {}}})
    two = StandIn("two", capabilities={"extensions": {"x/a": {"k": 2}, "x/b": {}}, "logging": {}})

    declared = Declared([one, two]).capabilities()

    assert declared == {
        "logging": {},
        "extensions": {"x/a": {"k": 1}, "x/b": {}, EXTENSION: {}},
    }
    assert capabilities_for(declared, modern=True) == {"extensions": declared["extensions"]}
    assert capabilities_for(declared, modern=False) == {
        "logging": {},
        "extensions": {"x/a": {"k": 1}, "x/b": {}},
    }
    only_tasks = {"extensions": {EXTENSION: {}}, "tools": {}}
    assert capabilities_for(only_tasks, modern=False) == {"tools": {}}
    assert Declared([StandIn("none", capabilities={})]).capabilities() == {}
