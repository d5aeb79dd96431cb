"""Who makes a request, as far as that one request shows it: the `Caller` of whatever it starts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from bridge.calls.call import Outcome
from bridge.core.confirmation import ToolConfirmation
from bridge.core.content import FunctionCall, Result
from bridge.core.rpc import METHOD_NOT_FOUND, rpc_error
from bridge.downstream.client import LOCAL, Post, nothing
from bridge.upstream.capabilities import refusal
from bridge.upstream.protocol import ELICIT

__all__ = ["LOCAL", "PRINCIPAL", "Ask", "Asker"]

PRINCIPAL = "bridge.principal"
"""Where an HTTP front writes in a request's scope who is asking."""

Ask: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[Result]]
"""Takes a request to a client, method and params, and returns the client's result.

Raises:
    RpcError: The client refused, or did not answer.
"""


class Notes(Protocol):
    """What somebody who looks on wants to know of a call while it runs."""

    def ran(self, call: FunctionCall, outcome: Outcome, granted: ToolConfirmation | None) -> None:
        """The call was run, perhaps only as far as its gate; perhaps again, with a yes."""
        ...


@dataclass(slots=True, eq=False)
class Asker:
    """One request's client; a `core.caller.Caller`.

    `session` names the conversation where the transport has one; it is empty over stateless
    HTTP. `asks` is how the client is asked while its request waits, None where it cannot be.
    `post` reaches it on the request's own stream, None where nothing but the answer does. `task`
    is how a legacy client wants a call run as a task, None if it does not. `notes` is who looks on
    while a call of its runs, None if nobody does.
    """

    principal: str = LOCAL
    session: str = ""
    modern: bool = True
    capabilities: Mapping[str, Any] = field(default_factory=nothing)
    log_level: str | None = None
    meta: Mapping[str, Any] = field(default_factory=nothing)
    brought: Mapping[str, Any] = field(default_factory=nothing)
    asks: Ask | None = None
    post: Post | None = None
    task: Any = None
    notes: Notes | None = None

    @property
    def key(self) -> str:
        """The principal and its session, which together name a client."""
        return f"{self.principal}\n{self.session}"

    @property
    def has_form(self) -> bool:
        """Whether the client declared that it can show a person a form."""
        return refusal(self.capabilities, ELICIT, {}) is None

    async def ask(self, method: str, params: dict[str, Any]) -> Result:
        """Put a server's request to the client; see `Caller.ask`."""
        if (why := refusal(self.capabilities, method, params)) is not None:
            raise why

        if self.asks is None:
            raise rpc_error(METHOD_NOT_FOUND, f"the client behind this call cannot take {method}")

        return await self.asks(method, params)

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """Pass a notification on to the client; see `Caller.tell`."""
        if self.post is not None:
            self.post({"jsonrpc": "2.0", "method": method, "params": params})
