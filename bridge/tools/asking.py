"""Several toolsets listed side by side, and how long they are waited for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import anyio

from bridge.core.context import ReadonlyContext
from bridge.core.tool import Tool, Toolset
from bridge.errors import ToolsetError

Answer: TypeAlias = "Sequence[Tool] | Exception"


class Asking:
    """Toolsets by name, asked together.

    Without `patience` every one is waited for. With it, once one has answered, the others are
    waited for until none did for so many seconds; and one that took longer is not waited for
    again until it has answered. A toolset that is not waited for is cancelled, so only those
    that go on by themselves are worth asking so.
    """

    def __init__(self, members: Mapping[str, Toolset], patience: float | None = None) -> None:
        self._members = members
        self._patience = patience
        self._late: set[str] = set()

    async def ask(self, ctx: ReadonlyContext) -> dict[str, Answer]:
        """What each answers, or why it does not; one alone is asked without a task."""
        if self._patience is None and len(self._members) == 1:
            return {name: await _ask(member, ctx) for name, member in self._members.items()}

        answers: dict[str, Answer] = {name: _not_yet(name) for name in self._members}
        took: dict[str, float] = {}
        began = anyio.current_time()

        async with anyio.create_task_group() as tasks:

            async def ask(name: str, member: Toolset) -> None:
                # What need not wait answers even where no time is left.
                with anyio.move_on_after(0 if name in self._late else None):
                    answers[name] = await _ask(member, ctx)
                    took[name] = anyio.current_time() - began

                if self._patience is not None and not isinstance(answers[name], Exception):
                    tasks.cancel_scope.deadline = anyio.current_time() + self._patience

            for name, member in self._members.items():
                tasks.start_soon(ask, name, member)

        if self._patience is not None:
            self._remember(answers, took, self._patience)

        return answers

    def _remember(
        self, answers: Mapping[str, Answer], took: Mapping[str, float], patience: float
    ) -> None:
        """Who kept the others waiting for nothing, and who answered."""
        for name, answer in answers.items():
            if not isinstance(answer, Exception):
                self._late.discard(name)
            elif took.get(name, float("inf")) > patience:
                self._late.add(name)


def _not_yet(name: str) -> ToolsetError:
    return ToolsetError(f'toolset "{name}" has not answered yet; its tools come when it has')


async def _ask(member: Toolset, ctx: ReadonlyContext) -> Answer:
    try:
        return await member.tools(ctx)
    except Exception as exc:  # a member is a stranger: the others are still served
        return exc
