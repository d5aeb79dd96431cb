"""The stages of a run in which plugins and agents may step in, each worked out once.

In every stage the plugins come first, then the agent's own hooks, then its callbacks.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from bridge.agents.plugin import Plugin, Plugins
from bridge.calls.hooks import NO_HOOKS, Hook, Hooks
from bridge.errors import BridgeError

Callback: TypeAlias = Callable[..., Any]
"""A hook as a plain function, async or not; what it takes and gives is its stage's affair."""

Stage: TypeAlias = tuple[Callable[..., Awaitable[Any]], ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Own:
    """An agent's own part in the stages: hooks, and callbacks by the name of their stage."""

    hooks: Sequence[Hook] = ()
    callbacks: Mapping[str, Sequence[Callback]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stages:
    """Everything that may step in while one agent runs."""

    before_agent: Stage = ()
    after_agent: Stage = ()
    before_model: Stage = ()
    after_model: Stage = ()
    on_model_error: Stage = ()
    tools: Hooks = NO_HOOKS


def stages_of(own: Own, plugins: Plugins) -> Stages:
    """The stages of an agent that runs under `plugins`."""
    members = (*plugins.members, *own.hooks)
    callbacks = own.callbacks

    def asked(name: str) -> Stage:
        return (*overridden(members, name), *map(_awaited, callbacks.get(name, ())))

    tools = Hooks(members)
    tools.before = (*tools.before, *map(_awaited, callbacks.get("before_tool", ())))
    tools.on_error = (*tools.on_error, *map(_awaited, callbacks.get("on_tool_error", ())))
    tools.after = (*tools.after, *map(_awaited, callbacks.get("after_tool", ())))
    return Stages(
        before_agent=asked("before_agent"),
        after_agent=asked("after_agent"),
        before_model=asked("before_model"),
        after_model=asked("after_model"),
        on_model_error=asked("on_model_error"),
        tools=tools,
    )


def overridden(members: Sequence[Any], name: str) -> Stage:
    """The members' methods of that name, without the ones that `Plugin` itself provides."""
    found = (getattr(member, name, None) for member in members)
    own = getattr(Plugin, name)
    return tuple(m for m in found if m is not None and getattr(m, "__func__", None) is not own)


async def first(stage: Stage, expected: type[T], *given: Any) -> T | None:
    """Ask those of one stage, in order, until one answers.

    Raises:
        BridgeError: One answered with something other than `expected` or None.
        Exception: Whatever one of them raises, with a note that says which it was.
    """
    for asked in stage:
        with _named(asked):
            answer = await asked(*given)

        if answer is None or isinstance(answer, expected):
            if answer is not None:
                return answer

            continue

        kind = type(answer).__name__
        raise BridgeError(
            f"{_name(asked)} returned a {kind}; here it returns a {expected.__name__} or None"
        )

    return None


def callbacks_of(given: Callback | Sequence[Callback] | None) -> tuple[Callback, ...]:
    """One callback, several or none, as a tuple."""
    if given is None:
        return ()

    return (given,) if callable(given) else tuple(given)


def _awaited(callback: Callback) -> Callable[..., Awaitable[Any]]:
    """The callback as something to await, whether or not it is async itself."""
    if inspect.iscoroutinefunction(callback):
        return callback

    @functools.wraps(callback, updated=())
    async def asked(*given: Any) -> Any:
        answer = callback(*given)
        return await answer if inspect.isawaitable(answer) else answer

    return asked


@contextmanager
def _named(asked: Callable[..., Any]) -> Iterator[None]:
    try:
        yield
    except Exception as exc:
        exc.add_note(f"raised by {_name(asked)}")
        raise


def _name(asked: Callable[..., Any]) -> str:
    return getattr(asked, "__qualname__", type(asked).__name__)
