"""Questions to a person, in an agent's history: how they are put, and how answers read (§7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bridge.agents.events import MODEL, USER, new_call_id, own_event
from bridge.core.confirmation import ToolConfirmation
from bridge.core.content import Args, Content, FunctionCall, FunctionResponse, Part
from bridge.core.content_json import call_to_json, confirmation_from_json, confirmation_to_json
from bridge.core.context import Context
from bridge.core.event import Event
from bridge.core.wire import loads
from bridge.errors import BridgeError

CONFIRMATION: Final = "adk_request_confirmation"
ORIGINAL: Final = "originalFunctionCall"
QUESTION: Final = "toolConfirmation"

_GATE_PAYLOAD = {"arguments", "hash", "tool", "upstream"}


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked: whether `call`, as the agent made it, is to be run.

    `id` is what a decision names. `payload` shows what would happen: where the gate asks, the
    effective `arguments`, their `hash`, and whose `tool` it is.
    """

    id: str
    call: FunctionCall
    hint: str = ""
    payload: Any = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A person's decision on one question.

    `arguments` are the call's arguments as the person edited them; None where they did not.
    `confirmation` is what the tool will see of the decision.
    """

    confirmation: ToolConfirmation
    arguments: Args | None = None


def question_event(
    ctx: Context, asking: Sequence[Part], asked: Mapping[str, ToolConfirmation]
) -> Event | None:
    """The event that puts the questions filed by calls, in the order of `asking`'s calls.

    Each is a call with an id of its own, which is what a reply names. None if no question
    belongs to any of the calls.
    """
    parts = tuple(
        Part(
            function_call=_question(ctx, part.function_call, asked[part.function_call.id]),
            thought_signature=part.thought_signature,
        )
        for part in asking
        if part.function_call is not None and part.function_call.id in asked
    )
    if not parts:
        return None

    ids = tuple(part.function_call.id for part in parts if part.function_call is not None)
    return own_event(ctx, content=Content(MODEL, parts), long_running_tool_ids=ids)


def questions_in(event: Event) -> list[Question]:
    """The questions that an event puts to a person, in order; unreadable ones are none."""
    found: list[Question] = []
    for call in event.function_calls():
        if call.name != CONFIRMATION or ORIGINAL not in call.args:
            continue

        try:
            asked = confirmation_from_json(call.args.get(QUESTION))
            original = original_call(call)
        except (BridgeError, ValueError):
            continue

        found.append(Question(call.id, original, asked.hint, asked.payload))

    return found


def decision(
    question_id: str, confirmed: bool, *, arguments: Args | None = None, payload: Any = None
) -> Content:
    """What a user says to decide on a question: yes or no, perhaps with edited arguments.

    `payload` reaches a tool that has asked by itself. To decide on several questions at once,
    put the parts of all decisions into one content.
    """
    said: dict[str, Any] = {"confirmed": confirmed}
    if arguments is not None:
        said["arguments"] = arguments

    if payload is not None:
        said["payload"] = payload

    return Content(
        USER, (Part(function_response=FunctionResponse(question_id, CONFIRMATION, said)),)
    )


def original_call(question: FunctionCall | None) -> FunctionCall:
    """The call that a question is about.

    Keys are read whatever their case, as other runtimes of this protocol write them.

    Raises:
        BridgeError: The question does not hold a call; the text says what is wrong.
    """
    if question is None or question.args is None:
        raise BridgeError("there is no confirmation call to read")

    if ORIGINAL not in question.args:
        raise BridgeError(f'the confirmation call "{question.id}" lacks its "{ORIGINAL}"')

    found = question.args[ORIGINAL]
    if isinstance(found, FunctionCall):
        return found

    if not isinstance(found, Mapping):
        kind = type(found).__name__
        raise BridgeError(f'"{ORIGINAL}" of call "{question.id}" is a {kind}, not a call')

    return _call_from(found, question.id)


def approved_hash(question: FunctionCall) -> str | None:
    """The hash of the effective call that the gate asked about; None where no gate asked."""
    shown = question.args.get(QUESTION)
    payload = shown.get("payload") if isinstance(shown, Mapping) else None
    if isinstance(payload, Mapping) and payload.keys() >= _GATE_PAYLOAD:
        named = payload["hash"]
        return named if isinstance(named, str) else None

    return None


def replies_in(event: Event) -> dict[str, Reply]:
    """The decisions that a user's event brings, by the id of the question they answer.

    Of two decisions on one question the first counts: it has spent the question.

    Raises:
        BridgeError: A decision cannot be read.
    """
    replies: dict[str, Reply] = {}
    for answer in event.function_responses():
        if answer.name == CONFIRMATION and answer.id not in replies:
            replies[answer.id] = _reply(answer, event.id)

    return replies


def _question(ctx: Context, call: FunctionCall, asked: ToolConfirmation) -> FunctionCall:
    args = {ORIGINAL: call_to_json(call), QUESTION: confirmation_to_json(asked)}
    return FunctionCall(new_call_id(ctx), CONFIRMATION, args)


def _call_from(found: Mapping[str, Any], question_id: str) -> FunctionCall:
    given = {str(key).lower(): value for key, value in found.items()}
    call_id, name, args = given.get("id") or "", given.get("name") or "", given.get("args")
    args = {} if args is None else args
    if isinstance(call_id, str) and isinstance(name, str) and isinstance(args, dict):
        return FunctionCall(call_id, name, args)

    raise BridgeError(f'"{ORIGINAL}" of call "{question_id}" cannot be read: not a call\'s fields')


def _reply(answer: FunctionResponse, event_id: str) -> Reply:
    """A decision, plain or as the one JSON text that web clients send."""
    where = f'the decision "{answer.id}" in event "{event_id}"'
    said: Any = answer.response or {}
    if said.keys() == {"response"}:
        said = _unwrapped(said["response"], where)

    try:
        confirmation = confirmation_from_json(said)
    except ValueError as exc:
        raise BridgeError(f"{where} cannot be read: {exc}") from exc

    arguments = (said or {}).get("arguments")
    if arguments is not None and not isinstance(arguments, dict):
        kind = type(arguments).__name__
        raise BridgeError(f'{where} cannot be read: its "arguments" are a {kind}, not an object')

    return Reply(confirmation, arguments)


def _unwrapped(text: Any, where: str) -> Any:
    if not isinstance(text, str):
        raise BridgeError(f'{where} cannot be read: its "response" is not a JSON text')

    try:
        return loads(text)
    except ValueError as exc:
        raise BridgeError(f'{where} cannot be read: its "response" is not JSON: {exc}') from exc
