"""One MCP server behind us, as far as it has more than tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from bridge.core.content import Result
from bridge.core.context import ProgressSink
from bridge.core.rpc import INTERNAL_ERROR, RpcError, rpc_error
from bridge.downstream.asker import Asker
from bridge.downstream.changes import News
from bridge.errors import ToolError, UpstreamError

Definition: TypeAlias = Mapping[str, Any]


class Listed(Protocol):
    """What a server listed last, each definition as it wrote it, and what it declared."""

    @property
    def capabilities(self) -> Mapping[str, Any]: ...
    @property
    def prompts(self) -> Sequence[Definition]: ...
    @property
    def resources(self) -> Sequence[Definition]: ...
    @property
    def templates(self) -> Sequence[Definition]: ...


class Source(Protocol):
    """The server: `name` tells it apart, `prefix` goes before the names of what it has.

    `listed` is swapped whole. `on_news` is called when that has happened, and when a resource
    that is followed there has changed.
    """

    @property
    def name(self) -> str: ...
    @property
    def prefix(self) -> str: ...
    @property
    def listed(self) -> Listed: ...
    @property
    def on_news(self) -> list[News]: ...

    def may_ask(self, asker: Asker) -> bool:
        """Whether it may ask this client something while it works."""
        ...

    async def request(
        self,
        asker: Asker,
        method: str,
        params: dict[str, Any],
        on_progress: ProgressSink | None = None,
    ) -> Result:
        """Its raw answer to one request.

        Raises:
            ToolError: It refused, or cannot be reached.
        """
        ...

    async def subscribe(self, uri: str) -> None:
        """Follow one of its resources; as often as it is to be unsubscribed.

        Raises:
            ToolError: It refused, or cannot be reached.
        """
        ...

    async def unsubscribe(self, uri: str) -> None:
        """Follow it no more, if nobody else does; never raises."""
        ...


def declares(source: Source, capability: str, part: str | None = None) -> bool:
    """Whether the server declared this, and, of this, that part."""
    declared = source.listed.capabilities.get(capability)
    return isinstance(declared, dict) and (part is None or bool(declared.get(part)))


def to_rpc_error(error: ToolError) -> RpcError:
    """What a client is answered when a request to a server failed: the server's own words."""
    if isinstance(error, UpstreamError) and error.is_protocol_error:
        return RpcError(error.raw)

    return rpc_error(INTERNAL_ERROR, str(error))
