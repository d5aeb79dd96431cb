"""The standard streams, however a person left them: closed, full, or in another alphabet."""

from __future__ import annotations

import io
import os
import sys

from bridge.errors import ConfigError

LONGEST_INPUT = 32 * 1024 * 1024  # characters

_INSTEAD = ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY))


def prepare_streams() -> None:
    """Let nothing that is opened later become a standard stream, and no odd sign end a command.

    A closed standard output refuses what is written to it, as a full one does; a closed standard
    error takes it. A closed standard input stays None in `sys`.
    """
    for number, mode in _INSTEAD:
        try:
            os.fstat(number)
        except OSError:
            _fill(number, os.open(os.devnull, mode))

    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115

    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _fill(number: int, opened: int) -> None:
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)


def read_input() -> str:
    """All of standard input.

    Raises:
        ConfigError: It is closed, cannot be read, is no UTF-8, or is too long.
    """
    if sys.stdin is None:
        raise ConfigError("standard input is closed, and - reads it: give it something to read")

    try:
        text = sys.stdin.read(LONGEST_INPUT + 1)
    except OSError as exc:
        raise ConfigError(f"standard input cannot be read: {exc.strerror or exc}") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"standard input is not UTF-8: {exc.reason}") from exc

    if len(text) > LONGEST_INPUT:
        raise ConfigError(f"standard input is longer than {LONGEST_INPUT} characters")

    return text


def is_at_terminal() -> bool:
    """Whether a person can be asked on standard input."""
    return sys.stdin is not None and sys.stdin.isatty()


def output_failure() -> OSError | None:
    """Why what was printed cannot be written; None where it has been."""
    try:
        sys.stdout.flush()
    except OSError as exc:
        return exc

    return None


def give_up_output() -> None:
    """Throw away what cannot be written, so that the end of the process does not try again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
