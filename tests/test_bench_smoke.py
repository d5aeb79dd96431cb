"""The benchmark measures what is right: its figures are for people, its answers are checked."""

from __future__ import annotations

from pathlib import Path

from tests.bench.compare import measured, wrong
from tests.bench.contenders import FLOOR, OURS, Options


def test_floor_and_bridge_answer_every_call_of_the_benchmark_rightly(tmp_path: Path) -> None:
    options = Options(tmp_path, rounds=1, calls=20, clients=(4,), only=(FLOOR, OURS))

    cells = measured(options)

    assert {(cell["name"], cell["era"]) for cell in cells} == {
        (FLOOR, "legacy"),
        (FLOOR, "modern"),
        (OURS, "legacy"),
        (OURS, "modern"),
    }
    assert [cell["failed"] for cell in cells] == [[], [], [], []]
    assert wrong(cells) == 0
    assert all(len(cell["runs"]) == 1 for cell in cells)
