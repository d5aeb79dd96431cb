"""Run the official conformance suite; the exit code is 1 if something fails that may not.

python -m tests.conformance [--era VERSION …] [--subject SUBJECT …] [--http PARSER …] [--json]

Subjects are direct, bridge, mirrored, crossed (see `subjects.py`), and client, in which bridge is
the client under test. The suite and its Node are fetched into `.servers/` when first needed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import AsyncIterator, Sequence

import anyio

from tests.conformance.report import Judged, judge, plain, table
from tests.conformance.subjects import PARSERS, SUBJECTS, serving
from tests.conformance.suite import ERAS, client_leg, server_leg
from tests.servers.install import Unavailable

CLIENT = "client"


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for, and say what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance")
    parser.add_argument("--era", nargs="+", choices=ERAS, default=list(ERAS))
    parser.add_argument("--subject", nargs="+", choices=(*SUBJECTS, CLIENT), default=["bridge"])
    parser.add_argument("--http", nargs="+", choices=PARSERS, default=["h11"])
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    try:
        return anyio.run(_run, args)
    except Unavailable as exc:
        sys.stderr.write(f"{exc}\n")
        return 2


async def _run(args: argparse.Namespace) -> int:
    legs = []
    async for judged in _legs(args):
        legs.append(judged)
        if not args.json:
            sys.stdout.write(f"{table(judged)}\n\n")
            sys.stdout.flush()

    if args.json:
        sys.stdout.write(json.dumps([plain(judged) for judged in legs], indent=2) + "\n")

    return 1 if any(judged.problems for judged in legs) else 0


async def _legs(args: argparse.Namespace) -> AsyncIterator[Judged]:
    for subject in args.subject:
        for era in args.era:
            if subject == CLIENT:
                yield judge(subject, "-", await client_leg(era))
                continue

            for http in args.http:
                async with serving(subject, era, http) as url:
                    leg = await server_leg(url, era)

                yield judge(subject, http, leg)


if __name__ == "__main__":
    sys.exit(main())
