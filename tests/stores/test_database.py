"""The database itself: who may read it, which it may be, and several processes at once."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path

import anyio
import pytest
from sqlalchemy import Connection, text

from bridge.core.session import SessionKey
from bridge.errors import ConfigError, StoreError
from bridge.stores.database import Database, open_database, put
from bridge.stores.schema import state
from bridge.stores.sql import SqlSessionService
from bridge.stores.sql_approvals import SqlApprovalStore
from bridge.stores.sqlite import make_file
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
RACERS = 4
KEY = SessionKey("app", "u1", "s1")


@pytest.mark.parametrize("what", ["spend", "create"])
async def test_of_many_processes_that_start_at_once_one_succeeds(
    database_url: str, what: str
) -> None:
    outcomes = await anyio.to_thread.run_sync(race, database_url, what)

    assert sorted(outcomes.values()) == ["lost"] * (RACERS - 1) + ["won"]
    (winner,) = [name for name, outcome in outcomes.items() if outcome == "won"]
    async with open_database(database_url) as database:
        if what == "spend":
            decision = await SqlApprovalStore(database).find(KEY, "confirm-1")
            assert decision is not None
            assert decision.call.id == winner
        else:
            session = await SqlSessionService(database).get(KEY)
            assert session.state == {"by": winner, "app:by": winner}


def race(url: str, what: str) -> dict[str, str]:
    """Let processes meet at a database that has no tables yet; returns how each fared."""
    with ExitStack() as stack:
        racers = {
            name: stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "tests.stores.racer", url, what, name],
                    cwd=ROOT,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for name in map(str, range(RACERS))
        }
        for racer in racers.values():
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"

        for racer in racers.values():
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()

        outcomes = {}
        for name, racer in racers.items():
            written, complaints = racer.communicate(timeout=PATIENCE)
            assert racer.returncode == 0, complaints
            outcomes[name] = written.strip()

    return outcomes


async def test_a_file_is_for_its_owners_eyes_and_its_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "bridge.db"
    async with open_database(f"sqlite:///{path}") as database:
        await SqlSessionService(database).create(KEY)
        beside = sorted(path.parent.iterdir())
        assert len(beside) > 1
        assert {stat.S_IMODE(file.stat().st_mode) for file in beside} == {0o600}

    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_a_reader_is_not_kept_waiting_by_a_writer(database: Database) -> None:
    sessions = SqlSessionService(database)
    await sessions.create(KEY, {"a": 1})
    reached = anyio.Event()
    go_on = anyio.Event()

    def write_slowly(connection: Connection) -> None:
        anyio.from_thread.run_sync(reached.set)
        anyio.from_thread.run(go_on.wait)

    async with anyio.create_task_group() as group:
        group.start_soon(database.write, write_slowly)
        await reached.wait()
        assert (await sessions.get(KEY)).state == {"a": 1}
        go_on.set()


async def test_what_raises_in_a_transaction_takes_all_of_it_back(database: Database) -> None:
    sessions = SqlSessionService(database)

    def half(connection: Connection) -> None:
        connection.execute(text("INSERT INTO bridge_state VALUES ('app', '', '', 'k', '1')"))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await database.write(half)

    assert (await sessions.create(KEY)).state == {}


async def test_a_reading_transaction_sees_one_moment(database: Database) -> None:
    sessions = SqlSessionService(database)
    held = await sessions.create(KEY)
    count = text("SELECT count(*) FROM bridge_sessions")
    seen: list[object] = []
    reached, go_on = anyio.Event(), anyio.Event()

    def look_twice(connection: Connection) -> None:
        seen.append(connection.execute(count).scalar())
        anyio.from_thread.run_sync(reached.set)
        anyio.from_thread.run(go_on.wait)
        seen.append(connection.execute(count).scalar())

    async with anyio.create_task_group() as group:
        group.start_soon(database.read, look_twice)
        await reached.wait()
        await sessions.create(SessionKey("app", "u1", "s2"))
        go_on.set()

    assert seen == [1, 1]
    assert held.key == KEY


async def test_a_writer_that_reads_first_is_not_overtaken(database: Database) -> None:
    """SQLite refuses to write after a read that is out of date, so the lock comes first.

    PostgreSQL lets both write; there it is each statement that decides.
    """
    count = text("SELECT count(*) FROM bridge_state")
    add_one = text("INSERT INTO bridge_state VALUES ('app', '', '', :key, '1')")
    waiting = threading.Barrier(2)

    def read_then_write(connection: Connection, key: str) -> None:
        connection.execute(count)
        with suppress(threading.BrokenBarrierError):
            waiting.wait(0.2)  # for the other, which must not get so far where only one may

        connection.execute(add_one, {"key": key})

    async with anyio.create_task_group() as group:
        for key in ("a", "b"):
            group.start_soon(database.write, partial(read_then_write, key=key))

    assert await database.read(lambda connection: connection.execute(count).scalar()) == 2


async def test_writers_of_the_same_rows_never_wait_for_each_other_in_a_circle(
    database: Database,
) -> None:
    keys = [f"k{number}" for number in range(300)]

    def rows(value: str, names: list[str]) -> list[dict[str, str]]:
        owner = {"app_name": "app", "user_id": "", "session_id": ""}
        return [{**owner, "key": name, "value": value} for name in names]

    async def write(number: int) -> None:
        mine = rows(str(number), keys if number % 2 else keys[::-1])
        for _ in range(10):
            await database.write(lambda connection: put(connection, state, mine))

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(write, number)

    values = text("SELECT count(DISTINCT value), count(*) FROM bridge_state")
    found = await database.read(lambda connection: connection.execute(values).one())
    assert tuple(found) == (1, 300)


def test_a_file_whose_mode_somebody_else_is_changing_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "bridge.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TABLE t (a)")
        waiter = threading.Thread(target=make_file, args=[path])
        waiter.start()
        waiter.join(0.3)
        assert waiter.is_alive()
        other.execute("COMMIT")
        waiter.join(PATIENCE)

    with closing(sqlite3.connect(path)) as anew:
        assert anew.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def test_an_error_of_the_database_is_ours_and_tells_no_values(database: Database) -> None:
    def wrong(connection: Connection) -> None:
        connection.execute(text("INSERT INTO nowhere VALUES (:v)"), {"v": "a secret"})

    with pytest.raises(StoreError, match=r"could not do it: .*nowhere") as caught:
        await database.write(wrong)

    assert "a secret" not in f"{caught.value} {caught.value.__cause__}"


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("bridge.db", "must be a URL such as"),
        ("mysql://host/name", '"mysql" is not supported'),
        ("sqlite://", "in memory is not supported"),
        ("sqlite:///:memory:", "in memory is not supported"),
        ("sqlite:////tmp/x?mode=memory", 'nothing after a "\\?"'),
        ("postgresql://user:pa@secret@host/name", 'write it as "%40"'),
    ],
)
async def test_a_url_that_names_no_database_is_refused(url: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        async with open_database(url):
            pass


@pytest.mark.parametrize("name", ["a b", "what?mode=memory", "50%41", "#1"])
async def test_a_path_is_a_path_whatever_it_is_called(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    async with open_database(path):
        pass

    assert path.is_file()


async def test_a_database_that_cannot_be_reached_is_no_secret_telling(tmp_path: Path) -> None:
    url = f"postgresql://user:hunter2@/name?host={tmp_path}"

    with pytest.raises(StoreError, match="the database could not do it") as caught:
        async with open_database(url):
            pass

    assert "hunter2" not in str(caught.value)


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bridge.db"
    path.write_text("this is no database, however long it may be " * 100)

    with pytest.raises(StoreError, match="not a database"):
        async with open_database(f"sqlite:///{path}"):
            pass


async def test_the_tables_of_a_newer_bridge_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "bridge.db"
    async with open_database(f"sqlite:///{path}"):
        pass

    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE bridge_schema SET version = 2")

    with pytest.raises(ConfigError, match="made by a newer bridge"):
        async with open_database(f"sqlite:///{path}"):
            pass
