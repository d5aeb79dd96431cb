"""Tasks, forwarded as they are: each to the server that answered with it (MCP, tasks extension).

A server may answer a call with a task instead of a result. Whoever got that answer, and nobody
else, follows the task by its id: with the same server, whose words go through unread. Tasks of
the legacy era are of another kind: see `legacy_tasks`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bridge.core.content import Result
from bridge.core.context import ProgressSink
from bridge.core.rpc import INVALID_PARAMS, METHOD_NOT_FOUND
from bridge.downstream import eras, legacy_tasks
from bridge.downstream.addresses import Addresses
from bridge.downstream.asker import Asker
from bridge.downstream.changes import News
from bridge.downstream.forwarding import forward, text_param
from bridge.downstream.jsonrpc import JsonRpcError
from bridge.downstream.legacy_tasks import LegacyTasks
from bridge.downstream.offering import Handler
from bridge.downstream.source import Source
from bridge.upstream.capabilities import has_tasks

TASK = "task"
METHODS = ("tasks/get", "tasks/update", "tasks/cancel")
MOST_TASKS: Final = 10_000
"""How many tasks are remembered, the latest, with whose they are."""


class Tasks:
    """An `Offering`; its capability is an extension, which `Declared` tells with the others.

    `legacy` has the tasks of legacy clients; without it they have none.
    """

    def __init__(
        self,
        addresses: Addresses,
        stamp: Mapping[str, Any],
        legacy: LegacyTasks | None = None,
    ) -> None:
        self.legacy = LegacyTasks(addresses, ()) if legacy is None else legacy
        self.on_news: list[News] = []
        self._addresses = addresses
        self._sources: Sequence[Source] = addresses.sources
        self._stamp = dict(stamp)
        self._known: OrderedDict[tuple[str, str], Source] = OrderedDict()

    @property
    def methods(self) -> Mapping[str, Handler]:
        """What is answered here."""
        return {method: self._handler(method) for method in (*METHODS, *legacy_tasks.METHODS)}

    def capabilities(self) -> Mapping[str, Any]:
        """Those of the legacy era."""
        return self.legacy.capabilities()

    def may_ask(self, asker: Asker, method: str, params: Mapping[str, Any]) -> bool:
        """A task asks with an answer, never with a request."""
        return False

    def remember(self, asker: Asker, upstream: str, answer: Result) -> None:
        """Note whose the task is, if this answer of a server's is one."""
        task = answer.get("taskId")
        if answer.get("resultType") != TASK or not isinstance(task, str):
            return

        for source in self._sources:
            if source.name == upstream:
                self._known[asker.principal, task] = source
                self._known.move_to_end((asker.principal, task))

        if len(self._known) > MOST_TASKS:
            self._known.popitem(last=False)

    def _handler(self, method: str) -> Handler:
        async def handle(
            asker: Asker, params: Mapping[str, Any], on_progress: ProgressSink | None
        ) -> Result:
            if asker.modern:
                return await self._forward(asker, method, params)

            return await self.legacy.answer(asker, method, params, on_progress)

        return handle

    async def _forward(self, asker: Asker, method: str, params: Mapping[str, Any]) -> Result:
        if method not in METHODS or not any(map(_has_tasks, self._sources)):
            raise JsonRpcError(METHOD_NOT_FOUND, f'there is no method "{method}" here')

        task = text_param(params, method, "taskId")
        source = self._known.get((asker.principal, task))
        if source is None:
            raise JsonRpcError(INVALID_PARAMS, f'there is no task "{task[:80]}" here')

        # A task's answers to its server's questions ride in the params themselves.
        own = {key: value for key, value in params.items() if key != "_meta"}
        answer = await forward(source, asker, method, {}, own)
        result = answer.get("result")
        if isinstance(result, dict):
            shown = self._addresses.answer(source.name, result)
            answer = answer if shown is result else {**answer, "result": shown}

        return eras.for_client(answer, modern=True, stamp=self._stamp)


def _has_tasks(source: Source) -> bool:
    return has_tasks(source.listed.capabilities)
