"""Tasks of the legacy era through a real `bridge serve`, by clients that speak raw JSON-RPC."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from tests import nursery
from tests.conftest import Everything
from tests.differential.wire import Url, connected
from tests.gateway.task_client import (
    RELATED,
    ROOT,
    YES,
    TaskClient,
    client_at,
    serving,
    tasking,
)
from tests.servers.odd_wire import read_journal
from tests.waiting import eventually

DECLARED = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
NO_TASK = -32602
NO_METHOD = -32601

pytestmark = pytest.mark.timeout(120)

every_front = pytest.mark.parametrize("front", ["http", "stdio"])
alone_or_shared = pytest.mark.parametrize("answer", [None, YES], ids=["shared", "alone"])


def text(reply: dict[str, Any]) -> str:
    (block,) = reply["result"]["content"]
    return str(block["text"])


def refusal(reply: dict[str, Any]) -> int:
    code: int = reply["error"]["code"]
    return code


@every_front
@alone_or_shared
async def test_task_is_created_polled_listed_told_of_and_ends_with_its_result(
    tmp_path: Path, front: str, answer: dict[str, Any] | None
) -> None:
    async with (
        serving(tmp_path, front, {"up": tasking()}) as where,
        client_at(where, answer) as client,
    ):
        created = await client.call("up__work", {"ttl": 60000}, say="x")
        task = created["result"]["task"]
        polled = await client.about("get", task["taskId"])
        listed = await client.ask("tasks/list")
        await client.call("up__finish", say="x")
        result = await client.about("result", task["taskId"])
        await eventually(client.told)
        after = await client.about("get", task["taskId"])

    assert client.greeting["capabilities"]["tasks"] == DECLARED
    assert created["result"] == {"task": task, "_meta": {"example.com/created": True}}
    assert (task["status"], task["ttl"], task["example.com/unknown"]) == (
        "working",
        60000,
        {"of": "tasking"},
    )
    assert polled == {"result": task}
    assert listed == {"result": {"tasks": [task]}}
    assert result["result"] == {
        "content": [{"type": "text", "text": "x"}],
        "_meta": {RELATED: {"taskId": task["taskId"]}, "example.com/kept": [1]},
    }
    assert client.told() == [(task["taskId"], "completed")]
    assert after["result"]["status"] == "completed"


@every_front
async def test_cancelled_task_stays_cancelled_and_an_ended_one_cannot_be(
    tmp_path: Path, front: str
) -> None:
    async with serving(tmp_path, front, {"up": tasking()}) as where, client_at(where) as client:
        one, two = (
            await client.create("up__work", say="x"),
            await client.create("up__must", say="y"),
        )
        cancelled = await client.about("cancel", one)
        await client.call("up__finish", say="x")
        await client.call("up__finish", say="y")
        ended = await client.about("result", two)
        refused = await client.about("cancel", two)
        first = await client.about("get", one)
        await eventually(lambda: len(client.told()) == 2)

    assert (cancelled["result"]["status"], first["result"]["status"]) == ("cancelled", "cancelled")
    assert text(ended) == "y"
    assert refused == {"error": {"code": -32602, "message": "Cannot cancel task: it is over"}}
    assert client.told() == [(one, "cancelled"), (two, "completed")]


@alone_or_shared
@pytest.mark.parametrize("ids", ["random", "counted"])
async def test_two_clients_neither_see_nor_hear_of_each_others_tasks(
    tmp_path: Path, answer: dict[str, Any] | None, ids: str
) -> None:
    upstream = tasking("--ids", ids)
    async with (
        serving(tmp_path, "http", {"up": upstream}) as where,
        client_at(where, answer) as one,
        client_at(where, answer) as two,
    ):
        mine = [await one.create("up__work", say="a"), await one.create("up__work", say="b")]
        theirs = [await two.create("up__work", say=word) for word in ("c", "d", "e")]
        others = [
            refusal(await one.about(method, task))
            for method in ("get", "result", "cancel")
            for task in set(theirs) - set(mine)
        ]
        lists = [await one.listed(), await two.listed()]
        for word in "abcde":
            for client in (one, two):
                await client.call("up__finish", say=word)

        await eventually(lambda: len(one.told()) == 2 and len(two.told()) == 3)
        results = [text(await two.about("result", task)) for task in theirs]

    assert set(others) == ({NO_TASK} if others else set())
    assert lists == [mine, theirs]
    assert sorted(one.told()) == sorted((task, "completed") for task in mine)
    assert sorted(two.told()) == sorted((task, "completed") for task in theirs)
    assert results == ["c", "d", "e"]


async def test_status_is_not_told_to_whoever_is_just_calling(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "http", {"up": tasking()}) as where,
        client_at(where) as one,
        client_at(where) as two,
    ):
        await one.create("up__work", say="a")
        task = await two.create("up__work", say="never")
        async with anyio.create_task_group() as group:
            group.start_soon(two.about, "result", task)  # the only request under way
            await one.call("up__finish", say="a")
            await eventually(one.told)
            await two.about("cancel", task)

        await eventually(two.told)

    assert two.told() == [(task, "cancelled")]


async def test_result_of_a_task_reads_like_that_of_a_call(tmp_path: Path) -> None:
    claims = nursery.server("-m", "tests.servers.library", "--era", "legacy", "--name")
    library = {"cwd": str(ROOT), "connect_timeout": "60s"}
    upstreams = {
        "up": tasking(),
        "a": {"command": [*claims, "a"], **library},
        "b": {"command": [*claims, "b"], **library},
    }
    long = "y" * 20_000
    async with (
        serving(tmp_path, "http", upstreams, results={"max_size": "16KiB"}) as where,
        client_at(where) as client,
    ):
        link = await client.create("up__work", say="x", link="shared://text")
        large = await client.create("up__work", say=long)
        fails = await client.create("up__work", say="f", fail=True)
        breaks = await client.create("up__work", say="b", **{"break": True})
        for word in ("x", long, "f", "b"):
            await client.call("up__finish", say=word)

        linked = (await client.about("result", link))["result"]
        plain = (await client.call("up__work", say="x", link="shared://text"))["result"]
        spooled = (await client.about("result", large))["result"]
        uri = next(block["uri"] for block in spooled["content"] if "uri" in block)
        whole = await client.ask("resources/read", {"uri": uri})
        failed = await client.about("result", fails)
        broken = await client.about("result", breaks)

    assert linked["content"] == plain["content"]
    assert linked["content"][1]["uri"] == "up+shared://text"
    assert spooled["_meta"][RELATED] == {"taskId": large}
    contents = whole["result"]["contents"]
    assert contents[0]["_meta"]["bridge/range"]["total"] == len(long)
    assert failed["result"]["isError"] is True
    assert broken == {"error": {"code": -32050, "message": "broken as wanted"}}


async def test_wait_for_a_result_ends_when_its_client_leaves(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    up = tasking("--journal", str(journal))

    def waits() -> list[dict[str, Any]]:
        return read_journal(journal, "tasks/result")

    async with serving(tmp_path, "http", {"up": up}) as where, client_at(where) as client:
        task = await client.create("up__work", say="x")
        assert isinstance(where, Url)
        for number in range(1, 4):
            async with client.elsewhere(where.url) as other, anyio.create_task_group() as group:
                group.start_soon(other.about, "result", task)
                await eventually(lambda number=number: len(waits()) == number)
                group.cancel_scope.cancel()

            await eventually(
                lambda number=number: (
                    len(read_journal(journal, "notifications/cancelled")) == number
                )
            )

        await client.call("up__finish", say="x")
        assert text(await client.about("result", task)) == "x"


async def test_result_takes_longer_than_a_call_may_and_can_be_called_off(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    upstream = tasking("--journal", str(journal), timeout="1s")
    async with serving(tmp_path, "http", {"up": upstream}) as where, client_at(where) as client:
        first, second = [await client.create("up__work", say=word) for word in "xy"]
        replies: list[dict[str, Any]] = []

        async def wait() -> None:
            replies.append(await client.about("result", first))

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await eventually(lambda: read_journal(journal, "tasks/result"))
            request = {"jsonrpc": "2.0", "id": 900, "method": "tasks/result"}
            group.start_soon(client.wire.post, {**request, "params": {"taskId": second}}, {})
            await eventually(lambda: len(read_journal(journal, "tasks/result")) == 2)
            cancelled = {"method": "notifications/cancelled", "params": {"requestId": 900}}
            await client.wire.post({"jsonrpc": "2.0", **cancelled}, {})
            await eventually(lambda: read_journal(journal, "notifications/cancelled"))
            called_off = read_journal(journal, "notifications/cancelled")
            late = await client.call("up__hang")
            await client.call("up__finish", say="x")

        still = await client.about("get", second)

    assert [text(reply) for reply in replies] == ["x"]
    assert len(called_off) == 1
    assert "within 1 s" in text(late)  # while the result was waited for
    assert still["result"]["status"] == "working"


@pytest.mark.parametrize("approve", [True, False])
async def test_gate_is_passed_before_there_is_a_task(tmp_path: Path, approve: bool) -> None:
    journal = tmp_path / "journal"
    upstream = tasking("--journal", str(journal), tools={"confirm": ["work"], "deny": ["must"]})
    answer = {"action": "accept", "content": {"approve": approve}}
    async with (
        serving(tmp_path, "http", {"up": upstream}) as where,
        client_at(where, answer) as client,
        client_at(where) as nobody,
    ):
        reply = await client.call("up__work", {}, say="x")
        listed = await client.listed()
        unasked = await nobody.call("up__work", {}, say="x")
        hidden = await client.call("up__must", {}, say="x")

    (question,) = client.asked
    assert "tool: work" in question["params"]["message"]
    assert ("task" in reply["result"], reply["result"].get("isError", False)) == (
        approve,
        not approve,
    )
    assert listed == ([reply["result"]["task"]["taskId"]] if approve else [])
    assert unasked["result"]["isError"] is True
    assert refusal(hidden) == -32602
    calls = read_journal(journal, "tools/call")
    assert [one["params"] for one in calls] == (
        [{"name": "work", "arguments": {"say": "x"}, "task": {}}] if approve else []
    )


async def test_task_asks_its_own_clients_person(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "http", {"up": tasking()}) as where,
        client_at(where, {"action": "accept", "content": {"word": "one"}}) as one,
        client_at(where, {"action": "accept", "content": {"word": "two"}}) as two,
    ):
        tasks = [await client.create("up__work", say="q", ask="Which?") for client in (one, two)]
        await two.call("up__finish", say="q")
        answered = await two.about("result", tasks[1])
        waiting = await one.about("get", tasks[0])

    assert answered["result"]["structuredContent"] == {
        "action": "accept",
        "content": {"word": "two"},
    }
    assert [one["params"]["_meta"] for one in two.asked] == [{RELATED: {"taskId": tasks[1]}}]
    assert (one.asked, waiting["result"]["status"]) == ([], "working")
    assert two.told() == [(tasks[1], "input_required"), (tasks[1], "completed")]


async def test_killed_server_ends_the_wait_and_its_tasks_are_unknown_after(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    upstream = tasking("--journal", str(journal))
    async with serving(tmp_path, "http", {"up": upstream}) as where, client_at(where) as client:
        task = await client.create("up__work", say="x")
        replies: list[dict[str, Any]] = []

        async def wait() -> None:
            replies.append(await client.about("result", task))

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await eventually(lambda: read_journal(journal, "tasks/result"))
            psutil.Process(read_journal(journal)[0]["pid"]).kill()

        async def unknown() -> bool:
            reply = await client.about("get", task)
            return bool(refusal(reply) == NO_TASK)

        await eventually(unknown)
        listed = await client.listed()
        fresh = await client.create("up__work", say="y")

    assert [refusal(reply) for reply in replies] == [-32603]
    assert listed == []
    assert fresh != task


async def test_whoever_gets_a_used_id_after_a_restart_has_it_alone(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    upstream = tasking("--ids", "counted", "--journal", str(journal))
    async with (
        serving(tmp_path, "http", {"up": upstream}) as where,
        client_at(where) as one,
        client_at(where) as two,
    ):
        task = await one.create("up__work", say="x")
        psutil.Process(read_journal(journal)[0]["pid"]).kill()

        async def created() -> str:
            reply = await two.call("up__work", {}, say="y")
            found: str = reply["result"].get("task", {}).get("taskId", "")
            return found

        again = await eventually(created)
        got = [await client.about("get", task) for client in (one, two)]

    assert again == task
    assert refusal(got[0]) == NO_TASK
    assert got[1]["result"]["status"] == "working"


async def test_tasks_end_with_their_clients_session(tmp_path: Path) -> None:
    async with serving(tmp_path, "http", {"up": tasking()}) as where:
        async with client_at(where) as one:
            task = await one.create("up__work", say="x")

        async with client_at(where) as two:
            assert refusal(await two.about("get", task)) == NO_TASK


async def test_only_what_runs_tasks_is_said_to(tmp_path: Path) -> None:
    library = nursery.server("-m", "tests.servers.library", "--name", "new", "--era", "modern")
    upstreams = {
        "up": tasking("--no-cancel"),
        "not": tasking("--undeclared"),
        "new": {"command": library, "cwd": str(ROOT), "connect_timeout": "60s"},
    }
    async with serving(tmp_path, "http", upstreams) as where, client_at(where) as client:
        tools = (await client.ask("tools/list"))["result"]["tools"]
        refused = [
            await client.call(name, {}, say="x")
            for name in ("up__never", "up__plain", "not__work", "new__link", "nothing")
        ]
        unaware = await client.call("up__must", say="x")
        wrong = await client.call("up__work", "soon", say="x")
        normal = await client.call("not__must", say="x")

    support = {tool["name"]: tool["execution"] for tool in tools if "execution" in tool}
    assert client.greeting["capabilities"]["tasks"] == {
        "list": {},
        "requests": {"tools": {"call": {}}},
    }
    assert support == {
        "up__work": {"taskSupport": "optional"},
        "up__must": {"taskSupport": "required"},
        "up__never": {"taskSupport": "forbidden"},
        "not__never": {"taskSupport": "forbidden"},
    }
    assert [refusal(reply) for reply in refused] == [-32601, -32601, -32601, -32601, -32602]
    assert (refusal(unaware), refusal(wrong)) == (-32601, -32602)
    assert text(normal) == "x"


async def test_where_nobody_runs_tasks_the_wish_is_ignored(tmp_path: Path) -> None:
    upstreams = {"not": tasking("--undeclared")}
    async with serving(tmp_path, "http", upstreams) as where, client_at(where) as client:
        reply = await client.call("not__work", {"ttl": 1}, say="x")
        methods = [await client.about(method, "x") for method in ("get", "result", "cancel")]

    assert "tasks" not in client.greeting["capabilities"]
    assert text(reply) == "x"
    assert {refusal(one) for one in methods} == {NO_METHOD}


async def test_client_of_an_older_version_has_no_tasks(tmp_path: Path) -> None:
    async with serving(tmp_path, "http", {"up": tasking()}) as where, connected(where) as wire:
        client = TaskClient(wire, None)
        await client.begin("2025-06-18")
        reply = await client.call("up__work", {}, say="x")

    assert text(reply) == "x"


async def test_task_is_found_whichever_process_a_request_lands_on(tmp_path: Path) -> None:
    serve = {"http": {"workers": 2}}
    async with (
        serving(tmp_path, "http", {"up": tasking()}, serve=serve) as where,
        client_at(where) as client,
    ):
        assert isinstance(where, Url)
        tasks: list[str] = []
        for _ in range(10):
            async with client.elsewhere(where.url) as other:
                tasks.append(await other.create("up__work", say="x"))

        statuses: set[str] = set()
        for task in tasks:
            async with client.elsewhere(where.url) as other:
                statuses.add((await other.about("get", task))["result"]["status"])

        listed = await client.listed()
        await client.call("up__finish", say="x")
        await eventually(lambda: len(client.told()) == len(tasks))

    assert statuses == {"working"}
    assert listed == tasks
    assert sorted(client.told()) == sorted((task, "completed") for task in tasks)


@every_front
async def test_research_of_server_everything_is_a_task(
    tmp_path: Path, everything: Everything, front: str
) -> None:
    upstream = {"command": everything.stdio, "connect_timeout": "60s"}
    person = {"action": "accept", "content": {"interpretation": "technical"}}
    async with (
        serving(tmp_path, front, {"all": upstream}) as where,
        client_at(where, person) as client,
    ):
        refused = await client.call("all__simulate-research-query", topic="snakes")
        arguments = {"topic": "python", "ambiguous": True}
        task = await client.create("all__simulate-research-query", **arguments)
        status = (await client.about("get", task))["result"]["status"]
        result = await client.about("result", task)
        listed = await client.ask("tasks/list")

    assert "error" in refused or refused["result"]["isError"]
    assert status == "working"
    assert "Research Report: python (technical)" in text(result)
    assert [one["params"]["_meta"][RELATED] for one in client.asked] == [{"taskId": task}]
    assert [(one["taskId"], one["status"]) for one in listed["result"]["tasks"]] == [
        (task, "completed")
    ]
