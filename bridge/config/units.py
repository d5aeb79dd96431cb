"""Durations and sizes as people write them: `30s`, `64KiB`."""

from __future__ import annotations

import re

LONGEST = 24 * 3600.0
KIB = 1024
LARGEST = 1024 * KIB * KIB

_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m|h)")
_SIZE = re.compile(r"([0-9]{1,12})(B|KiB|MiB|GiB)")
_BYTES = {"B": 1, "KiB": KIB, "MiB": KIB * KIB, "GiB": KIB * KIB * KIB}
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def seconds(text: str) -> float:
    """A duration in seconds; zero is legal here.

    Raises:
        ValueError: Not a duration, or longer than a day; the text goes on after the value.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError("is not a duration. Write a number and a unit: 500ms, 30s, 2m or 1h.")

    number = float(match[1])
    value = number / 1000 if match[2] == "ms" else number * _SECONDS[match[2]]
    if value > LONGEST:
        raise ValueError("is longer than a day. Write at most 24h.")

    return value


def size(text: str) -> int:
    """A size in bytes, at least one.

    Raises:
        ValueError: Not a size, or out of bounds; the text goes on after the value.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError("is not a size. Write a whole number and a unit: 4096B, 64KiB or 4MiB.")

    value = int(match[1]) * _BYTES[match[2]]
    if not 1 <= value <= LARGEST:
        raise ValueError("is out of bounds. Write a size from 1B to 1GiB.")

    return value
