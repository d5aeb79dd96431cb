"""What of a session's history a model is told, and in which shape (§13.10, §21)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bridge.agents.events import ID_PREFIX, MODEL, USER, text_content
from bridge.agents.questions import CONFIRMATION
from bridge.agents.rearrange import rearranged
from bridge.core.content import Content, Part
from bridge.core.event import Event
from bridge.core.visibility import is_visible, turn_start

CREDENTIAL: Final = "adk_request_credential"
CONTINUE: Final = (
    "Go on with what you were asked to do, as instructed. "
    "If nothing is left to be done, end or sum up."
)

_BETWEEN_PEOPLE = {CONFIRMATION, CREDENTIAL}
_EMPTY = Part()


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads the history: which agent, in which branch and isolation scope."""

    agent_name: str
    branch: str = ""
    isolation_scope: str = ""
    user_content: Content | None = None


def contents_for(reader: Reader, events: Sequence[Event], *, whole: bool = True) -> list[Content]:
    """The conversation as the model is to read it; only the current turn unless `whole`.

    It ends with something said to the model, made up if need be.

    Raises:
        BridgeError: The newest event answers a call that is nowhere, or calls of two events.
    """
    start = 0
    if not whole:
        start = turn_start(events, reader.agent_name, reader.branch, reader.isolation_scope)

    shown = [_shown(reader, event) for event in events[start:] if _is_told(reader, event)]
    told = [_for_model(event.content) for event in rearranged(_transcribed(shown))]
    contents = [content for content in told if content is not None]
    if reader.isolation_scope:
        contents = [*_task(reader, events[start:]), *contents]

    if contents and contents[-1].role != USER:
        contents.append(text_content(CONTINUE))

    return contents


def _is_told(reader: Reader, event: Event) -> bool:
    """Whether the reader sees the event at all, and it is not between us and a person."""
    heard = event.input_transcription is not None or event.output_transcription is not None
    said = event.content is not None and event.content.role and event.content.parts
    if not said and not heard:
        return False

    if not is_visible(event, reader.branch, reader.isolation_scope):
        return False

    names = {call.name for call in event.function_calls()}
    names.update(answer.name for answer in event.function_responses())
    return not names & _BETWEEN_PEOPLE


def _shown(reader: Reader, event: Event) -> Event:
    """The event itself; what another agent said and did, not thought, is retold as context."""
    if event.author in (reader.agent_name, USER) or not event.parts:
        return event

    parts = [_retold(event.author, part) for part in event.parts if not part.thought]
    content = Content(USER, (Part(text="For context:"), *parts) if parts else ())
    return Event(timestamp=event.timestamp, author=USER, branch=event.branch, content=content)


def _retold(author: str, part: Part) -> Part:
    if part.text:
        return Part(text=f"[{author}] said: {part.text}")

    if part.function_call is not None:
        call = part.function_call
        given = _as_json(call.args)
        return Part(text=f"[{author}] called tool `{call.name}` with parameters: {given}")

    if part.function_response is not None:
        answer = part.function_response
        result = _as_json(answer.response)
        return Part(text=f"[{author}] `{answer.name}` tool returned result: {result}")

    return part


def _transcribed(events: Sequence[Event]) -> list[Event]:
    """Runs of what was only heard, each as one event of text, by the side that was heard."""
    result: list[Event] = []
    heard, said = "", ""
    for index, event in enumerate(events):
        following = events[index + 1] if index + 1 < len(events) else None
        if event.parts:
            result.append(event)
        elif _text_of(event.input_transcription):
            heard += _text_of(event.input_transcription)
            if following is None or not _text_of(following.input_transcription):
                result.append(replace(event, content=text_content(heard)))
                heard = ""
        elif _text_of(event.output_transcription):
            said += _text_of(event.output_transcription)
            if following is None or not _text_of(following.output_transcription):
                result.append(replace(event, content=text_content(said, MODEL)))
                said = ""

    return result


def _for_model(content: Content | None) -> Content | None:
    """The content without what is empty, and without ids that were made here."""
    if content is None:
        return None

    parts = tuple(_without_own_id(part) for part in content.parts if not _is_empty(part))
    return replace(content, parts=parts) if parts else None


def _is_empty(part: Part) -> bool:
    return replace(part, text=part.text or None) == _EMPTY


def _without_own_id(part: Part) -> Part:
    call, answer = part.function_call, part.function_response
    if call is not None and call.id.startswith(ID_PREFIX):
        return replace(part, function_call=replace(call, id=""))

    if answer is not None and answer.id.startswith(ID_PREFIX):
        return replace(part, function_response=replace(answer, id=""))

    return part


def _task(reader: Reader, events: Sequence[Event]) -> list[Content]:
    """What the agent was given to do: the arguments of the call that its scope is named after."""
    calls = (call for event in events for call in event.function_calls())
    for call in calls:
        if call.id == reader.isolation_scope and call.args:
            return [text_content(_as_json(call.args))]

    given = reader.user_content
    return [Content(USER, given.parts)] if given is not None and given.parts else []


def _text_of(transcription: Mapping[str, Any] | None) -> str:
    text = (transcription or {}).get("text")
    return text if isinstance(text, str) else ""


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=str)
