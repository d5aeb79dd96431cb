"""The errors of JSON-RPC 2.0 that a front answers with, free of any SDK."""

from __future__ import annotations

from typing import Any

INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


class JsonRpcError(Exception):
    """A request is answered with a JSON-RPC error instead of a result.

    `data` of None is absent on the wire.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class InvalidParams(JsonRpcError):
    """The params of a request are not what its method takes; nothing ran."""

    def __init__(self, message: str) -> None:
        super().__init__(INVALID_PARAMS, message)
