"""Metrics of calls, clients and upstreams, in the text form of Prometheus.

Loaded only where they are switched on: prometheus-client belongs to an extra.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, get_args

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from bridge.calls.observing import CallRecord
from bridge.downstream.pages import Load
from bridge.upstream.status import State, UpstreamStatus

MOST_TOOLS: Final = 2000
"""Names that get figures of their own; servers that keep renaming their tools get no more."""

NOT_OFFERED: Final = ""
OTHERS: Final = "(others)"
BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """An `Observer`, and the page that shows what it has seen, as a `downstream.pages.Page`.

    A name that a client made up is no label: `tool` is empty where no such tool is offered.
    """

    def __init__(self, statuses: Callable[[], Sequence[UpstreamStatus]]) -> None:
        """`statuses` says how each upstream is, whenever somebody looks."""
        self._registry = CollectorRegistry(auto_describe=True)
        self._calls = Counter(
            "bridge_calls",
            "Calls of MCP clients that are over, by offered name and how they ended.",
            ["tool", "upstream", "outcome"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "bridge_call_duration_seconds",
            "How long calls took, with what they waited for, by offered name.",
            ["tool"],
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._approvals = Counter(
            "bridge_approvals",
            "People's approvals: asked for, granted (a call ran with one), refused (or none came).",
            ["decision"],
            registry=self._registry,
        )
        asked, granted, refused = "asked", "granted", "refused"
        self._asked = self._approvals.labels(asked)
        self._granted = self._approvals.labels(granted)
        self._refused = self._approvals.labels(refused)
        self._now = _Now(statuses)
        self._registry.register(self._now)
        self._counters: dict[tuple[str, str, str], Counter] = {}
        self._histograms: dict[str, Histogram] = {}

    def called(self, record: CallRecord) -> None:
        """Count one call."""
        tool = record.tool if record.upstream else NOT_OFFERED
        histogram = self._histograms.get(tool)
        if histogram is None:
            tool, histogram = self._known(tool)

        histogram.observe(record.seconds)
        upstream = record.upstream if tool is not OTHERS else OTHERS
        key = tool, upstream, record.kind
        counter = self._counters.get(key)
        if counter is None:
            counter = self._counters[key] = self._calls.labels(*key)

        counter.inc()
        if record.questions:
            self._asked.inc(record.questions)

        if record.approved:
            self._granted.inc()

        if record.kind == "refused":
            self._refused.inc()

    def page(self, load: Load) -> tuple[str, bytes]:
        """The media type and the text of the page."""
        self._now.load = load
        return CONTENT_TYPE_PLAIN_0_0_4, generate_latest(self._registry)

    def _known(self, tool: str) -> tuple[str, Histogram]:
        """The label that stands for a tool which is new here, with its figures."""
        if len(self._histograms) >= MOST_TOOLS:
            tool = OTHERS

        histogram = self._histograms.get(tool)
        if histogram is None:
            histogram = self._histograms[tool] = self._seconds.labels(tool)

        return tool, histogram


class _Now(Collector):
    """What is true at the moment at which somebody looks."""

    def __init__(self, statuses: Callable[[], Sequence[UpstreamStatus]]) -> None:
        self._statuses = statuses
        self.load = Load(0, 0)

    def collect(self) -> Iterator[Metric]:
        """The figures of this moment."""
        load = self.load
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
