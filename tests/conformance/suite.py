"""The official conformance suite, run as its own command, and what it found."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

import anyio

from tests.servers.install import HOME, conformance

Era: TypeAlias = Literal["2025-11-25", "2026-07-28"]
Verdict: TypeAlias = Literal["pass", "warn", "fail"]

ERAS: tuple[Era, ...] = ("2025-11-25", "2026-07-28")
SERVER_SCENARIOS: Mapping[Era, int] = {"2025-11-25": 33, "2026-07-28": 40}
CLIENT_SCENARIOS: Mapping[Era, int] = {"2025-11-25": 19, "2026-07-28": 33}
"""How many scenarios the suite has for a version; fewer results mean that one broke down."""

ROOT = Path(__file__).resolve().parents[2]
SERVER_PATIENCE = "20000"  # milliseconds for one scenario
CLIENT_PATIENCE = "60000"
AT_ONCE = 2  # the suite itself would run all client scenarios at once
LISTED = re.compile(r"^  - (\S+)", re.MULTILINE)
TIME = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")


@dataclass(frozen=True, slots=True)
class Check:
    """A check that did not succeed, and why."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """What one scenario found, and the last thing that a client under test complained of.

    `noted` counts the checks that did not apply.
    """

    name: str
    passed: int
    noted: int = 0
    failed: tuple[Check, ...] = ()
    warned: tuple[Check, ...] = ()
    complaint: str = ""

    @property
    def verdict(self) -> Verdict:
        """`fail` if any check failed, or none was made; `warn` if one only warned."""
        if self.failed:
            return "fail"

        if self.warned:
            return "warn"

        return "pass" if self.passed or self.noted else "fail"


@dataclass(frozen=True, slots=True)
class Leg:
    """One run of the suite over one version: its scenarios, and the code of `--requirements`.

    The code is None for a client, whose scenarios run one by one. `said` is the end of what the
    requirements run printed, where it did not exit with 0.
    """

    era: Era
    expected: int
    scenarios: tuple[Scenario, ...]
    requirements: int | None
    said: str = ""

    def count(self, verdict: Verdict) -> int:
        """How many scenarios ended so."""
        return sum(scenario.verdict == verdict for scenario in self.scenarios)


async def server_leg(url: str, era: Era) -> Leg:
    """Both server runs of a version, against the server at `url`.

    Raises:
        Unavailable: The suite could not be installed.
    """
    start = await anyio.to_thread.run_sync(conformance)
    run = [*start, "server", "--url", url, "--timeout", SERVER_PATIENCE]
    with tempfile.TemporaryDirectory(dir=HOME, prefix="results-") as place:
        all_of, required = Path(place, "all"), Path(place, "required")
        await _run([*run, "--suite", "all", "--spec-version", era, "-o", str(all_of)])
        code, said = await _run([*run, "--requirements", era, "-o", str(required)])
        found = tuple(_found(all_of, "server-"))

    return Leg(era, SERVER_SCENARIOS[era], found, code, said if code else "")


async def client_leg(era: Era) -> Leg:
    """Every client scenario of a version, with bridge as the client; a few at a time.

    Raises:
        Unavailable: The suite could not be installed.
    """
    start = await anyio.to_thread.run_sync(conformance)
    _, listed = await _run([*start, "list", "--client", "--spec-version", era])
    names = LISTED.findall(listed)
    command = f"{sys.executable} -m tests.conformance.client"
    run = [*start, "client", "--command", command, "--timeout", CLIENT_PATIENCE]
    turn = anyio.CapacityLimiter(AT_ONCE)

    codes: dict[str, int] = {}

    async def one(name: str, place: str) -> None:
        async with turn:
            codes[name], _ = await _run(
                [*run, "--scenario", name, "--spec-version", era, "-o", place]
            )

    with tempfile.TemporaryDirectory(dir=HOME, prefix="results-") as place:
        async with anyio.create_task_group() as running:
            for name in names:
                running.start_soon(one, name, place)

        found = {scenario.name: scenario for scenario in _found(Path(place), "")}

    in_order = tuple(_with_exit(found[name], codes[name]) for name in names if name in found)
    return Leg(era, CLIENT_SCENARIOS[era], in_order, None)


def _with_exit(scenario: Scenario, code: int) -> Scenario:
    """A client that gave up has failed, even where all that was checked is well."""
    if code == 0 or scenario.verdict != "pass":
        return scenario

    return replace(scenario, failed=(Check("client-exit", scenario.complaint),))


async def _run(argv: Sequence[str]) -> tuple[int, str]:
    ended = await anyio.run_process(
        argv,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return ended.returncode, ended.stdout.decode("utf-8", "replace")[-4000:]


def _found(place: Path, prefix: str) -> list[Scenario]:
    """The results below a folder, in the order in which the scenarios ran."""
    files = sorted(place.rglob("checks.json"), key=lambda path: path.stat().st_mtime_ns)
    return [_scenario(place, path, prefix) for path in files]


def _scenario(place: Path, path: Path, prefix: str) -> Scenario:
    checks = json.loads(path.read_text("utf-8"))
    name = TIME.sub("", path.parent.relative_to(place).as_posix())
    return Scenario(
        name=name.removeprefix(prefix),
        passed=sum(check["status"] == "SUCCESS" for check in checks),
        noted=sum(check["status"] in ("INFO", "SKIPPED") for check in checks),
        failed=_with(checks, "FAILURE"),
        warned=_with(checks, "WARNING"),
        complaint=_last_line(path.with_name("stderr.txt")),
    )


def _last_line(path: Path) -> str:
    lines = path.read_text("utf-8", errors="replace").split("\n") if path.exists() else []
    return next((line for line in reversed(lines) if line.strip()), "")


def _with(checks: list[dict[str, str]], status: str) -> tuple[Check, ...]:
    return tuple(
        Check(check["id"], check.get("errorMessage") or check.get("description", ""))
        for check in checks
        if check["status"] == status
    )
