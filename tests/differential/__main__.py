"""Compare servers with themselves behind bridge; the exit code is 1 if anything differs.

python -m tests.differential [--server NAME …] [--transport TRANSPORT …] [--examples N]

Each server is asked directly, and through `bridge serve` over each transport, by a client of each
era: alone and without a prefix, and together with the others under the default prefixes. Then
come the generated servers. The real servers are fetched into `.servers/` when first needed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from functools import partial
from itertools import product
from pathlib import Path

import anyio

from tests.differential.compare import Pair
from tests.differential.plan import TRANSPORTS, alone, together
from tests.differential.rig import explored
from tests.differential.servers import KINDS, servers
from tests.differential.talk import ERAS
from tests.servers.install import Unavailable

SEVERAL = ("together", "generated")
MOST_LINES = 8  # of differences of one pair


def main(argv: Sequence[str] | None = None) -> int:
    """Compare what the arguments ask for, and say what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential")
    parser.add_argument("--server", nargs="+", choices=(*KINDS, *SEVERAL), default=[])
    parser.add_argument("--transport", nargs="+", choices=TRANSPORTS, default=list(TRANSPORTS))
    parser.add_argument("--examples", type=int, default=200, help="of each generated kind")
    args = parser.parse_args(argv)
    try:
        with tempfile.TemporaryDirectory(prefix="bridge-differential-") as place:
            return anyio.run(_run, args, Path(place).resolve())
    except Unavailable as exc:
        sys.stderr.write(f"{exc}\n")
        return 2


async def _run(args: argparse.Namespace, place: Path) -> int:
    compared = different = 0
    async with aclosing(_pairs(args, place)) as pairs:
        async for pair in pairs:
            compared += pair.compared
            different += len(pair.differences)
            sys.stdout.write(shown(pair))
            sys.stdout.flush()

    sys.stdout.write(f"{compared} answers compared, {different} differ\n")
    return 1 if different else 0


async def _pairs(args: argparse.Namespace, place: Path) -> AsyncIterator[Pair]:
    wanted = args.server or [*KINDS, *SEVERAL]
    for server in [one for name in wanted if name in KINDS for one in KINDS[name]()]:
        for pair in await alone(server, args.transport, place):
            yield pair

    if "together" in wanted:
        for pair in await together(servers(), args.transport, place):
            yield pair

    for transport, era in product(args.transport, ERAS) if "generated" in wanted else ():
        here = place / f"generated-{transport}-{era}"
        explore = partial(explored, here, transport, era, args.examples)
        for pair in await anyio.to_thread.run_sync(explore):
            yield pair


def shown(pair: Pair) -> str:
    """A line for a pair, and one for each place where an answer differs."""
    lines = [line for one in pair.differences for line in one.lines()]
    title = (
        f"{pair.server:12} {pair.upstream:7} → {pair.transport:5} → {pair.client:7}"
        f" {pair.compared:4} compared {len(pair.differences):3} differ"
    )
    more = [f"    … and {len(lines) - MOST_LINES} more"] if len(lines) > MOST_LINES else []
    return "\n".join([title, *(f"    {line}" for line in lines[:MOST_LINES]), *more]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
