"""A cancellation that nobody asked for: a stranger's code raised it; only its call fails."""

from __future__ import annotations

# What anyio does not tell: whether somebody has cancelled the running task without a scope.
from asyncio import current_task  # noqa: TID251
from math import inf

import anyio

from bridge.errors import ToolError


def is_asked_for() -> bool:
    """Whether the running task, or a scope around it, is being cancelled by somebody."""
    if anyio.current_effective_deadline() == -inf:
        return True

    task = current_task()
    return task is None or task.cancelling() > 0


def self_cancelled(exc: BaseException, who: str) -> ToolError:
    """What became of a call in which `who`, a stranger's code, raised a cancellation by itself.

    Left alone it would end whatever waits for the call, and everything beside it.

    Raises:
        BaseException: `exc` itself, where the cancellation was asked for.
    """
    if is_asked_for():
        raise exc

    return ToolError(f"{who} broke off: it raised {type(exc).__name__}, and nobody called it off")
