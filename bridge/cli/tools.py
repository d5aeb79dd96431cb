"""`bridge tools`: what is on offer, and what is not and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from bridge.cli.login import login_here
from bridge.cli.loop import run_command
from bridge.cli.output import note, print_json, print_table
from bridge.config.load import load
from bridge.core.dialects.dialect import Dialect
from bridge.core.tool import Tool
from bridge.gateway.assembly import LOCAL, assemble
from bridge.gateway.live import Gateway, running
from bridge.gateway.offerings import problems_beside
from bridge.tools.dialects import quarantined
from bridge.upstream.status import UpstreamStatus

SHORT = 80


def run(config: Sequence[Path], as_json: bool) -> None:
    """Connect to every upstream, side by side, and print the offered tools.

    Raises:
        ConfigError: Everything that is wrong with the configuration.
    """
    assembly = assemble(load(config), login=login_here())
    run_command(_show, assembly, as_json)


async def _show(assembly: Any, as_json: bool) -> None:
    async with running(assembly) as gateway:
        if not as_json and assembly.upstreams:
            note(f"asking {', '.join(assembly.upstreams)} …")

        await gateway.settled()
        statuses = gateway.statuses()
        tools = gateway.catalog.tools
        unsaid = quarantined(tools.values())
        rows = [_row(tool, statuses, unsaid.get(name, {})) for name, tool in tools.items()]

    if as_json:
        problems = [*gateway.catalog.problems, *problems_beside(gateway.assembly)]
        print_json(
            {"tools": rows, "upstreams": [asdict(s) for s in statuses], "problems": problems}
        )
        return

    _print(gateway, rows, statuses)


def _print(gateway: Gateway, rows: list[dict[str, Any]], statuses: list[UpstreamStatus]) -> None:
    columns = ("tool", "upstream", "era", "session", "confirmation", "description")
    print_table(columns, [[_short(str(row[name])) for name in columns] for row in rows])
    for line in _quarantines(rows):
        note(line)

    for status in statuses:
        if status.state != "ready":
            note(f'\nupstream "{status.name}" is not available: {status.reason}{_next(status)}')

        for problem in status.problems:
            note(f'upstream "{status.name}": {problem}')

    gone = tuple(f'"{status.name}"' for status in statuses if status.state != "ready")
    for problem in gateway.catalog.problems:
        if not problem.startswith(gone):
            note(problem)

    for problem in problems_beside(gateway.assembly):
        note(problem)


def _quarantines(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Which models are not offered which tools; dialects with one reason stand together."""
    for row in rows:
        why = row["quarantined"].__getitem__
        for reason, dialects in groupby(sorted(row["quarantined"], key=why), why):
            models = f"models that read {', '.join(dialects)}"
            yield f'tool "{row["tool"]}" is not offered to {models}: {_line(reason)}'


def _row(
    tool: Tool, statuses: list[UpstreamStatus], reasons: Mapping[Dialect, str]
) -> dict[str, Any]:
    upstream = getattr(tool, "upstream", LOCAL)
    status = next((one for one in statuses if one.name == upstream), None)
    return {
        "tool": tool.name,
        "upstream": upstream,
        "era": "" if status is None else status.era,
        "session": "" if status is None else status.session,
        "confirmation": confirmation(tool),
        "description": tool.description,
        "quarantined": reasons,
    }


def confirmation(tool: Tool) -> str:
    """Whether a call waits for a person: "always", "depends" (a provider decides) or "no"."""
    rule = getattr(tool, "rule", None)
    if rule is None:
        return "no"

    return "depends" if rule.has_provider else "always"


def _line(text: str) -> str:
    return " ".join(text.split())


def _short(text: str) -> str:
    line = _line(text)
    return line if len(line) <= SHORT else line[: SHORT - 1] + "…"


def _next(status: UpstreamStatus) -> str:
    return "" if status.next_attempt is None else f" (next attempt in {status.next_attempt:.0f} s)"
