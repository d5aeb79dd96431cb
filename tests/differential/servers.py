"""The servers that are asked, each with a place of its own, once directly and once by bridge."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests import nursery
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

    @property
    def label(self) -> str:
        """A name of its own among all servers."""
        way = [] if self.transport == "stdio" else [self.transport]
        return "-".join([self.name, self.era, *way])

    @asynccontextmanager
    async def at(self, place: Path) -> AsyncIterator[Where]:
        """The server in a new place: how to start it, or where it listens."""
        self._made(place)
        if self.transport == "stdio":
            yield Command(tuple(self.argv(place, 0)), self.env(place, 0), ROOT)
            return

        port = unused_port()
        async with started(self.argv(place, port), self.env(place, port), port=port, cwd=ROOT):
            yield Url(f"http://127.0.0.1:{port}{self.path}", self.transport)

    def _made(self, place: Path) -> None:
        place.mkdir(parents=True)
        self.prepare(place)


def settings(where: Where) -> dict[str, Any]:
    """The server as an upstream in bridge's configuration."""
    if isinstance(where, Command):
        started_by = {"command": list(where.argv), "env": dict(where.env), "cwd": str(ROOT)}
        return {**started_by, "connect_timeout": "60s"}

    return {"url": where.url, "transport": where.transport, "connect_timeout": "60s"}


def servers(names: Iterable[str] = ()) -> list[Server]:
    """The servers of these names, or all, in every era that they speak.

    Raises:
        Unavailable: One of them could not be installed.
    """
    return [one for name in names or KINDS for one in KINDS[name]()]


def _time() -> list[Server]:
    command = [str(install.python_servers() / "mcp-server-time"), "--local-timezone", "UTC"]

    def argv(before: Sequence[str], place: Path, port: int) -> list[str]:
        return [*before, *command]

    return [
        Server("time", era, partial(argv, before), asked.TIME, asked.TIME_VARIES)
        for era, before in _pins().items()
    ]


def _git() -> list[Server]:
    command = [str(install.python_servers() / "mcp-server-git"), "--repository"]

    def argv(before: Sequence[str], place: Path, port: int) -> list[str]:
        return [*before, *command, str(place / "repository")]

    return [
        Server(
            "git",
            era,
            partial(argv, before),
            asked.GIT,
            env=lambda place, port: PERSON,
            prepare=_repository,
        )
        for era, before in _pins().items()
    ]


def _pins() -> Mapping[Era, Sequence[str]]:
    """What goes before the command of a server of both eras, to have it speak one."""
    return {"legacy": [sys.executable, str(HANDSHAKE_ONLY)], "modern": []}


def _repository(place: Path) -> None:
    """A repository with one commit, whose hash is the same wherever it is made."""
    repository = place / "repository"
    repository.mkdir()
    (repository / "README").write_text("A repository for tests.\n", "utf-8")
    _run_git(repository, "init", "--quiet", "--initial-branch=main")
    _run_git(repository, "add", "README")
    _run_git(repository, "commit", "--quiet", "--message=First commit")
    (repository / "README").write_text("Another text.\n", "utf-8")
    (repository / "new.txt").write_text("A new text: ä\n", "utf-8")


def _run_git(repository: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(repository), *words], check=True, env={**os.environ, **PERSON})


def _filesystem() -> list[Server]:
    command = install.filesystem()
    return [
        Server(
            "filesystem",
            "legacy",
            lambda place, port: [*command, str(place)],
            asked.FILESYSTEM,
            asked.FILESYSTEM_VARIES,
            prepare=_folder,
        )
    ]


def _memory() -> list[Server]:
    command = install.memory()
    return [
        Server(
            "memory",
            "legacy",
            lambda place, port: command,
            asked.MEMORY,
            env=lambda place, port: {"MEMORY_FILE_PATH": str(place / "memory.jsonl")},
        )
    ]


def _everything() -> list[Server]:
    command = install.everything()
    ways: Sequence[tuple[str, Transport, str]] = (
        ("stdio", "stdio", ""),
        ("streamableHttp", "http", "/mcp"),
        ("sse", "sse", "/sse"),
    )

    def argv(word: str, place: Path, port: int) -> list[str]:
        return [*command, word]

    return [
        Server(
            "everything",
            "legacy",
            partial(argv, word),
            asked.EVERYTHING,
            asked.EVERYTHING_VARIES,
            transport,
            lambda place, port: {"PORT": str(port)},
            path=path,
        )
        for word, transport, path in ways
    ]


def _folder(place: Path) -> None:
    (place / "words.txt").write_text("one\nzwei\n三\n", "utf-8")
    (place / "pixel.png").write_bytes(png())


def _ours() -> list[Server]:
    module = ("-m", "tests.servers.everything")

    def argv(transport: Transport, era: Era, place: Path, port: int) -> list[str]:
        listening = ["stdio"] if transport == "stdio" else ["--port", str(port)]
        return nursery.server(*module, *listening, "--era", era)

    ways: Sequence[Transport] = ("stdio", "http")
    return [
        Server("ours", era, partial(argv, transport, era), asked.OURS, transport=transport)
        for era in _pins()
        for transport in ways
    ]


KINDS: Mapping[str, Callable[[], list[Server]]] = {
    "time": _time,
    "git": _git,
    "filesystem": _filesystem,
    "memory": _memory,
    "everything": _everything,
    "ours": _ours,
}
"""Every server by its name, in all its forms."""
