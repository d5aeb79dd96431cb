"""The narrowest view of a run: who is asking, and in which session."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from bridge.core.content import Content
from bridge.core.invocation import InvocationContext
from bridge.core.scope import Scope


class ReadonlyContext:
    """Who is asking, and in which session: enough to choose which tools to offer.

    It narrows what can be named and copies nothing: a later change of the run shows here.
    """

    __slots__ = ("_invocation", "_scope")

    _invocation: InvocationContext
    _scope: Scope

    def __init__(self, invocation: InvocationContext | ReadonlyContext) -> None:
        if isinstance(invocation, ReadonlyContext):
            self._invocation, self._scope = invocation._invocation, invocation._scope
        else:
            self._invocation, self._scope = invocation, invocation.scope

    @property
    def scope(self) -> Scope:
        """How long this may take, whether it is called off, and the values it carries."""
        return self._scope

    @property
    def invocation_id(self) -> str:
        """The id of the run this is part of."""
        return self._invocation.invocation_id

    @property
    def agent_name(self) -> str:
        """The running agent's name; empty where there is none."""
        return getattr(self._invocation.agent, "name", "")

    @property
    def user_id(self) -> str:
        """The principal who asks."""
        return self._invocation.session.user_id

    @property
    def app_name(self) -> str:
        """The app whose session this is."""
        return self._invocation.session.app_name

    @property
    def session_id(self) -> str:
        """The session this is part of."""
        return self._invocation.session.id

    @property
    def branch(self) -> str:
        """The dotted path of agents that led here."""
        return self._invocation.branch

    @property
    def user_content(self) -> Content | None:
        """What the person said, as it was said."""
        return self._invocation.user_content

    @property
    def readonly_state(self) -> Mapping[str, Any]:
        """The live session state; what a running call has only filed does not show."""
        return MappingProxyType(self._invocation.session.state)
