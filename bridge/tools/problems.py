"""What does not fit a schema, in words: short, all of it, and never the value itself."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jsonschema.exceptions import ValidationError as SchemaValidationError
from pydantic import ValidationError
from pydantic_core import ErrorDetails

MOST_SHOWN = 10
_LONGEST_DETAIL = 120

_EXPECTED_BY_PYDANTIC = {
    "string_type": "a string",
    "string_sub_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "a boolean",
    "list_type": "an array",
    "tuple_type": "an array",
    "set_type": "an array",
    "frozen_set_type": "an array",
    "dict_type": "an object",
    "mapping_type": "an object",
    "model_type": "an object",
    "dataclass_type": "an object",
    "none_required": "null",
}
_EXTRA = {"extra_forbidden", "unexpected_keyword_argument"}
_MISSING = {"missing", "missing_argument", "missing_keyword_only_argument"}

_EXPECTED_BY_SCHEMA = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
_BOUND_BY_SCHEMA = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} properties",
    "maxProperties": "at most {} properties",
    "multipleOf": "a multiple of {}",
    "pattern": "a text that matches {}",
    "format": "a text in the format {}",
    "const": "exactly {}",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong at one place: something else was expected there, or `text` says it."""

    path: str
    text: str = ""
    expected: str = ""
    got: str = ""


def kind_of(value: Any) -> str:
    """What a JSON value is, with its article."""
    if value is None:
        return "null"

    if isinstance(value, bool):
        return "a boolean"

    if isinstance(value, int | float):
        return "a number"

    if isinstance(value, str):
        return "a string"

    return "an object" if isinstance(value, Mapping) else "an array"


def describe(problems: Iterable[Problem]) -> str:
    """All problems in one line, each place once; what a place might also be is joined by "or"."""
    places: dict[tuple[str, str, str], list[str]] = {}
    for problem in problems:
        expected = places.setdefault((problem.path, problem.text, problem.got), [])
        if problem.expected and problem.expected not in expected:
            expected.append(problem.expected)

    shown = [
        f"{path}: {text or f'expected {_alternatives(expected)}, got {got}'}"
        for (path, text, got), expected in places.items()
    ]
    if len(shown) > MOST_SHOWN:
        shown = [*shown[:MOST_SHOWN], f"and {len(shown) - MOST_SHOWN} more"]

    return "; ".join(shown)


def from_pydantic(error: ValidationError, value: Any, known: Sequence[str]) -> list[Problem]:
    """What pydantic found wrong with `value`; `known` are the names of its properties."""
    return [
        _from_detail(detail, value, known)
        for detail in error.errors(include_url=False, include_context=True)
    ]


def from_schema(errors: Iterable[SchemaValidationError]) -> list[Problem]:
    """What a JSON Schema forbids, from the errors of its validator."""
    return [problem for error in errors for problem in _from_schema_error(error)]


def _from_detail(detail: ErrorDetails, value: Any, known: Sequence[str]) -> Problem:
    kind, loc = detail["type"], detail["loc"]
    if kind in _EXTRA:
        name = str(loc[-1])
        near = known if len(loc) == 1 else ()
        return Problem(_place(_found_path(loc, value)), _unknown(name, near))

    if kind in _MISSING:
        return Problem(_place([*_found_path(loc[:-1], value), loc[-1]]), "missing")

    place = _place(_found_path(loc, value))
    if kind in _EXPECTED_BY_PYDANTIC:
        return Problem(place, expected=_EXPECTED_BY_PYDANTIC[kind], got=kind_of(detail["input"]))

    if kind in ("literal_error", "enum"):
        return Problem(place, f"expected {detail['ctx']['expected']}")

    text = detail["msg"]
    for beginning in ("Input ", "Value error, ", "Assertion failed, "):
        text = text.removeprefix(beginning)

    return Problem(place, text)


def _found_path(loc: Sequence[str | int], value: Any) -> list[str | int]:
    """The parts of `loc` that lead into `value`; pydantic also names the branch of a union."""
    path: list[str | int] = []
    for step in loc:
        inside = isinstance(value, dict) and step in value
        if inside or (isinstance(value, list) and isinstance(step, int) and step < len(value)):
            path.append(step)
            value = value[step]

    return path


def _from_schema_error(error: SchemaValidationError) -> Iterable[Problem]:
    speak = _BY_KEYWORD.get(str(error.validator), _unmet)
    return speak(error)


def _missing(error: SchemaValidationError) -> Iterator[Problem]:
    """One error a missing property, and only its message says which."""
    names: Any = error.validator_value
    for name in names:
        if error.message.startswith(repr(name)):
            yield Problem(_place([*error.absolute_path, name]), "missing")


def _not_allowed(error: SchemaValidationError) -> Iterator[Problem]:
    """One error for all properties that are too many, and its message quotes them."""
    known = list(error.schema.get("properties", {})) if isinstance(error.schema, dict) else []
    instance: Any = error.instance
    for name in instance:
        if name not in known and repr(name) in error.message:
            yield Problem(_place([*error.absolute_path, name]), _unknown(name, known))


def _wrong_type(error: SchemaValidationError) -> Iterator[Problem]:
    wanted: Any = error.validator_value
    for kind in [wanted] if isinstance(wanted, str) else wanted:
        expected = _EXPECTED_BY_SCHEMA.get(kind, str(kind))
        yield Problem(_place(error.absolute_path), expected=expected, got=kind_of(error.instance))


def _from_branches(error: SchemaValidationError) -> Iterator[Problem]:
    """Why no branch fits: the kinds expected, if that is all, else that none does."""
    context = error.context or ()
    here = list(error.absolute_path)
    only_kinds = all(
        cause.validator == "type" and list(cause.absolute_path) == here for cause in context
    )
    if context and only_kinds:
        yield from from_schema(context)
    else:
        yield Problem(_place(here), "fits none of the allowed forms")


def _unmet(error: SchemaValidationError) -> Iterator[Problem]:
    """Any other keyword, with what it wants."""
    keyword = str(error.validator)
    wanted: Any = error.validator_value
    text = f'does not satisfy "{keyword}"'
    if keyword == "enum":
        text = f"expected {_alternatives([_shown(option) for option in wanted])}"
    elif keyword in _BOUND_BY_SCHEMA:
        text = f"expected {_BOUND_BY_SCHEMA[keyword].format(_shown(wanted))}"

    yield Problem(_place(error.absolute_path), text)


_BY_KEYWORD: dict[str, Callable[[SchemaValidationError], Iterable[Problem]]] = {
    "required": _missing,
    "additionalProperties": _not_allowed,
    "type": _wrong_type,
    "anyOf": _from_branches,
    "oneOf": _from_branches,
}


def _unknown(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name[:_LONGEST_DETAIL], known, n=1)
    return f'unknown; did you mean "{near[0]}"?' if near else "unknown"


def _alternatives(options: Sequence[str]) -> str:
    *first, last = options
    return f"{', '.join(first)} or {last}" if first else last


def _shown(value: Any) -> str:
    return _cut(json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_DETAIL else text[:_LONGEST_DETAIL] + "…"


def _place(path: Iterable[str | int]) -> str:
    """`"a.b[0]"`; the whole value where the path is empty."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)

    return f'"{_cut(text)}"' if text else "the whole"
