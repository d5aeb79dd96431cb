"""What of a session's history a model may see (§13.10).

These choose what is told to a model. They split no state and grant no permission.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bridge.core.event import Event


def sees_branch(own: str, other: str) -> bool:
    """Whether branch `own` sees what happened in `other`: itself, its ancestors, no sibling.

    Branches are dotted paths of agents; an empty one, on either side, hides nothing.
    """
    return not own or not other or own == other or own.startswith(f"{other}.")


def sees_scope(own: str, other: str) -> bool:
    """Whether isolation scope `own` sees what happened in `other`: only what is its own."""
    return own == other


def is_visible(event: Event, branch: str, isolation_scope: str) -> bool:
    """Whether an agent in this branch and isolation scope may see `event`."""
    return sees_branch(branch, event.branch) and sees_scope(isolation_scope, event.isolation_scope)


def visible(events: Iterable[Event], branch: str, isolation_scope: str) -> list[Event]:
    """The events that an agent in this branch and isolation scope may see, in order."""
    return [event for event in events if is_visible(event, branch, isolation_scope)]


def turn_start(events: Sequence[Event], agent_name: str, branch: str, isolation_scope: str) -> int:
    """Where the agent's current turn starts, for one that is told nothing of earlier turns.

    That is the index of the newest visible event by the user or another agent; 0, so the whole
    history, where there is none.
    """
    for index in range(len(events) - 1, -1, -1):
        event = events[index]
        is_from_others = event.author == "user" or event.author != agent_name
        if is_from_others and is_visible(event, branch, isolation_scope):
            return index

    return 0
