"""One database for everything that rests: a SQLite file, or PostgreSQL by its URL.

SQLAlchemy's Core runs in worker threads, a bounded number of them, so that neither database
needs an asynchronous driver.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread
from sqlalchemy import Connection, Engine, Table, create_engine, event, make_url, select, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects import sqlite as sqlite_dialect
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.schema import CreateTable

from bridge.errors import ConfigError, StoreError
from bridge.stores.schema import VERSION, metadata, schema_version
from bridge.stores.sqlite import BUSY_SECONDS, make_file

T = TypeVar("T")
Row = Mapping[str, Any]

THREADS: Final = 8
CONNECT_SECONDS: Final = 10
SCHEMA_LOCK: Final = 0x62726964  # any number that all bridges agree on

_READING: Final[Mapping[str, dict[str, Any]]] = {
    "sqlite": {"bridge_reading": True},
    # Several statements read one moment only if the transaction says so.
    "postgresql": {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True},
}


class Database:
    """A database that is open; `open_database` makes it, and the stores over it share it."""

    def __init__(self, engine: Engine, threads: int) -> None:
        self._engine = engine
        self._reading = engine.execution_options(**_READING[engine.dialect.name])
        self._threads = anyio.CapacityLimiter(threads)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction that sees one moment of the database.

        Raises:
            StoreError: The database could not do it.
        """
        return await self._run(self._reading, work)

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction: all of it is kept, or, if it raises, nothing.

        Once begun it is not interrupted, so a caller that is cancelled still knows the end.

        Raises:
            StoreError: The database could not do it; nothing is kept.
        """
        return await self._run(self._engine, work)

    async def _run(self, engine: Engine, work: Callable[[Connection], T]) -> T:
        def transaction() -> T:
            with _translated(), engine.begin() as connection:
                return work(connection)

        return await anyio.to_thread.run_sync(transaction, limiter=self._threads)


def add(connection: Connection, table: Table, row: Row) -> bool:
    """Insert a row unless its key is taken; returns whether it was inserted."""
    statement = _insert(connection, table).values(**row).on_conflict_do_nothing()
    counted = connection.execute(statement, execution_options={"preserve_rowcount": True})
    return counted.rowcount == 1


def put(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows; one whose key is taken replaces what is there.

    They are taken in the order of their keys, so that two writers never wait for each other.
    """
    if not rows:
        return

    keys = [column.name for column in table.primary_key]
    statement = _insert(connection, table)
    replaced = {c.name: statement.excluded[c.name] for c in table.c if not c.primary_key}
    ordered = sorted(rows, key=lambda row: [row[name] for name in keys])
    connection.execute(
        statement.on_conflict_do_update(index_elements=keys, set_=replaced),
        [dict(row) for row in ordered],
    )


@asynccontextmanager
async def open_database(url: str | Path, *, threads: int = THREADS) -> AsyncIterator[Database]:
    """Open a database and make its tables where they are missing.

    A path is that of a SQLite file, whatever characters it has. A URL is `sqlite:///relative.db`,
    `sqlite:////absolute.db` or `postgresql://user:password@host/name`. A new SQLite file is for
    its owner's eyes alone. At most `threads` transactions run at once.

    Raises:
        ConfigError: The URL names no database that can be used, or a newer bridge made it.
        StoreError: The database cannot be reached.
    """
    engine = _engine(_checked(url), threads)
    try:
        await anyio.to_thread.run_sync(_prepare, engine)
        yield Database(engine, threads)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(engine.dispose)


def _checked(url: str | Path) -> URL:
    if isinstance(url, Path):
        return URL.create("sqlite", database=str(url))

    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # a port that is no number; it may be half a password
        raise ConfigError('the database must be a URL such as "sqlite:///bridge.db"') from None

    if "@" in (parsed.host or ""):  # a part of the password, which an error would show
        raise ConfigError('the password in the URL of the database holds "@": write it as "%40"')

    kind = parsed.get_backend_name()
    if kind == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")

    if kind != "sqlite":
        raise ConfigError(f'the database "{kind}" is not supported: use sqlite or postgresql')

    if parsed.query:
        raise ConfigError('the URL of a SQLite database has nothing after a "?": write its path')

    if parsed.database in (None, "", ":memory:"):
        raise ConfigError(
            "a SQLite database in memory is not supported: use InMemorySessionService"
        )

    return parsed.set(drivername="sqlite")


def _engine(url: URL, threads: int) -> Engine:
    pool: dict[str, Any] = {"pool_size": threads, "max_overflow": 0, "hide_parameters": True}
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS}, **pool)
        event.listen(engine, "connect", _leave_transactions_to_us)
        event.listen(engine, "begin", _begin)
        return engine

    patience = {"connect_timeout": CONNECT_SECONDS}
    try:
        return create_engine(url, connect_args=patience, pool_pre_ping=True, **pool)
    except ImportError:
        raise ConfigError(
            'PostgreSQL needs its driver: pip install "mcp-agent-bridge[postgres]"'
        ) from None


def _leave_transactions_to_us(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None


def _begin(connection: Connection) -> None:
    """Take the write lock first where something is to be written, so that nobody deadlocks."""
    reading = connection.get_execution_options().get("bridge_reading", False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")


def _prepare(engine: Engine) -> None:
    with _translated():
        if engine.dialect.name == "sqlite" and engine.url.database is not None:
            make_file(Path(engine.url.database))

        with engine.begin() as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": SCHEMA_LOCK})

            for table in metadata.sorted_tables:
                connection.execute(CreateTable(table, if_not_exists=True))

            found = connection.execute(select(schema_version.c.version)).scalar()
            if found is None:
                add(connection, schema_version, {"version": VERSION})
            elif found > VERSION:
                raise ConfigError(
                    f"the database was made by a newer bridge (version {found} of its tables, "
                    f"this one knows {VERSION}): update bridge, or name another database"
                )


@contextmanager
def _translated() -> Iterator[None]:
    """Turn the driver's errors into ours; parameters, passwords among them, stay out."""
    try:
        yield
    except DBAPIError as exc:
        raise StoreError(f"the database could not do it: {str(exc.orig).strip()}") from exc
    except (SQLAlchemyError, sqlite3.Error, OSError) as exc:
        raise StoreError(f"the database could not do it: {exc}") from exc


def _insert(connection: Connection, table: Table) -> sqlite_dialect.Insert | postgresql.Insert:
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table)

    return sqlite_dialect.insert(table)
