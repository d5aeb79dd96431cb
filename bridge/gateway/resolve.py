"""From `module:function` in a YAML file to the function."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from bridge.core.tool import Tool, is_function_tool
from bridge.errors import ConfigError, ToolsetError
from bridge.tools.function import function_tool
from bridge.tools.gate import Provider, check_provider

_LONGEST_REASON = 300


def resolve_provider(reference: str, where: str) -> Provider:
    """The confirmation provider that `module:function` names: see `resolve`."""
    try:
        return named_provider(reference)
    except ConfigError as exc:
        raise ConfigError(f"{where}: {exc}") from exc.__cause__


def resolve(reference: str, where: str) -> Any:
    """Import what `module:function` names; the working directory is looked in first.

    `where` says in the error which key named it.

    Raises:
        ConfigError: No such module, no such function, or importing it failed.
    """
    try:
        return named(reference)
    except ConfigError as exc:
        raise ConfigError(f"{where}: {exc}") from exc.__cause__


def loaded(reference: str, key: str, extra: str) -> Any:
    """What a module of our own holds, which needs the packages of an extra.

    `key` says in the error which setting wants it.

    Raises:
        ConfigError: They are not installed.
    """
    try:
        return named(reference)
    except ConfigError as exc:
        if isinstance(exc.__cause__, ModuleNotFoundError):
            raise ConfigError(f'{key} needs more: pip install "mcp-agent-bridge[{extra}]"') from exc

        raise


def named_tool(reference: str) -> Tool:
    """The tool that is made of what `module:function` names.

    What is a tool where it is defined, by `@function_tool`, is that tool.

    Raises:
        ConfigError: It cannot be found, or no tool can be made of it.
    """
    found = named(reference)
    try:
        tool: Tool = found if is_function_tool(found) else function_tool(found)
    except (ConfigError, ToolsetError) as exc:
        raise ConfigError(f'no tool can be made of "{reference}": {_line(exc)}') from exc

    return tool


def named_provider(reference: str) -> Provider:
    """The confirmation provider that `module:function` names.

    Raises:
        ConfigError: It cannot be found, or not be called with a tool's name and arguments.
    """
    provider = named(reference)
    if not callable(provider):
        raise ConfigError(f'"{reference}" is a {type(provider).__name__}, no function')

    try:
        check_provider(provider)
    except TypeError as exc:
        raise ConfigError(
            f'"{reference}" decides about confirmation, and so takes a tool\'s name and '
            f"arguments: {exc}"
        ) from exc

    result: Provider = provider
    return result


def named(reference: str) -> Any:
    """What `module:function` names, imported; the working directory is looked in first.

    Raises:
        ConfigError: No such module, no such function, or importing it failed.
    """
    module_name, _, function_name = reference.partition(":")
    if not module_name or not function_name:
        raise ConfigError(f'"{reference}" is not of the form "module:function"')

    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)

    try:
        found: Any = importlib.import_module(module_name)
        for name in function_name.split("."):
            found = getattr(found, name, None)
    except (Exception, SystemExit) as exc:
        # A stranger's module runs here and may raise anything, or want to end the program.
        raise ConfigError(
            f'cannot import "{module_name}": {type(exc).__name__}: {_line(exc)}'
        ) from exc

    if found is None:
        raise ConfigError(f'module "{module_name}" has no function "{function_name}"')

    return found


def _line(exc: BaseException) -> str:
    """What an error says, on one line and no longer than a person reads."""
    return " ".join(str(exc).split())[:_LONGEST_REASON]
