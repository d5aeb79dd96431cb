"""What the command line prints: answers to stdout, everything else to stderr, safely."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bridge.errors import BridgeError
from bridge.telemetry import log

UNWRITTEN = "the answer cannot be written to standard output"


def complain(message: str) -> None:
    """Say what went wrong, to stderr, a line for each problem."""
    with suppress(OSError):  # where nobody can be told, the exit code says it
        for line in visible(message).splitlines():
            print(f"bridge: {line}", file=sys.stderr)


def note(message: str) -> None:
    """Say something beside the answer, to stderr."""
    with suppress(OSError):
        print(visible(message), file=sys.stderr, flush=True)


class _ToStderr(logging.Handler):
    """What bridge logs, a line each, for whoever watches it serve."""

    def emit(self, record: logging.LogRecord) -> None:
        note(f"{record.levelname.lower()}: {record.getMessage()}")


def show_log() -> None:
    """Show bridge's warnings on stderr, each as one safe line."""
    if not any(isinstance(handler, _ToStderr) for handler in log.handlers):
        log.addHandler(_ToStderr(logging.WARNING))


def print_json(value: Any) -> None:
    """The answer, for machines: as it is read best, or in ASCII where that cannot be written."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # half a character, or a terminal of another alphabet
        text = json.dumps(value, indent=2, ensure_ascii=True)

    print_answer(text)


def print_answer(text: str) -> None:
    """The answer, as it is.

    Raises:
        BridgeError: It cannot be written.
    """
    with _written():
        print(text)


@contextmanager
def _written() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # whoever read has read enough
        raise
    except OSError as exc:
        raise BridgeError(f"{UNWRITTEN}: {exc.strerror or exc}") from exc


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """The answer, for people; plain columns where the output is no terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=200)

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")

    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))

    with _written():
        console.print(table)


def counted(number: int, noun: str) -> str:
    """`1 upstream`, `2 upstreams`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def visible(text: str) -> str:
    """`text` without characters that a terminal obeys or a reader cannot see.

    Control, bidirectional, zero-width and tag characters are written as escapes; line ends stay.
    """
    return "".join(c if c == "\n" or c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"
