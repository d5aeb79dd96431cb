"""How calls spread over processes: calls/s and CPU with 1 and 2 workers, over one stdio upstream.

    python -m tests.bench.workers [--calls 2000] [--clients 32] [--rounds 3]

No bar: on a machine of few cores the load, the upstream and the workers share them. What is
counted as CPU are all processes of bridge; the upstream's own is shown beside it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from tests.bench import running

WORKERS = (1, 2)
UPSTREAM = running.ROOT / "tests" / "bench" / "upstream.py"


def config(place: Path) -> Path:
    """A configuration with the one upstream, as its own tools are named."""
    path = place / "workers.yaml"
    echo = {"command": [sys.executable, str(UPSTREAM)], "prefix": ""}
    path.write_text(json.dumps({"upstreams": {"echo": echo}}), "utf-8")
    return path


def cpu(pid: int) -> tuple[float, float]:
    """The CPU seconds of bridge's own processes so far, and of what else they started."""
    parent = psutil.Process(pid)
    ours = others = 0.0
    for one in (parent, *parent.children(recursive=True)):
        times = one.cpu_times()
        is_ours = one == parent or "bridge.cli.worker" in " ".join(one.cmdline())
        ours += (times.user + times.system) * is_ours
        others += (times.user + times.system) * (not is_ours)

    return ours, others


def measured(server: running.Server, era: str, calls: int, clients: int) -> dict[str, Any]:
    """One run of the load: calls per second, and µs of CPU per call."""
    before = cpu(server.pid)
    argv = [sys.executable, "-m", "tests.bench.load", "--port", str(server.port), "--era", era]
    more = ["--calls", str(calls), "--clients", str(clients), "--pid", str(server.pid)]
    done = subprocess.run(
        [*argv, *more], cwd=running.ROOT, capture_output=True, check=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    spent = [1e6 * (now - then) / calls for then, now in zip(before, cpu(server.pid), strict=True)]
    return {
        "calls_per_s": found["calls_per_s"],
        "bridge_us": spent[0],
        "upstream_us": spent[1],
        "wrong": found["wrong"],
    }


def main() -> None:
    """Print a line for each era and number of workers: the median of all rounds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        serve = [sys.executable, "-m", "bridge", "serve", str(config(Path(place)))]
        commands: Mapping[str, list[str]] = {
            str(count): [*serve, "--port", "{port}", "--workers", str(count)] for count in WORKERS
        }
        with running.running(commands) as servers:
            for server in servers.values():  # connections are taken before who serves has begun
                measured(server, "modern", options.clients * 4, options.clients)

            for era in ("legacy", "modern"):
                runs: dict[str, list[dict[str, Any]]] = {name: [] for name in servers}
                for _ in range(options.rounds):
                    for name, server in servers.items():
                        one = measured(server, era, options.calls, options.clients)
                        runs[name].append(one)

                for name, some in runs.items():
                    medians = {
                        key: round(statistics.median(one[key] for one in some), 1)
                        for key in some[0]
                    }
                    print(f"{era:6} workers={name} {json.dumps(medians)}")  # noqa: T201


if __name__ == "__main__":
    running.end_in_order()
    main()
