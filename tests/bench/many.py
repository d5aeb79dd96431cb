"""What many tools and many upstreams cost: `python -m tests.bench.many`.

Three gateways are up at once, and the cost of the same `echo` is compared between them. The list
of the largest is asked for again and again; and another of its kind is started to see how soon
after its slowest upstream the first whole list is answered.
"""

from __future__ import annotations

import http.client
import json
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.bench.compare import ERAS, middle, paired, report, turns
from tests.bench.contenders import ECHO, Options, bridge
from tests.bench.running import PATIENCE, end, listens, load, running, start
from tests.bench.wire import MODERN, envelope

SHAPES = {"bridge 1 x 10": (1, 10), "bridge 1 x 1000": (1, 1000), "bridge 20 x 50": (20, 50)}
"""How many upstreams, and how many tools each of them has."""

SMALLEST, *LARGER = SHAPES
LARGEST = LARGER[-1]
TOOLS = 1000
SLOWEST = 1.0  # seconds by which one upstream is late when the first list is asked for


def measured(options: Options) -> dict[str, Any]:
    """`flat`: cells as of compare; `list_us`: CPU of one list; `first_list`: see below."""
    options = replace(options, clients=(max(options.clients),))
    commands = {
        name: _gateway(options, upstreams, tools, f"shape-{number}")
        for number, (name, (upstreams, tools)) in enumerate(SHAPES.items())
    }
    with running(commands) as servers:
        flat = turns(options, servers)
        calls = max(20, options.calls // 8)
        lists = [
            load(servers[LARGEST], "modern", calls, 1, listed=TOOLS) for _ in range(options.rounds)
        ]

    return {
        "flat": flat,
        "list_us": statistics.median(run["cpu_us_per_call"] for run in lists),
        "wrong_lists": sum(run["wrong"] for run in lists),
        "first_list": [first_list(options, number) for number in range(options.rounds)],
    }


def first_list(options: Options, number: int) -> dict[str, float]:
    """Start a gateway and ask at once for its tools.

    Returns `listed`, how many tools the answer had, and `late_ms`, how long after the last
    upstream had been listed the client had it.
    """
    stamps = options.work / f"stamps-{number}"
    stamps.mkdir()
    server = start(_gateway(options, *SHAPES[LARGEST], f"first-{number}", stamps))
    try:
        deadline = time.monotonic() + PATIENCE
        while not listens(server.port):
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"bridge did not come up; it wrote: {server.output()}")

            time.sleep(0.01)

        tools = _listed(server.port)
        now = time.time()
        listed_at = [float(stamp.read_text("utf-8")) for stamp in stamps.iterdir()]
        return {"listed": tools, "late_ms": round((now - max(listed_at)) * 1e3, 1)}
    finally:
        end([server])


def flatness(found: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """CPU of a call in each larger shape, in those of the smallest; by shape and era."""
    cells = {(cell["name"], cell["era"]): cell for cell in found["flat"]}
    return {
        name: {
            era: paired(cells[name, era], cells[SMALLEST, era], "cpu_us_per_call") for era in ERAS
        }
        for name in LARGER
    }


def table(found: dict[str, Any]) -> Iterator[str]:
    """The lines that tell it."""
    yield "CPU of a call, upstreams x tools of each"
    for cell in found["flat"]:
        yield f"  {cell['name']:<17}{cell['era']:<8}{middle(cell, 'cpu_us_per_call'):6.0f} µs"

    for name, eras in flatness(found).items():
        ratios = ", ".join(f"{era} {ratio:.2f} x" for era, ratio in eras.items())
        yield f"  {name} beside {SMALLEST}: {ratios}"

    yield f"{TOOLS} tools: a list costs {found['list_us']:.0f} µs of CPU"
    for one in found["first_list"]:
        yield f"  first list: {one['listed']} tools, {one['late_ms']} ms after the slowest upstream"


def _gateway(
    options: Options, upstreams: int, tools: int, name: str, stamps: Path | None = None
) -> list[str]:
    """A bridge over so many upstreams; with `stamps`, the last of them is late."""
    settings = {}
    for number in range(upstreams):
        argv = [*ECHO, "--tools", str(tools)]
        if stamps is not None:
            argv += ["--stamp", str(stamps / str(number))]
            argv += ["--delay", str(SLOWEST)] if number == upstreams - 1 else []

        settings[f"u{number}"] = {"command": argv}

    return bridge(options, settings, name)


def _listed(port: int) -> int:
    """Ask once for the tools; how many there are."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    message["params"] = {"_meta": envelope("many")}
    headers = {"Content-Type": "application/json", "MCP-Protocol-Version": MODERN}
    headers |= {"Accept": "application/json, text/event-stream", "Mcp-Method": "tools/list"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("POST", "/mcp", json.dumps(message), headers)
        body = connection.getresponse().read()
    finally:
        connection.close()

    found = json.loads(body[body.index(b"{") :])
    return len(found["result"]["tools"])


if __name__ == "__main__":
    report(__doc__, measured, table)
