"""The whole context of a run, and what the narrower ones share with it (§13.1 to 13.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from bridge.core.actions import EventActions
from bridge.core.artifacts import Artifacts, NoArtifacts, TrackedArtifacts
from bridge.core.confirmation import ToolConfirmation
from bridge.core.delta import NO_NODE, UNSET, ContextDelta, InvocationDelta, Node, changes
from bridge.core.identity import new_id
from bridge.core.invocation import InvocationContext
from bridge.core.memory import Memory, MemoryEntry
from bridge.core.readonly import ReadonlyContext
from bridge.core.scope import Scope
from bridge.core.session import Session
from bridge.core.state import State
from bridge.errors import BridgeError, ServiceMissing


class Acting(ReadonlyContext):
    """What every context that can act has: state, artifacts, and ways to derive another."""

    __slots__ = (
        *("_actions", "_artifacts", "_function_call_id", "_node"),
        *("_tool_confirmation", "_tracks_artifacts"),
    )

    _actions: EventActions | None
    _artifacts: Artifacts | None  # None: the run's own
    _function_call_id: str | None  # None: made when somebody asks
    _node: Node
    _tool_confirmation: ToolConfirmation | None
    _tracks_artifacts: bool

    @property
    def state(self) -> State:
        """The session's state; a write is filed in the actions, too, where there are some."""
        delta = None if self._actions is None else self._actions.state_delta
        return State(self._invocation.session.state, delta)

    @property
    def artifacts(self) -> Artifacts:
        """The session's artifacts; each use raises ServiceMissing where the run has none."""
        artifacts = self._artifacts
        if artifacts is None:
            artifacts = self._invocation.artifacts

        if artifacts is None:
            return NoArtifacts()

        if self._tracks_artifacts and self._actions is not None:
            return TrackedArtifacts(artifacts, self._actions)

        return artifacts

    def with_delta(self, delta: ContextDelta | None) -> Context:
        """A whole context with the given fields replaced; the scope is replaced everywhere."""
        whole = self._whole()
        if delta is None:
            return whole

        given = changes(delta)
        invocation = given.pop("invocation", None)
        derived = whole._copy()
        derived._invocation = whole._invocation.with_ic_delta(invocation)
        if invocation is not None and invocation.scope is not UNSET:
            derived._scope = invocation.scope

        if given:
            derived._node = replace(whole._node, **given)

        return derived

    def with_ic_delta(self, delta: InvocationDelta | None) -> Context:
        """A whole context with the run's data replaced; its own scope stays the old one."""
        whole = self._whole()
        if delta is None:
            return whole

        derived = whole._copy()
        derived._invocation = whole._invocation.with_ic_delta(delta)
        return derived

    def _whole(self) -> Context:
        return self._copy()

    def _copy(self) -> Context:
        copied = Context.__new__(Context)
        copied._take(self)
        return copied

    def _take(self, other: Acting) -> None:
        self._invocation, self._scope = other._invocation, other._scope
        self._actions, self._artifacts = other._actions, other._artifacts
        self._node, self._tracks_artifacts = other._node, other._tracks_artifacts
        self._tool_confirmation = other._tool_confirmation
        self._function_call_id = other._call_id()

    def _call_id(self) -> str:
        if self._function_call_id is None:
            self._function_call_id = new_id(self._scope)

        return self._function_call_id

    def _start(self, invocation: InvocationContext | Context) -> None:
        """Hang on a run, with nothing of one's own."""
        ReadonlyContext.__init__(self, invocation)
        self._actions, self._artifacts, self._node = None, None, NO_NODE
        self._function_call_id, self._tool_confirmation = "", None
        self._tracks_artifacts = False


class Calling(Acting):
    """What a context has that can stand for one call."""

    __slots__ = ()

    @property
    def actions(self) -> EventActions | None:
        """What this asks the world to do; None in a context that makes no event."""
        return self._actions

    @property
    def function_call_id(self) -> str:
        """Which call this is; empty where it is none."""
        return self._call_id()

    @property
    def tool_confirmation(self) -> ToolConfirmation | None:
        """A person's answer to this call; None while nobody was asked."""
        return self._tool_confirmation

    @property
    def path(self) -> str:
        """The composite path of the workflow node; empty outside one and at its top."""
        return self._node.path

    @property
    def sub_scheduler(self) -> Any:
        """What runs child nodes; None outside a node that may have some."""
        return self._node.sub_scheduler

    @property
    def output_for_ancestors(self) -> Sequence[str] | None:
        """The paths of the nodes that take this node's output as theirs."""
        return self._node.output_for_ancestors

    def with_agent_cancel(self) -> tuple[Context, Callable[[], None]]:
        """A whole context, and the function that calls off its work."""
        scope, call_off = self._scope.with_cancel()
        return self._hung_on(scope), call_off

    def request_confirmation(self, hint: str = "", payload: Any = None) -> None:
        """File a question to a person under this call, and end summarising.

        It does not wait and does not stop the tool: returning before the effect is the
        tool's job.

        Raises:
            BridgeError: This context belongs to no call.
        """
        call_id, actions = self._call_id(), self._actions
        if not call_id or actions is None:
            raise BridgeError("a confirmation is asked for a call, and this context has no call id")

        asked = ToolConfirmation(hint=hint, payload=payload)
        actions.requested_tool_confirmations[call_id] = asked
        actions.skip_summarization = True

    async def search_memory(self, query: str) -> Sequence[MemoryEntry]:
        """What the user's memory in this app holds on `query`, best first.

        Raises:
            ServiceMissing: The run has no memory service.
        """
        memory = self._invocation.memory
        if memory is None:
            raise ServiceMissing("memory service is not set: give the runner one")

        return await memory.search(query)

    def _hung_on(self, scope: Scope) -> Context:
        derived = self._copy()
        derived._scope = scope
        return derived


class Context(Calling):
    """The whole of a run: everything that is readable, and the run itself.

    `Context(invocation)` is a new one; made of another context it keeps that one's run and
    scope and drops all else. To keep the rest, use `promote` or `with_delta`.
    """

    __slots__ = ()

    def __init__(self, invocation: InvocationContext | Context) -> None:
        self._start(invocation)

    @classmethod
    def promote(
        cls, invocation: InvocationContext | Context, delta: ContextDelta | None = None
    ) -> Context:
        """The whole context of a run: itself, if it is one already; then `delta` applied."""
        whole = invocation if isinstance(invocation, Context) else cls(invocation)
        return whole.with_delta(delta)

    @property
    def invocation(self) -> InvocationContext:
        """The run this is a view of; what is derived from it shares it."""
        return self._invocation

    @property
    def session(self) -> Session:
        """The held session, live."""
        return self._invocation.session

    @property
    def agent(self) -> Any:
        """The running agent; None where there is none."""
        return self._invocation.agent

    @property
    def memory(self) -> Memory | None:
        """The memory of this user in this app; None where the run has no such service."""
        return self._invocation.memory

    @property
    def run_config(self) -> Any:
        """How the runner was asked to run."""
        return self._invocation.run_config

    @property
    def isolation_scope(self) -> str:
        """The task whose history alone is told to a model; empty for none."""
        return self._invocation.isolation_scope

    @property
    def ended(self) -> bool:
        """Whether nothing further of this run is to be scheduled."""
        return self._invocation.ended

    def end_invocation(self) -> None:
        """Schedule nothing further; what runs goes on, and derived runs are not told."""
        self._invocation.end_invocation()

    @property
    def run_id(self) -> str:
        """Which activation of the workflow node this is; empty outside one and at its top."""
        return self._node.run_id

    def resumed_input(self, interrupt_id: str) -> tuple[Any, bool]:
        """(the answer to an interrupt, whether there is one); the answer may be None."""
        inputs = self._node.resume_inputs
        if inputs is not None and interrupt_id in inputs:
            return inputs[interrupt_id], True

        return self._invocation.resumed_input(interrupt_id)

    def with_context(self, chain: Scope | InvocationContext | Context) -> Context:
        """A copy that hangs on `chain`: its scope alone, or the whole run if it is one."""
        if isinstance(chain, Scope):
            return self._hung_on(chain)

        other = Context.promote(chain)
        derived = self._hung_on(other._scope)
        derived._invocation = other._invocation
        return derived._over(other._node)

    with_agent_context = with_context

    def with_agent_timeout(self, seconds: float) -> Context:
        """A copy whose work has at most `seconds`; running out of them ends no invocation."""
        return self._hung_on(self._scope.with_timeout(seconds))

    def with_branch(self, branch: str) -> Context:
        """A copy in another branch."""
        return self.with_delta(ContextDelta(invocation=InvocationDelta(branch=branch)))

    def _whole(self) -> Context:
        return self

    def _over(self, below: Node) -> Context:
        """Let what the node below knows show where this one knows nothing."""
        own = self._node
        if own.output_for_ancestors is None and below.output_for_ancestors is not None:
            self._node = replace(own, output_for_ancestors=below.output_for_ancestors)

        return self
