"""What it costs to look on, in CPU time of one call: `python -m tests.bench.observing`.

It drives `call_tool` by hand, without an event loop or a front, over a tool that answers at
once. What is printed is the difference to handlers that nobody looks at; they take turns.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ReadableSpan,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from bridge.calls.observing import CallRecord, Observers
from bridge.core.context import local_context
from bridge.downstream.asker import Asker
from bridge.downstream.handlers import Handlers
from bridge.downstream.observed import ObservedHandlers
from bridge.gateway.audit import AuditLog
from bridge.gateway.metrics import Metrics
from bridge.gateway.spans import LeanTracer
from bridge.gateway.tracing import Tracing
from bridge.tools.catalog import Catalog
from bridge.tools.toolsets import StaticToolset
from tests.bench.calls import ARGS, Instant, microseconds

PARAMS = {"name": "instant", "arguments": ARGS}
TRACED = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}


class Nothing:
    """An observer that does nothing: what it costs to make a record of each call."""

    def called(self, record: CallRecord) -> None:
        return None


class Dropped(SpanExporter):
    """Takes spans and forgets them: what it costs to make them."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def watchers(work: Path) -> dict[str, Observers]:
    """Everybody who may look on, by what the configuration calls it."""
    provider, batches = TracerProvider(shutdown_on_exit=False), BatchSpanProcessor(Dropped())
    provider.add_span_processor(batches)
    scope = InstrumentationScope("bench")
    lean = LeanTracer(provider.resource, provider.sampler, batches, scope)
    audit, metrics = AuditLog(work / "audit.jsonl"), Metrics(list)
    tracing = Tracing(lean, "tcp")
    return {
        "a record": Observers([Nothing()]),
        "audit": Observers([audit]),
        "metrics": Observers([metrics]),
        "tracing": Observers(tracer=tracing),
        "the SDK's spans": Observers(tracer=Tracing(provider.get_tracer("bench"), "tcp")),
        "all of them": Observers([audit, metrics], tracing),
    }


def measured(rounds: int, runs: int) -> dict[str, float]:
    """Microseconds that each of them adds to a call."""
    catalog = Catalog(StaticToolset([Instant("instant")]))
    anyio.run(catalog.refresh, local_context())

    def cost(handlers: Handlers, meta: dict[str, Any]) -> float:
        asker = Asker(modern=False, session="conversation")

        def job() -> Any:
            asker.meta = meta
            return handlers.call_tool(asker, PARAMS)

        return microseconds(job, rounds, 1)

    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        bare = Handlers(catalog)
        others = {
            name: ObservedHandlers(one, catalog) for name, one in watchers(Path(work)).items()
        }
        return alternating(lambda: cost(bare, TRACED), others, lambda one: cost(one, TRACED), runs)


def alternating(
    bare: Callable[[], float],
    others: dict[str, ObservedHandlers],
    cost: Callable[[Handlers], float],
    runs: int,
) -> dict[str, float]:
    """The median differences over `runs`, in each of which everybody has a turn."""
    added: dict[str, list[float]] = {name: [] for name in others}
    floors = []
    for _ in range(runs):
        floor = bare()
        floors.append(floor)
        for name, one in others.items():
            added[name].append(cost(one) - floor)

    medians = {name: statistics.median(each) for name, each in added.items()}
    return {"a call without": statistics.median(floors), **medians}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5_000)
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    for what, cost in measured(options.rounds, options.runs).items():
        sys.stdout.write(f"{what:<16}{cost:8.2f} µs CPU\n")


if __name__ == "__main__":
    main()
