"""Several schemas made one: where both hold (`allOf`), where either does, and at the root."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from bridge.core.dialects.shape import ANNOTATIONS, Schema, refused, type_of
from bridge.core.wire import dumps

UNIONS: Final = ("anyOf", "oneOf")
_NOT_AT_THE_ROOT: Final = ("const", "else", "enum", "if", "not", "nullable", "then")


class Impossible(Exception):
    """No value fits both schemas."""


def is_open(node: Any) -> bool:
    """Whether the schema forbids nothing."""
    return node is True or (isinstance(node, dict) and node.keys() <= ANNOTATIONS)


def types_of(node: Schema) -> list[str]:
    """The types a schema names itself; none where it names none."""
    kind = node.get("type", [])
    return [kind] if isinstance(kind, str) else list(kind)


def both(one: Any, other: Any) -> Any:
    """One schema for what fits both; False where nothing does.

    Of two keywords that cannot be one (two `pattern`s, two `anyOf`s), the first is kept: then the
    schema takes more than both do.
    """
    if one is False or other is False:
        return False

    if one is True or other is True:
        return other if one is True else one

    made = dict(one)
    try:
        for key, value in other.items():
            made[key] = (
                _JOIN[key](made[key], value)
                if key in made and key in _JOIN
                else (made.get(key, value))
            )
    except Impossible:
        return False

    return made


def folded(node: Schema) -> Any:
    """The same schema with its `allOf` folded in, all the way down; False if nothing fits it."""
    made: Any = {key: value for key, value in node.items() if key != "allOf"}
    for part in node.get("allOf", ()):
        made = both(made, folded(part) if isinstance(part, dict) else part)

    return made


def rooted(schema: Schema) -> Schema:
    """The schema of an object whose root has a type and properties, and no alternatives.

    All providers want the arguments of a function so. Alternatives at the root become one object
    with the properties of all of them, of which those are required that each requires. What only
    the whole object could break (`not`, `if`, `enum`, …) is left out: the root takes more than it
    did, and the tool itself is the judge.

    Raises:
        InvalidSchema: No object fits the schema.
    """
    made = _rooted(schema)
    if made is None:
        raise refused("", "arguments are an object, and the schema takes none")

    return {"type": "object", **made, "properties": made.get("properties", {})}


def _rooted(schema: Any) -> Schema | None:
    node = folded(schema) if isinstance(schema, dict) else schema
    if not isinstance(node, dict):
        return {} if node else None

    if not _takes_objects(node):
        return None

    made = {key: node[key] for key in node if key not in (*_NOT_AT_THE_ROOT, *UNIONS, "type")}
    made["type"] = "object"
    for key in UNIONS:
        if key not in node:
            continue

        branches = [found for one in node[key] if (found := _rooted(one)) is not None]
        if not branches:
            return None

        made = both(made, _either(branches))
        if made is False:
            return None

        made = _told_what_is_needed(made, branches)

    return made


def _takes_objects(node: Schema) -> bool:
    values = node.get("enum", [node["const"]] if "const" in node else None)
    if values is not None and not any(type_of(value) == "object" for value in values):
        return False

    return "object" in (types_of(node) or ("object",))


def _either(branches: Sequence[Schema]) -> Schema:
    """One object for what fits any of the branches, and some more."""
    names = dict.fromkeys(name for branch in branches for name in branch.get("properties", {}))
    made: Schema = {
        "properties": {
            name: any_of(
                branch["properties"][name]
                for branch in branches
                if name in branch.get("properties", {})
            )
            for name in names
        }
    }
    required = [
        name
        for name in dict.fromkeys(branches[0].get("required", ()))
        if all(name in branch.get("required", ()) for branch in branches)
    ]
    if required:
        made["required"] = required

    if all(branch.get("additionalProperties") is False for branch in branches):
        made["additionalProperties"] = False

    return made


def any_of(schemas: Iterable[Any]) -> Any:
    """One schema for what fits any of these; each stands in it once."""
    once = list({dumps(schema): schema for schema in schemas}.values())
    return once[0] if len(once) == 1 else {"anyOf": once}


def _told_what_is_needed(made: Schema, branches: Sequence[Schema]) -> Schema:
    """The object with a sentence on what each of its alternatives requires, if all do."""
    known = made.get("required", ())
    needs = [[name for name in one.get("required", ()) if name not in known] for one in branches]
    if len(needs) < 2 or not all(needs):
        return made

    choices = ", or ".join(" and ".join(f'"{name}"' for name in names) for names in needs)
    return noted(made, f"Needed: {choices}.")


def noted(node: Schema, note: str) -> Schema:
    """The same schema with a sentence more in its description."""
    told = node.get("description", "")
    return {**node, "description": f"{told} {note}" if told else note}


def _common_types(one: str | list[str], other: str | list[str]) -> str | list[str]:
    first, second = types_of({"type": one}), types_of({"type": other})
    common = [kind for kind in first if kind in second]
    for few, many in ((first, second), (second, first)):
        if "integer" in few and "number" in many and "integer" not in common:
            common.append("integer")

    if not common:
        raise Impossible

    return common[0] if len(common) == 1 else common


def _common_values(one: list[Any], other: list[Any]) -> list[Any]:
    known = {dumps(value) for value in other}
    common = [value for value in one if dumps(value) in known]
    if not common:
        raise Impossible

    return common


def _same(one: Any, other: Any) -> Any:
    if dumps(one) != dumps(other):
        raise Impossible

    return one


def _by_name(one: Schema, other: Schema) -> Schema:
    return {
        **one,
        **{name: both(one[name], node) if name in one else node for name, node in other.items()},
    }


def _names(one: list[str], other: list[str]) -> list[str]:
    return list(dict.fromkeys((*one, *other)))


_JOIN: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "type": _common_types,
    "enum": _common_values,
    "const": _same,
    "required": _names,
    "allOf": lambda one, other: [*one, *other],
    "uniqueItems": lambda one, other: one or other,
    "nullable": lambda one, other: one and other,
    **dict.fromkeys(("properties", "patternProperties", "dependentSchemas"), _by_name),
    **dict.fromkeys(("additionalProperties", "items", "contains", "propertyNames"), both),
    **dict.fromkeys(
        ("exclusiveMinimum", "minContains", "minItems", "minLength", "minProperties", "minimum"),
        max,
    ),
    **dict.fromkeys(
        ("exclusiveMaximum", "maxContains", "maxItems", "maxLength", "maxProperties", "maximum"),
        min,
    ),
}
