"""The audit: a file that gets one line of JSON for each call, and is never rewritten."""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bridge.calls.observing import CallRecord
from bridge.core.confirmation import json_hash
from bridge.core.wire import dumps
from bridge.errors import ConfigError
from bridge.telemetry import log

OWNERS_ALONE: Final = 0o600
APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
LOOK_SECONDS: Final = 1.0
"""How often, at most, it is looked whether the file has been moved away."""


class AuditLog:
    """Appends to one file; several processes may append to the same.

    Each line is one write to the operating system, so it survives the end of this process, and
    two lines never mix. A file that is moved away is begun anew within a second, which is how it
    is rotated. Where nothing can be written (a full disk) calls go on: the log says so once, and
    again, with the number of lines that are missing, when writing works again.

    `arguments` writes down what was sent, and not only its SHA-256.
    """

    def __init__(self, path: Path, *, arguments: bool = False) -> None:
        """Open the file; one that is made is its owner's alone.

        Raises:
            ConfigError: There is no such directory, it may not be written, or it is no file.
        """
        self._path = path
        self._arguments = arguments
        self._missing = 0
        self._is_cut = False
        self._looked_at = 0.0
        try:
            self._file, self._identity = _opened(path)
        except OSError as exc:
            raise ConfigError(
                f'serve.audit: "{path}" cannot be written ({exc.strerror}): name a file in a '
                "directory that exists and is writable"
            ) from exc

    def called(self, record: CallRecord) -> None:
        """Append the line of one call."""
        line = _written(record, self._arguments)
        try:
            if not 0 <= record.when - self._looked_at < LOOK_SECONDS:
                self._looked_at = record.when
                self._follow()

            self._append(line)
        except OSError as exc:
            if not self._missing:
                log.error('the audit "%s" cannot be written, calls go on: %s', self._path, exc)

            self._missing += 1
            return

        if self._missing:
            log.error('the audit "%s" is written again; %d lines are missing', *self._state())
            self._missing = 0

    def close(self) -> None:
        """Close the file; nothing may be appended any more."""
        os.close(self._file)

    def _state(self) -> tuple[Path, int]:
        return self._path, self._missing

    def _append(self, line: bytes) -> None:
        if self._is_cut:  # what a full disk left of a line stays on a line of its own
            line = b"\n" + line

        written = os.write(self._file, line)
        self._is_cut = written < len(line)
        if self._is_cut:
            raise OSError("no space for a whole line")

    def _follow(self) -> None:
        """Begin a new file where ours is not the one of that name any more."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            pass
        else:
            if (found.st_dev, found.st_ino) == self._identity:
                return

        fresh, self._identity = _opened(self._path)
        os.close(self._file)
        self._file, self._is_cut = fresh, False


def _opened(path: Path) -> tuple[int, tuple[int, int]]:
    """The file, open, and what tells it from others.

    Raises:
        OSError: It cannot be opened, or is no regular file: anything else could make calls wait.
    """
    file = os.open(path, APPEND, OWNERS_ALONE)
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode):
        os.close(file)
        raise OSError(0, "it is no regular file")

    return file, (found.st_dev, found.st_ino)


def _written(record: CallRecord, arguments: bool) -> bytes:
    line = {
        "time": datetime.fromtimestamp(record.when, UTC).isoformat(timespec="milliseconds"),
        "principal": record.principal,
        "session": record.session,
        "tool": record.tool,
        "upstream": record.upstream,
        "own_name": record.own_name,
        "outcome": record.kind,
        "seconds": round(record.seconds, 6),
        "arguments_sha256": _digest(record.arguments),
    }
    if record.code is not None:
        line["code"] = record.code

    if record.questions:
        line["questions"] = record.questions

    if record.approved:
        line["approved"] = record.approval

    if arguments:
        line["arguments"] = record.arguments

    return _json(line) + b"\n"


def _digest(arguments: Any) -> str | None:
    """The SHA-256 of the arguments; None where they have no canonical form (RFC 8785)."""
    try:
        return json_hash(arguments)
    except (ValueError, RecursionError):
        return None


def _json(line: dict[str, Any]) -> bytes:
    """One line, whatever a client sent: half a character is written as its escape."""
    try:
        return dumps(line)
    except ValueError:
        return json.dumps(line, separators=(",", ":")).encode("ascii")
