"""Who looks on at what a gateway serves: as far as it is switched on, and nobody otherwise."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio
from anyio import to_thread

from bridge.calls.observing import Observer, Observers, Tracer
from bridge.config.settings import ServeSettings
from bridge.downstream.pages import Page
from bridge.downstream.polling import Poll
from bridge.errors import ConfigError
from bridge.gateway.assembly import Assembly
from bridge.gateway.audit import AuditLog
from bridge.gateway.resolve import loaded
from bridge.telemetry import log
from bridge.upstream.status import UpstreamStatus

METRICS_PATH: Final = "/metrics"
LAST_SPANS: Final = 3.0
"""Seconds that spans get, at the end, to reach where they are collected."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Whoever is told of calls, and the pages that show what they have seen, by path."""

    observers: Observers
    pages: Mapping[str, Page]


@asynccontextmanager
async def observing(
    assembly: Assembly, transport: str, others: Poll | None = None
) -> AsyncIterator[Observation]:
    """Set up what the settings switch on; at the end nothing that was seen is held back.

    `others` are the processes that serve the same address, if there are any.

    Raises:
        ConfigError: A package is missing, or a file cannot be written.
    """
    serve = assembly.settings.serve
    members: list[Observer] = []
    pages: dict[str, Page] = {}
    tracer: Tracer | None = None
    async with AsyncExitStack() as stack:
        if serve.audit is not None:
            audit = AuditLog(serve.audit, arguments=serve.audit_arguments)
            stack.callback(audit.close)
            members.append(audit)

        if serve.metrics and _has_pages(serve, transport):
            metrics = loaded("bridge.gateway.metrics:Metrics", "serve.metrics", "gateway")(
                partial(_statuses, assembly), others
            )
            members.append(metrics)
            pages[METRICS_PATH] = metrics

        if serve.tracing:
            over = "pipe" if transport == "stdio" else "tcp"
            tracing = loaded("bridge.gateway.tracing:open_tracing", "serve.tracing", "otel")(
                serve.name, over
            )
            stack.push_async_callback(_in_time, tracing.close)
            tracer = tracing

        yield Observation(Observers(members, tracer), pages)


def _statuses(assembly: Assembly) -> list[UpstreamStatus]:
    return [upstream.status() for upstream in assembly.upstreams.values()]


def _has_pages(serve: ServeSettings, transport: str) -> bool:
    """Whether there is a place for metrics.

    Raises:
        ConfigError: It is taken by the MCP endpoint.
    """
    if transport != "http":
        log.warning("serve.metrics has no effect over %s: they are a page of http alone", transport)
        return False

    if serve.http.path == METRICS_PATH:
        raise ConfigError(f'serve.http.path: "{METRICS_PATH}" is where the metrics are; move one')

    return True


async def _in_time(close: Callable[[], None]) -> None:
    """Send the last spans, in a thread: it may take as long as their collector pleases."""
    with anyio.move_on_after(LAST_SPANS, shield=True):
        await to_thread.run_sync(close, abandon_on_cancel=True)
