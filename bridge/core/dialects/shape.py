"""Where a JSON Schema holds other schemas, and whether its keywords are what they have to be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

from bridge.errors import InvalidSchema

Schema: TypeAlias = dict[str, Any]

TYPES: Final = ("object", "array", "string", "number", "integer", "boolean", "null")

ONE: Final = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""Keywords that hold one schema; `items` held a list of them before draft 2020-12."""

MANY: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords that hold a list of schemas."""

NAMED: Final = frozenset({"dependentSchemas", "patternProperties", "properties"})
"""Keywords that hold schemas by name."""

SHELVES: Final = frozenset({"$defs", "definitions"})
"""Keywords that hold schemas by name for references only."""

ANNOTATIONS: Final = frozenset(
    {"default", "deprecated", "description", "examples", "readOnly", "title", "writeOnly"}
)
"""Keywords that say something to a reader and forbid nothing."""


def refused(path: str, problem: str) -> InvalidSchema:
    """The error for something wrong at `path`, a JSON pointer into the schema."""
    shown = f'"{path[:200]}"' if path else "the root"
    return InvalidSchema(f"at {shown}: {problem}")


def step(path: str, *names: str | int) -> str:
    """The JSON pointer that goes on from `path` (RFC 6901)."""
    for name in names:
        path += "/" + str(name).replace("~", "~0").replace("/", "~1")

    return path


def children(node: Schema, *, shelves: bool = False) -> Iterator[tuple[str, Any]]:
    """Every schema right inside of this one, with its path from here; not what is only shelved."""
    for key, value in node.items():
        if key in MANY or (key == "items" and isinstance(value, list)):
            inner = enumerate(value) if isinstance(value, list) else ()
            yield from ((step("", key, index), child) for index, child in inner)
        elif key in ONE:
            yield step("", key), value
        elif key in NAMED or (shelves and key in SHELVES) or key == "dependencies":
            named = value.items() if isinstance(value, dict) else ()
            for name, child in named:
                if key != "dependencies" or not isinstance(child, list):
                    yield step("", key, name), child


def mapped(node: Schema, make: Callable[[Any, str], Any], path: str) -> Schema:
    """The same schema with `make(child, its path)` in place of every schema right inside."""
    made: Schema = {}
    for key, value in node.items():
        here = step(path, key)
        if key in MANY or (key == "items" and isinstance(value, list)):
            made[key] = [make(child, step(here, i)) for i, child in enumerate(value)]
        elif key in ONE:
            made[key] = make(value, here)
        elif key in NAMED:
            made[key] = {name: make(child, step(here, name)) for name, child in value.items()}
        elif key == "dependencies":
            made[key] = {
                name: child if isinstance(child, list) else make(child, step(here, name))
                for name, child in value.items()
            }
        else:
            made[key] = value

    return made


def check(node: Any, path: str) -> None:
    """Look at the keywords of this one schema; not at the schemas inside of it.

    Raises:
        InvalidSchema: It is no schema, or a keyword has a value that it cannot have.
    """
    if isinstance(node, bool):
        return

    if not isinstance(node, dict):
        raise refused(path, f"a schema is an object or a boolean, not {_kind(node)}")

    for key, value in node.items():
        expected = _EXPECTED.get(key)
        if expected is not None and not _IS[expected](value):
            raise refused(path, f'"{key}" has to be {expected}')


def picked(node: Schema, keys: Iterable[str]) -> Schema:
    """These keywords of a schema, as far as it has them, in this order."""
    return {key: node[key] for key in keys if key in node}


def type_of(value: Any) -> str:
    """The type that JSON Schema gives to a JSON value."""
    if value is None:
        return "null"

    for kind, python in (("boolean", bool), ("string", str), ("object", dict), ("array", list)):
        if isinstance(value, python):
            return kind

    whole = isinstance(value, int) or float(value).is_integer()
    return "integer" if whole else "number"


def _kind(value: Any) -> str:
    return "null" if value is None else f"a JSON {type_of(value)}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_types(value: Any) -> bool:
    if isinstance(value, str):
        return value in TYPES

    return _is_names(value) and bool(value) and all(one in TYPES for one in value)


_IS: Final[dict[str, Callable[[Any], bool]]] = {
    "a text": lambda value: isinstance(value, str),
    "true or false": lambda value: isinstance(value, bool),
    "a number": _is_number,
    "a number, true or false": lambda value: isinstance(value, int | float),
    "a number above 0": lambda value: _is_number(value) and value > 0,
    "a whole number from 0 on": _is_count,
    "a list of names": _is_names,
    "an object": lambda value: isinstance(value, dict),
    "a list with a value or more": lambda value: isinstance(value, list) and bool(value),
    "a type of JSON, or a list of them": _is_types,
}

_EXPECTED: Final = {
    "type": "a type of JSON, or a list of them",
    "required": "a list of names",
    **dict.fromkeys((*MANY, "enum"), "a list with a value or more"),
    **dict.fromkeys(
        (*NAMED, *SHELVES, "dependencies", "dependentRequired"),
        "an object",
    ),
    **dict.fromkeys(
        (
            "maxContains",
            "maxItems",
            "maxLength",
            "maxProperties",
            "minContains",
            "minItems",
            "minLength",
            "minProperties",
        ),
        "a whole number from 0 on",
    ),
    **dict.fromkeys(("maximum", "minimum"), "a number"),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum"), "a number, true or false"),
    "multipleOf": "a number above 0",
    **dict.fromkeys(
        ("$anchor", "$dynamicRef", "$id", "$ref", "$schema", "description", "format", "pattern"),
        "a text",
    ),
    "title": "a text",
    **dict.fromkeys(
        ("deprecated", "nullable", "readOnly", "uniqueItems", "writeOnly"), "true or false"
    ),
}
