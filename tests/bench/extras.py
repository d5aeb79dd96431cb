"""What each thing costs that a user may switch on: `python -m tests.bench.extras`.

The same gateway is up once with nothing, once with metrics, as it is compared with others, and once
with metrics and each of the rest; they take turns. Spans are made and not sent, unless
OTEL_TRACES_EXPORTER says where: sending them is not bridge's work.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.bench.compare import ERAS, report, turns
from tests.bench.contenders import ECHO, EXTRAS, METRICS, OURS, TOKEN, Options, bridge
from tests.bench.running import running


def measured(options: Options) -> list[dict[str, Any]]:
    """Cells as of compare; the name of one with an extra is `bridge+<extra>`."""
    os.environ.setdefault("OTEL_TRACES_EXPORTER", "none")
    upstreams = {"echo": {"command": ECHO}}
    commands = {OURS: bridge(options, upstreams)}
    for name, settings in EXTRAS.items():
        commands[f"{OURS}+{name}"] = bridge(options, upstreams, f"extra-{name}", settings)

    # A difference of two figures wants each of them to be twice as sure.
    options = replace(
        options,
        clients=(max(options.clients),),
        rounds=options.rounds * 2,
        calls=options.calls * 2,
    )
    with running(commands) as servers:
        return turns(options, servers, token={f"{OURS}+token": TOKEN})


def added(cells: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """CPU in µs that each extra adds to a call, by extra and era: the median over rounds.

    Metrics are added to nothing, the rest to metrics.
    """
    costs = {
        (cell["name"], cell["era"]): {run["round"]: run["cpu_us_per_call"] for run in cell["runs"]}
        for cell in cells
    }
    found: dict[str, dict[str, float]] = {name: {} for name in EXTRAS}
    for name, eras in found.items():
        for era in ERAS:
            before = OURS if name == METRICS else f"{OURS}+{METRICS}"
            more, bare = costs[f"{OURS}+{name}", era], costs[before, era]
            both = [more[turn] - bare[turn] for turn in more.keys() & bare.keys()]
            eras[era] = statistics.median(both) if both else math.nan

    return found


def table(cells: list[dict[str, Any]]) -> Iterator[str]:
    """A line for each extra."""
    yield "what it adds to a call"
    for name, eras in added(cells).items():
        costs = "   ".join(f"{era} {micros:+7.1f} µs CPU" for era, micros in eras.items())
        yield f"  {name:<15}{costs}"


if __name__ == "__main__":
    report(__doc__, measured, table)
