"""What a person types, and what Ctrl-C means while something runs.

The person's side of a chat is plain blocking code in the main thread, where reading a line can be
interrupted and edited as everywhere else; the agent runs in an event loop beside it.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Final, Self

from bridge.errors import BridgeError

try:
    import readline
except ImportError:  # a Python without it: lines are typed without editing
    HAS_READLINE = False
else:
    HAS_READLINE = True

LONGEST_LINE: Final = 1024 * 1024  # characters
INTERRUPTED: Final = 128 + signal.SIGINT


class Keyboard:
    """Lines from standard input, and interrupts, while it is entered; in the main thread only.

    The first Ctrl-C ends what runs, the second one leaves, the third ends the process at once;
    a line in between forgives.
    """

    def __init__(self) -> None:
        self.is_terminal = sys.stdin is not None and sys.stdin.isatty()
        self._shows_prompts = self.is_terminal and sys.stdout.isatty()
        self._presses = 0
        self._raises = False
        self._wake: Callable[[], None] | None = None

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._pressed)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGINT, self._before)

    @property
    def is_watched(self) -> bool:
        """Whether a person is there: somebody who types and sees what is asked."""
        return self.is_terminal and (sys.stdout.isatty() or sys.stderr.isatty())

    @property
    def is_leaving(self) -> bool:
        """Whether Ctrl-C was pressed a second time."""
        return self._presses > 1

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Here, and only here, Ctrl-C is a KeyboardInterrupt."""
        self._raises = True
        try:
            yield
        finally:
            self._raises = False

    @contextmanager
    def waking(self, wake: Callable[[], None]) -> Iterator[None]:
        """Here Ctrl-C calls `wake`, which must be quick and may be called at any moment."""
        self._wake = wake
        try:
            yield
        finally:
            self._wake = None

    def line(self, prompt: str, *, filled_in: str = "", is_answer: bool = False) -> str:
        """One line, without its end. `filled_in` stands there to be edited, at a terminal.

        What was typed before an answer was asked for is no answer: it is thrown away.

        Raises:
            EOFError: Nothing more will come.
            KeyboardInterrupt: Ctrl-C.
            BridgeError: The line is too long.
        """
        if is_answer and self.is_terminal:
            termios.tcflush(sys.stdin, termios.TCIFLUSH)

        try:
            with self.interruptible():
                if self._shows_prompts:
                    typed = self._edited(prompt, filled_in, is_answer)
                else:
                    typed = self._plain(prompt)
        except (EOFError, KeyboardInterrupt):
            if self.is_terminal:  # the cursor stands behind the prompt still
                print(file=sys.stdout if self._shows_prompts else sys.stderr)

            raise

        self._presses = 0
        return typed

    def _edited(self, prompt: str, filled_in: str, is_answer: bool) -> str:
        if not HAS_READLINE:
            return input(prompt)

        readline.set_auto_history(not is_answer)
        readline.set_startup_hook(lambda: readline.insert_text(filled_in))
        try:
            return input(prompt)
        finally:
            readline.set_startup_hook(None)

    def _plain(self, prompt: str) -> str:
        if self.is_terminal:
            print(prompt, end="", file=sys.stderr, flush=True)

        typed = "" if sys.stdin is None else sys.stdin.readline(LONGEST_LINE)
        if not typed:
            raise EOFError

        if len(typed) == LONGEST_LINE:
            raise BridgeError(f"a line is longer than {LONGEST_LINE} characters")

        return typed.rstrip("\r\n")

    def _pressed(self, number: int, frame: FrameType | None) -> None:
        self._presses += 1
        if self._presses > 2:
            os._exit(INTERRUPTED)  # at once: the guards see to the upstreams

        if self._raises:
            raise KeyboardInterrupt

        if self._wake is not None:
            self._wake()


def forgiving_streams() -> None:
    """Let no odd byte that is typed, and no sign that a terminal lacks, end the chat."""
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)
