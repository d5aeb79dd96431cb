"""The places where plugins and agents may step in around one call (§6)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import anyio

from bridge.core.content import Args, Result
from bridge.core.context import ToolContext
from bridge.core.tool import Tool
from bridge.errors import ConfigError, ToolError
from bridge.tools.cancelled import self_cancelled

Before: TypeAlias = Callable[[ToolContext, Tool, Args], Awaitable[Result | None]]
OnError: TypeAlias = Callable[[ToolContext, Tool, Args, Exception], Awaitable[Result | None]]
After: TypeAlias = Callable[
    [ToolContext, Tool, Args, Result | None, Exception | None], Awaitable[Result | None]
]


class Hook:
    """Override what you need.

    In every stage None means "carry on", a dict (an empty one, too) is the call's result from
    here on and ends the stage, and raising makes the call fail with that error from here on.
    A call that is repeated after a person's answer runs its hooks again.
    """

    async def before_tool(self, ctx: ToolContext, tool: Tool, args: Args) -> Result | None:
        """Answer in the tool's place, or edit `args` and return None."""
        return None

    async def on_tool_error(
        self, ctx: ToolContext, tool: Tool, args: Args, error: Exception
    ) -> Result | None:
        """Turn a failure into a result, or let it stand."""
        return None

    async def after_tool(
        self,
        ctx: ToolContext,
        tool: Tool,
        args: Args,
        result: Result | None,
        error: Exception | None,
    ) -> Result | None:
        """See what became of the call, whoever answered it; edit `result`, or replace either."""
        return None


class Hooks:
    """Hooks in the order in which they are asked: plugins first, then the agent's own.

    What each of them overrides is worked out once; nothing else is ever called.
    """

    __slots__ = ("after", "before", "on_error")

    def __init__(self, members: Sequence[Hook] = ()) -> None:
        """Raises ConfigError if a member is None."""
        if any(member is None for member in members):
            raise ConfigError("a hook is None; leave it out")

        self.before: tuple[Before, ...] = _overridden(members, "before_tool")
        self.on_error: tuple[OnError, ...] = _overridden(members, "on_tool_error")
        self.after: tuple[After, ...] = _overridden(members, "after_tool")

    def __bool__(self) -> bool:
        return bool(self.before or self.on_error or self.after)


def _overridden(members: Sequence[Hook], stage: str) -> tuple[Any, ...]:
    """The members' methods of that name, without those that `Hook` itself provides."""
    found = (getattr(member, stage, None) for member in members)
    own = getattr(Hook, stage)
    return tuple(m for m in found if m is not None and getattr(m, "__func__", None) is not own)


async def first_answer(stage: Sequence[Callable[..., Any]], *given: Any) -> Result | None:
    """Ask the hooks of one stage, in order, until one answers.

    Raises:
        ToolError: A hook returned something that is neither a dict nor None, or cancelled itself.
        Exception: Whatever a hook raises, which ends the stage, too.
    """
    for hook in stage:
        try:
            answer = await hook(*given)
        except anyio.get_cancelled_exc_class() as exc:
            raise self_cancelled(exc, f"the hook {_name(hook)}") from exc

        if answer is None:
            continue

        if not isinstance(answer, dict):
            kind = type(answer).__name__
            raise ToolError(
                f"the hook {_name(hook)} returned a {kind}; a hook returns a dict or None"
            )

        return answer

    return None


def _name(hook: Callable[..., Any]) -> str:
    return str(getattr(hook, "__qualname__", type(hook).__name__))


NO_HOOKS = Hooks()
