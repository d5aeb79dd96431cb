"""Making events of one's own, and filling in what a model leaves out (§5.1, §8.1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import Any, Final

from bridge.core.content import Content, FunctionCall, Part
from bridge.core.context import Context
from bridge.core.event import Event, new_event
from bridge.core.identity import new_id
from bridge.core.response import LLMResponse
from bridge.core.tool import Tool

USER: Final = "user"
"""The author of what a person says, and the role of everything that is not the model's."""
MODEL: Final = "model"

ID_PREFIX: Final = "adk-"
"""Begins the ids of calls that are made here; a model is never shown them."""

_RESPONSE_FIELDS = tuple(spec.name for spec in fields(LLMResponse))


def new_call_id(ctx: Context) -> str:
    """An id for a call that has none of its own."""
    return ID_PREFIX + new_id(ctx.scope)


def own_event(ctx: Context, **given: Any) -> Event:
    """An event by the running agent, in its branch and isolation scope."""
    made = {
        "author": ctx.agent_name,
        "branch": ctx.branch,
        "isolation_scope": ctx.isolation_scope,
        **given,
    }
    return replace(new_event(ctx.invocation_id, ctx.scope), **made)


def model_event(ctx: Context, response: LLMResponse, **given: Any) -> Event:
    """What the model said, as the running agent's event."""
    said = {name: getattr(response, name) for name in _RESPONSE_FIELDS}
    return own_event(ctx, **said, **given)


def text_content(text: str, role: str = USER) -> Content:
    """A content of one piece of text."""
    return Content(role, (Part(text=text),))


def visible_text(content: Content | None, separator: str = "") -> str:
    """The text that is meant to be read: no thoughts, nothing empty."""
    parts = () if content is None else content.parts
    return separator.join(part.text for part in parts if part.text and not part.thought)


def with_call_ids(ctx: Context, response: LLMResponse) -> LLMResponse:
    """The same response, in which every call has an id that no other call has.

    Some models give none, and some count anew in every answer.
    """
    content = response.content
    if content is None or not any(part.function_call for part in content.parts):
        return response

    taken = {call.id for event in ctx.session.events for call in event.function_calls()}
    parts = tuple(_with_call_id(ctx, part, taken) for part in content.parts)
    return replace(response, content=replace(content, parts=parts))


def long_running_ids(calls: Collection[FunctionCall], tools: Mapping[str, Tool]) -> tuple[str, ...]:
    """The ids of the calls whose tools may answer much later; each once, in order."""
    found = (call.id for call in calls if call.id and _runs_long(tools.get(call.name)))
    return tuple(dict.fromkeys(found))


def _with_call_id(ctx: Context, part: Part, taken: set[str]) -> Part:
    call = part.function_call
    if call is None:
        return part

    if not call.id or call.id in taken:
        call = replace(call, id=new_call_id(ctx))

    taken.add(call.id)
    return replace(part, function_call=call)


def _runs_long(tool: Tool | None) -> bool:
    return tool is not None and tool.is_long_running
