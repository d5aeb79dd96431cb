"""Gateways side by side, at the same work: `python -m tests.bench.compare [--upstream http]`.

Each stands between Streamable HTTP clients and the same echo upstream. All are up at once and
take turns, so that a slow minute of the machine is everybody's. Ratios of one run, and CPU time
per call, mean something on a busy machine; calls per second mean something beside each other.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from tests.bench import peers
from tests.bench.contenders import BOTH_ERAS, BRIDGE, ECHO, OURS, Options, contenders
from tests.bench.running import Server, end_in_order, load, running

ERAS = ("legacy", "modern")
Cells: TypeAlias = list[dict[str, Any]]
"""One for each era, number of clients and contender: `era`, `clients`, `name`, `runs`, `failed`."""


def measured(options: Options, upstream: str = "stdio") -> Cells:
    """Compare all contenders in front of a `stdio` or an `http` upstream."""
    with _target(upstream) as target, running(contenders(options, target)) as servers:
        return turns(options, servers)


def turns(
    options: Options,
    servers: Mapping[str, Server],
    eras: tuple[str, ...] = ERAS,
    **flags: Mapping[str, Any],
) -> Cells:
    """Load the servers in turns; `flags` are what `load` takes besides, for each flag by name."""
    cells: dict[tuple[str, int, str], dict[str, Any]] = {}
    for turn in range(options.rounds):
        for clients in options.clients:
            for era in eras:
                for name, server in servers.items():
                    if era == "modern" and name not in BOTH_ERAS and not name.startswith(OURS):
                        continue

                    empty = {"era": era, "clients": clients, "name": name, "runs": [], "failed": []}
                    cell = cells.setdefault((era, clients, name), empty)
                    others = {flag: by[name] for flag, by in flags.items() if name in by}
                    try:
                        run = load(server, era, options.calls, clients, **others)
                        cell["runs"].append(run | {"round": turn})
                    except RuntimeError as exc:
                        cell["failed"].append(str(exc))

    return list(cells.values())


def middle(cell: Mapping[str, Any], key: str) -> float:
    """The median of one figure over the runs of a cell."""
    return float(statistics.median(run[key] for run in cell["runs"]))


def paired(ours: Mapping[str, Any], other: Mapping[str, Any], key: str) -> float:
    """How many times the other's figure ours is: the median over rounds, each by itself.

    It is NaN, which clears no bar, where no round was run by both to its end.
    """
    theirs = {run["round"]: run[key] for run in other["runs"]}
    both = [run for run in ours["runs"] if run["round"] in theirs]
    ratios = [run[key] / max(theirs[run["round"]], 1e-9) for run in both]
    return statistics.median(ratios) if ratios else math.nan


def cell_of(cells: Cells, era: str, clients: int, name: str) -> dict[str, Any] | None:
    """The cell of that era, number of clients and contender, if it was measured."""
    for cell in cells:
        if (cell["era"], cell["clients"], cell["name"]) == (era, clients, name) and cell["runs"]:
            return cell

    return None


def wrong(cells: Cells) -> int:
    """How many answers were wrong, plus how many runs failed."""
    return sum(len(c["failed"]) + sum(run["wrong"] for run in c["runs"]) for c in cells)


def table(cells: Cells) -> Iterator[str]:
    """The lines of a table: the fastest first, and beside each how bridge does."""
    for era, clients in sorted({(cell["era"], cell["clients"]) for cell in cells}):
        yield f"{era}, {clients} client{'s' if clients > 1 else ''}"
        rows = [c for c in cells if (c["era"], c["clients"]) == (era, clients)]
        ours = cell_of(cells, era, clients, OURS)
        for cell in sorted(rows, key=lambda c: -middle(c, "calls_per_s") if c["runs"] else 0):
            yield "  " + _row(cell, ours)
            yield from (f"    failed: {said}" for said in cell["failed"][:1])
            firsts = [run["first_wrong"] for run in cell["runs"] if run["wrong"]]
            yield from (f"    wrong: {said}" for said in firsts[:1])


def _row(cell: Mapping[str, Any], ours: Mapping[str, Any] | None) -> str:
    if not cell["runs"]:
        return f"{cell['name']:<15}no run came to its end"

    line = (
        f"{cell['name']:<15}{middle(cell, 'calls_per_s'):9.1f} calls/s"
        f"   p50 {middle(cell, 'p50_ms'):7.2f} ms   p99 {middle(cell, 'p99_ms'):7.2f} ms"
        f"   CPU {middle(cell, 'cpu_us_per_call'):6.0f} µs/call"
        f"   {middle(cell, 'peak_mib'):6.1f} MiB"
    )
    if ours is None or ours is cell:
        return line

    speed, cpu = paired(ours, cell, "calls_per_s"), paired(ours, cell, "cpu_us_per_call")
    return f"{line}   bridge: {speed:5.2f} x calls/s, {cpu:4.2f} x CPU"


@contextmanager
def _target(upstream: str) -> Iterator[tuple[str, ...] | str]:
    """The upstream that all contenders share, or the command by which each starts its own."""
    if upstream == "stdio":
        yield ECHO
        return

    command = [sys.executable, "-m", "tests.bench.http_upstream", "{port}"]
    with running({"the HTTP upstream": command}) as servers:
        [server] = servers.values()
        yield f"http://127.0.0.1:{server.port}/mcp"


def flags(about: str) -> argparse.ArgumentParser:
    """The flags by which everything that compares is told what to do."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--peers", type=Path, default=peers.HOME, metavar="DIR")
    parser.add_argument("--bridge", default=BRIDGE, help="its command, with {config} and {port}")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--calls", type=int, default=400, help="in each round, for each cell")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="contenders")
    parser.add_argument("--json", type=Path, help="write every single measurement into this file")
    return parser


def options_of(found: argparse.Namespace, work: Path) -> Options:
    """The options that the flags stand for; `work` is a folder for generated files."""
    options = Options(work, found.peers.resolve(), found.bridge, found.rounds, found.calls)
    return replace(options, clients=tuple(found.clients), only=tuple(found.only))


def report(
    doc: str | None, measure: Callable[[Options], Any], table: Callable[[Any], Iterator[str]]
) -> None:
    """One part alone, with the flags that all have: measure and print."""
    end_in_order()
    parser = flags((doc or "").splitlines()[0])
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        found = measure(options_of(parser.parse_args(), Path(work)))

    sys.stdout.writelines(f"{line}\n" for line in table(found))


def main() -> int:
    """Compare, print the table; returns 1 if an answer was wrong."""
    end_in_order()
    parser = flags((__doc__ or "").splitlines()[0])
    parser.add_argument("--upstream", choices=["stdio", "http"], default="stdio")
    found = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        cells = measured(options_of(found, Path(work)), found.upstream)

    sys.stdout.writelines(f"{line}\n" for line in table(cells))
    if found.json is not None:
        found.json.write_text(json.dumps(cells, indent=1), "utf-8")

    sys.stdout.write(f"wrong or failed: {wrong(cells)}\n")
    return 1 if wrong(cells) else 0


if __name__ == "__main__":
    sys.exit(main())
