"""What a tool, a hook or a toolset may see of the run it is part of.

A narrower context has fewer names, for the type checker and at run time: a name that a context
lacks raises `CapabilityError`, which says what to use instead.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

from bridge.core.actions import EventActions
from bridge.core.confirmation import ToolConfirmation
from bridge.core.content import Content, Result
from bridge.core.session import Session
from bridge.core.state import State
from bridge.errors import BridgeError, CapabilityError

ProgressSink: TypeAlias = Callable[[float, float | None, str | None], Awaitable[None]]
"""Takes (progress, total, message) of a call that is running."""


def new_invocation_id() -> str:
    """A fresh id for one run: `e-` and a UUID."""
    return f"e-{uuid.uuid4()}"


@dataclass(slots=True)
class InvocationContext:
    """One run, from a user's message (or an MCP client's call) to its final answer."""

    session: Session
    invocation_id: str = field(default_factory=new_invocation_id)
    agent: Any = None
    branch: str = ""
    user_content: Content | None = None


class ReadonlyContext:
    """Who is asking, and in which session: enough to choose which tools to offer."""

    __slots__ = ("_invocation",)

    def __init__(self, invocation: InvocationContext) -> None:
        self._invocation = invocation

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


class Context(ReadonlyContext):
    """The whole of a run: everything that is readable, and the run itself."""

    __slots__ = ()

    @property
    def invocation(self) -> InvocationContext:
        """The run this is a view of; what is derived from it shares it."""
        return self._invocation

    @property
    def session(self) -> Session:
        """The held session, live."""
        return self._invocation.session


def local_context(user_id: str = "local") -> Context:
    """A run of one's own, with an empty session: for scripts, notebooks and tests."""
    return Context(InvocationContext(Session(id=uuid.uuid4().hex, user_id=user_id)))


_INSTEAD = {
    "session": "state, session_id, user_id or app_name",
    "agent": "agent_name",
    "memory": "search_memory",
    "run_config": "a plugin's run-level hook",
    "end_invocation": "actions.escalate or actions.skip_summarization",
    "ended": "the flow, which checks it between steps",
    "resumed_input": "tool_confirmation",
}


class ToolContext(ReadonlyContext):
    """One call's own desk: its id, its actions, its answer from a person."""

    __slots__ = (
        "actions",
        "function_call_id",
        "on_progress",
        "tool_confirmation",
        "upstream_answer",
    )

    def __init__(
        self,
        invocation: InvocationContext,
        function_call_id: str = "",
        actions: EventActions | None = None,
        tool_confirmation: ToolConfirmation | None = None,
        on_progress: ProgressSink | None = None,
    ) -> None:
        self._invocation = invocation
        self.function_call_id = function_call_id or str(uuid.uuid4())
        self.actions = EventActions() if actions is None else actions
        self.tool_confirmation = tool_confirmation
        self.on_progress = on_progress
        # (response, raw): what an MCP server answered, beside what was made of it. The raw
        # answer goes out in the end only if that very response is still the call's answer.
        self.upstream_answer: tuple[Result, Result] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in _INSTEAD:
            raise CapabilityError(f"a tool context has no {name}: use {_INSTEAD[name]}")

        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def state(self) -> State:
        """The session's state; every write is filed under this call, too."""
        return State(self._invocation.session.state, self.actions.state_delta)

    def request_confirmation(self, hint: str = "", payload: Any = None) -> None:
        """File a question to a person under this call, and end summarising.

        It does not wait and does not stop the tool: returning before the effect is the
        tool's job.

        Raises:
            BridgeError: This context belongs to no call.
        """
        if not self.function_call_id:
            raise BridgeError("a confirmation is asked for a call, and this context has no call id")

        asked = ToolConfirmation(hint=hint, payload=payload)
        self.actions.requested_tool_confirmations[self.function_call_id] = asked
        self.actions.skip_summarization = True

    async def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell whoever waits how far this call is; nobody may be listening."""
        if self.on_progress is not None:
            await self.on_progress(progress, total, message)
