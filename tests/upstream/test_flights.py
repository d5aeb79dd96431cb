"""Blocks that end early, without an error: when the channel closes, or the time is up."""

from __future__ import annotations

import asyncio  # noqa: TID251 - a plain cancellation is what is tested
from collections.abc import Callable
from contextlib import AbstractContextManager

import anyio
import anyio.lowlevel
import pytest

from bridge.upstream.calls import Call, Calls
from bridge.upstream.flights import Flights


def call(flights: Flights, seconds: float | None = None) -> Call:
    return Calls(flights).call(seconds)


Kind = Callable[[Flights, float | None], AbstractContextManager[object]]
KINDS: list[Kind] = [Flights.flight, call]


@pytest.mark.parametrize("kind", KINDS)
async def test_block_ends_when_the_time_is_up(kind: Kind) -> None:
    flights = Flights()
    with kind(flights, 0.01):
        await anyio.sleep_forever()

    assert len(flights) == 0
    await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("kind", KINDS)
async def test_every_block_ends_when_the_channel_closes(kind: Kind) -> None:
    flights, ended = Flights(), []

    async def fly(number: int) -> None:
        with kind(flights, None):
            await anyio.sleep_forever()

        await anyio.lowlevel.checkpoint()
        task = asyncio.current_task()
        assert task is not None
        ended.append((number, task.cancelling()))

    async with anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(fly, number)

        await anyio.wait_all_tasks_blocked()
        assert len(flights) == 3
        flights.close("enough")
        await flights.wait_landed(30)
        assert len(flights) == 0

    assert sorted(ended) == [(0, 0), (1, 0), (2, 0)]


@pytest.mark.parametrize("kind", KINDS)
async def test_scope_around_a_block_ends_it_and_itself(kind: Kind) -> None:
    flights = Flights()
    with anyio.move_on_after(0.01) as around:
        with kind(flights, 30):
            await anyio.sleep_forever()

        pytest.fail("the block swallowed what was not its own")

    assert around.cancelled_caught
    assert len(flights) == 0


@pytest.mark.parametrize("kind", KINDS)
async def test_error_in_a_block_stays_itself(kind: Kind) -> None:
    with pytest.raises(KeyError), kind(Flights(), 30):
        raise KeyError


@pytest.mark.parametrize("first", ["the channel", "the scope"])
@pytest.mark.parametrize("kind", KINDS)
async def test_channel_and_scope_that_end_in_one_moment_leave_a_sane_task(
    kind: Kind, first: str
) -> None:
    flights, around = Flights(), anyio.CancelScope()

    async def fly() -> None:
        with around:
            with kind(flights, 30):
                await anyio.sleep_forever()

            await anyio.sleep_forever()

        await anyio.lowlevel.checkpoint()
        task = asyncio.current_task()
        assert task is not None
        assert (around.cancelled_caught, task.cancelling()) == (True, 0)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fly)
        await anyio.wait_all_tasks_blocked()
        ends = [lambda: flights.close("enough"), around.cancel]
        for end in ends if first == "the channel" else ends[::-1]:
            end()


@pytest.mark.parametrize("first", ["the channel", "the task"])
@pytest.mark.parametrize("kind", KINDS)
async def test_plain_cancellation_in_the_moment_of_closing_is_heard(kind: Kind, first: str) -> None:
    flights = Flights()

    async def fly() -> None:
        with kind(flights, 30):
            await anyio.sleep_forever()

        await anyio.sleep_forever()

    task = asyncio.get_running_loop().create_task(fly())
    await anyio.wait_all_tasks_blocked()
    ends = [lambda: flights.close("enough"), task.cancel]
    for end in ends if first == "the channel" else ends[::-1]:
        end()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_closing_from_inside_a_call_lets_it_end_by_itself() -> None:
    flights = Flights()
    with call(flights, 30):
        flights.close("enough")

    await anyio.lowlevel.checkpoint()
    assert not flights.is_open


async def test_scope_inside_a_call_hands_its_end_on() -> None:
    flights = Flights()
    with call(flights, 0.01):
        with anyio.move_on_after(30) as inner:
            await anyio.sleep_forever()

        pytest.fail("the scope swallowed what was not its own")

    assert not inner.cancelled_caught
