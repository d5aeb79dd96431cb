"""The headers that repeat a modern request's routing facts (MCP 2026-07-28, transports).

Besides method and name, a tool may ask that some of its arguments ride in headers of their own, by
`x-mcp-header` in its input schema. A schema that asks for it wrongly makes the tool unusable.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from bridge.core.content import Args
from bridge.core.dialects import shape

Path: TypeAlias = tuple[str, ...]

NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
ANNOTATION = "x-mcp-header"
PREFIX = "Mcp-Param-"
MIRRORED_TYPES = {"string", "integer", "boolean"}
SHORT_NAME = 128
KNOWN_NAMES = 1024
SAFE = re.compile(r"[\x20-\x7e]*")
WRAPPED = re.compile(r"=\?base64\?.*\?=", re.DOTALL)
TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110 §5.6.2

# The keywords of JSON Schema 2020-12 whose values are schemas, lists of them, or maps of them;
# `properties` alone leads to where an annotation may stand.
ONE = shape.ONE - {"additionalItems"}
MANY = shape.MANY
NAMED = (shape.NAMED - {"properties"}) | shape.SHELVES


def routing_headers(method: str, params: Mapping[str, Any]) -> dict[str, str]:
    """`Mcp-Method`, and `Mcp-Name` for the methods that name something."""
    if (key := NAMED_BY.get(method)) is None:
        return {"Mcp-Method": method}

    name = str(params.get(key, ""))
    value = _short_value(name) if len(name) <= SHORT_NAME else header_value(name)
    return {"Mcp-Method": method, "Mcp-Name": value}


def header_value(text: str) -> str:
    """`text` itself where a header can carry it unharmed, else wrapped in base64."""
    if SAFE.fullmatch(text) and text == text.strip() and not WRAPPED.fullmatch(text):
        return text

    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


_short_value = lru_cache(maxsize=KNOWN_NAMES)(header_value)  # the same tools are called again


def mirrored(schema: Any) -> dict[Path, str]:
    """Where in the arguments a header's value is found, and the header's name.

    Raises:
        ValueError: An annotation is not where or what it may be; the text says which.
    """
    found: dict[Path, str] = {}
    seen: set[str] = set()
    for path, node in _schemas(schema):
        if ANNOTATION not in node:
            continue

        if not path:
            raise ValueError(f"{ANNOTATION} stands where no plain property is")

        name, where = node[ANNOTATION], ".".join(path)
        if not isinstance(name, str) or not TOKEN.fullmatch(name):
            raise ValueError(f"{ANNOTATION} of {where!r} is not the name of a header")

        kind = node.get("type")
        if not isinstance(kind, str) or kind not in MIRRORED_TYPES:
            raise ValueError(f"{ANNOTATION} of {where!r} is on no string, integer or boolean")

        if name.lower() in seen:
            raise ValueError(f"{ANNOTATION} {name!r} stands twice")

        seen.add(name.lower())
        found[path] = PREFIX + name

    return found


def mirror(paths: Mapping[Path, str], args: Args) -> dict[str, str]:
    """The headers for these arguments; one that is absent or null has none."""
    headers: dict[str, str] = {}
    for path, name in paths.items():
        value: Any = args
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None

        if isinstance(value, bool):
            headers[name] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            headers[name] = header_value(str(value))

    return headers


def _schemas(root: Any) -> Iterator[tuple[Path | None, dict[str, Any]]]:
    """Every schema in a schema, with the chain of plain properties that leads to it, or None."""
    waiting: list[tuple[Path | None, Any]] = [((), root)]
    while waiting:
        path, node = waiting.pop()
        if not isinstance(node, dict):
            continue

        yield path, node
        for key, value in node.items():
            waiting.extend(_below(path, key, value))


def _below(path: Path | None, key: str, value: Any) -> Iterator[tuple[Path | None, Any]]:
    if key == "properties" and isinstance(value, dict):
        for name, schema in value.items():
            yield None if path is None else (*path, name), schema
    elif key in ONE:
        yield None, value
    elif key in MANY and isinstance(value, list):
        yield from ((None, schema) for schema in value)
    elif key in NAMED and isinstance(value, dict):
        yield from ((None, schema) for schema in value.values())
