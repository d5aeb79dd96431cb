"""The one error of JSON-RPC 2.0 (section 5.1), whichever side says it."""

from __future__ import annotations

from typing import Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


class RpcError(Exception):
    """A request was answered with a JSON-RPC error; `error` is that object, untouched."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("message", "")))
        self.error = error

    @property
    def code(self) -> int:
        """The JSON-RPC error code; 0 where the other side sent none."""
        code = self.error.get("code")
        return code if isinstance(code, int) else 0


def rpc_error(code: int, message: str, data: Any = None) -> RpcError:
    """An error of our own; `data` of None is absent on the wire."""
    error = {"code": code, "message": message}
    return RpcError(error if data is None else {**error, "data": data})
