"""Texts that are too large for one answer, kept in files for whoever was answered.

Nobody else can read them, and they are kept for a while only. A file's name is made of its
owner's, so that another owner's file, one that is gone and one that never was are the same: not
there. Several processes that serve one address share the directory.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
from anyio import to_thread

from bridge.core.wire import dumps, loads
from bridge.errors import ConfigError
from bridge.telemetry import log

PREFIX: Final = "bridge-results-"
YOUNG_SECONDS: Final = 60.0
"""How old a directory must be to count as left behind: one that is just made is not held yet."""

MOST_KEPT: Final = 1000
"""How many texts are kept at once."""

UNFINISHED: Final = "."
"""How the name of a file begins while it is written; when it is, its time says until when."""

_ID = re.compile(r"[A-Za-z0-9_-]{24}")
_CODECS: Final = {1: "latin-1", 4: "utf-32-le"}
"""How texts are written, by the bytes of a character: any range can be read by itself."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A text that is kept: `length` in characters, `size` in bytes of UTF-8."""

    id: str
    media_type: str
    length: int
    size: int


class Spool:
    """The texts in one directory, whoever put them there."""

    def __init__(
        self,
        directory: Path,
        *,
        seconds: float = 3600.0,
        total: int = 256 * 1024 * 1024,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Keep each text for `seconds`, and no more than `total` bytes; the oldest go first."""
        self.seconds = seconds
        self._directory = directory
        self._total = total
        self._clock = clock
        self._lock = anyio.Lock()

    async def keep(self, owner: str, text: str, media_type: str) -> Kept | None:
        """Keep a text; None where it cannot be, which the log then says."""
        async with self._lock:
            try:
                return await to_thread.run_sync(self._write, owner, text, media_type)
            except OSError as exc:
                log.warning("a large result cannot be kept and goes out whole: %s", exc.strerror)
                return None

    async def read(
        self, owner: str, name: str, offset: int, length: int
    ) -> tuple[Kept, str] | None:
        """Part of a text, `length` characters at most; None if this owner has none of that id."""
        if not _ID.fullmatch(name):
            return None

        async with self._lock:
            return await to_thread.run_sync(self._read, owner, name, offset, length)

    async def forget(self, owner: str) -> None:
        """Keep nothing for this owner any more."""
        async with self._lock:
            await to_thread.run_sync(self._forget, owner)

    def _write(self, owner: str, text: str, media_type: str) -> Kept | None:
        width = 1 if _is_latin(text) else 4
        body = text.encode(_CODECS[width], "surrogatepass")
        size = len(text.encode("utf-8", "surrogatepass"))
        kept = Kept(secrets.token_urlsafe(18), media_type, len(text), size)
        head = dumps([media_type, kept.length, size, width]) + b"\n"
        if len(head) + len(body) > self._total:
            log.warning("a result is larger than all that may be kept, and goes out whole")
            return None

        self._make_room(len(head) + len(body))
        unfinished = self._directory / f"{UNFINISHED}{kept.id}"
        try:
            with open(unfinished, "xb", opener=_private) as file:
                file.writelines([head, body])

            until = self._clock() + self.seconds
            os.utime(unfinished, (until, until))
            unfinished.rename(self._path(owner, kept.id))
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise

        return kept

    def _read(self, owner: str, name: str, offset: int, length: int) -> tuple[Kept, str] | None:
        try:
            with self._path(owner, name).open("rb") as file:
                if os.fstat(file.fileno()).st_mtime <= self._clock():
                    return None

                media_type, characters, size, width = loads(file.readline())
                file.seek(offset * width, os.SEEK_CUR)
                text = file.read(length * width).decode(_CODECS[width], "surrogatepass")
        except OSError:
            return None

        return Kept(name, media_type, characters, size), text

    def _forget(self, owner: str) -> None:
        for path in self._directory.glob(f"{_mark(owner)}-*"):
            path.unlink(missing_ok=True)

    def _make_room(self, size: int) -> None:
        """Drop what has expired, and of the rest the oldest, until there is room."""
        now, found = self._clock(), list[tuple[float, int, str]]()
        for entry in os.scandir(self._directory):
            with suppress(FileNotFoundError):
                if not entry.name.startswith(UNFINISHED):
                    about = entry.stat()
                    found.append((about.st_mtime, about.st_size, entry.path))

        found.sort()
        used, count = sum(one[1] for one in found), len(found)
        for until, bytes_of_it, path in found:
            if until > now and used + size <= self._total and count < MOST_KEPT:
                return

            Path(path).unlink(missing_ok=True)
            used, count = used - bytes_of_it, count - 1

    def _path(self, owner: str, name: str) -> Path:
        return self._directory / f"{_mark(owner)}-{name}"


@contextmanager
def open_spool(
    parent: Path | None, group: str | None = None, *, seconds: float, total: int
) -> Iterator[Spool]:
    """A spool in a private directory, which is removed with the last process that uses it.

    `parent` is where that directory is made, the system's place for such things by default; the
    processes of one `group` share it. What processes that were killed left there is removed.

    Raises:
        ConfigError: There it cannot be made.
    """
    parent = Path(tempfile.gettempdir()) if parent is None else parent
    directory = parent / f"{PREFIX}{group or secrets.token_hex(8)}"
    try:
        _clear(parent)
        directory.mkdir(0o700, exist_ok=True)
        held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as exc:
        raise ConfigError(
            f'results.directory: large results cannot be kept in "{parent}": {exc.strerror}'
        ) from exc

    try:
        fcntl.flock(held, fcntl.LOCK_SH)
        yield Spool(directory, seconds=seconds, total=total)
    finally:
        _remove_if_free(directory, held)
        os.close(held)


def _clear(parent: Path) -> None:
    """Remove what no process holds any more: those that made it did not end by themselves."""
    for directory in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                found = os.fstat(held)
                age = time.time() - found.st_mtime
                if found.st_uid == os.geteuid() and age > YOUNG_SECONDS:
                    _remove_if_free(directory, held)
            finally:
                os.close(held)


def _remove_if_free(directory: Path, held: int) -> None:
    with suppress(BlockingIOError):
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(directory, ignore_errors=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _mark(owner: str) -> str:
    return hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()


def _is_latin(text: str) -> bool:
    if text.isascii():
        return True

    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return False

    return True
