"""What a tool, a hook or an agent may see and do in the run it is part of (§13).

`Context` is everything: the readable names, the run's own data, and what belongs to one call.
`CallbackContext` and `ToolContext` narrow it: a name that they lack is unknown to the type
checker, and at run time raises `CapabilityError`, which says what to use instead.
Contexts are cheap views: what is derived from one shares its session and its actions.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from bridge.core.actions import EventActions, prepared
from bridge.core.caller import Caller
from bridge.core.capability import refusal
from bridge.core.confirmation import ToolConfirmation
from bridge.core.content import Result
from bridge.core.delta import NO_NODE
from bridge.core.invocation import InvocationContext, new_invocation_id
from bridge.core.readonly import ReadonlyContext
from bridge.core.session import Session
from bridge.core.whole import Acting, Calling, Context

__all__ = [
    "CallbackContext",
    "Context",
    "InvocationContext",
    "ProgressSink",
    "ReadonlyContext",
    "ToolContext",
    "local_context",
    "new_invocation_id",
]

ProgressSink: TypeAlias = Callable[[float, float | None, str | None], Awaitable[None]]
"""Takes (progress, total, message) of a call that is running."""


class _Narrow:
    """A context that says what to use instead of what it lacks."""

    __slots__ = ()

    if not TYPE_CHECKING:  # the type checker is to see that the names are missing

        def __getattr__(self, name: str) -> Any:
            raise refusal(self._kind, name)


class CallbackContext(Acting, _Narrow):
    """What hooks around an agent or a model get: state and artifacts, no call of their own.

    `CallbackContext(run, actions)` notes no saved artifacts; `tracking` and `over` do.
    """

    __slots__ = ()
    _kind = "callback"

    def __init__(
        self, invocation: InvocationContext | Context, actions: EventActions | None = None
    ) -> None:
        self._start(invocation)
        self._actions = prepared(actions)
        if isinstance(invocation, Context):
            self._artifacts = invocation.artifacts
            self._node = invocation._node.wrapped()

    @classmethod
    def tracking(
        cls, invocation: InvocationContext | Context, actions: EventActions | None = None
    ) -> CallbackContext:
        """One whose saved artifacts are noted in its actions."""
        made = cls(invocation, actions)
        made._tracks_artifacts = True
        return made

    @classmethod
    def over(
        cls,
        invocation: InvocationContext | Context,
        state_delta: dict[str, Any],
        artifact_delta: dict[str, int],
    ) -> CallbackContext:
        """One that files in the very maps it is given, for hooks around a model."""
        return cls.tracking(invocation, EventActions(state_delta, artifact_delta))


class ToolContext(Calling, _Narrow):
    """One call's own desk: its id, its actions, its answer from a person.

    Made of a workflow node's context, it keeps where in the workflow that stands. An id of ""
    is replaced by a fresh one, when somebody asks for it.
    """

    __slots__ = ("caller", "is_relayed", "on_progress", "upstream_answer")
    _kind = "tool"
    _actions: EventActions

    def __init__(
        self,
        invocation: InvocationContext | Context,
        function_call_id: str = "",
        actions: EventActions | None = None,
        tool_confirmation: ToolConfirmation | None = None,
        on_progress: ProgressSink | None = None,
        caller: Caller | None = None,
    ) -> None:
        # Written out, for it is made once a call.
        if isinstance(invocation, InvocationContext):
            self._invocation, self._scope = invocation, invocation.scope
            self._artifacts, self._node = None, NO_NODE
        else:
            self._invocation, self._scope = invocation._invocation, invocation._scope
            self._artifacts, self._node = invocation._artifacts, invocation._node
            if invocation._tracks_artifacts:
                self._artifacts = invocation.artifacts

        self._function_call_id = function_call_id or None
        self._actions = EventActions({}, {}, {}) if actions is None else prepared(actions)
        self._tool_confirmation = tool_confirmation
        self._tracks_artifacts = True
        self.on_progress = on_progress
        # The MCP client that waits for this call, if it is one that does.
        self.caller = caller
        # Whether nobody on the way reads the answer: it goes to that client as its server sent it.
        self.is_relayed = False
        # (response, raw): what an MCP server answered, beside what was made of it. The raw
        # answer goes out in the end only if that very response is still the call's answer.
        self.upstream_answer: tuple[Result, Result] | None = None

    @classmethod
    def preparing(cls, invocation: InvocationContext | Context) -> ToolContext:
        """One for building a request: it has no call id, and its actions are thrown away."""
        made = cls(invocation)
        made._function_call_id = ""
        return made

    @property
    def actions(self) -> EventActions:
        """What this call asks the world to do besides answering."""
        return self._actions

    async def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell whoever waits how far this call is; nobody may be listening."""
        if self.on_progress is not None:
            await self.on_progress(progress, total, message)


def local_context(user_id: str = "local") -> Context:
    """A run of one's own, with an empty session: for scripts, notebooks and tests."""
    return Context(InvocationContext(Session(id=uuid.uuid4().hex, user_id=user_id)))
