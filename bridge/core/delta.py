"""What a derived context has otherwise than its parent; absent is not the same as empty (§13.8).

These deltas configure contexts. They have nothing to do with the state delta of an event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Final, TypeAlias

from bridge.core.content import Content
from bridge.core.scope import Scope


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""Not given, so keep what there is: None, "" and {} are given and replace it."""

Inputs: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationDelta:
    """What is otherwise in the run's own data. Every field left UNSET is kept."""

    scope: Scope | Unset = UNSET
    user_content: Content | Unset | None = UNSET
    agent: Any = UNSET
    branch: str | Unset = UNSET
    isolation_scope: str | Unset = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextDelta:
    """What is otherwise in a context. Every field left UNSET is kept."""

    invocation: InvocationDelta | Unset = UNSET
    path: str | Unset = UNSET
    run_id: str | Unset = UNSET
    resume_inputs: Inputs | Unset | None = UNSET
    sub_scheduler: Any = UNSET
    output_for_ancestors: Sequence[str] | Unset | None = UNSET


@dataclass(frozen=True, slots=True)
class Node:
    """Where in a workflow a context stands; all empty outside one.

    `path` is "" for a top-level node, `<parent path>/<name>@<run id>` below.
    """

    path: str = ""
    run_id: str = ""
    resume_inputs: Inputs | None = None
    sub_scheduler: Any = None
    output_for_ancestors: Sequence[str] | None = None

    def wrapped(self) -> Node:
        """What of it can still be seen through a callback's context."""
        if self.resume_inputs is None and self.output_for_ancestors is None:
            return NO_NODE

        return Node(
            resume_inputs=self.resume_inputs, output_for_ancestors=self.output_for_ancestors
        )


NO_NODE: Final = Node()


def changes(delta: InvocationDelta | ContextDelta) -> dict[str, Any]:
    """The fields that are given, by name."""
    given = ((spec.name, getattr(delta, spec.name)) for spec in fields(delta))
    return {name: value for name, value in given if value is not UNSET}
