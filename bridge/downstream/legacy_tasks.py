"""Tasks of the legacy era, each with the server that runs it (MCP 2025-11-25, tasks).

A legacy client may want a call run as a task. Where the tool's server does that, it is passed on
with the call, and the task it answers with is that client's: nobody else may ask for it, or hears
of it. The server's words go through; only an id that the client has already, of another server's
task, reads otherwise. Where no server runs tasks, none are declared and a `task` is ignored.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import anyio

from bridge.core.content import Result
from bridge.core.context import ProgressSink
from bridge.core.rpc import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError, rpc_error
from bridge.core.tool import Tool
from bridge.downstream import eras
from bridge.downstream.addresses import Addresses
from bridge.downstream.asker import Asker
from bridge.downstream.forwarding import forward, text_param
from bridge.downstream.jsonrpc import InvalidParams, JsonRpcError
from bridge.downstream.large import LargeResults
from bridge.downstream.task_book import Book, Task
from bridge.downstream.task_source import TaskSource
from bridge.upstream.protocol import TASK_STATUS

LIST, RESULT = "tasks/list", "tasks/result"
METHODS = ("tasks/get", RESULT, LIST, "tasks/cancel")
PAGE: Final = 50
"""How many tasks a page of the list has: each is asked for, all at once."""

MOST_WAITING: Final = 64
"""How many results one client may wait for at once."""

MOST_WAITED_FOR: Final = 512
"""How many all clients may wait for: half of what a channel carries, so that calls go on."""

EXECUTION, SUPPORT, FORBIDDEN = "execution", "taskSupport", "forbidden"


class LegacyTasks:
    """What legacy clients' tasks need, over all servers."""

    def __init__(
        self,
        addresses: Addresses,
        sources: Sequence[TaskSource],
        large: LargeResults | None = None,
    ) -> None:
        """`large` takes care of results that are too large; without it every one goes out whole."""
        self.version = 0
        self._addresses = addresses
        self._sources = {source.name: source for source in sources}
        self._large = large
        self._book = Book()
        self._able = frozenset[str]()
        self._waited_for = 0
        for source in sources:
            source.on_news.append(self._relisted)
            source.on_task.append(partial(self._told, source))

    def capabilities(self) -> Mapping[str, Any]:
        """What of tasks reaches a server. The list is ours, so there is one in any case."""
        able = [source for source in self._sources.values() if source.runs_tasks]
        if not able:
            return {}

        declared = [source.listed.capabilities["tasks"] for source in able]
        found: dict[str, Any] = {"list": {}}
        if any("cancel" in one for one in declared):
            found["cancel"] = {}

        return {"tasks": {**found, "requests": {"tools": {"call": {}}}}}

    def listed(
        self, shapes: Sequence[dict[str, Any]], tools: Mapping[str, Tool]
    ) -> list[dict[str, Any]]:
        """Definitions as legacy clients read them: `taskSupport` only where tasks are run."""
        return [
            shape if self._runs(tools.get(shape["name"])) else _without_support(shape)
            for shape in shapes
        ]

    def as_tasks(self, asker: Asker, name: str, tools: Mapping[str, Tool]) -> Mapping[str, Tool]:
        """The tools for a call that its client wants run as a task.

        What no receiver declared is ignored; a tool that does not say that it runs as a task is
        not to be called so (MCP 2025-11-25, tasks, capability and tool-level negotiation). What
        the tool of a server that runs tasks says of itself, that server sees to.

        Raises:
            JsonRpcError: This tool is not run as a task.
        """
        if not any(source.runs_tasks for source in self._sources.values()):
            return tools

        tool = tools.get(name)
        as_task = getattr(tool, "as_task", None)
        if as_task is None or not self._runs(tool):
            said = f'"{name}" is not run as a task: call it without "task"'
            raise JsonRpcError(METHOD_NOT_FOUND, said)

        if not isinstance(asker.task, dict):
            raise InvalidParams('the "task" of a call must be an object')

        return {name: as_task(asker.task)}

    def remember(self, asker: Asker, tool: Tool | None, answer: Result) -> Result:
        """Note whose the task is, if this answer to a call is one; the answer for the client."""
        task = answer.get("task")
        own = task.get("taskId") if isinstance(task, dict) else None
        source = self._sources.get(getattr(tool, "upstream", ""))
        if not isinstance(own, str) or source is None or not source.runs_tasks:
            return answer

        entered = self._book.enter(asker.key, own, source, source.place(asker), tool)
        self._reached(asker)
        return answer if entered.shown == own else entered.outward(answer)

    def forget(self, client: str) -> None:
        """Keep nothing for the client of this key: it is gone."""
        self._book.forget(client)

    async def answer(
        self,
        asker: Asker,
        method: str,
        params: Mapping[str, Any],
        on_progress: ProgressSink | None,
    ) -> Result:
        """Answer one of METHODS.

        Raises:
            JsonRpcError: Nobody runs tasks, or the client has no such task.
            RpcError: The task's server answered with this error, or cannot be reached.
        """
        if method not in METHODS or not any(one.runs_tasks for one in self._sources.values()):
            raise JsonRpcError(METHOD_NOT_FOUND, f'there is no method "{method}" here')

        self._reached(asker)
        if method == LIST:
            return await self._list(asker, params)

        task = self._task(asker, method, params)
        if method == RESULT:
            return await self._result(asker, task, params, on_progress)

        return await self._asked(asker, task, method, params)

    async def _asked(
        self, asker: Asker, task: Task, method: str, params: Mapping[str, Any]
    ) -> Result:
        answer = await forward(task.source, asker, method, params, {"taskId": task.own})
        return eras.for_client(task.outward(answer), modern=False, stamp={})

    async def _result(
        self,
        asker: Asker,
        task: Task,
        params: Mapping[str, Any],
        on_progress: ProgressSink | None,
    ) -> Result:
        """The result of the call that became a task, treated as any result of that call."""
        with self._waits(asker):
            answer = await forward(
                task.source, asker, RESULT, params, {"taskId": task.own}, on_progress
            )

        answer = self._addresses.answer(task.source.name, task.outward(answer))
        if self._large is not None and not self._large.is_small(answer):
            answer = await self._large.call(asker, task.tool, answer)

        return eras.for_client(answer, modern=False, stamp={})

    async def _list(self, asker: Asker, params: Mapping[str, Any]) -> Result:
        """A page of the client's own tasks.

        Each is asked for: a server's list shows what everybody has who shares its conversation,
        it may have none, and its pages end elsewhere than ours.
        """
        page, has_more = self._book.page(asker.key, _number(params.get("cursor")), PAGE)
        found: dict[int, Result] = {}

        async def ask(task: Task) -> None:
            try:
                found[task.number] = await self._asked(asker, task, "tasks/get", {})
            except RpcError as exc:  # it is gone, or its server is: then it cannot be got either
                if exc.code == INVALID_PARAMS:
                    self._book.drop(asker.key, task)

        async with anyio.create_task_group() as tasks:
            for task in page:
                tasks.start_soon(ask, task)

        answer: Result = {"tasks": [found[task.number] for task in page if task.number in found]}
        return {**answer, "nextCursor": str(page[-1].number)} if has_more else answer

    def _task(self, asker: Asker, method: str, params: Mapping[str, Any]) -> Task:
        shown = text_param(params, method, "taskId")
        sheet = self._book.sheet(asker.key)
        task = None if sheet is None else sheet.tasks.get(shown)
        if task is None:
            raise JsonRpcError(INVALID_PARAMS, f'there is no task "{shown[:80]}" here')

        return task

    @contextmanager
    def _waits(self, asker: Asker) -> Generator[None]:
        """While the client waits for a result, which may take as long as its task.

        Raises:
            RpcError: It waits for too many.
        """
        sheet = self._book.sheet(asker.key)
        if sheet is None:
            yield
            return

        if sheet.waiting >= MOST_WAITING or self._waited_for >= MOST_WAITED_FOR:
            raise rpc_error(-32000, "too many results are waited for here: ask with tasks/get")

        sheet.waiting += 1
        self._waited_for += 1
        try:
            yield
        finally:
            sheet.waiting -= 1
            self._waited_for -= 1

    def _reached(self, asker: Asker) -> None:
        """Keep how the client is reached, to tell it of its tasks."""
        sheet = self._book.sheet(asker.key)
        if sheet is not None and asker.post is not None:
            sheet.post = asker.post

    def _told(self, source: TaskSource, place: str, params: dict[str, Any]) -> None:
        """Tell the client whose task it is, and nobody else."""
        found = self._book.whose(source, place, params.get("taskId"))
        if found is not None and (post := found[0].post) is not None:
            told = found[1].outward(params)
            post({"jsonrpc": "2.0", "method": TASK_STATUS, "params": told})

    def _runs(self, tool: Tool | None) -> bool:
        source = self._sources.get(getattr(tool, "upstream", ""))
        return source is not None and source.runs_tasks

    def _relisted(self, method: str, params: dict[str, Any]) -> None:
        able = frozenset(name for name, one in self._sources.items() if one.runs_tasks)
        if able != self._able:
            self._able = able
            self.version += 1


def _without_support(shape: dict[str, Any]) -> dict[str, Any]:
    """The definition of a tool that is not run as a task; most servers say that of theirs."""
    execution = shape.get(EXECUTION)
    if not isinstance(execution, dict) or execution.get(SUPPORT, FORBIDDEN) == FORBIDDEN:
        return shape

    rest = {key: value for key, value in execution.items() if key != SUPPORT}
    kept = {key: value for key, value in shape.items() if key != EXECUTION}
    return {**kept, EXECUTION: rest} if rest else kept


def _number(cursor: Any) -> int:
    """The number of the last task on the page before.

    Raises:
        InvalidParams: We never gave this cursor.
    """
    if cursor is None:
        return 0

    if not isinstance(cursor, str) or not (cursor.isascii() and cursor.isdecimal()):
        raise InvalidParams(f"unknown cursor {str(cursor)[:80]!r}")

    return int(cursor[:20])
