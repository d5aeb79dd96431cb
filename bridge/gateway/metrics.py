"""Metrics of calls, clients and upstreams, in the text form of Prometheus.

Loaded only where they are switched on: prometheus-client belongs to an extra. Figures are kept
as plain numbers, which only the event loop changes, and are dressed up when somebody looks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias, get_args

from anyio import to_thread
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
from bridge.downstream.polling import Poll
from bridge.upstream.status import State, UpstreamStatus

MOST_TOOLS: Final = 2000
"""Names that get figures of their own; servers that keep renaming their tools get no more."""

NOT_OFFERED: Final = ""
OTHERS: Final = "(others)"
DECISIONS: Final = ("asked", "granted", "refused")
BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Upper bounds, in seconds, of the buckets of how long calls took; the last has none."""

FURTHER: Final[tuple[State, ...]] = ("idle", "failed", "connecting", "ready")
"""A server that one process speaks with is there, whatever the others have found so far."""

Figures: TypeAlias = dict[str, Any]
"""What one process has seen, as JSON: `Metrics.figures` makes it."""


class Metrics:
    """An `Observer`, and the page that shows what it has seen, as a `downstream.pages.Page`.

    A name that a client made up is no label: `tool` is empty where no such tool is offered. Where
    several processes serve one address, the page of each shows the sums over all of them.
    """

    def __init__(
        self, statuses: Callable[[], Sequence[UpstreamStatus]], others: Poll | None = None
    ) -> None:
        """`statuses` says how each upstream is, whenever somebody looks."""
        self._calls: Counter[tuple[str, str, str]] = Counter()
        self._times: dict[str, _Times] = {}
        self._decisions = Counter(dict.fromkeys(DECISIONS, 0))
        self._statuses = statuses
        self._others = others
        self._load: Callable[[], Load] = lambda: Load(0, 0)

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

    def open(self, load: Callable[[], Load]) -> None:
        """See `Page.open`; from now on the other processes get this one's figures."""
        self._load = load
        if self._others is not None:
            self._others.answer(self.figures)

    async def body(self) -> tuple[str, bytes]:
        """See `Page.body`."""
        theirs, missing = ([], None) if self._others is None else await self._others.ask()
        return await to_thread.run_sync(rendered, [self.figures(), *theirs], missing)

    def figures(self) -> Figures:
        """What was seen so far, and what is true now; nothing of it changes any more."""
        load = self._load()
        return {
            "calls": [[*labels, count] for labels, count in self._calls.items()],
            "times": [[tool, [*one.counts], one.total] for tool, one in self._times.items()],
            "approvals": dict(self._decisions),
            "running": load.calls,
            "sessions": load.sessions,
            "states": {status.name: status.state for status in self._statuses()},
        }


class _Times:
    """How long the calls of one tool took: how many fell in which bucket, and their sum."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds

    def join(self, counts: Sequence[int], total: float) -> None:
        """Add what another process has seen."""
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, counts, strict=True)]
        self.total += total

    def buckets(self) -> list[tuple[str, float]]:
        """How many took no longer than each bound, the last being none (Prometheus)."""
        found, so_far = [], 0
        for bound, count in zip((*BUCKETS, float("inf")), self.counts, strict=True):
            so_far += count
            found.append(("+Inf" if bound == float("inf") else str(float(bound)), float(so_far)))

        return found


def rendered(seen: Sequence[Figures], missing: int | None = None) -> tuple[str, bytes]:
    """The media type and the text of the page with the sums of these figures; from any thread.

    `missing` is how many processes are left out; None where there is but one.
    """
    registry = CollectorRegistry()
    registry.register(_Page([*_so_far(seen), *_now(seen, missing)]))
    return CONTENT_TYPE_PLAIN_0_0_4, generate_latest(registry)


def _so_far(seen: Sequence[Figures]) -> Iterator[Metric]:
    calls = CounterMetricFamily(
        "bridge_calls",
        "Calls of MCP clients that are over, by offered name and how they ended.",
        labels=["tool", "upstream", "outcome"],
    )
    counts: Counter[tuple[str, ...]] = Counter()
    for *labels, count in chain.from_iterable(one["calls"] for one in seen):
        counts[tuple(labels)] += count

    for key, count in counts.items():
        calls.add_metric(key, count)

    yield calls
    times = HistogramMetricFamily(
        "bridge_call_duration_seconds",
        "How long calls took, with all that they waited for, by offered name.",
        labels=["tool"],
    )
    took: defaultdict[str, _Times] = defaultdict(_Times)
    for tool, fell, total in chain.from_iterable(one["times"] for one in seen):
        took[tool].join(fell, total)

    for tool, all_of_it in took.items():
        times.add_metric([tool], all_of_it.buckets(), all_of_it.total)

    yield times
    approvals = CounterMetricFamily(
        "bridge_approvals",
        "People's approvals: asked for, granted (a call ran with one), refused (or none came).",
        labels=["decision"],
    )
    for decision in DECISIONS:
        approvals.add_metric([decision], sum(one["approvals"][decision] for one in seen))

    yield approvals


def _now(seen: Sequence[Figures], missing: int | None) -> Iterator[Metric]:
    running, sessions = (sum(one[key] for one in seen) for key in ("running", "sessions"))
    yield GaugeMetricFamily("bridge_calls_running", "Calls that run now.", running)
    yield GaugeMetricFamily(
        "bridge_sessions_open", "Sessions of legacy clients that are open.", sessions
    )
    states = GaugeMetricFamily(
        "bridge_upstream_state",
        "1 for the state that an upstream is in, 0 for those that it is not in.",
        labels=["upstream", "state"],
    )
    for name, found in _states(seen).items():
        for state in get_args(State):
            states.add_metric([name, state], float(found == state))

    yield states
    if missing is not None:
        yield GaugeMetricFamily(
            "bridge_workers_missing", "Processes whose figures are not among these.", missing
        )


def _states(seen: Sequence[Figures]) -> dict[str, str]:
    """The state of each upstream: where processes differ, the one that is furthest."""
    furthest: dict[str, str] = {}
    for name, state in chain.from_iterable(one["states"].items() for one in seen):
        furthest[name] = max(furthest.get(name, state), state, key=FURTHER.index)

    return furthest


class _Page(Collector):
    """The figures of one look at them."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Sequence[Metric]:
        """The figures."""
        return self._metrics
