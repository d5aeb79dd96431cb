"""Judging what a leg found, and showing it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.conformance.suite import Era, Leg, Scenario

CANNOT_CROSS = Path(__file__).with_name("cannot_cross.yml")
WIDTH = 150  # of a reason


@dataclass(frozen=True, slots=True)
class Judged:
    """A leg, and the failures that are excused: a scenario or `scenario:check`, and why.

    A scored requirement cannot be excused by the suite, so with excuses its code says nothing.
    """

    subject: str
    http: str
    leg: Leg
    excused: Mapping[str, str]

    @property
    def problems(self) -> list[str]:
        """What keeps the leg from being good, one sentence each."""
        failed = [f"{s.name} failed" for s in self.leg.scenarios if not self.is_good(s)]
        return failed + self.other_problems

    @property
    def other_problems(self) -> list[str]:
        """Those that no scenario has by itself."""
        leg = self.leg
        found = []
        if len(leg.scenarios) != leg.expected:
            found.append(f"{len(leg.scenarios)} of {leg.expected} scenarios have a result")

        found += [f'"{entry}" is excused and did not fail' for entry in self._stale()]
        if leg.requirements and not self.excused:
            found.append(f"--requirements {leg.era} exited with {leg.requirements}")

        return found

    def is_good(self, scenario: Scenario) -> bool:
        """Whether it did not fail, or every failure is excused."""
        if scenario.verdict != "fail" or scenario.name in self.excused:
            return True

        checks = [f"{scenario.name}:{check.id}" for check in scenario.failed]
        return bool(checks) and all(check in self.excused for check in checks)

    def _stale(self) -> Iterable[str]:
        failed: set[str] = set()
        for scenario in self.leg.scenarios:
            if scenario.verdict == "fail":
                failed.add(scenario.name)
                failed.update(f"{scenario.name}:{check.id}" for check in scenario.failed)

        return [entry for entry in self.excused if entry not in failed]


def judge(subject: str, http: str, leg: Leg) -> Judged:
    """Read what may fail, which is something for `crossed` only."""
    return Judged(subject, http, leg, cannot_cross(leg.era) if subject == "crossed" else {})


def cannot_cross(era: Era) -> dict[str, str]:
    """What a client of this version cannot have from a server of the other era, and why."""
    entries = YAML(typ="safe").load(CANNOT_CROSS.read_text("utf-8"))
    return {str(what): str(why) for what, why in (entries.get(era) or {}).items()}


def table(judged: Judged) -> str:
    """A line a scenario, and below it why it failed or warned; `exc.` is an excused failure."""
    leg = judged.leg
    lines = []
    for scenario in leg.scenarios:
        mark = "exc." if judged.is_good(scenario) and scenario.failed else scenario.verdict
        lines.append(
            f"  {mark:4}  {scenario.name:46} {scenario.passed:3} passed"
            f" {len(scenario.failed):3} failed {len(scenario.warned):3} warned"
        )
        lines += [
            f"          {check.id}: {' '.join(check.reason.split())[:WIDTH]}"
            for check in (*scenario.failed, *scenario.warned)
        ]
        if scenario.complaint and scenario.verdict != "pass":
            lines.append(f"          the client said: {scenario.complaint[:WIDTH]}")

    counts = ", ".join(f"{leg.count(verdict)} {verdict}" for verdict in ("pass", "warn", "fail"))
    title = (
        f"{leg.era} · {judged.subject} · {judged.http}: {len(leg.scenarios)} scenarios, {counts}"
    )
    said = "" if leg.requirements is None else f"; --requirements exit {leg.requirements}"
    return "\n".join([title + said, *lines, *(f"  ! {each}" for each in judged.other_problems)])


def plain(judged: Judged) -> dict[str, Any]:
    """The same, for machines."""
    leg = judged.leg
    return {
        "era": leg.era,
        "subject": judged.subject,
        "http": judged.http,
        "requirements": leg.requirements,
        "scenarios": [{"verdict": s.verdict, **asdict(s)} for s in leg.scenarios],
        "problems": judged.problems,
    }
