"""Several answers become one event, in the order in which they were asked for (§5.9 to 5.13).

Nothing here changes what it is given, and what comes out shares no dict or list with it: the
deltas of calls hold the very objects that the live session holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bridge.core.actions import EventActions
from bridge.core.confirmation import ToolConfirmation
from bridge.core.content import Content
from bridge.core.event import Event


def merge_actions(base: EventActions | None, other: EventActions | None) -> EventActions | None:
    """The actions of `base` and then `other`; None only if both are.

    State is merged key by key, mappings into mappings, whatever else replaces. An artifact
    keeps its highest version. Later confirmations and a later agent to transfer to win; a flag
    that one sets is set.
    """
    merged: EventActions | None = None
    for actions in (base, other):
        if actions is None:
            continue

        if merged is None:
            merged = EventActions()

        _merge_state(merged.state_delta, actions.state_delta or {})
        _merge_versions(merged.artifact_delta, actions.artifact_delta or {})
        for call_id, asked in (actions.requested_tool_confirmations or {}).items():
            merged.requested_tool_confirmations[call_id] = _fresh_confirmation(asked)

        merged.skip_summarization |= actions.skip_summarization
        merged.transfer_to_agent = actions.transfer_to_agent or merged.transfer_to_agent
        merged.escalate |= actions.escalate

    return merged


def merge_events(slots: Sequence[Event | None]) -> Event | None:
    """The answers of one batch as one event; `slots` are in the order of the calls.

    The one event of a single slot is returned as it is. Of several, the first that has content
    lends its id, time and author; its parts come first. None if nothing answered.
    """
    if len(slots) == 1:
        return slots[0]

    answered = [event for event in slots if event is not None and event.content is not None]
    if not answered:
        return None

    carrier, actions = answered[0], None
    for event in answered:
        actions = merge_actions(actions, event.actions)

    role = "user" if carrier.content is None else carrier.content.role
    parts = tuple(part for event in answered for part in event.parts)
    return replace(carrier, content=Content(role, parts), actions=actions or EventActions())


def _merge_state(into: dict[str, Any], delta: Mapping[str, Any]) -> None:
    for key, value in delta.items():
        present = into.get(key)
        if isinstance(present, dict) and isinstance(value, dict):
            _merge_state(present, value)
        else:
            into[key] = _fresh(value)


def _merge_versions(into: dict[str, int], delta: Mapping[str, int]) -> None:
    for name, version in delta.items():
        into[name] = max(version, into.get(name, version))


def _fresh(value: Any) -> Any:
    """A copy of the containers of a JSON value; anything else is itself."""
    if isinstance(value, dict):
        return {key: _fresh(item) for key, item in value.items()}

    if isinstance(value, list):
        return [_fresh(item) for item in value]

    return value


def _fresh_confirmation(asked: ToolConfirmation) -> ToolConfirmation:
    if isinstance(asked.payload, dict | list):
        return replace(asked, payload=_fresh(asked.payload))

    return asked
