"""JSON Schema as Gemini takes it in `parameters`: its own part of OpenAPI 3.0.

The rules are those of the message `Schema` in the "Gemini API reference" and of
`FunctionDeclaration` in the reference of Vertex AI, and what the APIs answer: one type a schema
and `nullable` beside it; values in enumerations are texts ("enum: only allowed for STRING type");
of the formats of texts only `enum` and `date-time`; an array says what its items are ("items:
missing field"); no schema has anything beside `anyOf` ("it must be the only field set"). There is
no word for free property names. What is lost so is told in the description.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from bridge.core.dialects.merge import noted, rooted
from bridge.core.dialects.narrow import Choice, Narrow, bounds_of, described, items_of, one_of
from bridge.core.dialects.shape import Schema, picked, step

_FORMATS: Final = {
    "string": {"date-time"},
    "number": {"double", "float"},
    "integer": {"int32", "int64"},
}
_KEPT: Final = (
    "description",
    "default",
    "type",
    "maxLength",
    "minLength",
    "maxProperties",
    "minProperties",
    "maximum",
    "minimum",
)
_ANY_VALUE: Final[Schema] = {
    "anyOf": [{"type": kind} for kind in ("string", "number", "boolean", "object")]
}


def to_gemini(schema: Schema) -> Schema:
    """The schema as Gemini takes it; it is written out already."""
    root = rooted(schema)
    return _Gemini().alternative(root, "")


class _Gemini(Narrow):
    def alternative(self, node: Schema, path: str) -> Schema:
        kind = node.get("type")
        if kind is None:
            return {**_ANY_VALUE}

        made = picked(node, _KEPT)
        if kind == "object":
            return {**made, **self._object(node, path)}

        if kind == "array":
            return {**made, "items": self._items(node, path), **bounds_of(node)}

        return _scalar(node, made)

    def _object(self, node: Schema, path: str) -> Schema:
        named = {name: one for name, one in node.get("properties", {}).items() if one is not False}
        made: Schema = {
            "properties": {
                name: self.schema(one, step(path, "properties", name))
                for name, one in named.items()
            }
        }
        if not named and node.get("additionalProperties", False) is not False:
            made = noted(made | picked(node, ("description",)), "Its property names are free.")

        required = [name for name in node.get("required", ()) if name in named]
        return {**made, "required": required} if required else made

    def _items(self, node: Schema, path: str) -> Schema:
        items = items_of(node)
        return self.schema({} if items is None or items is False else items, step(path, "items"))

    def together(
        self, choice: Choice, written: Sequence[Schema], path: str, *, or_null: bool
    ) -> Schema:
        if not written:
            return {**choice.told, "type": "null"}

        branches = [branch for one in written for branch in one.get("anyOf", (one,))]
        if choice.is_nullable or or_null:
            branches = [{**branch, "nullable": True} for branch in branches]

        first, *others = branches
        if not others:
            return described(choice.told, first)

        return {"anyOf": [described(picked(choice.told, ("description",)), first), *others]}


def _scalar(node: Schema, made: Schema) -> Schema:
    kind, form, values = node["type"], node.get("format"), node.get("enum")
    if form in _FORMATS.get(kind, ()):
        made["format"] = form
    elif form is not None:
        made = noted(made, f"Format: {form}.")

    if values is not None and kind == "string" and all(values):
        made["enum"] = values
    elif values is not None:
        made = noted(made, one_of(values))

    return _bounded({**made, **picked(node, ("pattern",))}, node)


def _bounded(made: Schema, node: Schema) -> Schema:
    """With bounds that are part of what they bound: the next integer, or the number itself."""
    is_whole = node["type"] == "integer"
    if "exclusiveMinimum" in node:
        limit = node["exclusiveMinimum"]
        made.setdefault("minimum", math.floor(limit) + 1 if is_whole else limit)

    if "exclusiveMaximum" in node:
        limit = node["exclusiveMaximum"]
        made.setdefault("maximum", math.ceil(limit) - 1 if is_whole else limit)

    return noted(made, f"A multiple of {node['multipleOf']}.") if "multipleOf" in node else made
