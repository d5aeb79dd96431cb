"""Names as models and MCP clients may see them, and globs over names."""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Callable, Iterable
from functools import partial

from bridge.errors import ConfigError

LOCAL = "local"
"""The upstream that tools which run here name."""

LONGEST_NAME = 64
_LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ILLEGAL_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")
_DIGEST_LENGTH = 8


def is_legal(name: str) -> bool:
    """Whether every model API and MCP client takes `name` as it is."""
    return _LEGAL.fullmatch(name) is not None


def offered_name(prefix: str, own_name: str) -> str:
    """The name under which a tool is offered: prefix and own name, made legal where they are not.

    A legal name is unchanged. Any other has its illegal characters replaced by `_`, is cut, and
    ends in 8 hexadecimal digits of the SHA-256 of the full name, so that the same tool always
    gets the same name and two tools practically never share one.
    """
    full = prefix + own_name
    if is_legal(full):
        return full

    digest = hashlib.sha256(full.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    head = _ILLEGAL_CHARACTER.sub("_", full[: LONGEST_NAME - _DIGEST_LENGTH - 1])
    return f"{head}_{digest}"


def matcher(globs: Iterable[str]) -> Callable[[str], bool]:
    """Compile globs (`*`, `?`, `[…]`, case-sensitive) into one test of a name; none match nothing.

    Raises:
        ConfigError: A single string was given, which would be read as one glob a letter.
    """
    if isinstance(globs, str):
        raise ConfigError(f'globs are a list: write ["{globs}"], not "{globs}"')

    pattern = re.compile("|".join(map(fnmatch.translate, globs)) or r"(?!)")
    return partial(_matches, pattern)  # a lambda could not be pickled with its toolset


def _matches(pattern: re.Pattern[str], name: str) -> bool:
    return pattern.match(name) is not None
