"""A conversation in Pydantic AI's messages, and its model's answer in ours.

What a provider wants back untouched, such as the signature of a thought or of a call, travels in
`thought_signature` with the provider's name, so that it goes back to that provider alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

from pydantic_ai.messages import (
    BinaryContent,
    FilePart,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from bridge.core.content import Blob, Content, FunctionCall, Part
from bridge.core.response import LLMResponse
from bridge.core.wire import dumps, loads
from bridge.models.answers import MalformedCall, arguments, finish_reason, whole
from bridge.models.turns import Answer, ModelTurn, UserTurn, to_turns
from bridge.telemetry import log

Json: TypeAlias = dict[str, Any]

_PART_EXTRAS: Final = ("id", "signature", "provider_details")
_RESPONSE_EXTRAS: Final = tuple(
    known.name  # older versions do not have the last one
    for known in dataclasses.fields(ModelResponse)
    if known.name in {"provider_name", "provider_url", "canonical_system"}
)


def to_messages(contents: Sequence[Content]) -> list[ModelMessage]:
    """The conversation; the answers to calls keep their media."""
    return [
        _to_response(turn) if isinstance(turn, ModelTurn) else _to_request(turn)
        for turn in to_turns(contents)
    ]


def _to_request(turn: UserTurn) -> ModelRequest:
    parts: list[ModelRequestPart] = [_to_return(answer) for answer in turn.answers]
    said = list(_said(turn.said))
    if said:
        only = said[0]
        parts.append(UserPromptPart(only if len(said) == 1 and isinstance(only, str) else said))

    return ModelRequest(parts=parts)


def _said(parts: Sequence[Part]) -> Iterator[UserContent]:
    for part in parts:
        if part.inline_data is not None:
            yield _to_binary(part.inline_data)
        elif part.text:
            yield part.text


def _to_return(answer: Answer) -> ToolReturnPart:
    media = [_to_binary(blob) for blob in answer.media]
    content = [answer.response, *media] if media else answer.response
    return ToolReturnPart(answer.name, content, answer.id)


def _to_binary(blob: Blob) -> BinaryContent:
    return BinaryContent.narrow_type(BinaryContent(blob.data, media_type=blob.mime_type))


def _to_response(turn: ModelTurn) -> ModelResponse:
    extras = [_extras(part) for part in turn.parts]
    first: Json = next((found for found in extras if found), {})
    about: Json = {key: first.get(key) for key in _RESPONSE_EXTRAS}
    pairs = zip(turn.parts, extras, strict=True)
    return ModelResponse(parts=[_to_part(part, found) for part, found in pairs], **about)


def _to_part(part: Part, extras: Json) -> ModelResponsePart:
    own: Json = {key: extras.get(key) for key in (*_PART_EXTRAS, "provider_name")}
    if part.text is not None and part.thought:
        return ThinkingPart(part.text, **own)

    own.pop("signature")
    if part.function_call is not None:
        call = part.function_call
        return ToolCallPart(call.name, call.args, call.id, **own)

    if part.inline_data is not None:
        return FilePart(_to_binary(part.inline_data), **own)

    if part.code_execution_result is not None:
        return TextPart(dumps(part.code_execution_result).decode())

    return TextPart(part.text or "", **own)


def _extras(part: Part) -> Json:
    """What `_sealed` wrote; nothing where another adapter wrote there."""
    try:
        found = loads(part.thought_signature or b"")
    except ValueError:
        return {}

    return found if isinstance(found, dict) and "provider_name" in found else {}


def to_answer(response: ModelResponse) -> LLMResponse:
    """The whole answer; malformed calls make it one with an error code."""
    parts: list[Part] = []
    malformed = ""
    for given in response.parts:
        try:
            parts += _from_part(given, _sealed(given, response))
        except MalformedCall as exc:
            malformed = malformed or str(exc)

    return whole(
        parts,
        finish_reason(response.finish_reason),
        malformed=malformed,
        model_version=response.model_name or "",
        usage_metadata=_usage(response),
    )


def _from_part(given: ModelResponsePart, sealed: bytes | None) -> Iterator[Part]:
    match given:
        case TextPart(content=text) if text:
            yield Part(text=text, thought_signature=sealed)
        case ThinkingPart(content=text) if text or sealed:
            yield Part(text=text, thought=True, thought_signature=sealed)
        case ToolCallPart(tool_name=name, args=args, tool_call_id=call_id):
            call = FunctionCall(call_id, name, arguments(name, args))
            yield Part(function_call=call, thought_signature=sealed)
        case FilePart(content=file):
            blob = Blob(file.media_type, file.data)
            yield Part(inline_data=blob, thought_signature=sealed)
        case TextPart() | ThinkingPart():
            pass  # it says nothing
        case _:
            log.debug("a part of a model's answer is not kept: %s", given.part_kind)


def _sealed(given: ModelResponsePart, response: ModelResponse) -> bytes | None:
    """What the provider wants back with this part; None where that is nothing."""
    extras = {key: getattr(given, key, None) for key in _PART_EXTRAS}
    name = getattr(given, "provider_name", None) or response.provider_name
    if name is None or not any(extras.values()):
        return None

    about = {key: getattr(response, key) for key in _RESPONSE_EXTRAS} | {"provider_name": name}
    found = {key: value for key, value in (about | extras).items() if value is not None}
    try:
        return dumps(found)
    except (TypeError, ValueError):
        log.debug("what a model's provider adds to a part is not JSON and is not kept")
        return None


def _usage(response: ModelResponse) -> Json | None:
    """The numbers that were reported; a cost is text, since it is exact."""
    found = {key: value for key, value in dataclasses.asdict(response.usage).items() if value}
    if "cost" in found:
        found["cost"] = str(found["cost"])

    return found or None
