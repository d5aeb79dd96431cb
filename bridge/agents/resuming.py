"""Which calls a person's newest reply lets go on, read from a session's history (§7.8, S1 to S7).

Nothing here runs anything, and nothing is trusted but what this agent itself has asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bridge.agents.events import USER
from bridge.agents.questions import (
    ORIGINAL,
    Reply,
    approved_hash,
    original_call,
    replies_in,
)
from bridge.calls.values import copied
from bridge.core.confirmation import ToolConfirmation, json_hash
from bridge.core.content import Args, FunctionCall
from bridge.core.content_json import call_to_json
from bridge.core.event import Event
from bridge.errors import BridgeError


@dataclass(frozen=True, slots=True)
class Resumed:
    """One original call that is decided, and every question that stood for it.

    `call` is as the agent asked it; `arguments` are a person's edited ones, or None.
    """

    call: FunctionCall
    question_ids: tuple[str, ...]  # answered or not: none of them is good for another run
    confirmation: ToolConfirmation
    arguments: Args | None = None

    @property
    def effective(self) -> FunctionCall:
        """The call with the arguments that the person wants it to have, as a copy to work with."""
        wanted = self.call.args if self.arguments is None else self.arguments
        return replace(self.call, args=copied(wanted))


def resumable(events: Sequence[Event], agent_name: str) -> Iterator[list[Resumed]]:
    """The decided calls, a batch for each event that asked, newest event first.

    Only the newest event by the user counts, and only what `agent_name` asked. A question that
    stands for two different calls in the history is refused: nobody knows which of them the
    person saw. A call that was answered after its question was put is over and done.

    Raises:
        BridgeError: The user's decision cannot be read.
    """
    newest, replies = _newest_replies(events)
    if not replies:
        return

    ambiguous = _ambiguous(events, agent_name, replies)
    answerable = {key: reply for key, reply in replies.items() if key not in ambiguous}
    seen: set[str] = set()
    for index in range(len(events) - 2, -1, -1):
        if events[index].author != agent_name:
            continue

        decided = _decided(events[index].function_calls(), answerable)
        if not decided:
            continue

        over = seen | _answered(events, min(index, newest))
        batch = [
            _with_doubles(resumed, _doubles(events, agent_name, call_id, index), replies)
            for call_id, resumed in decided.items()
            if call_id not in over
        ]
        seen.update(decided)
        if batch:
            yield batch


def _newest_replies(events: Sequence[Event]) -> tuple[int, Mapping[str, Reply]]:
    """Where the newest event by the user is, and the decisions it brings."""
    for index in range(len(events) - 1, -1, -1):
        if events[index].author == USER:
            return index, replies_in(events[index])

    return -1, {}


def _ambiguous(events: Sequence[Event], agent_name: str, replies: Mapping[str, Reply]) -> set[str]:
    """The answered questions of this agent's that stand for more than one call."""
    calls: dict[str, str] = {}
    ambiguous: set[str] = set()
    own = (event for event in events if event.author == agent_name)
    for question in (call for event in own for call in event.function_calls()):
        original = _original(question) if question.id in replies else None
        if original is None:
            continue

        canonical = json_hash(call_to_json(original))
        if calls.setdefault(question.id, canonical) != canonical:
            ambiguous.add(question.id)

    return ambiguous


def _decided(questions: Sequence[FunctionCall], replies: Mapping[str, Reply]) -> dict[str, Resumed]:
    """The original calls of the answered questions, by id, in the order of the questions.

    Of two questions about one call the later one's reply stands.
    """
    decided: dict[str, Resumed] = {}
    for question in questions:
        reply = replies.get(question.id)
        original = None if reply is None else _original(question)
        if reply is None or original is None:
            continue

        decided[original.id] = Resumed(
            call=original,
            question_ids=(question.id,),
            confirmation=_bound(reply, question),
            arguments=reply.arguments,
        )

    return decided


def _with_doubles(
    resumed: Resumed, question_ids: Sequence[str], replies: Mapping[str, Reply]
) -> Resumed:
    """The call with all questions that stand for it, of which a single no is enough."""
    answered = [replies[each].confirmation for each in question_ids if each in replies]
    refusals = [confirmation for confirmation in answered if not confirmation.confirmed]
    if refusals:
        resumed = replace(resumed, confirmation=refusals[0], arguments=None)

    return replace(resumed, question_ids=tuple(question_ids))


def _doubles(events: Sequence[Event], agent_name: str, call_id: str, index: int) -> list[str]:
    """Every question about the call that was put for the same reason as the one at `index`.

    A call that asks anew when it is resumed is waiting anew: what was asked before is over.
    """
    reason = _waiting_since(events, call_id, index)
    return list(
        dict.fromkeys(
            question.id
            for place, event in enumerate(events)
            if event.author == agent_name
            for question in event.function_calls()
            if _is_about(question, call_id) and _waiting_since(events, call_id, place) == reason
        )
    )


def _waiting_since(events: Sequence[Event], call_id: str, index: int) -> int:
    """Where before `index` the call was last answered with a question; -1 for nowhere."""
    for place in range(index - 1, -1, -1):
        if call_id in events[place].actions.requested_tool_confirmations:
            return place

    return -1


def _is_about(question: FunctionCall, call_id: str) -> bool:
    original = _original(question) if ORIGINAL in question.args else None
    return original is not None and original.id == call_id


def _bound(reply: Reply, question: FunctionCall) -> ToolConfirmation:
    """The decision, bound to the effective call that the person was shown.

    Edited arguments are the person's own, so no earlier hash speaks of them.
    """
    decision = reply.confirmation
    if reply.arguments is not None:
        return replace(decision, hash=None)

    return decision if decision.hash else replace(decision, hash=approved_hash(question))


def _original(question: FunctionCall) -> FunctionCall | None:
    """The call the question is about; None where that cannot be read, which asks nothing."""
    try:
        original = original_call(question)
        json_hash(call_to_json(original))
    except (BridgeError, ValueError, RecursionError):
        return None

    return original


def _answered(events: Sequence[Event], after: int) -> set[str]:
    """The ids of all calls that anybody has answered after that index."""
    return {answer.id for event in events[after + 1 :] for answer in event.function_responses()}
