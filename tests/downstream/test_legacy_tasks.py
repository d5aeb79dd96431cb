"""Tasks of the legacy era, each its client's alone, and what legacy clients are told of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from bridge.core.rpc import RpcError
from bridge.downstream.asker import Asker
from bridge.downstream.eras import capabilities_for
from bridge.downstream.jsonrpc import JsonRpcError
from bridge.downstream.legacy_tasks import PAGE, LegacyTasks
from bridge.downstream.task_book import MOST_TASKS, Book
from bridge.downstream.task_source import TaskNews
from bridge.downstream.tasks import Tasks
from tests.downstream.sources import ALL, STAMP, StandIn, addressed, refused

TASKS: dict[str, Any] = {"requests": {"tools": {"call": {}}}}
ABLE = {**ALL, "tasks": TASKS}
RELATED = "io.modelcontextprotocol/related-task"


class Runner(StandIn):
    """A server that runs tasks, if it is of the legacy era and says so."""

    def __init__(self, name: str, *, era: str = "legacy", apart: bool = False, **more: Any) -> None:
        super().__init__(name, **{"capabilities": ABLE, **more})
        self.era = era
        self.apart = apart
        self.on_task: list[TaskNews] = []

    @property
    def runs_tasks(self) -> bool:
        return self.era == "legacy" and "tasks" in self.listed.capabilities

    def place(self, asker: Asker) -> str:
        return asker.key if self.apart else ""

    def changed(self, task: str, place: str = "", **more: Any) -> None:
        """Tell what a task has come to."""
        for tell in self.on_task:
            tell(place, {"taskId": task, **more})


@dataclass
class Work:
    """A tool of a server's."""

    upstream: str
    name: str = "work"
    description: str = ""
    task: Any = None

    def as_task(self, task: Any) -> Work:
        return Work(self.upstream, self.name, task=task)


def client(name: str = "ann", told: list[Any] | None = None) -> Asker:
    post = None if told is None else told.append
    return Asker(session=name, modern=False, post=post, task={})


def created(task: str, **more: Any) -> dict[str, Any]:
    return {"task": {"taskId": task, "status": "working"}, **more}


def tasks_of(*servers: Runner) -> LegacyTasks:
    return LegacyTasks(addressed(*servers), servers)


async def ask(tasks: LegacyTasks, asker: Asker, method: str, **params: Any) -> Any:
    return await tasks.answer(asker, method, params, None)


async def test_task_is_asked_for_word_for_word_and_its_answer_goes_through() -> None:
    one, two = Runner("one"), Runner("two")
    two.answers["tasks/get"] = {"taskId": "t", "status": "working", "odd": {"x": [None]}}
    tasks = tasks_of(one, two)
    answer = created("t", _meta={"m": 1})

    assert tasks.remember(client(), Work("two"), answer) is answer
    assert (
        await ask(tasks, client(), "tasks/get", taskId="t", odd=1, _meta={})
        == two.answers["tasks/get"]
    )
    assert (one.asked, two.asked) == ([], [("tasks/get", {"taskId": "t", "odd": 1})])


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
async def test_task_is_nobody_elses_and_other_answers_are_none(method: str) -> None:
    one, old = Runner("one"), Runner("old", era="modern")
    tasks = tasks_of(one, old)
    tasks.remember(client("ann"), Work("one"), created("t"))
    tasks.remember(client("ann"), Work("old"), created("modern"))
    tasks.remember(client("ann"), Work("local"), created("local"))
    tasks.remember(client("ann"), Work("one"), {"content": [], "task": {"taskId": 7}})

    for asker, task in [("bob", "t"), *(("ann", name) for name in ("modern", "local", "7"))]:
        with pytest.raises(JsonRpcError, match=f'there is no task "{task}"') as caught:
            await ask(tasks, client(asker), method, taskId=task)

        assert caught.value.code == -32602

    tasks.forget(client("ann").key)
    with pytest.raises(JsonRpcError, match="there is no task"):
        await ask(tasks, client("ann"), method, taskId="t")

    assert one.asked == old.asked == []


async def test_two_servers_tasks_of_one_id_are_told_apart_everywhere() -> None:
    one, two = Runner("one"), Runner("two")
    meta = {RELATED: {"taskId": "1", "x": 1}, "y": 2}
    two.answers = {
        "tasks/get": {"taskId": "1", "status": "working"},
        "tasks/result": {"content": [], "_meta": meta},
    }
    told: list[Any] = []
    tasks, ann = tasks_of(one, two), client(told=told)
    first = tasks.remember(ann, Work("one"), created("1"))
    second = tasks.remember(ann, Work("two"), created("1", _meta=meta))
    renamed = {RELATED: {"taskId": "two+1", "x": 1}, "y": 2}

    assert first == created("1")
    assert second == created("two+1", _meta=renamed)
    assert (await ask(tasks, ann, "tasks/get", taskId="two+1"))["taskId"] == "two+1"
    assert (await ask(tasks, ann, "tasks/result", taskId="two+1"))["_meta"] == renamed
    assert one.asked == []
    assert two.asked == [("tasks/get", {"taskId": "1"}), ("tasks/result", {"taskId": "1"})]
    two.changed("1", status="completed")
    assert told == [
        {
            "jsonrpc": "2.0",
            "method": "notifications/tasks/status",
            "params": {"taskId": "two+1", "status": "completed"},
        }
    ]


def test_status_reaches_its_client_only_from_where_the_task_is() -> None:
    one = Runner("one", apart=True)
    anns: list[Any] = []
    bobs: list[Any] = []
    tasks, ann, bob = tasks_of(one), client("ann", anns), client("bob", bobs)
    for asker in (ann, bob):
        tasks.remember(asker, Work("one"), created("1"))

    one.changed("1", place=bob.key)
    one.changed("1", place="")
    one.changed("2", place=ann.key)

    assert (len(anns), len(bobs)) == (0, 1)


async def test_list_holds_what_its_servers_still_know_page_by_page() -> None:
    one, two = Runner("one"), Runner("two")
    tasks, ann = tasks_of(one, two), client()
    for number in range(PAGE + 1):
        tasks.remember(ann, Work("one"), created(f"t{number}"))

    tasks.remember(client("bob"), Work("one"), created("bobs"))
    one.answers["tasks/get"] = {"status": "working"}
    first = await ask(tasks, ann, "tasks/list")
    second = await ask(tasks, ann, "tasks/list", cursor=first["nextCursor"])
    tasks.remember(ann, Work("two"), created("gone"))
    two.answers["tasks/get"] = {"status": "working"}
    last = await ask(tasks, ann, "tasks/list", cursor=first["nextCursor"])
    two.is_away = True
    without = await ask(tasks, ann, "tasks/list", cursor=first["nextCursor"])

    assert (len(first["tasks"]), second) == (PAGE, {"tasks": [{"status": "working"}]})
    assert {"taskId": "bobs"} not in [params for _, params in one.asked]
    assert (len(last["tasks"]), len(without["tasks"])) == (2, 1)
    two.is_away = False
    assert len((await ask(tasks, ann, "tasks/list", cursor=first["nextCursor"]))["tasks"]) == 2
    for cursor in ("x", 7, "-1"):
        with pytest.raises(JsonRpcError, match="unknown cursor"):
            await ask(tasks, ann, "tasks/list", cursor=cursor)


async def test_task_that_its_server_has_forgotten_leaves_the_list() -> None:
    class Forgetful(Runner):
        async def request(self, *request: Any, **more: Any) -> Any:
            self.asked.append(request[1:3])
            raise refused(-32602, "Task not found")

    one = Forgetful("one")
    tasks = tasks_of(one)
    tasks.remember(client(), Work("one"), created("t"))

    with pytest.raises(RpcError, match="Task not found"):
        await ask(tasks, client(), "tasks/get", taskId="t")

    assert await ask(tasks, client(), "tasks/list") == {"tasks": []}
    with pytest.raises(JsonRpcError, match="there is no task"):
        await ask(tasks, client(), "tasks/get", taskId="t")

    assert len(one.asked) == 2


async def test_each_era_has_tasks_of_its_own_kind() -> None:
    able = {**TASKS, "cancel": {}, "list": {}}
    one, two = Runner("one"), Runner("two", era="modern", capabilities={"tasks": able})
    tasks = Tasks(addressed(one, two), STAMP, tasks_of(one, two))

    declared = tasks.capabilities()
    assert declared == {"tasks": {"list": {}, **TASKS}}
    assert capabilities_for(declared, modern=False) == declared
    assert capabilities_for(declared, modern=True) == {}
    assert tasks_of(two).capabilities() == {}
    two.era = "legacy"
    assert tasks.capabilities() == {"tasks": able}

    for method, modern in [("tasks/update", False), ("tasks/result", True), ("tasks/list", True)]:
        with pytest.raises(JsonRpcError, match="there is no method"):
            await tasks.methods[method](Asker(session="ann", modern=modern), {"taskId": "t"}, None)


def test_call_becomes_a_task_only_where_that_works() -> None:
    one, old = Runner("one"), Runner("old", era="modern")
    offered: Any = {"a": Work("one"), "b": Work("old"), "c": object()}
    tasks = tasks_of(one, old)
    ann = Asker(modern=False, task={"ttl": 5})

    assert tasks.as_tasks(ann, "a", offered) == {"a": Work("one", task={"ttl": 5})}
    for name in ("b", "c"):
        with pytest.raises(JsonRpcError) as caught:
            tasks.as_tasks(ann, name, offered)

        assert caught.value.code == -32601

    with pytest.raises(JsonRpcError, match="must be an object"):
        tasks.as_tasks(Asker(modern=False, task=[]), "a", offered)

    assert tasks_of(old).as_tasks(ann, "b", offered) is offered


def test_support_is_listed_only_where_it_works_and_looked_at_again_when_that_changes() -> None:
    one, old = Runner("one"), Runner("old", era="modern")
    tasks = tasks_of(one, old)
    shapes: list[dict[str, Any]] = [
        {"name": "a", "execution": {"taskSupport": "optional"}},
        {"name": "b", "execution": {"taskSupport": "optional"}},
        {"name": "c", "execution": {"taskSupport": "required", "x": 1}},
        {"name": "d", "execution": 7},
        {"name": "e", "execution": {"taskSupport": "forbidden"}},
    ]
    offered: Any = {
        "a": Work("one"),
        "b": Work("old"),
        "c": Work("old"),
        "d": Work("old"),
        "e": Work("old"),
    }

    assert tasks.listed(shapes, offered) == [
        shapes[0],
        {"name": "b"},
        {"name": "c", "execution": {"x": 1}},
        *shapes[3:],
    ]
    one.relist()
    before = tasks.version
    one.relist()
    assert tasks.version == before
    old.era = "legacy"
    old.relist()
    assert tasks.version == before + 1
    assert tasks.listed(shapes, offered) == shapes


def test_book_keeps_the_latest_tasks_of_a_client() -> None:
    one, book = Runner("one"), Book()
    for number in range(MOST_TASKS + 1):
        book.enter("ann", f"t{number}", one, "", None)

    sheet = book.sheet("ann")
    assert sheet is not None
    assert len(sheet.tasks) == MOST_TASKS
    assert book.whose(one, "", "t0") is None
    assert book.whose(one, "", "t1") is not None
    assert book.whose(one, "", 7) is None


def test_id_that_a_server_uses_again_is_no_longer_whose_it_was() -> None:
    one, book = Runner("one"), Book()
    book.enter("ann", "1", one, "", None)
    again = book.enter("bob", "1", one, "", None)
    book.enter("cid", "1", one, "cid", None)

    [ann, bob] = [book.sheet(name) for name in ("ann", "bob")]
    assert ann is not None
    assert ann.tasks == {}
    assert book.whose(one, "", "1") == (bob, again)
    book.forget("bob")
    assert book.whose(one, "", "1") is None
    assert book.whose(one, "cid", "1") is not None
