"""Which agent takes a message, and which invocation the message belongs to (§15.3, §7.14)."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.agents.contract import AnyAgent
from bridge.agents.events import USER
from bridge.agents.tree import AgentTree
from bridge.core.content import Content
from bridge.core.event import Event


def agent_for(tree: AgentTree, events: Sequence[Event], message: Content | None) -> AnyAgent:
    """Whoever made the call that the message answers, or spoke last and may be returned to.

    Only agents that may hand over upwards are returned to; else it is the root.
    """
    asked = _asked(events, message)
    agent = None if asked is None else tree.find(asked.author)
    if agent is not None:
        return agent

    for event in reversed(events):
        agent = None if event.author == USER else tree.find(event.author)
        if agent is not None and tree.may_be_returned_to(agent):
            return agent

    return tree.root


def invocation_for(events: Sequence[Event], message: Content | None) -> str:
    """The id of the run that waits for this message; "" for a new one."""
    asked = _asked(events, message)
    return "" if asked is None else asked.invocation_id


def _asked(events: Sequence[Event], message: Content | None) -> Event | None:
    """The newest event with a call that the message answers."""
    parts = () if message is None else message.parts
    answers = [part.function_response.id for part in parts if part.function_response is not None]
    for answered in filter(None, answers):
        for event in reversed(events):
            if any(call.id == answered for call in event.function_calls()):
                return event

    return None
