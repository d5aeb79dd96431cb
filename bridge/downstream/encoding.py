"""Messages as bytes, in a form that every reader can take."""

from __future__ import annotations

from typing import Any

from bridge.core.wire import dumps
from bridge.downstream.unicode import encodable


def encoded(message: dict[str, Any]) -> bytes:
    """One message as JSON in UTF-8; half a character, which no UTF-8 carries, becomes U+FFFD."""
    try:
        return dumps(message)
    except ValueError:
        return dumps(encodable(message))
