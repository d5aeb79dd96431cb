"""The errors of JSON-RPC 2.0 that a front answers with, free of any SDK."""

from __future__ import annotations

from typing import Any

from bridge.core.rpc import INVALID_PARAMS, RpcError


class JsonRpcError(RpcError):
    """A request of a client's is answered with an error of ours instead of a result.

    `data` of None is absent on the wire.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        error = {"code": code, "message": message}
        super().__init__(error if data is None else {**error, "data": data})


class InvalidParams(JsonRpcError):
    """The params of a request are not what its method takes; nothing ran."""

    def __init__(self, message: str) -> None:
        super().__init__(INVALID_PARAMS, message)
