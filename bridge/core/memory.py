"""What is remembered of earlier conversations, as one user of one app sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bridge.core.content import Content


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One thing that was said; `author` and `timestamp` are empty where nobody knows."""

    content: Content
    author: str = ""
    timestamp: datetime | None = None


class Memory(Protocol):
    """The memory of one user in one app. How a search is done is its own affair."""

    async def search(self, query: str) -> Sequence[MemoryEntry]:
        """What fits `query`, best first."""
        ...
