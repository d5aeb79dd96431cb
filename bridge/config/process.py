"""What a child process may be given: an argument list and an environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, PlainSerializer
from pydantic_core import PydanticCustomError

from bridge.config.fields import Text, bad, fits, number_as_text
from bridge.config.secret import SecretMapping, hidden

ARGV = "argv"
"""The error of a command that is one text; whoever explains it can show the list form."""

_NUL = "it holds a NUL character, which no program can be given. Remove it."


def _is_argv(value: Any) -> Any:
    if isinstance(value, str):
        raise PydanticCustomError(ARGV, "the command is one text; no shell splits it.")

    if isinstance(value, list | tuple) and (not value or value[0] == ""):
        raise bad("it names no program. Write a list: [program, argument, argument].")

    return value


def _is_directory(path: Path) -> Path:
    if "\0" in str(path):
        raise bad(_NUL)

    return path


def _not_empty(value: Any) -> Any:
    if value == "":
        raise bad('it is empty. Write a directory, "." for the one this file is in.')

    return value


_ProcessText = Annotated[
    Text, BeforeValidator(number_as_text), fits(re.compile(r"[^\0]*"), bad, _NUL)
]
_EnvName = Annotated[
    Text,
    fits(
        re.compile(r"[^=\s\0]+"),
        bad,
        'this is no name for a variable. Write "NAME: value", without "=" or spaces in the name.',
    ),
]

Argv = Annotated[tuple[_ProcessText, ...], BeforeValidator(_is_argv)]
Env = Annotated[
    Mapping[_EnvName, _ProcessText], AfterValidator(SecretMapping), PlainSerializer(hidden)
]
Directory = Annotated[Path, BeforeValidator(_not_empty), AfterValidator(_is_directory)]
