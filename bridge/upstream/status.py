"""How an upstream is, for people who look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

State: TypeAlias = Literal["idle", "connecting", "ready", "failed"]


@dataclass(frozen=True, slots=True)
class UpstreamStatus:
    """One upstream at this moment.

    `next_attempt` is in seconds from now, where one is waited for. `problems` names what the
    upstream offers and bridge does not, and why. `session` is what clients that can be asked
    have there: "shared" or "per-client", as far as is known.
    """

    name: str
    target: str
    state: State
    transport: str = ""
    era: str = ""
    protocol_version: str = ""
    server: str = ""
    reason: str = ""
    next_attempt: float | None = None
    problems: tuple[str, ...] = ()
    session: str = ""
