"""A JSON Schema with every reference written out, in the words of draft 2020-12."""

from __future__ import annotations

import re
from typing import Any, Final

from bridge.core.dialects.references import MOST_NESTED, References
from bridge.core.dialects.shape import (
    ANNOTATIONS,
    SHELVES,
    Schema,
    check,
    children,
    mapped,
    picked,
    refused,
)
from bridge.core.wire import dumps
from bridge.errors import InvalidSchema

MOST_SCHEMAS: Final = 5_000
"""How many schemas one may be once it is written out."""

RECURSION: Final = ((3, 500), (2, 500), (1, MOST_SCHEMAS))
"""How many references that lead back to themselves are followed inside each other, as long as no
more schemas than this come of it; the next such reference is cut."""

_DIALECT: Final = re.compile(
    r"https?://json-schema\.org/(draft/20\d\d-\d\d/|draft-0[4-7]/)?(hyper-)?schema#?"
)
_NOT_WRITTEN: Final = SHELVES | {
    "$anchor",
    "$comment",
    "$dynamicAnchor",
    "$id",
    "$recursiveAnchor",
    "$ref",
    "$schema",
    "$vocabulary",
}
_FORBID_MORE: Final = (
    ("not", ("not",)),
    ("if", ("if", "then", "else")),
    ("contains", ("maxContains",)),
)
"""Keywords that forbid more where another takes more, by that other."""

_TOGETHER: Final = (
    {"additionalProperties", "patternProperties", "properties"},
    {"additionalItems", "items", "prefixItems"},
    {"contains", "maxContains", "minContains"},
    {"else", "if", "then"},
)
"""Keywords that mean something else beside each other than in two schemas."""


class Loose(dict[str, Any]):
    """A schema that takes more than the one that was written, because something in it was cut."""


class Cut(Loose):
    """An open schema where a recursive one was cut: it says its type, and nothing of its inside."""


class TooLarge(InvalidSchema):
    """More schemas than may be."""


def inlined(schema: Any) -> Schema:
    """`schema` without references, definitions and names for them, as a new value.

    It takes the same values as before, but where references lead back to themselves: these are
    followed as deep as RECURSION says, and end in an open schema. Keywords of older drafts become
    those of 2020-12. Up to draft 7, what stands beside a `$ref` is read only where it forbids
    nothing; from then on both hold.

    Raises:
        InvalidSchema: It is no JSON Schema, a reference leads nowhere or out of it, it has a
            reference that depends on who asks (`$dynamicRef`), or it is too large.
    """
    if not isinstance(schema, dict):
        raise InvalidSchema("the schema of arguments is an object")

    try:
        dumps(schema)
    except ValueError as exc:
        raise InvalidSchema(f"the schema is not JSON: {exc}") from exc

    check(schema, "")
    dialect = schema.get("$schema", "")
    if dialect and not _DIALECT.fullmatch(dialect):
        raise InvalidSchema(f'the dialect "{dialect[:200]}" is not known here')

    references = References(schema)
    for deepest, most in RECURSION if references.looping else RECURSION[-1:]:
        try:
            return _Writer(references, deepest, most, "draft-0" in dialect).root(schema)
        except TooLarge as exc:
            problem = exc

    raise problem


class _Writer:
    """Writes one schema out, up to a depth of recursion and a number of schemas."""

    def __init__(self, references: References, deepest: int, most: int, is_old: bool) -> None:
        self._references = references
        self._deepest = deepest
        self._left = most
        self._is_old = is_old

    def root(self, schema: Schema) -> Schema:
        made = self._target(schema, "", "", 0, 0)
        if not isinstance(made, dict):
            raise InvalidSchema("the schema of arguments is an object")

        return made

    def _target(self, node: Any, base: str, path: str, loops: int, depth: int) -> Any:
        """The schema that a reference leads to; an open one where it was followed too often."""
        if id(node) in self._references.looping:
            if loops == self._deepest:
                return Cut(picked(node, ("description", "title", "type")))

            loops += 1

        return self._written(node, base, path, loops, depth)

    def _written(self, node: Any, base: str, path: str, loops: int, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise TooLarge(f"written out, it is more than {MOST_SCHEMAS} schemas")

        if depth > MOST_NESTED:
            raise refused(path, f"more than {MOST_NESTED} schemas stand inside each other")

        check(node, path)
        if isinstance(node, bool):
            return node

        for key in ("$dynamicRef", "$recursiveRef"):
            if key in node:
                raise refused(path, f'"{key}" cannot be written out; use "$ref"')

        base = self._references.base(node, base)
        inner = {key: value for key, value in node.items() if key not in _NOT_WRITTEN}
        if self._is_old and "$ref" in node:
            inner = {key: value for key, value in inner.items() if key in ANNOTATIONS}

        made = upgraded(
            mapped(inner, lambda child, at: self._written(child, base, at, loops, depth + 1), path)
        )
        if "$ref" in node:
            found, there = self._references.lookup(node["$ref"], base, path)
            made = joined(self._target(found, there, path, loops, depth + 1), made)

        return softened(made) if self._references.looping else made


def joined(target: Any, beside: Schema) -> Any:
    """What both ask for: the schema a reference leads to, and what stands beside the reference."""
    if not beside or target is False:
        return target

    if target is True:
        return beside

    if _can_be_one(target, beside):
        return type(target)({**target, **beside})

    return {**beside, "allOf": [target, *beside.get("allOf", ())]}


def _can_be_one(target: Schema, beside: Schema) -> bool:
    """Whether the keywords of both, in one schema, forbid what they forbid in two."""
    both = target.keys() | beside.keys()
    if (target.keys() & beside.keys()) - ANNOTATIONS or "unevaluatedProperties" in both:
        return False

    split = any(group & target.keys() and group & beside.keys() for group in _TOGETHER)
    return not split and "unevaluatedItems" not in both


def upgraded(node: Schema) -> Schema:
    """The same schema with the keywords that draft 2020-12 has instead of older ones."""
    if not isinstance(node.get("examples", []), list):  # as OpenAPI has them
        del node["examples"]

    rest = node.pop("additionalItems", True)
    if isinstance(node.get("items"), list):
        listed = node.pop("items")
        node |= {"prefixItems": listed, "items": rest} if listed else {"items": rest}

    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(node.get(exclusive), bool) and node.pop(exclusive) and bound in node:
            node[exclusive] = node.pop(bound)

    for name, needed in node.pop("dependencies", {}).items():
        key = "dependentRequired" if isinstance(needed, list) else "dependentSchemas"
        node[key] = {**node.get(key, {}), name: needed}

    return node


def softened(node: Any) -> Any:
    """The same schema without what would forbid more because something inside of it was cut."""
    if not isinstance(node, dict):
        return node

    wrong = {name for key, names in _FORBID_MORE if _is_loose(node.get(key)) for name in names}
    made = {key: value for key, value in node.items() if key not in wrong}
    if any(_is_loose(branch) for branch in node.get("oneOf", ())):
        made["allOf"] = [*made.get("allOf", ()), {"anyOf": made.pop("oneOf")}]

    if _is_loose(node):
        made = {key: value for key, value in made.items() if not key.startswith("unevaluated")}

    return node if made == node else Loose(made)


def _is_loose(node: Any) -> bool:
    if not isinstance(node, dict):
        return False

    return isinstance(node, Loose) or any(_is_loose(child) for _, child in children(node))
