"""Which task is whose: what every legacy client has under way, and with which server."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bridge.core.tool import Tool
from bridge.downstream.client import Post
from bridge.downstream.task_source import TaskSource
from bridge.upstream.protocol import RELATED_TASK

MOST_TASKS: Final = 1000
"""How many tasks of one client are remembered, the latest."""

MOST_CLIENTS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Task:
    """One task: `own` is its server's id, `shown` the one that its client knows it by.

    They differ only where the client has a task of the same id with another server. `place` is
    whose conversation with the server it is in, "" for the shared one. `tool` is what was called;
    `number` grows from task to task.
    """

    number: int
    shown: str
    own: str
    source: TaskSource
    place: str
    tool: Tool | None

    def outward(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """What its server says of it, under the id that the client knows."""
        said = dict(message)
        if self.shown == self.own:
            return said

        if said.get("taskId") == self.own:
            said["taskId"] = self.shown

        if isinstance(task := said.get("task"), dict):
            said["task"] = {**task, "taskId": self.shown}

        meta = said.get("_meta")
        if isinstance(meta, dict) and isinstance(related := meta.get(RELATED_TASK), dict):
            said["_meta"] = {**meta, RELATED_TASK: {**related, "taskId": self.shown}}

        return said


@dataclass(slots=True)
class Sheet:
    """One client's tasks, the oldest first, by the ids that it knows.

    `post` reaches the client; it is that of its latest request. `waiting` counts the results that
    it waits for.
    """

    post: Post | None = None
    tasks: OrderedDict[str, Task] = field(default_factory=OrderedDict)
    waiting: int = 0


class Book:
    """All clients' tasks."""

    def __init__(self) -> None:
        self._sheets: OrderedDict[str, Sheet] = OrderedDict()
        self._clients: dict[tuple[str, str, str], tuple[str, str]] = {}
        self._numbers = itertools.count(1)

    def sheet(self, client: str) -> Sheet | None:
        """What this client has; None if it never had a task."""
        return self._sheets.get(client)

    def enter(
        self, client: str, own: str, source: TaskSource, place: str, tool: Tool | None
    ) -> Task:
        """Note a new task of this client's.

        Whoever had one of that id, in the same place with the same server, has it no more: the
        server has begun anew since.
        """
        if (before := self.whose(source, place, own)) is not None:
            self._leave(*before)

        sheet = self._sheets.setdefault(client, Sheet())
        if len(self._sheets) > MOST_CLIENTS:
            self.forget(next(iter(self._sheets)))

        shown = own
        while shown in sheet.tasks:
            shown = f"{source.name}+{shown}"

        task = Task(next(self._numbers), shown, own, source, place, tool)
        sheet.tasks[shown] = task
        self._clients[source.name, place, own] = client, shown
        if len(sheet.tasks) > MOST_TASKS:
            self._leave(sheet, next(iter(sheet.tasks.values())))

        return task

    def drop(self, client: str, task: Task) -> None:
        """Forget a task of this client's, unless a newer one has its id."""
        sheet = self._sheets.get(client)
        if sheet is not None and sheet.tasks.get(task.shown) is task:
            self._leave(sheet, task)

    def forget(self, client: str) -> None:
        """This client is gone, and nobody can ask for its tasks any more."""
        sheet = self._sheets.pop(client, None)
        for task in () if sheet is None else sheet.tasks.values():
            self._clients.pop((task.source.name, task.place, task.own), None)

    def whose(self, source: TaskSource, place: str, own: object) -> tuple[Sheet, Task] | None:
        """The client of a task that a server speaks of, and the task; None if it is nobody's."""
        if not isinstance(own, str):
            return None

        client, shown = self._clients.get((source.name, place, own), ("", ""))
        sheet = self._sheets.get(client)
        task = None if sheet is None else sheet.tasks.get(shown)
        return None if sheet is None or task is None else (sheet, task)

    def page(self, client: str, after: int, most: int) -> tuple[Sequence[Task], bool]:
        """The tasks of this client's that follow a number, and whether there are more."""
        sheet = self._sheets.get(client)
        tasks = [] if sheet is None else [t for t in sheet.tasks.values() if t.number > after]
        return tasks[:most], len(tasks) > most

    def _leave(self, sheet: Sheet, task: Task) -> None:
        del sheet.tasks[task.shown]
        del self._clients[task.source.name, task.place, task.own]
