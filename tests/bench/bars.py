"""The bars that bridge must clear, each a ratio within one run, or a bound in CPU or memory."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.bench import embedding, extras, many, workers
from tests.bench.compare import ERAS, Cells, cell_of, paired, wrong
from tests.bench.contenders import FLOOR, OURS

MIDDLING = "fastmcp"
OTHERS = ("mcp-proxy", "npm-mcp-proxy", "supergateway")
SPEED, CPU, LATENCY = "calls_per_s", "cpu_us_per_call", "p50_ms"


@dataclass(frozen=True, slots=True)
class Bar:
    """One bound: `value` must be at least, or at most, `bound`."""

    what: str
    value: float
    bound: float
    at_least: bool = False
    unit: str = "x"

    @property
    def holds(self) -> bool:
        """Whether bridge clears it."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def line(self) -> str:
        """How it went, for a person."""
        sign = "≥" if self.at_least else "≤"
        verdict = "holds" if self.holds else "FAILS"
        bound = f"{sign} {self.bound:g} {self.unit}"
        return f"{verdict}  {self.what:<58}{self.value:10.2f} {self.unit:<4} {bound}"


def bars(found: Mapping[str, Any]) -> list[Bar]:
    """The bars of all parts that were measured; a peer that is not installed sets none."""
    makers: dict[str, Callable[[Any], Iterator[Bar]]] = {
        "stdio": _stdio,
        "http": _http,
        "extras": _extras,
        "payload": _payload,
        "many": _many,
        "idle": _idle,
        "workers": _workers,
        "embedding": _embedding,
        "imports": _imports,
    }
    return [bar for part, make in makers.items() if part in found for bar in make(found[part])]


def _compared(
    cells: Cells, what: str, key: str, other: str, bound: float, at_least: bool, clients: int
) -> Iterator[Bar]:
    for era in ERAS:
        ours, theirs = (cell_of(cells, era, clients, name) for name in (OURS, other))
        if ours is not None and theirs is not None:
            label = f"{what} of {other}, {era}, {clients} client{'s' if clients > 1 else ''}"
            yield Bar(label, paired(ours, theirs, key), bound, at_least)


def _stdio(cells: Cells) -> Iterator[Bar]:
    most = max(cell["clients"] for cell in cells)
    for peer in (*OTHERS, MIDDLING):
        yield from _compared(cells, "calls/s", SPEED, peer, 4.0, True, most)

    yield from _compared(cells, "calls/s", SPEED, MIDDLING, 15.0, True, most)
    yield from _compared(cells, "CPU", CPU, FLOOR, 2.0, False, most)
    for peer in (*OTHERS, MIDDLING):
        yield from _compared(cells, "calls/s", SPEED, peer, 2.0, True, 1)

    yield from _compared(cells, "calls/s", SPEED, MIDDLING, 5.0, True, 1)
    yield from _compared(cells, "p50", LATENCY, FLOOR, 1.6, False, 1)
    yield Bar(
        "stdio upstream: bridge's wrong answers and failed runs", wrong(_ours(cells)), 0, unit=""
    )


def _http(cells: Cells) -> Iterator[Bar]:
    for clients in sorted({cell["clients"] for cell in cells}):
        what = "HTTP upstream: "
        yield from _compared(cells, what + "calls/s", SPEED, MIDDLING, 4.0, True, clients)
        yield from _compared(cells, what + "CPU", CPU, FLOOR, 2.5, False, clients)

    yield Bar(
        "HTTP upstream: bridge's wrong answers and failed runs", wrong(_ours(cells)), 0, unit=""
    )


def _ours(cells: Cells) -> Cells:
    return [cell for cell in cells if cell["name"] == OURS]


def _extras(cells: Cells) -> Iterator[Bar]:
    for name, eras in extras.added(cells).items():
        for era, micros in eras.items():
            yield Bar(f"CPU that {name} adds to a call, {era}", micros, 20, unit="µs")


def _payload(found: Mapping[str, Any]) -> Iterator[Bar]:
    ours, floor = found[OURS], found[FLOOR]
    for era in ERAS:
        ratio = ours["cpu_us"][era] / floor["cpu_us"][era]
        yield Bar(f"1 MiB result: CPU of floor, {era}", ratio, 2.0)

    yield Bar("1 MiB result: memory of the payload", ours["growth"], 3.0)
    yield Bar("1 MiB result: wrong answers", ours["wrong"] + floor["wrong"], 0, unit="")


def _many(found: Mapping[str, Any]) -> Iterator[Bar]:
    for name, eras in many.flatness(found).items():
        for era, ratio in eras.items():
            yield Bar(f"CPU of {many.SMALLEST}: {name}, {era}", ratio, 1.2)

    yield Bar(f"CPU of a list of {many.TOOLS} tools", found["list_us"] / 1e3, 2, unit="ms")
    late = statistics.median(one["late_ms"] for one in found["first_list"])
    yield Bar("first list, after the slowest upstream", late, 200, unit="ms")
    fewest = min(one["listed"] for one in found["first_list"])
    yield Bar("first list: tools in it", fewest, many.TOOLS, at_least=True, unit="")
    errors = found["wrong_lists"] + wrong(found["flat"])
    yield Bar("many tools: wrong answers and failed runs", errors, 0, unit="")


def _idle(found: Mapping[str, Any]) -> Iterator[Bar]:
    for kind, one in found.items():
        yield Bar(f"memory of an idle {kind}", one["kib"], 60, unit="KiB")
        yield Bar(f"of so many {kind}s that came", one["clients"], one["wanted"], True, "")


def _workers(found: workers.Found) -> Iterator[Bar]:
    """Nearly as many times one worker's calls as there are workers; the keeper is no bound."""
    for era, each in found.items():
        for name, one in each.items():
            times = one[workers.SLOW] / each["1"][workers.SLOW]
            if name != "1" and not math.isnan(times):
                label = f"calls/s of one worker, {era}, {name} workers, slow cores"
                yield Bar(label, times, 0.75 * int(name), at_least=True)

        most = max(each.values(), key=lambda one: one[workers.KEEPER])
        keeper = most[workers.KEEPER] / most[workers.SERVER]
        yield Bar(f"CPU of the upstream: the keeper of its conversation, {era}", keeper, 1.0)
        errors = sum(one[workers.WRONG] for one in each.values())
        yield Bar(f"workers: wrong answers, {era}", errors, 0, unit="")


def _embedding(found: Mapping[str, Any]) -> Iterator[Bar]:
    yield Bar("embedded: CPU of the raw request", found[embedding.TOOL]["ratio"], 1.3)


def _imports(found: Mapping[str, float]) -> Iterator[Bar]:
    ratio = found["import bridge"] / found["import mcp"]
    yield Bar("import bridge, of import mcp", ratio, 2.0)
    yield Bar("bridge --help, CPU", found["bridge --help"], 0.35, unit="s")
