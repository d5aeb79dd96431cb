"""What is served beside the tools, over the upstreams of an assembly."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio

from bridge.calls.observing import Observers
from bridge.core.content import Result
from bridge.core.context import ProgressSink
from bridge.downstream.addresses import Addresses
from bridge.downstream.asker import Asker
from bridge.downstream.changes import News
from bridge.downstream.completion import Completion
from bridge.downstream.confirm import Confirmations
from bridge.downstream.declared import Declared
from bridge.downstream.handlers import Handlers, settled
from bridge.downstream.kept import KeptResources
from bridge.downstream.large import LargeResults
from bridge.downstream.legacy_tasks import RESULT, LegacyTasks
from bridge.downstream.observed import ObservedHandlers
from bridge.downstream.offering import Settle
from bridge.downstream.passing import Passing
from bridge.downstream.prompts import Prompts
from bridge.downstream.resources import Resources
from bridge.downstream.sealed import Seals
from bridge.downstream.task_source import TaskNews
from bridge.downstream.tasks import Tasks
from bridge.gateway.assembly import Assembly, prefix_of
from bridge.upstream import inputs
from bridge.upstream.capabilities import runs_calls_as_tasks
from bridge.upstream.channel import Options
from bridge.upstream.library import Listed
from bridge.upstream.progress import with_progress
from bridge.upstream.protocol import (
    MULTI_ROUND,
    PROMPTS_CHANGED,
    RESOURCE_UPDATED,
    RESOURCES_CHANGED,
    TASK_STATUS,
)
from bridge.upstream.toolset import MCPToolset
from bridge.version import VERSION


class UpstreamSource:
    """One upstream as a `downstream.task_source.TaskSource`.

    `timeout` bounds each request, in seconds; but the result of a task takes as long as the task.
    """

    def __init__(self, upstream: MCPToolset, prefix: str, timeout: float | None) -> None:
        self.on_news: list[News] = []
        self.on_task: list[TaskNews] = []
        self.prefix = prefix
        self._upstream = upstream
        self._timeout = timeout
        upstream.library.on_change.append(self._relisted)
        upstream.connection.on_news.append(self._heard)
        upstream.sessions.on_task_status.append(self._task_changed)

    @property
    def name(self) -> str:
        """The upstream's name."""
        return self._upstream.name

    @property
    def listed(self) -> Listed:
        """Its last good listings."""
        return self._upstream.library.snapshot

    @property
    def runs_tasks(self) -> bool:
        """Whether it is of the legacy era and takes `tools/call` with a `task`."""
        is_legacy = self._upstream.connection.known_era == "legacy"
        return is_legacy and runs_calls_as_tasks(self.listed.capabilities)

    def place(self, asker: Asker) -> str:
        """In whose conversation with it this client's requests are; "" for the shared one."""
        return asker.key if self._upstream.sessions.is_apart(asker) else ""

    def may_ask(self, asker: Asker) -> bool:
        """Whether it may ask this client something while it works."""
        return self._upstream.sessions.may_ask(asker)

    async def request(
        self,
        asker: Asker,
        method: str,
        params: dict[str, Any],
        on_progress: ProgressSink | None = None,
    ) -> Result:
        """Send one request for this client; see `Source.request`."""
        timeout = None if method == RESULT else self._timeout
        if on_progress is None:
            return await self._sent(method, params, Options(timeout, caller=asker))

        return await with_progress(
            lambda listen: self._sent(method, params, Options(timeout, listen, caller=asker)),
            on_progress,
        )

    async def subscribe(self, uri: str) -> None:
        """Follow one of its resources; see `Source.subscribe`."""
        await self._upstream.connection.subscribe(uri)

    async def unsubscribe(self, uri: str) -> None:
        """Follow it no more; see `Source.unsubscribe`."""
        await self._upstream.connection.unsubscribe(uri)

    async def _sent(self, method: str, params: dict[str, Any], options: Options) -> Result:
        sessions = self._upstream.sessions
        if method in MULTI_ROUND:
            return await inputs.request(sessions, method, params, options)

        return await sessions.of(options.caller).request(method, params, options)

    def _relisted(self) -> None:
        self._tell(PROMPTS_CHANGED, {})
        self._tell(RESOURCES_CHANGED, {})

    def _heard(self, method: str, params: dict[str, Any]) -> None:
        if method == RESOURCE_UPDATED:
            self._tell(method, params)
        elif method == TASK_STATUS:
            self._task_changed("", params)

    def _task_changed(self, place: str, params: dict[str, Any]) -> None:
        for tell in list(self.on_task):
            tell(place, params)

    def _tell(self, method: str, params: dict[str, Any]) -> None:
        for tell in list(self.on_news):
            tell(method, params)


def to_handlers(
    assembly: Assembly,
    settle: Settle,
    observers: Observers | None = None,
    large: LargeResults | None = None,
    seals: Seals | None = None,
) -> Handlers:
    """Everything that the assembly serves, as handlers; `observers` hear of every call.

    `large` takes care of results that are too large; without it every one goes out whole. `seals`
    are of what clients carry for us; without them it is good in this process alone.
    """
    name = assembly.settings.serve.name
    stamp = {"name": name, "version": VERSION}
    found = sources(assembly)
    addresses = Addresses(found)
    servers = Resources(addresses, stamp, settle)
    resources = servers if large is None else KeptResources(servers, addresses, large, stamp)
    prompts = Prompts(addresses, stamp, settle)
    tasks = Tasks(addresses, stamp, LegacyTasks(addresses, found, large))
    completion = Completion(addresses, prompts, stamp, settle)
    upstreams = list(assembly.upstreams.values())

    async def leave(asker: Asker) -> None:
        tasks.legacy.forget(asker.key)
        async with anyio.create_task_group() as group:
            if large is not None:
                group.start_soon(large.spool.forget, asker.key)

            for upstream in upstreams:
                group.start_soon(upstream.sessions.leave, asker.key)

    async def told(asker: Asker, method: str, params: dict[str, Any]) -> None:
        async with anyio.create_task_group() as group:
            for upstream in upstreams:
                group.start_soon(upstream.sessions.tell, asker.key, method, params)

    make = partial(ObservedHandlers, observers) if observers else Handlers
    return make(
        assembly.catalog,
        name=name,
        confirmations=Confirmations(seals),
        settle=settle,
        more=[resources, prompts, completion, tasks, Declared(addresses.sources)],
        resources=resources,
        leave=leave,
        told=told,
        passing=Passing(addresses, tasks),
        large=large,
    )


def problems_beside(assembly: Assembly) -> tuple[str, ...]:
    """What of the prompts is not offered, and why, one line each."""
    return Prompts(Addresses(sources(assembly)), {}, settled).problems


def sources(assembly: Assembly) -> Sequence[UpstreamSource]:
    """Each upstream as a source, in the order of the configuration."""
    settings = assembly.settings.upstreams
    return [
        UpstreamSource(upstream, prefix_of(name, settings[name]), settings[name].timeout)
        for name, upstream in assembly.upstreams.items()
    ]
