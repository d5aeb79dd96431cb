"""`bridge check`: what is wrong with a configuration, and, if asked, with its servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import anyio

from bridge.cli.output import complain, counted, note, print_json, print_table
from bridge.config.load import load
from bridge.errors import ConfigError
from bridge.gateway.assembly import Assembly, assemble
from bridge.gateway.live import running
from bridge.upstream.status import UpstreamStatus


def run(config: Sequence[Path], live: bool, as_json: bool) -> int:
    """Print what is wrong; returns the exit code: 0 fine, 1 a server does not answer, 2 broken."""
    try:
        settings = load(config)
        assembly = assemble(settings)
    except ConfigError as exc:
        if not as_json:
            raise

        print_json({"ok": False, "problems": list(exc.problems)})
        return exc.exit_code

    statuses = anyio.run(_ask, assembly, as_json) if live else []
    failed = [status for status in statuses if status.state != "ready"]
    if as_json:
        rows = [asdict(status) for status in statuses]
        print_json({"ok": not failed, "notes": list(settings.notes), "upstreams": rows})
        return 1 if failed else 0

    for line in settings.notes:
        note(line)

    if live:
        _print(statuses)

    upstreams = counted(len(assembly.upstreams), "upstream")
    if failed:
        complain(f"{len(failed)} of {upstreams} cannot be used")
        return 1

    print(f"ok: {upstreams}, {counted(len(settings.tools), 'local tool')}")
    return 0


async def _ask(assembly: Assembly, as_json: bool) -> list[UpstreamStatus]:
    async with running(assembly) as gateway:
        if not as_json and assembly.upstreams:
            note(f"asking {', '.join(assembly.upstreams)} …")

        await gateway.settled()
        return gateway.statuses()


def _print(statuses: list[UpstreamStatus]) -> None:
    rows = [
        [
            status.name,
            status.state,
            " ".join(filter(None, (status.transport, status.era, status.protocol_version))),
            status.server,
            "; ".join(filter(None, (status.reason, *status.problems))),
        ]
        for status in statuses
    ]
    print_table(("upstream", "state", "speaks", "server", "says"), rows)
