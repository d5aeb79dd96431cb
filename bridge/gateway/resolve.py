"""From `module:function` in a YAML file to the function."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from bridge.errors import ConfigError
from bridge.tools.gate import Provider


def resolve_provider(reference: str, where: str) -> Provider:
    """The confirmation provider that `module:function` names: see `resolve`."""
    provider = resolve(reference, where)
    if not callable(provider):
        raise ConfigError(f'{where}: "{reference}" is a {type(provider).__name__}, no function')

    result: Provider = provider
    return result


def resolve(reference: str, where: str) -> Any:
    """Import what `module:function` names; the working directory is looked in first.

    `where` says in the error which key named it.

    Raises:
        ConfigError: No such module, no such function, or importing it failed.
    """
    module_name, _, function_name = reference.partition(":")
    if not module_name or not function_name:
        raise ConfigError(f'{where}: "{reference}" is not of the form "module:function"')

    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)

    try:
        found: Any = importlib.import_module(module_name)
    except Exception as exc:
        # A stranger's module runs here and may raise anything.
        raise ConfigError(
            f'{where}: cannot import "{module_name}": {type(exc).__name__}: {exc}'
        ) from exc

    for name in function_name.split("."):
        found = getattr(found, name, None)

    if found is None:
        raise ConfigError(f'{where}: module "{module_name}" has no function "{function_name}"')

    return found
