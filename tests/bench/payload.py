"""What a large result costs: CPU beside the floor, memory beside the payload itself.

`python -m tests.bench.payload` asks for 1 MiB of text, again and again, from one client. Memory
is what the process held at most while it answered, above what it held at rest before.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.bench import procfs
from tests.bench.compare import ERAS, report
from tests.bench.contenders import ECHO, FLOOR, OURS, Options, contenders
from tests.bench.running import load, running

KIB = 1024
WARMING = 50
ONE_IN = 10  # a large call for so many small ones elsewhere


def measured(options: Options) -> dict[str, dict[str, Any]]:
    """For each contender: `cpu_us` of one call by era, `growth` in payloads, and `wrong`."""
    options = replace(options, only=(FLOOR, OURS))
    calls = max(10, options.calls // ONE_IN)
    found: dict[str, dict[str, Any]] = {}
    with running(contenders(options, ECHO)) as servers:
        at_rest = {}
        for name, server in servers.items():
            for era in ERAS:
                load(server, era, WARMING, 1)

            at_rest[name] = procfs.resident(server.pid)
            procfs.forget_peak(server.pid)
            found[name] = {"runs": {era: [] for era in ERAS}, "wrong": 0}

        for _ in range(options.rounds):
            for era in ERAS:
                for name, server in servers.items():
                    run = load(server, era, calls, 1, tool="blob", kib=KIB)
                    found[name]["runs"][era].append(run["cpu_us_per_call"])
                    found[name]["wrong"] += run["wrong"]

        for name, server in servers.items():
            runs = found[name]["runs"]
            found[name]["cpu_us"] = {era: statistics.median(runs[era]) for era in ERAS}
            found[name]["growth"] = (procfs.peak(server.pid) - at_rest[name]) / (KIB * 1024)

    return found


def table(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    """A line for each contender."""
    yield f"one call with a result of {KIB} KiB"
    for name, one in found.items():
        costs = "   ".join(f"{era} {one['cpu_us'][era]:7.0f} µs" for era in ERAS)
        yield f"  {name:<15}CPU {costs}   memory {one['growth']:5.2f} x the payload"


if __name__ == "__main__":
    report(__doc__, measured, table)
