"""Files beside a conversation: the session's own, and how a call's saves become known (§13.7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, Protocol

from bridge.core.actions import EventActions
from bridge.core.content import Part
from bridge.errors import ServiceMissing


class Artifacts(Protocol):
    """The artifacts of one session. Names that begin with `user:` are the user's everywhere."""

    async def save(self, name: str, part: Part) -> int:
        """Store `part` as the newest version of `name`, at once; returns that version."""
        ...

    async def load(self, name: str) -> Part:
        """The newest version of `name`."""
        ...

    async def load_version(self, name: str, version: int) -> Part:
        """One version of `name`."""
        ...

    async def list(self) -> Sequence[str]:
        """Every name, sorted."""
        ...


class TrackedArtifacts:
    """Artifacts whose saves are noted in a call's actions.

    The note is a version, neither bytes nor a promise: if the event is never stored, the
    artifact still is.
    """

    __slots__ = ("_actions", "_inner")

    def __init__(self, inner: Artifacts, actions: EventActions) -> None:
        self._inner = inner
        self._actions = actions

    async def save(self, name: str, part: Part) -> int:
        """Save, then note the version; a save that fails leaves no note."""
        version = await self._inner.save(name, part)
        self._actions.artifact_delta[name] = version
        return version

    async def load(self, name: str) -> Part:
        """The newest version of `name`."""
        return await self._inner.load(name)

    async def load_version(self, name: str, version: int) -> Part:
        """One version of `name`."""
        return await self._inner.load_version(name, version)

    async def list(self) -> Sequence[str]:
        """Every name, sorted."""
        return await self._inner.list()


class NoArtifacts:
    """What a context shows where its run has no artifact service: every use says so."""

    __slots__ = ()

    async def save(self, name: str, part: Part) -> int:
        """Raises ServiceMissing."""
        self._refuse()

    async def load(self, name: str) -> Part:
        """Raises ServiceMissing."""
        self._refuse()

    async def load_version(self, name: str, version: int) -> Part:
        """Raises ServiceMissing."""
        self._refuse()

    async def list(self) -> Sequence[str]:
        """Raises ServiceMissing."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ServiceMissing("artifact service is not set: give the runner one")
