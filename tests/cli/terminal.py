"""A program on a terminal of its own, as a person sits before it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 60.0  # seconds: generous, since only a failing test ever waits so long
CONTROL_C, CONTROL_D, CONTROL_U = "\x03", "\x04", "\x15"

# What line editing sends to move the cursor and to mark pasted text.
_EDITING = re.compile(r"\x1b\[[0-9;?]*[A-Zac-ln-z]|\x1b\[[0-9;]*m|\r")


class Terminal:
    """`bridge` with these words, on a terminal so many columns wide.

    `screen` is everything that was written on it so far.
    """

    def __init__(
        self, *words: str, env: Mapping[str, str] | None = None, columns: int = 200
    ) -> None:
        self._words: Sequence[str] = words
        # What runs the tests may say in the environment how wide its own terminal is.
        here = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        self._env = {**here, "TERM": "xterm", **(env or {})}
        self._size = struct.pack("HHHH", 50, columns, 0, 0)
        self._raw = b""
        self._read_up_to = 0

    def __enter__(self) -> Self:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, self._size)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bridge", *self._words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=ROOT,
            env=self._env,
            preexec_fn=lambda: os.login_tty(theirs),
        )
        os.close(theirs)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    @property
    def raw(self) -> str:
        """The screen with all that steers the terminal."""
        return self._raw.decode(errors="replace")

    @property
    def screen(self) -> str:
        """The screen as text."""
        return _EDITING.sub("", self.raw)

    def type(self, text: str, end: str = "\n") -> None:
        """Press these keys, once the program waits.

        A prompt is printed before its reader listens: a Ctrl-C in between would only be heard
        with the next key.
        """
        deadline = time.monotonic() + PATIENCE
        while psutil.Process(self.process.pid).status() != psutil.STATUS_SLEEPING:
            assert time.monotonic() < deadline, f"it never waits; the screen is:\n{self.screen}"
            time.sleep(0.005)

        os.write(self._ours, f"{text}{end}".encode())

    def shows(self, text: str) -> str:
        """Wait until `text` comes after what was waited for last; returns all up to its end."""
        deadline = time.monotonic() + PATIENCE
        while (place := self.screen.find(text, self._read_up_to)) < 0:
            if not self._more(deadline):
                raise AssertionError(f"{text!r} did not come; the screen is:\n{self.screen}")

        since, self._read_up_to = self._read_up_to, place + len(text)
        return self.screen[since : self._read_up_to]

    def ends(self) -> int:
        """Wait until the program ends; returns its exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._more(deadline):
            pass

        return self.process.wait(PATIENCE)

    def _more(self, deadline: float) -> bool:
        """Read what there is; False if the time is over, or the program has let go."""
        ready, _, _ = select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))
        try:
            read = os.read(self._ours, 65536) if ready else b""
        except OSError:  # the terminal's other end is closed
            read = b""

        self._raw += read
        return bool(read)
