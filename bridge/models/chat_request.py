"""A request in the dialect of chat completions, as OpenAI's API and many servers after it take it.

The dialect has no media in the answer to a call, so these follow in a message of the user's side
that names the call. Thoughts are not sent back.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from bridge.core.content import Blob, Part
from bridge.core.declaration import Declaration
from bridge.core.request import LLMRequest
from bridge.core.wire import dumps, loads
from bridge.models.offered import declarations, system_text
from bridge.models.turns import Answer, ModelTurn, UserTurn, to_turns

Json: TypeAlias = dict[str, Any]

IMAGE, AUDIO, FILE = "image", "audio", "file"
MEDIA: Final = frozenset({IMAGE, AUDIO, FILE})
"""What a message may carry besides text; any other media are named in it, without their bytes."""

EXTRA: Final = "extra_content"  # where Google puts the signature of a call

_SOUNDS: Final = {"mpeg": "mp3", "mpga": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav"}


def to_body(
    request: LLMRequest,
    model: str,
    backend: str,
    *,
    stream: bool,
    media: Collection[str],
    options: Mapping[str, Any],
) -> Json:
    """The body of one request. `options` are fields of it that win; one of None is left out.

    Raises:
        CapabilityError: The request holds one of a provider's own tools.
    """
    body: Json = {"model": request.model or model, "messages": to_messages(request, media)}
    offered = declarations(request, backend, "openai")
    if offered:
        body["tools"] = [_tool(declaration, schema) for declaration, schema in offered]

    if request.config is not None and request.config.response_schema is not None:
        schema = {"name": "answer", "schema": request.config.response_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}

    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}

    return {key: value for key, value in (body | dict(options)).items() if value is not None}


def to_messages(request: LLMRequest, media: Collection[str]) -> list[Json]:
    """The conversation as messages, the system instruction first."""
    instruction = system_text(request)
    messages: list[Json] = [{"role": "system", "content": instruction}] if instruction else []
    for turn in to_turns(request.contents):
        if isinstance(turn, ModelTurn):
            messages += _model_message(turn)
        else:
            messages += _user_messages(turn, media)

    return messages


def _model_message(turn: ModelTurn) -> Iterator[Json]:
    """One message; none where the model only thought."""
    text = "".join(_model_texts(turn.parts))
    calls = [call for part in turn.parts for call in _calls(part)]
    if not text and not calls:
        return

    message: Json = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = calls

    yield message


def _model_texts(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        if part.inline_data is not None:
            yield _named(part.inline_data)
        elif part.code_execution_result is not None:
            yield _json(part.code_execution_result)
        elif part.text and not part.thought:
            yield part.text


def _user_messages(turn: UserTurn, media: Collection[str]) -> Iterator[Json]:
    """The answers to calls, then one message with their media and what was said."""
    for answer in turn.answers:
        yield {"role": "tool", "tool_call_id": answer.id, "content": _json(answer.response)}

    items = [item for answer in turn.answers for item in _media_items(answer, media)]
    for part in turn.said:
        if part.inline_data is not None:
            items.append(_item(part.inline_data, media))
        elif part.text:
            items.append(_text(part.text))

    if items:
        yield {"role": "user", "content": _simplest(items)}


def _media_items(answer: Answer, media: Collection[str]) -> Iterator[Json]:
    if answer.media:
        yield _text(f'Media in the answer of "{answer.name}" to the call "{answer.id}":')
        yield from (_item(blob, media) for blob in answer.media)


def _simplest(items: Sequence[Json]) -> str | list[Json]:
    """Plain text where there is nothing else: not every server takes a list."""
    if all(item["type"] == "text" for item in items):
        return "\n\n".join(item["text"] for item in items)

    return list(items)


def _item(blob: Blob, media: Collection[str]) -> Json:
    kind, _, subtype = blob.mime_type.partition(";")[0].strip().lower().partition("/")
    encoded = base64.b64encode(blob.data).decode("ascii")
    url = f"data:{blob.mime_type};base64,{encoded}"
    if kind == "text" and (text := _decoded(blob.data)) is not None:
        return _text(text)

    if kind == IMAGE and IMAGE in media:
        return {"type": "image_url", "image_url": {"url": url}}

    if kind == AUDIO and AUDIO in media:
        sound = {"data": encoded, "format": _SOUNDS.get(subtype, subtype)}
        return {"type": "input_audio", "input_audio": sound}

    if kind not in (IMAGE, AUDIO) and FILE in media:
        return {"type": "file", "file": {"filename": f"file.{subtype}", "file_data": url}}

    return _text(_named(blob))


def _decoded(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _named(blob: Blob) -> str:
    return f"[{blob.mime_type}, {len(blob.data)} bytes, not shown to this model]"


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _calls(part: Part) -> Iterator[Json]:
    call = part.function_call
    if call is not None:
        function = {"name": call.name, "arguments": _json(call.args)}
        yield {"id": call.id, "type": "function", "function": function, **unsealed(part)}


def sealed(extra: Json | None) -> bytes | None:
    """What a provider wants back with a call, as it is kept with the call."""
    return None if extra is None else dumps({EXTRA: extra})


def unsealed(part: Part) -> Json:
    """The fields that `sealed` kept; none where another adapter wrote there."""
    try:
        kept = loads(part.thought_signature or b"")
    except ValueError:
        return {}

    return {EXTRA: kept[EXTRA]} if isinstance(kept, dict) and EXTRA in kept else {}


def _tool(declaration: Declaration, parameters: Json) -> Json:
    function: Json = {"name": declaration.name, "parameters": parameters}
    if declaration.description:
        function["description"] = declaration.description

    return {"type": "function", "function": function}


def _json(value: Any) -> str:
    return dumps(value).decode()
