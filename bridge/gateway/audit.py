"""The audit: a file that gets one line of JSON for each call, and is never rewritten."""

from __future__ import annotations

import hashlib
import os
import stat
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from bridge.calls.observing import CallRecord
from bridge.core.confirmation import LARGEST_EXACT_INTEGER, json_hash
from bridge.core.content import Args
from bridge.core.wire import escaped
from bridge.downstream.encoding import encoded_in_order
from bridge.errors import ConfigError
from bridge.telemetry import log

OWNERS_ALONE: Final = 0o600
APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
DEEPEST_PLAIN: Final = 50
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
        self._second = (-1, b"")
        try:
            self._file, self._identity = _opened(path)
        except OSError as exc:
            raise ConfigError(
                f'serve.audit: "{path}" cannot be written ({exc.strerror}): name a file in a '
                "directory that exists and is writable"
            ) from exc

    def called(self, record: CallRecord) -> None:
        """Append the line of one call."""
        line = _written(record, *self._time(record.when), self._arguments)
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

    def _time(self, when: float) -> tuple[bytes, int]:
        """A moment in UTC: its second (RFC 3339), written out only once, and the milliseconds."""
        second, milliseconds = divmod(int(when * 1000), 1000)
        if self._second[0] != second:
            text = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
            self._second = second, text.encode("ascii")

        return self._second[1], milliseconds

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


def _written(record: CallRecord, second: bytes, milliseconds: int, arguments: bool) -> bytes:
    """One line. What most calls have in common is serialised once, and joined to the rest."""
    standing = _standing(
        record.principal,
        record.session,
        record.tool,
        record.upstream,
        record.own_name,
        record.kind,
    )
    digest = arguments_hash(record.arguments)
    line = b'{"time":"%b.%03dZ",%b,"seconds":%.6f,"arguments_sha256":%b' % (
        second,
        milliseconds,
        standing,
        record.seconds,
        b"null" if digest is None else b'"%b"' % digest.encode("ascii"),
    )
    more: dict[str, Any] = {}
    if record.code is not None:
        more["code"] = record.code

    if record.questions:
        more["questions"] = record.questions

    if record.approved:
        more["approved"] = record.approval

    if arguments:
        more["arguments"] = record.arguments

    return b"%b,%b}\n" % (line, escaped(more)[1:-1]) if more else line + b"}\n"


@lru_cache(maxsize=1024)
def _standing(
    principal: str, session: str, tool: str, upstream: str, own_name: str, kind: str
) -> bytes:
    """The members of a line that calls share: who called what, and how it ended."""
    named = {"principal": principal, "session": session, "tool": tool, "upstream": upstream}
    return escaped({**named, "own_name": own_name, "outcome": kind})[1:-1]


def arguments_hash(arguments: Args) -> str | None:
    """The SHA-256 of the arguments, as `json_hash` has it; None if they have no canonical form.

    Most arguments are texts, flags and whole numbers under plain keys, whose canonical form is
    what any serialiser writes, with the keys in order: that takes a fifth of the time.
    """
    if _is_plain(arguments):
        try:
            return hashlib.sha256(encoded_in_order(arguments)).hexdigest()
        except TypeError:  # half a character
            return None

    try:
        return json_hash(arguments)
    except (ValueError, RecursionError):
        return None


def _is_plain(value: Any, depth: int = 0) -> bool:
    """Whether any serialiser writes the canonical form, if it sorts the keys."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return True

    if kind is int:
        return bool(abs(value) <= LARGEST_EXACT_INTEGER)

    if depth > DEEPEST_PLAIN or (kind is not dict and kind is not list):
        return False

    if kind is list:
        return all(_is_plain(item, depth + 1) for item in value)

    for key, item in value.items():
        if not key.isascii() or key[:1] == "\0":
            return False

        if type(item) is not str and not _is_plain(item, depth + 1):
            return False

    return True
