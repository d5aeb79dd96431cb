"""JSON as it travels: exact integers, exact keys, no models on the way."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json


def loads(data: bytes | bytearray | str) -> Any:
    """Parse JSON without losing anything: integers of any size, lone surrogates too.

    Raises:
        ValueError: Not JSON, not UTF-8, or nested too deeply.
    """
    try:
        return from_json(data)
    except ValueError:
        pass
    # The fast parser refuses lone surrogates and more than about 200 levels; both are JSON.
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None


def dumps(value: Any) -> bytes:
    """Serialise JSON, compactly, as UTF-8.

    Raises:
        ValueError: The value is not JSON.
    """
    try:
        return to_json(value)
    except PydanticSerializationError:
        return json.dumps(value, separators=(",", ":")).encode()
