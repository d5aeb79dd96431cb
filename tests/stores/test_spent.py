"""The record of used answers in a database: the first who takes one has it, whoever else asks."""

from __future__ import annotations

import time

import anyio
import pytest
from sqlalchemy import Connection, delete, func, select

from bridge.errors import StoreError
from bridge.stores.database import Database, open_database
from bridge.stores.schema import record, spent
from bridge.stores.spent import MOST_SWEPT, SLACK, SWEEP_SECONDS, SqlSpent, open_spent, spent_in
from tests.waiting import eventually

NOW = 1_800_000_000.0
LATER = NOW + 600


class Clock:
    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


async def rows(database: Database) -> set[str]:
    wanted = select(spent.c.nonce)
    return await database.read(lambda connection: set(connection.execute(wanted).scalars()))


async def test_an_answer_is_taken_once(database: Database) -> None:
    record = await spent_in(database, clock=Clock())

    assert await record.take("one", LATER)
    assert not await record.take("one", LATER)
    assert not await record.take("one", LATER + 1)
    assert await record.take("other", LATER)


async def test_of_many_who_take_an_answer_at_once_one_has_it(database_url: str) -> None:
    taken: list[bool] = []
    async with open_spent(database_url) as one, open_spent(database_url) as other:

        async def take(record: SqlSpent) -> None:
            taken.append(await record.take("one", time.time() + 600))

        async with anyio.create_task_group() as group:
            for number in range(12):
                group.start_soon(take, one if number % 2 else other)

    assert sorted(taken) == [False] * 11 + [True]


async def test_what_was_taken_stays_so_after_a_restart(database_url: str) -> None:
    for is_first in (True, False):
        async with open_database(database_url) as database:
            assert await (await spent_in(database, clock=Clock())).take("one", LATER) is is_first


async def test_an_answer_that_came_too_late_is_not_taken(database: Database) -> None:
    record = await spent_in(database, clock=Clock())

    assert not await record.take("one", NOW)
    assert await rows(database) == set()


async def test_old_rows_go_as_new_ones_come(database: Database) -> None:
    clock = Clock()
    record = await spent_in(database, clock=clock)
    assert await record.take("old", LATER)
    clock.now += SWEEP_SECONDS
    assert await record.take("newer", LATER + 60)

    clock.now = LATER + SLACK + 1
    assert await record.take("new", clock.now + 600)
    assert await rows(database) == {"newer", "new"}

    clock.now += SWEEP_SECONDS - 1  # not yet again
    assert await record.take("next", clock.now + 600)
    assert await rows(database) == {"newer", "new", "next"}


async def test_clocks_that_differ_give_no_answer_back_that_was_used(database: Database) -> None:
    slow, fast = Clock(NOW), Clock(NOW + SLACK - 1)
    late = await spent_in(database, clock=slow)
    assert await late.take("one", NOW + 1)

    assert await (await spent_in(database, clock=fast)).take("other", fast.now + 600)

    assert not await late.take("one", NOW + 1)


async def test_no_more_than_a_bounded_number_of_rows_goes_at_once(database: Database) -> None:
    many = [{"nonce": f"n{number}", "expires_at": 1} for number in range(MOST_SWEPT + 5)]
    await database.write(lambda connection: connection.execute(spent.insert(), many))

    assert await (await spent_in(database, clock=Clock())).take("one", LATER)

    counted = select(func.count()).select_from(spent)
    assert await database.read(lambda connection: connection.execute(counted).scalar()) == 6


async def test_rows_that_somebody_else_removes_are_not_waited_for(postgres_url: str) -> None:
    """In SQLite there is one writer at a time anyway."""
    reached, go_on, taken = anyio.Event(), anyio.Event(), list[bool]()

    def remove_slowly(connection: Connection) -> None:
        connection.execute(delete(spent))
        anyio.from_thread.run_sync(reached.set)
        anyio.from_thread.run(go_on.wait)

    async with open_database(postgres_url) as database, anyio.create_task_group() as group:
        old = {"nonce": "old", "expires_at": 1}
        await database.write(lambda connection: connection.execute(spent.insert(), old))
        group.start_soon(database.write, remove_slowly)
        await reached.wait()

        async def take() -> None:
            taken.append(await (await spent_in(database, clock=Clock())).take("one", LATER))

        group.start_soon(take)
        try:
            await eventually(lambda: taken == [True])
        finally:
            go_on.set()


async def test_a_database_without_the_table_is_given_it(database_url: str) -> None:
    async with open_database(database_url) as database:
        await database.write(lambda connection: spent.drop(connection))

    async with open_spent(database_url) as record:
        assert await record.take("one", time.time() + 600)


async def test_a_database_that_is_another_one_by_now_takes_nothing(database: Database) -> None:
    before = await spent_in(database, clock=Clock())
    assert await before.take("one", LATER)
    await database.write(lambda connection: connection.execute(delete(spent)))
    await database.write(lambda connection: connection.execute(delete(record)))
    after = await spent_in(database, clock=Clock())

    with pytest.raises(StoreError, match="restart bridge"):
        await before.take("one", LATER)

    assert after.name != before.name
    assert (await spent_in(database, clock=Clock())).name == after.name
    assert await after.take("one", LATER)


async def test_a_database_that_fails_takes_nothing(database: Database) -> None:
    await database.write(lambda connection: spent.drop(connection))

    with pytest.raises(StoreError, match="could not do it"):
        await (await spent_in(database, clock=Clock())).take("one", LATER)
