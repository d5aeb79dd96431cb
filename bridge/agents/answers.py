"""What became of the calls of one batch, as the one event that answers them (§5.7 to 5.9, §8)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from bridge.agents.events import USER, own_event
from bridge.agents.questions import question_event
from bridge.agents.structured import structured_event
from bridge.calls.call import Outcome
from bridge.core.content import Blob, Content, FunctionResponse, Part, Result
from bridge.core.context import Context
from bridge.core.event import Event
from bridge.core.merge import merge_events


def response_event(ctx: Context, outcomes: Sequence[Outcome]) -> Event | None:
    """The answers in the order in which they were asked; None if nothing answered (yet)."""
    return merge_events([_slot(ctx, outcome) for outcome in outcomes])


def events_after(ctx: Context, said: Event, outcomes: Sequence[Outcome]) -> list[Event]:
    """What follows from the calls in `said`: their answers, the questions that they ask, and the
    final answer in form that one of them gave. None of it where nothing answered.

    The answers come first: who stops at the question still has what is done.
    """
    answered = response_event(ctx, outcomes)
    if answered is None:
        return []

    asked = answered.actions.requested_tool_confirmations
    further = (question_event(ctx, said.parts, asked), structured_event(ctx, outcomes))
    return [answered, *(event for event in further if event is not None)]


def displayed_text(response: Result | None) -> str:
    """What of a result a person is shown where no model sums it up; "" for nothing (§8.6)."""
    if not response or "error" in response:
        return ""

    if response.keys() == {"result"}:
        only = response["result"]
        if only is None or isinstance(only, str):
            return only or ""

    return json.dumps(
        response, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str
    )


def _slot(ctx: Context, outcome: Outcome) -> Event | None:
    if outcome.response is None and _may_be_silent(outcome):
        return None

    call = outcome.call
    answer = FunctionResponse(call.id, call.name, outcome.response)
    parts = [Part(function_response=answer), *_media(outcome)]
    text = displayed_text(outcome.response) if _is_displayed(outcome) else ""
    if text:
        parts.append(Part(text=text))

    return own_event(ctx, content=Content(USER, tuple(parts)), actions=outcome.actions)


def _media(outcome: Outcome) -> list[Part]:
    """What a tool wants seen beside its answer; directly behind it, so that it is known whose."""
    tell: Callable[[Result], Sequence[Blob]] | None = getattr(outcome.tool, "media_beside", None)
    if tell is None or outcome.raw is None or outcome.error is not None:
        return []

    return [Part(inline_data=blob) for blob in tell(outcome.raw)]


def _may_be_silent(outcome: Outcome) -> bool:
    """Whether no answer means "not yet": never where the call has a question to ask."""
    if outcome.actions.requested_tool_confirmations:
        return False

    return outcome.tool.is_long_running or _says_yes(outcome.tool, "defers_response")


def _is_displayed(outcome: Outcome) -> bool:
    return outcome.actions.skip_summarization and _says_yes(
        outcome.tool, "display_result_on_skip_summarization"
    )


def _says_yes(tool: Any, name: str) -> bool:
    """Whether the tool has that capability, and says that it applies."""
    capability = getattr(tool, name, None)
    return capability is not None and bool(capability())
