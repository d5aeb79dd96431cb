"""Which answers of people were used, in a database: a row an answer, and its key is what spends it.

Nobody counts a row once its question has expired, so rows go as new ones come.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, delete, select

from bridge.errors import StoreError
from bridge.stores.database import Database, add, open_database
from bridge.stores.schema import record, spent

SLACK: Final = 3600.0
"""Seconds that a row stays after its question has expired.

Clocks that differ by less never give an answer back that was used.
"""

SWEEP_SECONDS: Final = 60.0
MOST_SWEPT: Final = 1000
"""Rows that go at once at most."""

THREADS: Final = 4
_MICROS: Final = 1_000_000


class SqlSpent:
    """A record of the answers that were taken, for all processes that share the database."""

    def __init__(
        self, database: Database, name: str, *, clock: Callable[[], float] = time.time
    ) -> None:
        """`name` is the one that the database has; `clock` is everybody's: seconds since 1970."""
        self.name = name
        self._database = database
        self._clock = clock
        self._swept = float("-inf")

    async def take(self, nonce: str, expires: float) -> bool:
        """Take the answer to a question, which expires then: True for the first who asks, only.

        False also where it has expired already.

        Raises:
            StoreError: The database could not do it, or is another one by now, which does not know
                what was taken; then, too, nothing may run for this answer.
        """
        now = self._clock()
        if expires <= now:
            return False

        is_due = now - self._swept >= SWEEP_SECONDS
        row = {"nonce": nonce, "expires_at": int(expires * _MICROS)}

        def work(connection: Connection) -> bool:
            if connection.execute(select(record.c.name)).scalar() != self.name:
                raise StoreError("the database is another one than at the start: restart bridge")

            if is_due:
                _sweep(connection, int((now - SLACK) * _MICROS))

            return add(connection, spent, row)

        is_first = await self._database.write(work)
        if is_due:
            self._swept = now

        return is_first


def _sweep(connection: Connection, before: int) -> None:
    """Remove old rows, but for those that another one removes at this moment."""
    old = select(spent.c.nonce).where(spent.c.expires_at < before).limit(MOST_SWEPT)
    connection.execute(
        delete(spent).where(spent.c.nonce.in_(old.with_for_update(skip_locked=True)))
    )


def _named(connection: Connection) -> str:
    """The name of the record that this database holds, given to it by whoever came first."""
    add(connection, record, {"number": 1, "name": uuid.uuid4().hex})
    return str(connection.execute(select(record.c.name)).scalar_one())


@asynccontextmanager
async def open_spent(url: str | Path) -> AsyncIterator[SqlSpent]:
    """The record in a database; see `open_database`.

    Raises:
        ConfigError: The URL names no database that can be used, or a newer bridge made it.
        StoreError: The database cannot be reached.
    """
    async with open_database(url, threads=THREADS) as database:
        yield await spent_in(database)


async def spent_in(database: Database, *, clock: Callable[[], float] = time.time) -> SqlSpent:
    """The record in a database that is open.

    Raises:
        StoreError: The database could not do it.
    """
    return SqlSpent(database, await database.write(_named), clock=clock)
