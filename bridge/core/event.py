"""One thing that happened in a conversation, as it is yielded, stored and read back (§14)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from bridge.core.actions import EventActions
from bridge.core.content import FunctionCall, FunctionResponse, Part
from bridge.core.content_json import (
    Json,
    actions_from_json,
    actions_to_json,
    content_from_json,
    content_to_json,
    flag_from_json,
    mistyped,
    object_from_json,
    text_from_json,
)
from bridge.core.identity import new_id, now, random_id, utc_now
from bridge.core.response import LLMResponse
from bridge.core.scope import BACKGROUND, Scope
from bridge.core.state import TEMP_PREFIX

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInfo:
    """Which node of a workflow an event is from, and for which nodes its output counts."""

    path: str = ""
    message_as_output: bool = False
    output_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestInput:
    """A question of a workflow's node to a person; `interrupt_id` is what the answer names."""

    interrupt_id: str = ""
    message: str = ""
    response_schema: Json | None = None
    payload: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(LLMResponse):
    """What a model, a person or a tool said, and what it does to the session.

    `author` is "user" or an agent's name. `actions` is the call's own and the one part of an
    event that may still change, until the event is stored.

    Raises:
        ValueError: `timestamp` has no time zone.
    """

    id: str = field(default_factory=random_id)
    timestamp: datetime = field(default_factory=utc_now)
    invocation_id: str = ""
    author: str = ""
    branch: str = ""
    isolation_scope: str = ""
    actions: EventActions = field(default_factory=EventActions)
    long_running_tool_ids: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    requested_input: RequestInput | None = None
    output: Any = None
    node_info: NodeInfo | None = None

    def __post_init__(self) -> None:
        if self.timestamp.tzinfo is None:
            raise ValueError("an event's timestamp needs a time zone, such as datetime.now(UTC)")

    @property
    def parts(self) -> tuple[Part, ...]:
        """The content's parts; none where there is no content."""
        return () if self.content is None else self.content.parts

    def function_calls(self) -> list[FunctionCall]:
        """The calls it asks for, in order."""
        return [part.function_call for part in self.parts if part.function_call is not None]

    def function_responses(self) -> list[FunctionResponse]:
        """The answers it carries, in order."""
        return [p.function_response for p in self.parts if p.function_response is not None]

    def is_final_response(self) -> bool:
        """Whether an agent is done with this event (§5.3).

        A long-running call and an answer not to be summarised are final whatever else they are.
        """
        if self.actions.skip_summarization or self.long_running_tool_ids:
            return True

        if self.partial or self.function_calls() or self.function_responses():
            return False

        return not self.parts or self.parts[-1].code_execution_result is None

    def without_temporary_state(self) -> Event:
        """This event if it files no `temp:` state, else a copy that does not."""
        delta = self.actions.state_delta
        if not delta or not any(key.startswith(TEMP_PREFIX) for key in delta):
            return self

        kept = {key: value for key, value in delta.items() if not key.startswith(TEMP_PREFIX)}
        return replace(self, actions=replace(self.actions, state_delta=kept))

    def to_json(self) -> Json:
        """This event as a JSON object. It shares nested values with the event.

        A key is left out where its value is the default; `id`, `timestamp`, `invocationId`,
        `author` and `actions` are always there.
        """
        found: Json = {
            "id": self.id,
            "timestamp": self.timestamp.astimezone(UTC).isoformat().replace("+00:00", "Z"),
            "invocationId": self.invocation_id,
            "author": self.author,
            "actions": actions_to_json(self.actions),
        }
        if self.content is not None:
            found["content"] = content_to_json(self.content)

        found.update(_plain_fields(self))
        if self.requested_input is not None:
            found["requestedInput"] = _input_to_json(self.requested_input)

        if self.node_info is not None and self.node_info != NodeInfo():
            found["nodeInfo"] = _node_to_json(self.node_info)

        return found

    @classmethod
    def from_json(cls, value: Any) -> Event:
        """The event that `to_json` wrote, or one that another runtime of this protocol wrote.

        Raises:
            ValueError: Not an event; the text says which part is wrong.
        """
        found = object_from_json(value, "an event")
        content = found.get("content")
        given: dict[str, Any] = {name: text_from_json(found, key) for name, key in _TEXTS.items()}
        given.update((name, flag_from_json(found, key)) for name, key in _FLAGS.items())
        given.update((name, _object_or_none(found, key)) for name, key in _OBJECTS.items())
        given.update((name, _texts(found, key)) for name, key in _LISTS.items())
        return cls(
            id=text_from_json(found, "id"),
            timestamp=_timestamp_from_json(found.get("timestamp")),
            invocation_id=text_from_json(found, "invocationId"),
            author=text_from_json(found, "author"),
            actions=actions_from_json(found.get("actions")),
            content=None if content is None else content_from_json(content),
            requested_input=_input_from_json(found.get("requestedInput")),
            avg_logprobs=_number_or_none(found, "avgLogprobs"),
            output=found.get("output"),
            node_info=_node_from_json(found.get("nodeInfo")),
            **given,
        )


def new_event(invocation_id: str, scope: Scope = BACKGROUND) -> Event:
    """An event of now that says nothing yet; id and time come from the run's own makers."""
    return Event(id=new_id(scope), timestamp=now(scope), invocation_id=invocation_id)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _keys(*names: str) -> dict[str, str]:
    return {name: _camel(name) for name in names}


# Which fields go into JSON as they are, by type, each with its key there.
_TEXTS: Final = _keys(
    *("branch", "isolation_scope", "error_code", "error_message", "finish_reason"),
    *("model_version", "session_resumption_handle"),
)
_FLAGS: Final = _keys("partial", "turn_complete", "interrupted")
_OBJECTS: Final = _keys(
    *("usage_metadata", "custom_metadata", "citation_metadata", "grounding_metadata"),
    *("logprobs_result", "input_transcription", "output_transcription"),
)
_LISTS: Final = {"long_running_tool_ids": "longRunningToolIds", "routes": "routes"}
_TEXTS_AND_FLAGS: Final = {**_TEXTS, **_FLAGS}
_VALUES: Final = {**_OBJECTS, **_keys("avg_logprobs", "output")}


def _plain_fields(event: Event) -> Json:
    """The fields that JSON holds as they are, those with a value."""
    found: Json = {}
    for name, key in _TEXTS_AND_FLAGS.items():
        if getattr(event, name):
            found[key] = getattr(event, name)

    for name, key in _VALUES.items():
        if getattr(event, name) is not None:
            found[key] = getattr(event, name)

    for name, key in _LISTS.items():
        if getattr(event, name):
            found[key] = list(getattr(event, name))

    return found


def _object_or_none(found: Json, key: str) -> Json | None:
    value = found.get(key)
    return None if value is None else object_from_json(value, key)


def _number_or_none(found: Json, key: str) -> float | None:
    value = found.get(key)
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value

    raise mistyped(f'"{key}"', "a number", value)


def _texts(found: Json, key: str) -> tuple[str, ...]:
    values = found.get(key) or []
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f'"{key}" must be a list of texts')

    return tuple(values)


def _timestamp_from_json(value: Any) -> datetime:
    """RFC 3339 text, or seconds since 1970 as a number; absent is the year 1."""
    if value is None:
        return datetime(1, 1, 1, tzinfo=UTC)

    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)

        if isinstance(value, int | float) and not isinstance(value, bool):
            return EPOCH + timedelta(microseconds=round(value * 1e6))
    except (ValueError, OverflowError) as exc:
        raise ValueError(f'"timestamp" is not a plausible date: {value!r}') from exc

    raise mistyped('"timestamp"', "text or a number", value)


def _input_to_json(asked: RequestInput) -> Json:
    found: Json = {"interruptId": asked.interrupt_id}
    if asked.message:
        found["message"] = asked.message

    if asked.response_schema is not None:
        found["responseSchema"] = asked.response_schema

    if asked.payload is not None:
        found["payload"] = asked.payload

    return found


def _input_from_json(value: Any) -> RequestInput | None:
    if value is None:
        return None

    found = object_from_json(value, "requestedInput")
    return RequestInput(
        interrupt_id=text_from_json(found, "interruptId"),
        message=text_from_json(found, "message"),
        response_schema=_object_or_none(found, "responseSchema"),
        payload=found.get("payload"),
    )


def _node_to_json(node: NodeInfo) -> Json:
    found: Json = {"path": node.path} if node.path else {}
    if node.message_as_output:
        found["messageAsOutput"] = True

    if node.output_for:
        found["outputFor"] = list(node.output_for)

    return found


def _node_from_json(value: Any) -> NodeInfo | None:
    """An object that says nothing means the event is from no workflow."""
    found = object_from_json(value, "nodeInfo")
    node = NodeInfo(
        path=text_from_json(found, "path"),
        message_as_output=flag_from_json(found, "messageAsOutput"),
        output_for=_texts(found, "outputFor"),
    )
    return None if node == NodeInfo() else node
