"""Artifacts in a folder, for several processes at once.

Every folder and file has a name of ours: the hash of an app, a user, a session or an artifact,
and a version's number. No name that a model or a user chose is ever part of a path, no symbolic
link is followed, and nobody but the owner may read. A version appears whole or not at all.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

import anyio
import anyio.to_thread

from bridge.core.content import Part
from bridge.core.session import SessionKey
from bridge.errors import ArtifactNotFound, StoreError
from bridge.stores.parts import (
    PackedPart,
    artifact_owner,
    artifact_owners,
    pack_part,
    packed_name,
    unpack_part,
)

T = TypeVar("T")

THREADS: Final = 8
TRIES: Final = 1000  # how often a save begins anew because somebody deletes at the same time
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Not to wait on something that is no file is why a file is opened without blocking.
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileArtifactService:
    """An `ArtifactService` in a folder, which is made when something is first saved."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._threads = anyio.CapacityLimiter(THREADS)

    async def save(self, key: SessionKey, name: str, part: Part) -> int:
        """Store a new version and return its number; see `ArtifactService.save`."""
        owner, packed = artifact_owner(key, name), pack_part(name, part)
        return await self._run(lambda: self._save(owner, name, packed))

    async def load(self, key: SessionKey, name: str, version: int | None = None) -> Part:
        """One version, the newest where none is named."""
        owner = artifact_owner(key, name)
        return unpack_part(await self._run(lambda: self._load(owner, name, version)))

    async def list(self, key: SessionKey) -> Sequence[str]:
        """The names in this session, and the user's own; sorted."""
        owners = artifact_owners(key)
        return await self._run(lambda: sorted(n for owner in owners for n in self._names(owner)))

    async def versions(self, key: SessionKey, name: str) -> Sequence[int]:
        """The versions there are, oldest first."""
        owner = artifact_owner(key, name)
        return await self._run(lambda: self._versions(owner, name))

    async def delete(self, key: SessionKey, name: str, version: int | None = None) -> None:
        """Forget one version, or all."""
        owner = artifact_owner(key, name)
        await self._run(lambda: self._delete(owner, name, version))

    async def _run(self, work: Callable[[], T]) -> T:
        def translated() -> T:
            try:
                return work()
            except OSError as exc:
                raise StoreError(f"the artifact folder cannot be used: {exc.strerror}") from exc

        return await anyio.to_thread.run_sync(translated, limiter=self._threads)

    def _save(self, owner: SessionKey, name: str, packed: PackedPart) -> int:
        for _ in range(TRIES):
            with (
                suppress(FileNotFoundError),
                self._folder(owner, name, make=True) as folder,
            ):
                return _write(folder, packed)

        raise StoreError(f'artifact "{name}" is deleted as fast as it is saved')

    def _load(self, owner: SessionKey, name: str, version: int | None) -> PackedPart:
        with suppress(FileNotFoundError), self._folder(owner, name) as folder:
            wanted = reversed(_numbers(folder)) if version is None else (version,)
            for number in wanted:
                with suppress(FileNotFoundError):
                    return _read(folder, number)

        missing = "" if version is None else f" in version {version}"
        raise ArtifactNotFound(f'there is no artifact "{name}"{missing}')

    def _names(self, owner: SessionKey) -> Sequence[str]:
        names = []
        with suppress(FileNotFoundError), self._folder(owner) as above:
            for entry in sorted(os.listdir(above)):
                with suppress(FileNotFoundError), _opened(entry, _FOLDER, above) as folder:
                    names.extend(_name(folder))

        return names

    def _versions(self, owner: SessionKey, name: str) -> Sequence[int]:
        numbers: Sequence[int] = ()
        with suppress(FileNotFoundError), self._folder(owner, name) as folder:
            numbers = _numbers(folder)

        if not numbers:
            raise ArtifactNotFound(f'there is no artifact "{name}"')

        return numbers

    def _delete(self, owner: SessionKey, name: str, version: int | None) -> None:
        with suppress(FileNotFoundError), self._folder(owner) as above:
            with _opened(_hashed(name), _FOLDER, above) as folder:
                gone = os.listdir(folder) if version is None else [str(version)]
                for entry in gone:
                    with suppress(FileNotFoundError):
                        os.unlink(entry, dir_fd=folder)

            try:
                os.rmdir(_hashed(name), dir_fd=above)
            except OSError as exc:
                if exc.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                    raise

    @contextmanager
    def _folder(self, owner: SessionKey, name: str = "", *, make: bool = False) -> Iterator[int]:
        """The folder of an owner, or of one artifact, opened step by step from the root."""
        steps = [_hashed(owner.app_name), _hashed(owner.user_id)]
        steps.append(_hashed(owner.session_id) if owner.session_id else "user")
        if name:
            steps.append(_hashed(name))

        if make:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)

        # The root itself may be a link: whoever runs bridge chose it.
        folder = os.open(self._root, _FOLDER & ~os.O_NOFOLLOW)
        try:
            for step in steps:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(step, mode=0o700, dir_fd=folder)

                above, folder = folder, os.open(step, _FOLDER, dir_fd=folder)
                os.close(above)

            yield folder
        finally:
            os.close(folder)


def _hashed(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


@contextmanager
def _opened(name: str, flags: int, folder: int, mode: int = 0o600) -> Iterator[int]:
    opened = os.open(name, flags, mode, dir_fd=folder)
    try:
        yield opened
    finally:
        os.close(opened)


def _numbers(folder: int) -> list[int]:
    return sorted(int(entry) for entry in os.listdir(folder) if entry.isdecimal())


def _write(folder: int, packed: PackedPart) -> int:
    """Write to a file that nobody sees, then give it the next number that is free."""
    hidden = f".{secrets.token_hex(16)}"
    with _opened(hidden, _CREATE, folder) as opened:
        with os.fdopen(os.dup(opened), "wb") as file:
            file.write(packed.header.encode() + b"\n")
            file.write(packed.data)

        os.fsync(opened)

    try:
        version = max(_numbers(folder), default=0) + 1
        while not _linked(hidden, str(version), folder):
            version += 1
    finally:
        with suppress(FileNotFoundError):
            os.unlink(hidden, dir_fd=folder)

    os.fsync(folder)
    return version


def _linked(hidden: str, name: str, folder: int) -> bool:
    """Give a file a second name, unless another file has it: the one step that cannot race."""
    try:
        os.link(hidden, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        return False

    return True


def _read(folder: int, version: int) -> PackedPart:
    with _opened(str(version), _READ, folder) as opened:
        _check_regular(opened)
        with os.fdopen(os.dup(opened), "rb") as file:
            return PackedPart(file.readline().decode(), file.read())


def _name(folder: int) -> list[str]:
    """The artifact's name, as its newest version says; none where there is no version."""
    for number in reversed(_numbers(folder)):
        with suppress(FileNotFoundError), _opened(str(number), _READ, folder) as opened:
            _check_regular(opened)
            with os.fdopen(os.dup(opened), "rb") as file:
                return [packed_name(file.readline().decode())]

    return []


def _check_regular(opened: int) -> None:
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        raise StoreError("something in the artifact folder is no file of ours")
