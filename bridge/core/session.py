"""A conversation as it is held in memory while something runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Session:
    """Who talks, in which app, and what is remembered."""

    id: str
    user_id: str = "local"
    app_name: str = "bridge"
    state: dict[str, Any] = field(default_factory=dict)
    events: list[Any] = field(default_factory=list)
