"""Metrics of calls, clients and upstreams, in the text form of Prometheus.

Loaded only where they are switched on: prometheus-client belongs to an extra. Figures are kept
as plain numbers, which only the event loop changes, and are dressed up when somebody looks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, get_args

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from bridge.calls.observing import CallRecord
from bridge.downstream.pages import Load
from bridge.upstream.status import State, UpstreamStatus

MOST_TOOLS: Final = 2000
"""Names that get figures of their own; servers that keep renaming their tools get no more."""

NOT_OFFERED: Final = ""
OTHERS: Final = "(others)"
DECISIONS: Final = ("asked", "granted", "refused")
BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Upper bounds, in seconds, of the buckets of how long calls took; the last has none."""


class Metrics:
    """An `Observer`, and the page that shows what it has seen, as a `downstream.pages.Page`.

    A name that a client made up is no label: `tool` is empty where no such tool is offered.
    """

    def __init__(self, statuses: Callable[[], Sequence[UpstreamStatus]]) -> None:
        """`statuses` says how each upstream is, whenever somebody looks."""
        self._calls: Counter[tuple[str, str, str]] = Counter()
        self._times: dict[str, _Times] = {}
        self._decisions = Counter(dict.fromkeys(DECISIONS, 0))
        self._statuses = statuses

    def called(self, record: CallRecord) -> None:
        """Count one call."""
        tool, upstream = record.tool if record.upstream else NOT_OFFERED, record.upstream
        times = self._times.get(tool)
        if times is None:
            if len(self._times) >= MOST_TOOLS:
                tool = upstream = OTHERS

            times = self._times.setdefault(tool, _Times())

        times.add(record.seconds)
        self._calls[tool, upstream, record.kind] += 1
        if record.questions:
            self._decisions["asked"] += record.questions

        if record.approved:
            self._decisions["granted"] += 1

        if record.kind == "refused":
            self._decisions["refused"] += 1

    def page(self, load: Load) -> tuple[str, bytes]:
        """The media type and the text of the page; from any thread."""
        registry = CollectorRegistry()
        registry.register(_Page([*self._so_far(), *self._now(load)]))
        return CONTENT_TYPE_PLAIN_0_0_4, generate_latest(registry)

    def _so_far(self) -> Iterator[Metric]:
        calls = CounterMetricFamily(
            "bridge_calls",
            "Calls of MCP clients that are over, by offered name and how they ended.",
            labels=["tool", "upstream", "outcome"],
        )
        for labels, count in self._calls.copy().items():
            calls.add_metric(labels, count)

        yield calls
        times = HistogramMetricFamily(
            "bridge_call_duration_seconds",
            "How long calls took, with all that they waited for, by offered name.",
            labels=["tool"],
        )
        for tool, one in self._times.copy().items():
            times.add_metric([tool], one.buckets(), one.total)

        yield times
        approvals = CounterMetricFamily(
            "bridge_approvals",
            "People's approvals: asked for, granted (a call ran with one), refused (or none came).",
            labels=["decision"],
        )
        for decision in DECISIONS:
            approvals.add_metric([decision], self._decisions[decision])

        yield approvals

    def _now(self, load: Load) -> Iterator[Metric]:
        yield GaugeMetricFamily("bridge_calls_running", "Calls that run now.", load.calls)
        yield GaugeMetricFamily(
            "bridge_sessions_open", "Sessions of legacy clients that are open.", load.sessions
        )
        states = GaugeMetricFamily(
            "bridge_upstream_state",
            "1 for the state that an upstream is in, 0 for those that it is not in.",
            labels=["upstream", "state"],
        )
        for status in self._statuses():
            for state in get_args(State):
                states.add_metric([status.name, state], float(status.state == state))

        yield states


class _Times:
    """How long the calls of one tool took: how many fell in which bucket, and their sum."""

    __slots__ = ("_counts", "total")

    def __init__(self) -> None:
        self._counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self._counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """How many took no longer than each bound, the last being none (Prometheus)."""
        found, so_far = [], 0
        for bound, count in zip((*BUCKETS, float("inf")), self._counts, strict=True):
            so_far += count
            found.append(("+Inf" if bound == float("inf") else str(float(bound)), float(so_far)))

        return found


class _Page(Collector):
    """The figures of one look at them."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Sequence[Metric]:
        """The figures."""
        return self._metrics
