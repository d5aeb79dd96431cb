"""The blocks of requests: they end in time, each in its own, though one timer serves them all."""

from __future__ import annotations

import asyncio  # noqa: TID251 - its timers are what is counted
import math
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from bridge.upstream.calls import Calls
from bridge.upstream.flights import Flights


async def test_each_block_ends_in_its_own_time_whichever_began_first() -> None:
    calls, ended = Calls(Flights()), list[float]()

    async def run(seconds: float) -> None:
        with calls.call(seconds) as call:
            await anyio.sleep_forever()

        assert anyio.current_time() >= call.deadline - 0.002
        ended.append(seconds)
        await anyio.lowlevel.checkpoint()  # nothing of the cancellation is left

    async with anyio.create_task_group() as tasks:
        for seconds in (0.1, 0.05, 0.15):
            tasks.start_soon(run, seconds)

    assert ended == [0.05, 0.1, 0.15]


async def test_no_timer_is_made_for_a_block_that_ends_later_than_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[float] = []
    loop = asyncio.get_running_loop()
    call_at = loop.call_at

    def counted(when: float, *args: Any) -> asyncio.TimerHandle:
        made.append(when)
        return call_at(when, *args)

    monkeypatch.setattr(loop, "call_at", counted)
    calls = Calls(Flights())
    for seconds in (30, 60, None, 30):
        with calls.call(seconds):
            pass

    assert len(made) == 1
    calls.close()


async def test_block_that_was_left_is_not_ended_by_its_time() -> None:
    calls = Calls(Flights())
    with calls.call(0.01):
        pass

    with calls.call(0.03) as second:
        await anyio.sleep_forever()

    assert second.is_cancelled


async def test_deadline_can_be_moved_both_ways() -> None:
    flights = Flights()
    calls = Calls(flights)
    with calls.call(0.01) as call:
        call.deadline = math.inf
        with anyio.move_on_after(0.05) as waiting:
            await anyio.sleep_forever()

        assert (waiting.cancelled_caught, call.is_cancelled) == (True, False)
        call.deadline = anyio.current_time() + 30
        assert 0 < call.deadline - anyio.current_time() <= 30
        call.deadline = anyio.current_time() + 0.01
        await anyio.sleep_forever()

    assert (call.is_cancelled, len(flights)) == (True, 0)


async def test_closing_the_channel_ends_every_block() -> None:
    flights = Flights()
    calls, ended = Calls(flights), list[float | None]()

    async def run(seconds: float | None) -> None:
        with calls.call(seconds):
            await anyio.sleep_forever()

        ended.append(seconds)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, 30)
        tasks.start_soon(run, None)
        await anyio.wait_all_tasks_blocked()
        flights.close("enough")
        calls.close()

    assert (sorted(map(str, ended)), len(flights)) == (["30", "None"], 0)


@pytest.mark.parametrize("first", ["the time", "the task"])
async def test_cancellation_in_the_same_moment_as_the_end_is_heard(first: str) -> None:
    calls, blocks = Calls(Flights()), list[object]()

    async def run() -> None:
        with calls.call(30) as call:
            blocks.append(call)
            ends: list[Callable[[], object]] = [call.cancel, task.cancel]
            for end in ends if first == "the time" else ends[::-1]:
                asyncio.get_running_loop().call_soon(end)

            await anyio.sleep_forever()

    task = asyncio.get_running_loop().create_task(run())
    with pytest.raises(asyncio.CancelledError):
        await task

    assert len(blocks) == 1
    calls.close()
