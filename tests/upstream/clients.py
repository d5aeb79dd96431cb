"""Clients behind calls, as a server sees them: what they declared, and what they answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bridge.core.content import Result

Json = dict[str, Any]
FORM: Json = {"elicitation": {"form": {}}}


async def accepts(method: str, params: Json) -> Result:
    """Say yes to whatever is asked."""
    return {"action": "accept", "content": {"method": method}}


@dataclass
class Client:
    """A `Caller` that keeps what it is asked and told."""

    key: str = "client-1"
    modern: bool = False
    capabilities: Mapping[str, Any] = field(default_factory=lambda: FORM)
    log_level: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    brought: Mapping[str, Any] = field(default_factory=dict)
    answer: Callable[[str, Json], Awaitable[Result]] = accepts
    asked: list[tuple[str, Json]] = field(default_factory=list)
    told: list[tuple[str, Json]] = field(default_factory=list)

    async def ask(self, method: str, params: Json) -> Result:
        self.asked.append((method, params))
        return await self.answer(method, params)

    def tell(self, method: str, params: Json) -> None:
        self.told.append((method, params))
