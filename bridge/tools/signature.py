"""How a Python function wants to be called, as far as a tool needs to know."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from bridge.core.context import InvocationContext, ReadonlyContext, ToolContext
from bridge.errors import ConfigError
from bridge.tools.hints import is_plain, members

Handler: TypeAlias = Callable[..., Any]

MISSING = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter that arguments go to; `annotation` and `default` are MISSING where absent."""

    name: str
    annotation: Any
    default: Any


@dataclass(frozen=True, slots=True)
class Signature:
    """Whether the first parameter takes the call's context, what the others take, what is given."""

    takes_context: bool
    parameters: tuple[Parameter, ...]
    returns: Any


def read_signature(handler: Handler, tool_name: str) -> Signature:
    """Read a handler's parameters and type hints.

    The first parameter takes the context if it is called `ctx`, or its hint names ToolContext or
    what every ToolContext is, such as ReadonlyContext, perhaps among other types.

    Raises:
        ConfigError: It cannot be read, is a generator, takes what no JSON object can name, or
            wants the context where or as what it is not given.
    """
    target = _call_of(handler)
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise ConfigError(f'tool "{tool_name}": its function yields; return one result instead')

    try:
        parameters = list(inspect.signature(handler).parameters.values())
        hints = typing.get_type_hints(target, include_extras=True)
    except (TypeError, ValueError, NameError, AttributeError) as exc:
        raise ConfigError(
            f'tool "{tool_name}": its signature cannot be read: {exc}; '
            "its type hints must be importable where the function is defined"
        ) from exc

    first = next(iter(parameters), None)
    takes_context = first is not None and _is_context(first, hints)
    if first is not None and takes_context:
        _check_context(first, hints.get(first.name, MISSING), tool_name)

    taken = parameters[1:] if takes_context else parameters
    for parameter in taken:
        _check_kind(parameter, tool_name)
        _check_is_argument(parameter, hints.get(parameter.name, MISSING), tool_name)

    return Signature(
        takes_context,
        tuple(Parameter(p.name, hints.get(p.name, MISSING), p.default) for p in taken),
        hints.get("return", MISSING),
    )


def is_async(handler: Handler) -> bool:
    """Whether calling `handler` gives an awaitable at once, without doing any work."""
    return inspect.iscoroutinefunction(_call_of(handler))


def _call_of(handler: Handler) -> Handler:
    """What holds the hints of a handler that is no function: its `__call__`, or a partial's own."""
    while isinstance(handler, functools.partial):
        handler = handler.func

    if inspect.isroutine(handler) or inspect.isclass(handler):
        return handler

    return type(handler).__call__


def _is_context(parameter: inspect.Parameter, hints: dict[str, Any]) -> bool:
    return parameter.name == "ctx" or bool(_contexts(hints.get(parameter.name, MISSING)))


def _contexts(hint: Any) -> list[type]:
    """The kinds of context that a hint names: by itself, with metadata, or as one of several."""
    return [
        member
        for member in members(hint)
        if isinstance(member, type) and issubclass(member, (ReadonlyContext, InvocationContext))
    ]


def _check_context(parameter: inspect.Parameter, hint: Any, tool_name: str) -> None:
    """Raises ConfigError where the parameter cannot be, or does not expect, a ToolContext."""
    where = f'tool "{tool_name}": parameter "{parameter.name}"'
    if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
        raise ConfigError(f"{where} is for the call's context: make it a plain first parameter")

    named = _contexts(hint)
    if named and not any(issubclass(ToolContext, kind) for kind in named):
        raise ConfigError(
            f"{where} is annotated {named[0].__name__}, and a tool's function is given a "
            "ToolContext: annotate it so"
        )

    if not named and any(is_plain(member) for member in members(hint)):
        raise ConfigError(
            f"{where} is given the call's ToolContext, and its annotation is that of an argument: "
            "annotate it ToolContext, or give it another name"
        )


def _check_is_argument(parameter: inspect.Parameter, hint: Any, tool_name: str) -> None:
    if _contexts(hint):
        raise ConfigError(
            f'tool "{tool_name}": parameter "{parameter.name}" is for the call\'s context: '
            "make it the first parameter, there can be one"
        )


def _check_kind(parameter: inspect.Parameter, tool_name: str) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise ConfigError(
            f'tool "{tool_name}": parameter "{parameter}" takes anything; '
            "name the parameters, or take one dict"
        )

    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise ConfigError(f'tool "{tool_name}": parameter "{parameter.name}" has no usable name')
