"""What a login leaves behind, and the private file in which it outlives the process.

One file holds one upstream's login. Processes that share it take turns, so that a refresh token
that is good for one use is used once.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)

from bridge.core.wire import dumps, loads
from bridge.upstream.channel import ChannelError

LEEWAY = 5.0  # seconds before its end from which a token is not used any more
TURN_PAUSE = 0.1
MOST_BYTES = 1024 * 1024

Model = TypeVar(
    "Model", OAuthClientInformationFull, OAuthMetadata, OAuthToken, ProtectedResourceMetadata
)


@dataclass(frozen=True, slots=True, repr=False)
class Record:
    """One login: the tokens, who we are to the authorization server, and where that is.

    `expires_at` is in seconds since 1970. `wanted` are scopes that the server asked for when
    nobody could grant them.
    """

    tokens: OAuthToken | None = None
    expires_at: float | None = None
    client: OAuthClientInformationFull | None = None
    server: OAuthMetadata | None = None
    resource: ProtectedResourceMetadata | None = None
    issuer: str | None = None
    wanted: str = ""

    @property
    def header(self) -> str | None:
        """The value of `Authorization`, unless there is none or its time is over."""
        if self.tokens is None:
            return None

        if self.expires_at is not None and time.time() > self.expires_at - LEEWAY:
            return None

        return f"Bearer {self.tokens.access_token}"

    @property
    def is_renewable(self) -> bool:
        """Whether a new token can be had without a person."""
        return bool(self.tokens and self.tokens.refresh_token and self.client and self.server)

    def secrets(self) -> Iterator[str]:
        """What must not be shown."""
        if self.tokens is not None:
            yield self.tokens.access_token
            yield self.tokens.refresh_token or ""

        if self.client is not None:
            yield self.client.client_secret or ""

    def plain(self) -> dict[str, Any]:
        """The same as JSON."""
        parts = {
            "tokens": self.tokens,
            "client": self.client,
            "server": self.server,
            "resource": self.resource,
        }
        told = {
            name: part.model_dump(mode="json", exclude_none=True)
            for name, part in parts.items()
            if part is not None
        }
        rest = {"expires_at": self.expires_at, "issuer": self.issuer, "wanted": self.wanted}
        return {**told, **rest}


class Store:
    """The file of one upstream's login."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def read(self) -> Record:
        """What is kept; an empty record where nothing is, or nothing that can be used.

        Raises:
            ChannelError: The file cannot be read.
        """
        with _told(self.path, "read"):
            return await anyio.to_thread.run_sync(_read, self.path)

    async def write(self, record: Record) -> None:
        """Keep it, whole or not at all, for this user alone.

        Raises:
            ChannelError: The file cannot be written.
        """
        with _told(self.path, "written"):
            await anyio.to_thread.run_sync(_write, self.path, dumps(record.plain()))

    @asynccontextmanager
    async def turn(self, seconds: float) -> AsyncIterator[None]:
        """A block that one process is in at a time.

        Raises:
            ChannelError: Another one was in it for all of `seconds`, or no lock can be had.
        """
        with _told(self.path, "locked"):
            lock = await anyio.to_thread.run_sync(_lock_file, self.path)

        try:
            await self._locked(lock, seconds)
            yield
        finally:
            os.close(lock)  # which also unlocks it

    async def _locked(self, lock: int, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return

                await anyio.sleep(TURN_PAUSE)

        raise ChannelError("another process of bridge is logging in there", sent=False)


def _read(path: Path) -> Record:
    try:
        with path.open("rb") as file:
            told = loads(file.read(MOST_BYTES))
    except FileNotFoundError:
        return Record()
    except ValueError:
        return Record()

    if not isinstance(told, dict):
        return Record()

    expires_at, issuer, wanted = told.get("expires_at"), told.get("issuer"), told.get("wanted")
    return Record(
        tokens=_model(OAuthToken, told.get("tokens")),
        expires_at=expires_at if isinstance(expires_at, int | float) else None,
        client=_model(OAuthClientInformationFull, told.get("client")),
        server=_model(OAuthMetadata, told.get("server")),
        resource=_model(ProtectedResourceMetadata, told.get("resource")),
        issuer=issuer if isinstance(issuer, str) else None,
        wanted=wanted if isinstance(wanted, str) else "",
    )


def _model(kind: type[Model], told: object) -> Model | None:
    try:
        return None if told is None else kind.model_validate(told)
    except ValueError:
        return None


def _write(path: Path, data: bytes) -> None:
    _make_room(path)
    number, name = tempfile.mkstemp(prefix=".", dir=path.parent)  # which nobody else may read
    try:
        with open(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(number)

        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)

        raise


def _lock_file(path: Path) -> int:
    _make_room(path)
    return os.open(
        path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
    )


def _make_room(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)


@contextmanager
def _told(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        why = exc.strerror or type(exc).__name__
        raise ChannelError(f'the login in "{path}" cannot be {what}: {why}', sent=False) from exc
