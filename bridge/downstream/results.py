"""What became of a call, as its MCP client reads it."""

from __future__ import annotations

from typing import Any

from bridge.calls.call import Outcome
from bridge.core.content import Result
from bridge.core.declaration import Declaration
from bridge.core.rpc import INTERNAL_ERROR, RpcError
from bridge.core.wire import dumps
from bridge.downstream.jsonrpc import JsonRpcError
from bridge.downstream.listing import object_schema, server_definition
from bridge.errors import UpstreamError


def to_answer(outcome: Outcome) -> Result:
    """The result of `tools/call`, as its server sent it where nothing replaced that.

    Raises:
        RpcError: The server answered with a protocol error; the client gets the same.
    """
    error = outcome.error
    if isinstance(error, UpstreamError):
        if error.is_protocol_error:
            raise _protocol_error(error.raw)

        return error.raw

    if outcome.raw is not None:
        return outcome.raw

    if error is not None:
        return failure(str(error) or type(error).__name__)

    if outcome.response is None:
        return _nothing(outcome.tool)

    return _answer(outcome.response, is_servers=server_definition(outcome.tool) is not None)


def failure(text: str) -> Result:
    """The answer to a call that failed: one text, and `isError`."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _nothing(tool: Any) -> Result:
    """No answer. A client that was shown an output schema still looks for its object."""
    declaration: Declaration | None = tool.declaration()
    schema = declaration.response_json_schema if declaration is not None else None
    return {"content": []} if object_schema(schema) is None else _structured({})


def _answer(response: Result, *, is_servers: bool) -> Result:
    """A response that is ours: a local tool's, or what a hook put in a server's place.

    `{"output": …}` is how a server's answer reads here, so only there is it taken apart.
    """
    if not is_servers or response.keys() != {"output"}:
        return _structured(response)

    output = response["output"]
    return {"content": [_text(output)]} if isinstance(output, str) else _structured(output)


def _structured(value: Any) -> Result:
    return {"content": [_text(dumps(value).decode())], "structuredContent": value}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _protocol_error(raw: dict[str, Any]) -> RpcError:
    """The server's error as it came, if that is one; else an error that says so."""
    code, message = raw.get("code"), raw.get("message")
    if isinstance(code, int) and isinstance(message, str):
        return RpcError(raw)

    return JsonRpcError(
        code if isinstance(code, int) else INTERNAL_ERROR,
        message if isinstance(message, str) else "the server sent an error without a message",
        raw.get("data"),
    )
