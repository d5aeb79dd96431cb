"""The text of a settings file: read whole, bounded, decoded, checked."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from bridge.config.problems import Place, Source, Unreadable

MAX_BYTES = 1024 * 1024

_UNPRINTABLE = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_text(path: Path, source: Source) -> str:
    """The text of a regular file of at most 1 MiB of UTF-8, with or without a byte order mark.

    Raises:
        Unreadable: It cannot be read, or everybody on this machine may write it: what it names
            is run, so whoever writes it could run anything as us.
    """
    place = Place(source)
    try:
        with open(path, "rb", opener=_open) as file:
            _check_mode(os.fstat(file.fileno()).st_mode, place)
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise Unreadable(place, "there is no such file. Check the path.") from None
    except IsADirectoryError:
        raise Unreadable(place, "it is a directory. Name the file in it.") from None
    except OSError as exc:
        reason = (exc.strerror or "the system refuses").lower()
        raise Unreadable(place, f"it cannot be read: {reason}. Check its permissions.") from None
    except ValueError:
        raise Unreadable(place, "this cannot be the name of a file. Check the path.") from None

    if len(data) > MAX_BYTES:
        raise Unreadable(place, "it is larger than 1 MiB. Is this the right file?")

    return _decoded(data, source)


def whole_characters(text: str, place: Place) -> str:
    r"""Join the two halves of characters written as `\ud83d\ude00`, as JSON may.

    Raises:
        Unreadable: There is half a character, which no program could be given.
    """
    if not _SURROGATE.search(text):
        return text

    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise Unreadable(
            place, r"it holds half a character (\ud800 to \udfff). Write the whole one."
        ) from None


def _open(path: str, flags: int) -> int:
    """Open without waiting: a pipe must not hang us before it is refused."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _check_mode(mode: int, place: Place) -> None:
    if not stat.S_ISREG(mode):
        raise Unreadable(place, "it is not a regular file. Name a file of settings.")

    if os.name == "posix" and mode & stat.S_IWOTH:
        raise Unreadable(
            place,
            "every user of this machine may write it, and so choose what is run. "
            "Take that away: chmod o-w.",
        )


def _decoded(data: bytes, source: Source) -> str:
    if b"\0" in data:
        raise Unreadable(Place(source), "it is not text. Save it as UTF-8.")

    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = data[: exc.start].count(b"\n") + 1
        raise Unreadable(Place(source, line), "it is not UTF-8. Save it as UTF-8.") from None

    found = _UNPRINTABLE.search(text)
    if found is not None:
        line = text.count("\n", 0, found.start()) + 1
        raise Unreadable(
            Place(source, line),
            f"a control character (U+{ord(found.group()):04X}) stands here. Remove it.",
        )

    return text
