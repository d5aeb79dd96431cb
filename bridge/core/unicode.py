"""Text that no UTF-8 can carry: halves of characters, as careless servers cut them."""

from __future__ import annotations

import json
from typing import Any


def encodable(value: Any) -> Any:
    """A JSON value itself, or a copy with each lone surrogate replaced by U+FFFD.

    JSON can escape a lone surrogate, but few readers and writers of it can: they fail in the
    middle of the answer, and the client waits for ever.
    """
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return _replaced(value)

    return value


def _replaced(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    if isinstance(value, dict):
        return {_replaced(key): _replaced(inner) for key, inner in value.items()}

    if isinstance(value, list):
        return [_replaced(inner) for inner in value]

    return value
