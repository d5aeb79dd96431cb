"""Every benchmark with one command: `python -m tests.bench`.

It prints a table for each part and can write all figures as JSON, a picture as SVG, and how
bridge stands to the bars it must clear. Peers are measured where they are installed
(`--install-peers`). It wants Linux, and about a quarter of an hour; `--quick` is a look.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bridge.version import VERSION
from tests.bench import (
    calls,
    compare,
    embedding,
    extras,
    idle,
    imports,
    many,
    payload,
    peers,
    plot,
    workers,
)
from tests.bench.bars import bars
from tests.bench.contenders import Options
from tests.bench.running import end_in_order

QUICK_ROUNDS, QUICK_CALLS, QUICK_SHARE = 1, 100, 0.05
TITLES = {"stdio": "a stdio upstream", "http": "an HTTP upstream"}

Part = tuple[Callable[[], Any], Callable[[Any], Iterable[str]]]


def parts(options: Options, quick: bool) -> dict[str, Part]:
    """Each part by name: what measures it, and what prints it."""
    share = QUICK_SHARE if quick else 1.0
    pipeline = partial(calls.measured, *((2_000, 3) if quick else (20_000, 7)))
    return {
        "stdio": (partial(compare.measured, options, "stdio"), compare.table),
        "http": (partial(compare.measured, options, "http"), compare.table),
        "extras": (partial(extras.measured, options), extras.table),
        "payload": (partial(payload.measured, options), payload.table),
        "many": (partial(many.measured, options), many.table),
        "idle": (partial(idle.measured, options, share), idle.table),
        "workers": (partial(workers.measured, options), workers.table),
        "embedding": (partial(embedding.measured, 5 if quick else 15), embedding.table),
        "imports": (partial(imports.measured, 3 if quick else imports.ROUNDS), imports.table),
        "calls": (pipeline, _pipeline_table),
    }


def _pipeline_table(found: dict[str, float]) -> Iterable[str]:
    yield "what the pipeline costs, without a wire"
    for what, cost in found.items():
        yield f"  {what:<42}{cost:8.2f} µs CPU"


def main() -> int:
    """Measure; returns 1 if a part failed, or with `--check` if a bar is not cleared."""
    end_in_order()
    found = _parser().parse_args()
    if found.install_peers:
        sys.stderr.writelines(f"{problem}\n" for problem in peers.install(found.peers.resolve()))

    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        options = compare.options_of(found, Path(work))
        if found.quick:
            options = replace(options, rounds=QUICK_ROUNDS, calls=QUICK_CALLS)

        measured, failures = _measured(parts(options, found.quick), found.parts)

    checked = bars(measured)
    _say("how bridge stands to its bars", [f"  {bar.line()}" for bar in checked])
    if found.json is not None:
        verdicts = [{"what": b.what, "value": b.value, "holds": b.holds} for b in checked]
        about = _about(options) | {"failures": failures, "bars": verdicts}
        found.json.write_text(json.dumps({"about": about, **measured}, indent=1), "utf-8")

    if found.svg is not None and "stdio" in measured:
        found.svg.write_text(plot.svg(measured["stdio"]), "utf-8")

    broken = found.check and not all(bar.holds for bar in checked)
    return 1 if failures or broken else 0


def _measured(chosen: dict[str, Part], names: list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The figures of each part, and why a part has none; one that fails does not end the rest."""
    measured, failures = {}, {}
    for name, (measure, table) in chosen.items():
        if names and name not in names:
            continue

        try:
            measured[name] = measure()
        except (RuntimeError, OSError) as exc:
            failures[name] = str(exc)
            _say(f"{name} FAILED", [f"  {exc}"])
        else:
            _say(TITLES.get(name, ""), table(measured[name]))

    return measured, failures


def _say(title: str, lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in ([title] if title else []) + list(lines))
    sys.stdout.write("\n")
    sys.stdout.flush()


def _about(options: Options) -> dict[str, Any]:
    """On what, and of what, the figures are."""
    return {
        "bridge": VERSION,
        "peers": peers.versions(options.peers),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "rounds": options.rounds,
        "calls": options.calls,
    }


def _parser() -> argparse.ArgumentParser:
    parser = compare.flags((__doc__ or "").splitlines()[0])
    names = list(parts(Options(Path()), quick=True))
    parser.add_argument("--parts", nargs="+", default=[], choices=names, help="only these")
    parser.add_argument("--quick", action="store_true", help="few calls: does it all work?")
    parser.add_argument("--check", action="store_true", help="fail if a bar is not cleared")
    parser.add_argument("--svg", type=Path, help="write the picture into this file")
    parser.add_argument("--install-peers", action="store_true", help="before anything else")
    return parser


if __name__ == "__main__":
    sys.exit(main())
