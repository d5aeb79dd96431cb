"""JSON as it travels: exact integers, exact keys, no models on the way."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from pydantic_core import from_json, to_json

DEEPEST = 200


def loads(data: bytes | bytearray | str) -> Any:
    """Parse JSON without losing anything: integers of any size, lone surrogates too.

    Raises:
        ValueError: Not JSON, which has no NaN either, not UTF-8, or nested more than DEEPEST
            levels.
    """
    try:
        return from_json(data, allow_inf_nan=False)
    except ValueError:
        pass

    # The fast parser refuses lone surrogates, which are JSON, and about 200 levels, which are
    # more than anybody writes and more than others can read.
    try:
        found = json.loads(data, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None

    if _is_deep(found):
        raise ValueError(f"JSON nested more than {DEEPEST} levels")

    return found


def loads_leniently(data: bytes) -> Any:
    """Parse JSON as `loads` does; bytes that are no UTF-8 are replaced.

    Raises:
        ValueError: Not JSON.
    """
    return loads(data if data.isascii() else data.decode(errors="replace"))


def dumps(value: Any) -> bytes:
    """Serialise JSON, compactly, as UTF-8 that everybody can read.

    Raises:
        ValueError: The value is not JSON: a number that is none, half a character, or nested
            more than about 200 levels.
    """
    written = to_json(value)
    # `in` would raise and catch an error inside of CPython, before it looks.
    if written.find(b"NaN") >= 0 or written.find(b"Infinity") >= 0:
        json.loads(written, parse_constant=_no_number)

    return written


def escaped(value: Any) -> bytes:
    """Serialise JSON for a process of ours: as `dumps` does, half a character as its escape.

    `loads` takes that; most others would take nothing of it. Of a number beyond all floats, such as
    1e400, null is left.
    """
    try:
        return dumps(value)
    except ValueError:
        return json.dumps(replaced(value, finite), separators=(",", ":")).encode("ascii")


def replaced(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """A copy of a JSON value in which `leaf` has replaced each key, and what holds no others."""
    if isinstance(value, dict):
        return {leaf(key): replaced(inner, leaf) for key, inner in value.items()}

    if isinstance(value, list | tuple):
        return [replaced(inner, leaf) for inner in value]

    return leaf(value)


def finite(value: Any) -> Any:
    """The value itself, or None for a number beyond all floats."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number in JSON")


def _is_deep(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return False

    return True
