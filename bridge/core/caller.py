"""Who is behind a call: the MCP client that waits for it, as far as a server may speak with it.

A server may ask a client for something while it works (elicitation, sampling, roots) and tell it
things (log messages). Whatever the two eras do on their wires, this is what both come down to. A
call that nobody's client waits for, such as a model's in an embedding program, has no caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from bridge.core.content import Result

ASKABLE = frozenset({"elicitation", "sampling", "roots"})
"""The client capabilities that let a server ask."""


class Caller(Protocol):
    """One request's client."""

    @property
    def key(self) -> str:
        """Names the client among all clients: calls of one key may share an upstream session."""
        ...

    @property
    def modern(self) -> bool:
        """Whether it speaks the modern era: it may be given a server's `input_required` as it is.

        A modern client has no session, so two calls of one key may be two people's: while one of
        them can be asked, it needs an upstream session to itself.
        """
        ...

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the client declared (MCP, ClientCapabilities), as it wrote it."""
        ...

    @property
    def log_level(self) -> str | None:
        """The least severe log message that the client wants; None for none (RFC 5424 names)."""
        ...

    @property
    def meta(self) -> Mapping[str, Any]:
        """The `_meta` of its request, without what belongs to the hop between it and us."""
        ...

    @property
    def brought(self) -> Mapping[str, Any]:
        """The `inputResponses` and `requestState` that came with it and are the server's."""
        ...

    async def ask(self, method: str, params: dict[str, Any]) -> Result:
        """Pass a server's request on to the client, and return its result.

        Raises:
            RpcError: The client answered with an error, cannot be asked, or did not answer.
        """
        ...

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """Pass a notification on to the client; never blocks, never raises, may drop."""
        ...
