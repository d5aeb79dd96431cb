"""Who makes a request, and how a person behind that client can be asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from bridge.core.content import Result

LOCAL = "local"
"""The principal of every client that is not authenticated."""

PRINCIPAL = "bridge.principal"
"""Where an HTTP front writes in a request's scope who is asking."""

AskPerson: TypeAlias = Callable[[dict[str, Any]], Awaitable[Result]]
"""Takes the params of one `elicitation/create` and returns the client's answer to it.

Raises:
    ConfirmationRequired: No answer came; the text says why.
"""


@dataclass(frozen=True, slots=True)
class Asker:
    """One client, as far as one of its requests shows it.

    `session` names the conversation where the transport has one; it is empty over stateless
    HTTP. `has_form` is whether a modern client declared form elicitation with this request;
    `ask` is how a legacy client is asked, None where it cannot be.
    """

    principal: str = LOCAL
    session: str = ""
    modern: bool = True
    has_form: bool = False
    ask: AskPerson | None = None
