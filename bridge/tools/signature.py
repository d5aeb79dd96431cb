"""How a Python function wants to be called, as far as a tool needs to know."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from bridge.core.context import ToolContext
from bridge.errors import ConfigError

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

    Raises:
        ConfigError: It cannot be read, is a generator, or takes what no JSON object can name.
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

    takes_context = bool(parameters) and _is_context(parameters[0], hints)
    taken = parameters[1:] if takes_context else parameters
    for parameter in taken:
        _check_kind(parameter, tool_name)

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
    return hints.get(parameter.name) is ToolContext or parameter.name == "ctx"


def _check_kind(parameter: inspect.Parameter, tool_name: str) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise ConfigError(
            f'tool "{tool_name}": parameter "{parameter}" takes anything; '
            "name the parameters, or take one dict"
        )

    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise ConfigError(f'tool "{tool_name}": parameter "{parameter.name}" has no usable name')
