"""What is wrong in a configuration, and the exact place where it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

KeyPath: TypeAlias = tuple[str | int, ...]
"""The keys and list positions that lead to a value, outermost first."""

MAX_SHOWN = 60
MAX_PARTS_SHOWN = 12
SECRET_PARENTS = ("env", "headers")

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_*-]+")
_KEY_BEGINNING = re.compile(r"[A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Source:
    """One file (or mapping) of settings; relative paths written in it start from `base`.

    `name` is the file as the person named it, empty for a mapping made in Python; `number` is
    its position among the files.
    """

    name: str
    base: Path
    number: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value is written. `line` counts from 1; 0 is unknown."""

    source: Source
    line: int = 0
    path: KeyPath = ()

    @property
    def order(self) -> tuple[int, int]:
        """What to sort by: the file's position, then the line."""
        return self.source.number, self.line

    def __str__(self) -> str:
        lines = f":{self.line}" if self.line and self.source.name else ""
        parts = [f"{self.source.name}{lines}", path_text(self.path)]
        return ": ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong: `text` says what, and what to do."""

    place: Place
    text: str

    def __str__(self) -> str:
        return ": ".join(part for part in (str(self.place), self.text) if part)


class Problems:
    """Everything found wrong so far, each thing once."""

    def __init__(self) -> None:
        self._found: dict[Problem, None] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._found)

    def add(self, place: Place, text: str) -> None:
        """Note one problem; the same one at the same place counts once."""
        self._found[Problem(place, text)] = None

    def lines(self) -> list[str]:
        """One sentence a problem, in the order of files and lines."""
        ordered = sorted(self, key=lambda problem: problem.place.order)
        return [str(problem) for problem in ordered]


class Unreadable(Exception):
    """A file out of which no values can be read; `problem` says why."""

    def __init__(self, place: Place, text: str) -> None:
        super().__init__(text)
        self.problem = Problem(place, text)


def path_text(path: KeyPath) -> str:
    """A key path as a person writes it: `upstreams.docs.tools.allow[0]`."""
    text = ""
    for position, part in enumerate(path[:MAX_PARTS_SHOWN]):
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            parent = path[position - 1] if position else ""
            text += ("." if text else "") + _key_text(part, secret=parent in SECRET_PARENTS)

    return text + ("…" if len(path) > MAX_PARTS_SHOWN else "")


def shown(text: str) -> str:
    """A text from a file, quoted, on one line and not longer than a person reads."""
    cut = text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"
    return "".join(
        c if c.isprintable() else ascii(c)[1:-1] for c in json.dumps(cut, ensure_ascii=False)
    )


def twice(first_line: int) -> str:
    """The sentence for a key that stands twice in one mapping."""
    return f"this key is written twice, first on line {first_line}. Keep one."


def _key_text(key: str, *, secret: bool) -> str:
    """A key in a path; where a value may have slipped into a secret's name, its beginning only."""
    if _PLAIN_KEY.fullmatch(key):
        return key

    if secret:
        beginning = _KEY_BEGINNING.match(key)
        return shown((beginning.group() if beginning else "") + "…")

    return shown(key)
