"""Contents, calls, actions and confirmations as JSON objects, in the camelCase of the protocol.

The objects share nested values with what they were made of, so treat both as read-only. A key
is left out where its value is the default. Reading takes null for absent and raises ValueError
on what has the wrong type.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, TypeAlias

from bridge.core.actions import EventActions
from bridge.core.confirmation import ToolConfirmation
from bridge.core.content import Blob, Content, FunctionCall, FunctionResponse, Part

Json: TypeAlias = dict[str, Any]

_URL_SAFE = str.maketrans("-_", "+/")


def bytes_to_json(data: bytes) -> str:
    """Standard base64, padded."""
    return base64.b64encode(data).decode("ascii")


def bytes_from_json(text: Any) -> bytes:
    """The bytes of base64 text, in either alphabet, padded or not."""
    if not isinstance(text, str):
        raise mistyped("base64 data", "text", text)

    plain = text.translate(_URL_SAFE).rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except ValueError as exc:
        raise ValueError(f"base64 data must be base64: {exc}") from exc


def mistyped(what: str, expected: str, value: Any) -> ValueError:
    """What to raise where JSON has another type than the protocol says."""
    return ValueError(f"{what} must be {expected}, got {type(value).__name__}")


def object_from_json(value: Any, what: str) -> Json:
    """`value`, if it is a JSON object; absent (None) is an empty one."""
    if value is None:
        return {}

    if not isinstance(value, dict):
        raise mistyped(what, "an object", value)

    return value


def text_from_json(found: Mapping[str, Any], key: str) -> str:
    """The text under `key`; absent is empty."""
    text: str = _typed(found, key, str, "")
    return text


def flag_from_json(found: Mapping[str, Any], key: str) -> bool:
    """The truth value under `key`; absent is false."""
    flag: bool = _typed(found, key, bool, False)
    return flag


def call_to_json(call: FunctionCall) -> Json:
    """`{"id", "name", "args"}`; an empty id is left out."""
    named = {"name": call.name, "args": call.args}
    return {"id": call.id, **named} if call.id else named


def call_from_json(value: Any) -> FunctionCall:
    """The call that `call_to_json` wrote."""
    found = object_from_json(value, "functionCall")
    args = object_from_json(found.get("args"), "args")
    return FunctionCall(text_from_json(found, "id"), text_from_json(found, "name"), args)


def confirmation_to_json(confirmation: ToolConfirmation) -> Json:
    """`{"hint", "confirmed", "payload"}`, and the hash where there is one."""
    found: Json = {
        "hint": confirmation.hint,
        "confirmed": confirmation.confirmed,
        "payload": confirmation.payload,
    }
    if confirmation.hash is not None:
        found["hash"] = confirmation.hash

    return found


def confirmation_from_json(value: Any) -> ToolConfirmation:
    """The confirmation; a `confirmed` that is missing means no."""
    found = object_from_json(value, "a confirmation")
    named = _typed(found, "hash", str, None)
    hint, confirmed = text_from_json(found, "hint"), flag_from_json(found, "confirmed")
    return ToolConfirmation(hint, confirmed, found.get("payload"), named)


def content_to_json(content: Content) -> Json:
    """`{"role", "parts"}`."""
    return {"role": content.role, "parts": [part_to_json(part) for part in content.parts]}


def content_from_json(value: Any) -> Content:
    """The content that `content_to_json` wrote."""
    found = object_from_json(value, "content")
    parts = _typed(found, "parts", list, ())
    return Content(text_from_json(found, "role"), tuple(part_from_json(part) for part in parts))


def part_to_json(part: Part) -> Json:
    """The one thing the part is, and whether it is a thought."""
    found: Json = {}
    if part.text is not None:
        found["text"] = part.text

    if part.function_call is not None:
        found["functionCall"] = call_to_json(part.function_call)

    if part.function_response is not None:
        found["functionResponse"] = _response_to_json(part.function_response)

    if part.inline_data is not None:
        blob = part.inline_data
        found["inlineData"] = {"mimeType": blob.mime_type, "data": bytes_to_json(blob.data)}

    if part.code_execution_result is not None:
        found["codeExecutionResult"] = part.code_execution_result

    if part.thought:
        found["thought"] = True

    if part.thought_signature is not None:
        found["thoughtSignature"] = bytes_to_json(part.thought_signature)

    return found


def part_from_json(value: Any) -> Part:
    """The part that `part_to_json` wrote."""
    found = object_from_json(value, "a part")
    call, answer = found.get("functionCall"), found.get("functionResponse")
    blob, signature = found.get("inlineData"), found.get("thoughtSignature")
    return Part(
        text=_typed(found, "text", str, None),
        function_call=None if call is None else call_from_json(call),
        function_response=None if answer is None else _response_from_json(answer),
        inline_data=None if blob is None else _blob_from_json(blob),
        thought=flag_from_json(found, "thought"),
        thought_signature=None if signature is None else bytes_from_json(signature),
        code_execution_result=_typed(found, "codeExecutionResult", dict, None),
    )


def actions_to_json(actions: EventActions) -> Json:
    """The actions; the two deltas are `{}` when empty and left out when None (§14.2)."""
    found: Json = {}
    if actions.state_delta is not None:
        found["stateDelta"] = actions.state_delta

    if actions.artifact_delta is not None:
        found["artifactDelta"] = actions.artifact_delta

    if actions.requested_tool_confirmations:
        found["requestedToolConfirmations"] = {
            call_id: confirmation_to_json(asked)
            for call_id, asked in actions.requested_tool_confirmations.items()
        }

    if actions.skip_summarization:
        found["skipSummarization"] = True

    if actions.transfer_to_agent:
        found["transferToAgent"] = actions.transfer_to_agent

    if actions.escalate:
        found["escalate"] = True

    return found


def actions_from_json(value: Any) -> EventActions:
    """The actions; a delta that is absent is an empty one."""
    found = object_from_json(value, "actions")
    asked = object_from_json(found.get("requestedToolConfirmations"), "requestedToolConfirmations")
    versions = object_from_json(found.get("artifactDelta"), "artifactDelta")
    return EventActions(
        state_delta=dict(object_from_json(found.get("stateDelta"), "stateDelta")),
        artifact_delta={name: _typed(versions, name, int, 0) for name in versions},
        requested_tool_confirmations={
            call_id: confirmation_from_json(question) for call_id, question in asked.items()
        },
        skip_summarization=flag_from_json(found, "skipSummarization"),
        transfer_to_agent=text_from_json(found, "transferToAgent"),
        escalate=flag_from_json(found, "escalate"),
    )


def _response_to_json(answer: FunctionResponse) -> Json:
    found: Json = {"id": answer.id} if answer.id else {}
    found["name"] = answer.name
    if answer.response is not None:
        found["response"] = answer.response

    return found


def _response_from_json(value: Any) -> FunctionResponse:
    found = object_from_json(value, "functionResponse")
    response = _typed(found, "response", dict, None)
    return FunctionResponse(text_from_json(found, "id"), text_from_json(found, "name"), response)


def _blob_from_json(value: Any) -> Blob:
    found = object_from_json(value, "inlineData")
    return Blob(text_from_json(found, "mimeType"), bytes_from_json(found.get("data", "")))


def _typed(found: Mapping[str, Any], key: str, kind: type[Any], default: Any) -> Any:
    """What is under `key`, if it is of `kind`; a bool is no int here."""
    value = found.get(key)
    if value is None:
        return default

    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise mistyped(f'"{key}"', f"of type {kind.__name__}", value)

    return value
