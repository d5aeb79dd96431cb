"""What a child process wrote that is no message, for whoever asks what is wrong with it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from bridge.telemetry import log
from bridge.upstream.channel import Limits
from bridge.upstream.lines import printable

LONGEST_STRAY = 200
"""Bytes of a line that is no message which are shown."""


class LastWords:
    """The last lines of a child's stderr, and the first of its stdout that was no message.

    All of it printable, and without secrets.
    """

    def __init__(self, name: str, mask: Callable[[str], str], limits: Limits) -> None:
        """`name` is the child's, and `mask` takes secrets out."""
        self.stderr: deque[str] = deque(maxlen=limits.stderr_lines)
        self._name = name
        self._mask = mask
        self._strays = 0
        self._first_stray = ""

    def __str__(self) -> str:
        """As the end of a sentence on what went wrong; empty if there is nothing to tell."""
        wrote = f'; it wrote "{self._first_stray}", which is no message' if self._strays else ""
        return wrote + (f"; it last said: {self.stderr[-1]}" if self.stderr else "")

    def remember(self, line: bytes) -> None:
        """Keep a line of stderr."""
        if line.strip():
            self.stderr.append(self._mask(printable(line)))

    def stray(self, line: bytes) -> None:
        """Take note of a line of stdout that is no message; the log hears of few of them."""
        self._strays += 1
        if self._strays & (self._strays - 1) == 0:  # the 1st, 2nd, 4th, 8th …
            shown = self._mask(printable(line[:LONGEST_STRAY]))
            self._first_stray = self._first_stray or shown
            log.warning("%s wrote a line that is no message: %s", self._name, shown)
