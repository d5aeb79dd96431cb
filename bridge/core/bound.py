"""Services as one session sees them: tied to its app, its user and itself."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.core.content import Part
from bridge.core.memory import MemoryEntry
from bridge.core.session import SessionKey
from bridge.core.stores import ArtifactService, MemoryService


class BoundArtifacts:
    """The artifacts of one session; what `InvocationContext.artifacts` is to hold."""

    __slots__ = ("_key", "_service")

    def __init__(self, service: ArtifactService, key: SessionKey) -> None:
        self._service = service
        self._key = key

    async def save(self, name: str, part: Part) -> int:
        """Store a new version of `name`; returns its number."""
        return await self._service.save(self._key, name, part)

    async def load(self, name: str) -> Part:
        """The newest version of `name`."""
        return await self._service.load(self._key, name)

    async def load_version(self, name: str, version: int) -> Part:
        """One version of `name`."""
        return await self._service.load(self._key, name, version)

    async def list(self) -> Sequence[str]:
        """Every name in the session, and the user's own; sorted."""
        return await self._service.list(self._key)


class BoundMemory:
    """The memory of one user in one app; what `InvocationContext.memory` is to hold."""

    __slots__ = ("_app_name", "_service", "_user_id")

    def __init__(self, service: MemoryService, app_name: str, user_id: str) -> None:
        self._service = service
        self._app_name = app_name
        self._user_id = user_id

    async def search(self, query: str) -> Sequence[MemoryEntry]:
        """What fits `query`, best first; nobody else's."""
        return await self._service.search(self._app_name, self._user_id, query)
