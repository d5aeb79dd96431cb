"""One run: what everything that happens between a question and its final answer shares."""

from __future__ import annotations

from copy import copy
from typing import Any

from bridge.core.artifacts import Artifacts
from bridge.core.content import Content
from bridge.core.delta import InvocationDelta, changes
from bridge.core.identity import new_id
from bridge.core.memory import Memory
from bridge.core.scope import BACKGROUND, Scope
from bridge.core.session import Session


def new_invocation_id(scope: Scope = BACKGROUND) -> str:
    """A fresh id for one run: `e-` and a UUID, or what the scope's maker of ids gives."""
    return f"e-{new_id(scope)}"


class InvocationContext:
    """One run, from a user's message (or an MCP client's call) to its final answer.

    It has the run's data and not the short names of a `ReadonlyContext`: who asks is
    `session.user_id`, for instance. `artifacts` and `memory` are None where the run was given
    no such service. An id of "" is replaced by a fresh one, when somebody asks for it.
    """

    __slots__ = (
        *("_ended", "_invocation_id", "agent", "artifacts", "branch", "isolation_scope"),
        *("memory", "run_config", "scope", "session", "user_content"),
    )

    def __init__(
        self,
        session: Session,
        invocation_id: str = "",
        agent: Any = None,
        branch: str = "",
        user_content: Content | None = None,
        *,
        isolation_scope: str = "",
        run_config: Any = None,
        artifacts: Artifacts | None = None,
        memory: Memory | None = None,
        scope: Scope = BACKGROUND,
    ) -> None:
        self.session = session
        self._invocation_id = invocation_id
        self.agent = agent
        self.branch = branch
        self.user_content = user_content
        self.isolation_scope = isolation_scope
        self.run_config = run_config
        self.artifacts = artifacts
        self.memory = memory
        self.scope = scope
        self._ended = False

    @property
    def invocation_id(self) -> str:
        """The id of this run; it may outlive it, when a person's answer resumes the run."""
        if not self._invocation_id:
            self._invocation_id = new_invocation_id(self.scope)

        return self._invocation_id

    @property
    def ended(self) -> bool:
        """Whether nothing further of this run is to be scheduled."""
        return self._ended

    def end_invocation(self) -> None:
        """Schedule nothing further. Work that is running goes on, and copies are not told."""
        self._ended = True

    def resumed_input(self, interrupt_id: str) -> tuple[Any, bool]:
        """(the answer to an interrupt, whether there is one): a run by itself has none."""
        return None, False

    def with_context(self, scope: Scope) -> InvocationContext:
        """A copy that hangs on `scope`."""
        return self.with_ic_delta(InvocationDelta(scope=scope))

    def with_ic_delta(self, delta: InvocationDelta | None) -> InvocationContext:
        """A copy with the given fields replaced; itself where nothing is given at all.

        The session is shared. `ended` is as it is now, and neither copy tells the other.
        """
        if delta is None:
            return self

        self._invocation_id = self.invocation_id  # so that the copy is the same run
        derived = copy(self)
        for name, value in changes(delta).items():
            setattr(derived, name, value)

        return derived
