"""What the body of a POST holds: one JSON-RPC message, or something that is none."""

from __future__ import annotations

from starlette.types import Scope

from bridge.core.rpc import INVALID_REQUEST, PARSE_ERROR
from bridge.core.wire import loads
from bridge.downstream.client import Message
from bridge.downstream.front import error_response, is_id
from bridge.downstream.guard import BODY, Refused

JSON = "application/json"


def message_of(scope: Scope, headers: dict[str, str]) -> Message | None:
    """The one JSON object that a POST holds; None if it holds none.

    Raises:
        Refused: 415 it does not say that it is JSON.
    """
    kind = headers.get("content-type", "")
    if kind != JSON and kind.partition(";")[0].strip().lower() != JSON:
        raise Refused(415, "a message is application/json: say so in Content-Type")

    try:
        message = loads(scope[BODY])
    except ValueError:
        return None

    return message if isinstance(message, dict) and message.get("jsonrpc") == "2.0" else None


def unreadable(scope: Scope) -> Message:
    """The error for a body that holds no message: no JSON, or no JSON-RPC."""
    try:
        loads(scope[BODY])
    except ValueError:
        return error_response(None, PARSE_ERROR, "the body is not JSON")

    return error_response(None, INVALID_REQUEST, "the body is not one JSON-RPC message")


def is_call(message: Message) -> bool:
    """Whether this is a request or a notification."""
    return isinstance(message.get("method"), str) and ("id" not in message or is_id(message["id"]))


def is_answer(message: Message) -> bool:
    """Whether this is the answer to a request of ours."""
    return is_id(message.get("id")) and ("result" in message or "error" in message)
