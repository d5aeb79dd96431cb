"""What every test may ask for: servers to talk to, ports, a temporary repository."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import nursery
from tests.processes import Running, started, unused_port
from tests.servers import install

ROOT = Path(__file__).resolve().parent.parent
ODD = ROOT / "tests" / "servers" / "odd.py"

INSTALLERS: dict[str, Callable[[], Any]] = {
    "python_servers": install.python_servers,
    "everything": install.everything,
}
INSTALLED = pytest.StashKey[dict[str, Any]]()


@dataclass(frozen=True, slots=True)
class Served:
    """A server that listens: where, and its process."""

    url: str
    port: int
    running: Running


@dataclass(frozen=True, slots=True)
class Everything:
    """server-everything: over stdio by its command, over HTTP once it is started."""

    command: tuple[str, ...]

    @property
    def stdio(self) -> list[str]:
        """The command that speaks MCP over stdio."""
        return [*self.command, "stdio"]

    @asynccontextmanager
    async def http(self, port: int | None = None) -> AsyncIterator[Served]:
        """Listen for Streamable HTTP, on a free port unless one is given."""
        async with self._listening("streamableHttp", "/mcp", port) as served:
            yield served

    @asynccontextmanager
    async def sse(self, port: int | None = None) -> AsyncIterator[Served]:
        """Listen for HTTP+SSE, on a free port unless one is given."""
        async with self._listening("sse", "/sse", port) as served:
            yield served

    @asynccontextmanager
    async def _listening(self, word: str, path: str, port: int | None) -> AsyncIterator[Served]:
        port = unused_port() if port is None else port
        async with started([*self.command, word], {"PORT": str(port)}, port=port) as running:
            yield Served(f"http://127.0.0.1:{port}{path}", port, running)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let `-m "not npm"` leave out what needs Node."""
    for item in items:
        if "everything" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.npm)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Install what the collected tests need before the first one runs and its clock starts."""
    session.config.stash[INSTALLED] = installed = {}
    if session.config.option.collectonly:
        return

    wanted = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    for name in wanted & INSTALLERS.keys():
        try:
            installed[name] = INSTALLERS[name]()
        except install.Unavailable as exc:
            installed[name] = exc


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: while one waits, another works."""
    return len(os.sched_getaffinity(0)) + 1 if sys.platform == "linux" else 2


def pytest_sessionfinish() -> None:
    """End the nursery."""
    nursery.close()


def _installed(config: pytest.Config, name: str) -> Any:
    """What was installed. If that failed: in CI an error, elsewhere a skip with the reason."""
    found = config.stash[INSTALLED][name]
    if not isinstance(found, install.Unavailable):
        return found

    if os.environ.get("CI") or os.environ.get("BRIDGE_REQUIRE_SERVERS") == "1":
        raise found

    pytest.skip(str(found))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Bridge runs on asyncio."""
    return "asyncio"


@pytest.fixture
def free_port() -> Callable[[], int]:
    """Gives a port of 127.0.0.1 that nobody listens on, another one each time."""
    return unused_port


@pytest.fixture(scope="session")
def demo_command() -> list[str]:
    """The command that runs the demo server over stdio."""
    return nursery.server("-m", "bridge.demo")


@pytest.fixture(scope="session")
def odd_server() -> Callable[..., list[str]]:
    """Gives the command for the misbehaving server: `odd_server("twice", "--era", "legacy")`."""

    def command(way: str, *options: str) -> list[str]:
        return [sys.executable, str(ODD), way, *options]

    return command


@pytest.fixture(scope="session")
def python_servers(request: pytest.FixtureRequest) -> Path:
    """The folder of the MCP servers from PyPI."""
    found = _installed(request.config, "python_servers")
    assert isinstance(found, Path)
    return found


@pytest.fixture(scope="session")
def time_server(python_servers: Path) -> list[str]:
    """The command for mcp-server-time: both eras, two tools."""
    return [str(python_servers / "mcp-server-time"), "--local-timezone", "UTC"]


@pytest.fixture
def git_server(python_servers: Path, tmp_path: Path) -> Callable[[], list[str]]:
    """Gives the command for mcp-server-git over a small repository of the test's own."""

    def command() -> list[str]:
        repository = tmp_path / "repository"
        if not repository.exists():
            make_repository(repository)

        return [str(python_servers / "mcp-server-git"), "--repository", str(repository)]

    return command


@pytest.fixture(scope="session")
def everything(request: pytest.FixtureRequest) -> Everything:
    """server-everything, the legacy server that uses every feature of the protocol."""
    return Everything(tuple(_installed(request.config, "everything")))


def make_repository(place: Path) -> None:
    """A git repository with one commit, whatever git is configured to do on this machine."""
    place.mkdir()
    (place / "README").write_text("A repository for tests.\n", "utf-8")
    _git(place, "init", "--quiet", "--initial-branch=main")
    _git(place, "add", "README")
    _git(place, "commit", "--quiet", "--message=First commit")


def _git(place: Path, *words: str) -> None:
    person = {"NAME": "Tester", "EMAIL": "tester@example.com"}
    identity = {f"GIT_{who}_{k}": v for who in ("AUTHOR", "COMMITTER") for k, v in person.items()}
    isolated = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    argv: Sequence[str] = ["git", "-C", str(place), *words]
    subprocess.run(argv, check=True, env={**os.environ, **identity, **isolated})
