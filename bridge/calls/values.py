"""JSON values: copied so that the copy may be edited, and compared to see whether it was."""

from __future__ import annotations

from typing import Any


def copied(value: Any) -> Any:
    """A copy of every dict and list in `value`; nothing else in JSON can be edited."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}

    if isinstance(value, list):
        return [copied(item) for item in value]

    return value


def alike(one: Any, other: Any) -> bool:
    """Whether both are the same JSON: 1, 1.0 and true are three different values."""
    if one is other:
        return True

    if type(one) is not type(other):
        return False

    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)

    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))

    return bool(one == other)
