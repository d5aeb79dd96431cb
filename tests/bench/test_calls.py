"""The benchmark of the pipeline runs; its figures are for people."""

from __future__ import annotations

from tests.bench.calls import measured


def test_every_kind_of_call_is_measured() -> None:
    found = measured(rounds=20, runs=1)

    assert len(found) == 9
    assert all(cost >= 0 for cost in found.values())
