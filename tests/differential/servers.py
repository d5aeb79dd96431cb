"""The servers that are asked, each with a place of its own, once directly and once by bridge."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.differential import requests as asked
from tests.differential.requests import Request, Varying
from tests.differential.talk import Era
from tests.differential.wire import Command, Transport, Url, Where
from tests.processes import started, unused_port
from tests.servers import install
from tests.servers.odd_wire import png

ROOT = Path(__file__).resolve().parents[2]
HANDSHAKE_ONLY = Path(__file__).with_name("handshake_only.py")

DATED = "2026-01-02T03:04:05+0000"
PERSON = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Tester"), ("EMAIL", "tester@example.com"), ("DATE", DATED))
} | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def nothing_prepared(place: Path) -> None:
    """The server needs nothing in its place."""


@dataclass(frozen=True, slots=True)
class Server:
    """One server in one era, reached one way.

    `argv` is its command, given its place and a port (0 where it does not listen).
    """

    name: str
    era: Era
    argv: Callable[[Path, int], Sequence[str]]
    requests: Sequence[Request]
    varies: Sequence[Varying] = ()
    transport: Transport = "stdio"
    env: Callable[[Path, int], Mapping[str, str]] = field(default=lambda place, port: {})
    prepare: Callable[[Path], None] = nothing_prepared
    path: str = "/mcp"

    @asynccontextmanager
    async def at(self, place: Path) -> AsyncIterator[Where]:
        """The server in a new place: how to start it, or where it listens."""
        place.mkdir(parents=True)
        self.prepare(place)
        if self.transport == "stdio":
            yield Command(tuple(self.argv(place, 0)), self.env(place, 0), ROOT)
            return

        port = unused_port()
        async with started(self.argv(place, port), self.env(place, port), port=port, cwd=ROOT):
            yield Url(f"http://127.0.0.1:{port}{self.path}", self.transport)


def settings(where: Where) -> dict[str, Any]:
    """The server as an upstream in bridge's configuration."""
    if isinstance(where, Command):
        started_by = {"command": list(where.argv), "env": dict(where.env), "cwd": str(ROOT)}
        return {**started_by, "connect_timeout": "60s"}

    return {"url": where.url, "transport": where.transport, "connect_timeout": "60s"}


def servers() -> list[Server]:
    """Every server, in every era that it speaks.

    Raises:
        Unavailable: One of them could not be installed.
    """
    return [*_python_servers(), *_npm_servers(), *_ours()]


def _python_servers() -> list[Server]:
    scripts = install.python_servers()
    time_command = [str(scripts / "mcp-server-time"), "--local-timezone", "UTC"]
    git_command = [str(scripts / "mcp-server-git"), "--repository"]
    found: list[Server] = []
    for era, before in _pins().items():

        def time_argv(place: Path, port: int, before: Sequence[str] = before) -> list[str]:
            return [*before, *time_command]

        def git_argv(place: Path, port: int, before: Sequence[str] = before) -> list[str]:
            return [*before, *git_command, str(place / "repository")]

        found.append(Server("time", era, time_argv, asked.TIME, asked.TIME_VARIES))
        found.append(
            Server(
                "git", era, git_argv, asked.GIT, env=lambda place, port: PERSON, prepare=_repository
            )
        )

    return found


def _pins() -> Mapping[Era, Sequence[str]]:
    """What goes before the command of a server of both eras, to have it speak one."""
    return {"legacy": [sys.executable, str(HANDSHAKE_ONLY)], "modern": []}


def _repository(place: Path) -> None:
    """A repository with one commit, whose hash is the same wherever it is made."""
    repository = place / "repository"
    repository.mkdir()
    (repository / "README").write_text("A repository for tests.\n", "utf-8")
    _git(repository, "init", "--quiet", "--initial-branch=main")
    _git(repository, "add", "README")
    _git(repository, "commit", "--quiet", "--message=First commit")
    (repository / "README").write_text("Another text.\n", "utf-8")
    (repository / "new.txt").write_text("A new text: ä\n", "utf-8")


def _git(repository: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(repository), *words], check=True, env={**os.environ, **PERSON})


def _npm_servers() -> list[Server]:
    filesystem, memory, everything = install.filesystem(), install.memory(), install.everything()
    of_everything = (asked.EVERYTHING, asked.EVERYTHING_VARIES)
    return [
        Server(
            "filesystem",
            "legacy",
            lambda place, port: [*filesystem, str(place)],
            asked.FILESYSTEM,
            asked.FILESYSTEM_VARIES,
            prepare=_folder,
        ),
        Server(
            "memory",
            "legacy",
            lambda place, port: memory,
            asked.MEMORY,
            env=lambda place, port: {"MEMORY_FILE_PATH": str(place / "memory.jsonl")},
        ),
        Server("everything", "legacy", lambda place, port: [*everything, "stdio"], *of_everything),
        Server(
            "everything",
            "legacy",
            lambda place, port: [*everything, "streamableHttp"],
            *of_everything,
            transport="http",
            env=lambda place, port: {"PORT": str(port)},
        ),
        Server(
            "everything",
            "legacy",
            lambda place, port: [*everything, "sse"],
            *of_everything,
            transport="sse",
            env=lambda place, port: {"PORT": str(port)},
            path="/sse",
        ),
    ]


def _folder(place: Path) -> None:
    (place / "words.txt").write_text("one\nzwei\n三\n", "utf-8")
    (place / "pixel.png").write_bytes(png())


def _ours() -> list[Server]:
    module = [sys.executable, "-m", "tests.servers.everything"]
    found: list[Server] = []
    for era in _pins():

        def over_stdio(place: Path, port: int, era: Era = era) -> list[str]:
            return [*module, "stdio", "--era", era]

        def over_http(place: Path, port: int, era: Era = era) -> list[str]:
            return [*module, "--port", str(port), "--era", era]

        found.append(Server("ours", era, over_stdio, asked.OURS))
        found.append(Server("ours", era, over_http, asked.OURS, transport="http"))

    return found
