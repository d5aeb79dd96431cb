"""Every store that obeys a contract, one after the other, empty."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from sqlalchemy import create_engine, make_url, text

from bridge.core.stores import ApprovalStore, ArtifactService, SessionService
from bridge.stores.database import Database, open_database
from bridge.stores.files import FileArtifactService
from bridge.stores.memory import (
    InMemoryApprovalStore,
    InMemoryArtifactService,
    InMemorySessionService,
)
from bridge.stores.sql import SqlSessionService
from bridge.stores.sql_approvals import SqlApprovalStore
from tests.stores import postgres

MakeSessions: TypeAlias = Callable[..., SessionService]
MakeApprovals: TypeAlias = Callable[..., ApprovalStore]

numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL server; skipped where none is installed, except in CI."""
    folder = postgres.programs()
    if folder is None:
        reason = "no PostgreSQL server is installed (Debian: apt-get install postgresql)"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)

    with postgres.server(folder) as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """The URL of an empty schema of that server."""
    schema = f"test_{next(numbers)}"
    engine = create_engine(make_url(postgres_server).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {schema}"))

    engine.dispose()
    return f"{postgres_server}&options=-csearch_path%3D{schema}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, of each kind."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_url"))

    return f"sqlite:///{tmp_path}/bridge.db"


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """An empty database, open."""
    async with open_database(database_url) as opened:
        yield opened


def kinds(memory: Callable[..., Any], sql: Callable[..., Any]) -> Callable[..., Any]:
    """A fixture that gives what makes a store: in memory, and in each kind of database."""

    @pytest.fixture(params=["memory", "sqlite", "postgresql"])
    async def made(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
        if request.param == "memory":
            yield memory
            return

        url = f"sqlite:///{tmp_path}/bridge.db"
        if request.param == "postgresql":
            url = request.getfixturevalue("postgres_url")

        async with open_database(url) as opened:
            yield lambda **given: sql(opened, **given)

    return made


make_sessions = kinds(InMemorySessionService, SqlSessionService)
make_approvals = kinds(InMemoryApprovalStore, SqlApprovalStore)


@pytest.fixture
def sessions(make_sessions: MakeSessions) -> SessionService:
    """A session service of each kind, empty."""
    return make_sessions()


@pytest.fixture
def approvals(make_approvals: MakeApprovals) -> ApprovalStore:
    """A ledger of each kind, empty."""
    return make_approvals()


@pytest.fixture(params=["memory", "files"])
def artifacts(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactService:
    """An artifact service of each kind, empty."""
    if request.param == "memory":
        return InMemoryArtifactService()

    return FileArtifactService(tmp_path / "artifacts")


@pytest.fixture
def python() -> str:
    """The interpreter that runs the tests, to run more of it."""
    return sys.executable
