"""What a connection has in one event loop: its owner there, and how connecting went."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field

from bridge.upstream.owner import Owner

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
DOUBT_SECONDS = 5.0


@dataclass(slots=True)
class Place:
    """A connection's state in one event loop, used in that loop alone."""

    owner: Owner | None = None
    reason: str = ""
    words: str = ""
    not_before: float = 0.0
    _failures: int = 0
    _doubted_at: float = float("-inf")
    _closing: set[Owner] = field(default_factory=set)

    @property
    def is_over(self) -> bool:
        """Whether nothing here lives, or is closing."""
        return self.owner is None and all(one.is_over for one in self._closing)

    @property
    def pause(self) -> float:
        """How long to wait, in seconds, before the next attempt to connect makes sense."""
        return max(0.0, self.not_before - time.monotonic())

    def failed(self, reason: str) -> None:
        """Let go of the owner, which did not connect; the next pause is longer, and jittered."""
        self.let_go(self.owner)
        self.owner = None
        self.reason = reason
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2**self._failures)
        self._failures = min(self._failures + 1, 16)
        self.not_before = time.monotonic() + longest * random.uniform(0.5, 1.0)

    def succeeded(self) -> None:
        """Forget earlier failures."""
        self._failures, self.reason, self.not_before = 0, "", 0.0

    def doubts(self) -> bool:
        """Whether a doubt is worth following: the first within a while."""
        now = time.monotonic()
        if now - self._doubted_at < DOUBT_SECONDS:
            return False

        self._doubted_at = now
        return True

    def hear(self, words: str) -> None:
        """Keep what a server said instead of an answer, for the reason that is about to be told."""
        self.words = words

    def let_go(self, owner: Owner | None) -> None:
        """Ask this owner to close; `close` waits for it if it has not by then."""
        self._closing = {one for one in self._closing if not one.is_over}
        if owner is not None:
            owner.stop()
            self._closing.add(owner)

    def stop(self) -> None:
        """Ask everything here to close, without waiting."""
        self.let_go(self.owner)
        self.owner = None

    async def close(self) -> None:
        """Close everything here; bounded in time."""
        self.stop()
        for owner in tuple(self._closing):
            await owner.closed()

        self._closing.clear()
