"""What a call asks the world to do besides answering; nothing here has happened yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bridge.core.confirmation import ToolConfirmation


@dataclass(slots=True)
class EventActions:
    """The side effects one call files: state, saved artifacts, questions to a person, flow.

    `requested_tool_confirmations` is keyed by the id of the call that waits.
    """

    state_delta: dict[str, Any] = field(default_factory=dict)
    artifact_delta: dict[str, int] = field(default_factory=dict)
    requested_tool_confirmations: dict[str, ToolConfirmation] = field(default_factory=dict)
    skip_summarization: bool = False
    transfer_to_agent: str = ""
    escalate: bool = False


def prepared(actions: EventActions | None) -> EventActions:
    """`actions` itself with the maps it lacks filled in, or new ones (§13.4).

    A map is lacking, that is None, only where actions were made elsewhere.
    """
    if actions is None:
        return EventActions()

    if actions.state_delta is None:
        actions.state_delta = {}

    if actions.artifact_delta is None:
        actions.artifact_delta = {}

    if actions.requested_tool_confirmations is None:
        actions.requested_tool_confirmations = {}

    return actions
