from __future__ import annotations

import math
from typing import Any

from bridge.downstream.progress import BURST, PER_SECOND, PacedProgress


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Sent(list[Any]):
    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.append((progress, total, message))


async def test_progress_is_passed_on() -> None:
    sent = Sent()
    paced = PacedProgress(sent)
    await paced(1, 2, "half")
    await paced(2, 2, None)

    assert sent == [(1, 2, "half"), (2, 2, None)]


async def test_what_does_not_increase_is_dropped() -> None:
    sent = Sent()
    paced = PacedProgress(sent)
    for progress in (1, 1, 0.5, math.nan, 1.5):
        await paced(progress, None, None)

    assert [progress for progress, _, _ in sent] == [1, 1.5]


async def test_a_flood_is_thinned_and_its_end_still_arrives() -> None:
    sent, clock = Sent(), Clock()
    paced = PacedProgress(sent, clock)
    for progress in range(1, 1001):
        await paced(progress, 1000, None)

    assert len(sent) == BURST + 1
    assert sent[-1] == (1000, 1000, None)


async def test_not_even_ends_can_flood() -> None:
    sent, clock = Sent(), Clock()
    paced = PacedProgress(sent, clock)
    for progress in range(1, 1001):
        await paced(progress, progress, None)

    assert len(sent) == BURST + 1


async def test_after_a_pause_there_is_room_again() -> None:
    sent, clock = Sent(), Clock()
    paced = PacedProgress(sent, clock)
    for progress in range(1, 101):
        await paced(progress, None, None)

    clock.now += 2 / PER_SECOND
    for progress in range(101, 111):
        await paced(progress, None, None)

    assert [progress for progress, _, _ in sent[int(BURST) :]] == [101, 102]
