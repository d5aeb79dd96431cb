"""`bridge check`: what is wrong with a configuration, and, if asked, with its servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bridge.cli.login import login_here
from bridge.cli.loop import run_command
from bridge.cli.output import complain, counted, note, print_answer, print_json, print_table
from bridge.config.settings import Settings
from bridge.errors import ConfigError
from bridge.gateway.assembly import Assembly, assemble
from bridge.gateway.checking import load_checked
from bridge.gateway.live import running
from bridge.upstream.status import UpstreamStatus


def run(config: Sequence[Path], live: bool, as_json: bool) -> int:
    """Print what is wrong; returns the exit code: 0 fine, 1 a server does not answer, 2 broken."""
    try:
        settings = load_checked(config)
        assembly = assemble(settings, login=login_here())
    except ConfigError as exc:
        if not as_json:
            raise

        print_json({"ok": False, "problems": list(exc.problems)})
        return exc.exit_code

    statuses, problems = run_command(_ask, assembly, as_json) if live else ([], [])
    failed = [status for status in statuses if status.state != "ready"]
    if as_json:
        rows = [asdict(status) for status in statuses] if live else _configured(settings)
        answer = {"ok": not failed and not problems, "notes": list(settings.notes)}
        print_json({**answer, "upstreams": rows, "problems": problems})
        return 1 if failed or problems else 0

    for line in settings.notes:
        note(line)

    if live:
        _print(statuses)

    upstreams = counted(len(assembly.upstreams), "upstream")
    if failed:
        problems = [*problems, f"{len(failed)} of {upstreams} cannot be used"]

    if problems:
        complain("\n".join(problems))
        return 1

    print_answer(f"ok: {upstreams}, {counted(len(settings.tools), 'local tool')}")
    return 0


async def _ask(assembly: Assembly, as_json: bool) -> tuple[list[UpstreamStatus], list[str]]:
    """How each upstream is, and what else keeps tools from being offered."""
    async with running(assembly) as gateway:
        if not as_json and assembly.upstreams:
            note(f"asking {', '.join(assembly.upstreams)} …")

        await gateway.settled()
        statuses = gateway.statuses()
        gone = tuple(f'"{one.name}"' for one in statuses if one.state != "ready")
        return statuses, [one for one in gateway.catalog.problems if not one.startswith(gone)]


def _configured(settings: Settings) -> list[dict[str, object]]:
    """Each upstream as far as it is known without asking it."""
    return [
        {"name": name, "kind": "command" if one.url is None else "url", "enabled": one.enabled}
        for name, one in settings.upstreams.items()
    ]


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
