"""How calls spread over processes: `python -m tests.bench.workers`, over one stdio upstream.

More processes carry more calls as long as nothing that all share is busier than they are. On a
machine of few cores the load, the upstream and the workers share these, so that calls/s show
little; the CPU of a call, process by process, does: what each worker spends on it, what the one
that keeps the upstream's conversation does, the upstream itself, and how evenly the calls fall on
the workers. Beside them stands how many calls/s each of them alone could carry on a core.

Where the system lets us, each process then gets a tenth of a core, which leaves cores enough for
all of them: so many calls/s they really carry, and how many times one worker's.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import psutil

from tests.bench import running
from tests.bench.compare import ERAS, report
from tests.bench.contenders import ECHO, Options, bridge
from tests.bench.procfs import cpu_seconds
from tests.bench.slow_cores import slow_cores

Found: TypeAlias = dict[str, dict[str, dict[str, float]]]
"""Figures by era and number of workers."""

SHARE = 0.1
SLOW_CLIENTS = 64  # so many that the kernel spreads their connections about evenly
WORKERS = (1, 2, 4)
WORKER, KEEPER, SERVER = "worker", "keeper", "upstream"
SLOW, WRONG = "slow calls/s", "wrong"


def cpu(pid: int) -> dict[int, tuple[str, float]]:
    """What each process is, and its CPU seconds so far. Where there is one worker, it keeps all."""
    parent = psutil.Process(pid)
    children = parent.children(recursive=True)
    workers = {one.pid for one in children if "bridge.cli.worker" in " ".join(one.cmdline())}
    found = {}
    for one in (parent, *children):
        kind = WORKER if one.pid in (workers or {pid}) else KEEPER if one == parent else SERVER
        found[one.pid] = kind, cpu_seconds(one.pid)

    return found


def one_run(server: running.Server, era: str, calls: int, clients: int) -> dict[str, float]:
    """One run of the load: calls per second, and µs of CPU per call by kind of process.

    "uneven" is how many times its fair share the busiest worker spent.
    """
    before = cpu(server.pid)
    found = running.load(server, era, calls, clients)
    spent: dict[str, list[float]] = {WORKER: [], KEEPER: [], SERVER: []}
    for process, (kind, seconds) in cpu(server.pid).items():
        spent[kind].append(1e6 * (seconds - before.get(process, (kind, 0.0))[1]) / calls)

    sums = {kind: sum(each) for kind, each in spent.items()}
    uneven = max(spent[WORKER]) * len(spent[WORKER]) / sums[WORKER] if sums[WORKER] else 1.0
    return {
        "calls_per_s": found["calls_per_s"],
        WRONG: found[WRONG],
        "uneven": uneven,
        **sums,
    }


def measured(options: Options) -> Found:
    """The medians of all rounds; numbers of workers take turns.

    `SLOW` is calls per second with a tenth of a core for each process, NaN if that cannot be had.
    """
    calls, clients = options.calls, max(options.clients)
    runs: dict[str, dict[str, list[dict[str, float]]]] = {}
    serve = bridge(options, {"echo": {"command": ECHO}}, WORKER)
    commands = {str(count): [*serve, "--workers", str(count)] for count in WORKERS}
    with running.running(commands) as servers:
        for server in servers.values():  # connections are taken before who serves has begun
            one_run(server, "modern", clients * 4, clients)

        for _ in range(options.rounds):
            for era in ERAS:
                for name, server in servers.items():
                    one = one_run(server, era, calls, clients)
                    slow = slowly(server, era, calls)
                    one[SLOW] = slow["calls_per_s"]
                    one[WRONG] += slow[WRONG]
                    runs.setdefault(era, {}).setdefault(name, []).append(one)

    return {
        era: {
            name: {key: _overall(key, [one[key] for one in some]) for key in some[0]}
            for name, some in each.items()
        }
        for era, each in runs.items()
    }


def slowly(server: running.Server, era: str, calls: int) -> dict[str, float]:
    """One run where each of the server's processes has a slow core of its own."""
    try:
        with slow_cores(cpu(server.pid), SHARE):
            return one_run(server, era, calls, SLOW_CLIENTS)
    except OSError:
        return {"calls_per_s": math.nan, WRONG: 0.0}


def _overall(key: str, each: Sequence[float]) -> float:
    return sum(each) if key == WRONG else statistics.median(each)


def table(found: Found) -> Iterator[str]:
    """A line for each era and number of workers."""
    for era, each in found.items():
        yield f"{era}: µs of CPU per call, and calls/s that it would carry on cores enough"
        for name, one in each.items():
            costs = "   ".join(f"{kind} {one[kind]:6.1f}" for kind in (WORKER, KEEPER, SERVER))
            yield (
                f"  {name} workers   {costs}   uneven {one['uneven']:4.2f}   "
                f"{carried(one, int(name)):8.0f} calls/s   wrong {one[WRONG]:.0f}"
            )

        yield f"{era}: with {SHARE:.0%} of a core for each process"
        alone = each["1"][SLOW]
        for name, one in each.items():
            slow = one[SLOW]
            yield f"  {name} workers   {slow:8.0f} calls/s   {slow / alone:5.2f} x one worker's"


def carried(one: Mapping[str, float], workers: int) -> float:
    """How many calls a second the busiest of the processes leaves room for, a core for each."""
    busiest = max(one[WORKER] * one["uneven"] / workers, one[KEEPER], one[SERVER])
    return 1e6 / busiest if busiest else 0.0


if __name__ == "__main__":
    report(__doc__, measured, table)
