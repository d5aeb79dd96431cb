"""What must be there to be served: the tools, and each kind of thing that is served beside them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias

from bridge.core.content import Result
from bridge.core.context import ProgressSink
from bridge.core.tool import Tool
from bridge.downstream.asker import Asker
from bridge.downstream.changes import News

Handler: TypeAlias = Callable[[Asker, Mapping[str, Any], ProgressSink | None], Awaitable[Result]]
"""Answers one method: who asks, its params, and where progress goes; returns the raw result.

Raises:
    JsonRpcError: The request cannot be answered.
    RpcError: An MCP server answered with this error.
"""

Settle: TypeAlias = Callable[[], Awaitable[None]]
"""Waits while more may still come of what is offered, as it does when bridge has just begun."""


class Offer(Protocol):
    """What is offered: a snapshot that is swapped whole, its number, and who hears of a swap."""

    @property
    def tools(self) -> Mapping[str, Tool]: ...
    @property
    def version(self) -> int: ...
    @property
    def on_change(self) -> list[Callable[[], None]]: ...


class Offering(Protocol):
    """One kind of thing that is served."""

    @property
    def methods(self) -> Mapping[str, Handler]:
        """What it answers, by method, the same in both eras."""
        ...

    @property
    def on_news(self) -> list[News]:
        """Called with each change of it that clients are told of."""
        ...

    def capabilities(self) -> Mapping[str, Any]:
        """What of ServerCapabilities truly reaches something now, in the legacy form."""
        ...

    def may_ask(self, asker: Asker, method: str, params: Mapping[str, Any]) -> bool:
        """Whether the server behind this request may ask the client something meanwhile."""
        ...


class Subscribable(Protocol):
    """An offering of resources whose changes can be followed one by one."""

    async def subscribe(self, asker: Asker, uri: str) -> None:
        """Follow one resource for this client.

        Raises:
            JsonRpcError: Nobody has it, or its server does not tell of changes.
        """
        ...

    async def unsubscribe(self, asker: Asker, uri: str) -> None:
        """Follow it no more."""
        ...
