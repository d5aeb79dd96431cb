"""The way to a process of ours that may be slow to read, or may read nothing any more."""

from __future__ import annotations

import asyncio
from typing import Final

from bridge.telemetry import log

MOST_UNREAD: Final = 4
"""How many times what may wait for a process before others wait for it may wait at all."""

LEAST_UNREAD: Final = 1024 * 1024
"""Bytes that may wait for any process."""

STUCK_SECONDS: Final = 15.0
"""How long others wait, at most, for a process that reads nothing."""


class Outlet:
    """Writes to one process; what it does not read in time ends the connection."""

    def __init__(self, transport: asyncio.Transport, longest: int) -> None:
        """`longest` is the longest message, in bytes: about so much may wait to be read.

        When more does, the transport says so to its protocol, which tells `is_behind`.
        """
        self._transport = transport
        self._unread = max(longest, LEAST_UNREAD)
        self._looking: asyncio.TimerHandle | None = None
        transport.set_write_buffer_limits(self._unread)

    def write(self, line: bytes) -> None:
        """Send one line; a process that reads nothing is let go of."""
        if self._transport.is_closing():
            return

        self._transport.write(line)
        if self._transport.get_write_buffer_size() > self._unread * MOST_UNREAD:
            self._give_up()

    def close(self) -> None:
        """Close it, when all is read."""
        self._transport.close()

    def is_behind(self, is_behind: bool) -> None:
        """More waits to be read than should, or does no more, or nobody is there."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

        if is_behind:
            self._look_later()

    def _look_later(self) -> None:
        left = self._transport.get_write_buffer_size()
        self._looking = asyncio.get_running_loop().call_later(STUCK_SECONDS, self._look, left)

    def _look(self, left: int) -> None:
        """Give up on a process that has read nothing since there was so much left."""
        if self._transport.get_write_buffer_size() >= left:
            self._give_up()
        else:
            self._look_later()

    def _give_up(self) -> None:
        log.warning("a process does not read what its servers say: its conversation is closed")
        self._transport.abort()
