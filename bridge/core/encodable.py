"""What JSON can say and few can read: halves of characters, numbers beyond all floats."""

from __future__ import annotations

from typing import Any

from bridge.core.wire import dumps, finite, replaced


def encodable(value: Any) -> Any:
    """A JSON value itself, or a copy that `dumps` can write.

    Each lone surrogate in it is replaced by U+FFFD, as careless programs leave them who cut a text,
    and a number such as 1e400 by null. JSON can say both, but few readers and writers of it can:
    they fail in the middle of the answer, and whoever waits for it waits for ever.
    """
    try:
        dumps(value)
    except ValueError:
        return replaced(value, _written)

    return value


def _written(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    return finite(value)
