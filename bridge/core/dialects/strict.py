"""JSON Schema as OpenAI takes it with `strict`: what the model sends is sure to fit.

The rules are those of "Structured model outputs", section "Supported schemas", in OpenAI's API
guides: objects name all their properties, each is required and no others are allowed; one that may
be missing is null instead; of the keywords, those below; at most 10 levels of objects, 5,000
properties, 1,000 values in enumerations, and 120,000 characters of names and such values. So an
object whose property names are free, and a value of any type, cannot be said; then the schema is
refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from bridge.core.dialects.inline import Cut
from bridge.core.dialects.merge import is_open, noted, rooted
from bridge.core.dialects.narrow import Choice, Narrow, bounds_of, described, items_of
from bridge.core.dialects.shape import Schema, children, picked, refused, step
from bridge.core.wire import dumps
from bridge.errors import InvalidSchema

MOST_LEVELS: Final = 10
MOST_PROPERTIES: Final = 5_000
MOST_VALUES: Final = 1_000
MOST_CHARACTERS: Final = 120_000
MANY_VALUES: Final = 250
MOST_CHARACTERS_OF_MANY: Final = 15_000

_FORMATS: Final = frozenset(
    ("date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid")
)
_NUMBER: Final = ("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf")
_NOTHING: Final[Schema] = {"type": "null"}


class Endless(InvalidSchema):
    """The schema goes on inside itself, and nothing can stand for the rest."""


def to_strict(schema: Schema) -> Schema:
    """The schema as OpenAI takes it with `strict`; it is written out already.

    A property that may be missing is null instead: `without_nulls` takes such nulls out of a
    call's arguments, as the `arguments` of a declaration in this dialect do.

    Raises:
        InvalidSchema: It cannot be said in these words, or is more than OpenAI takes.
    """
    root = rooted(schema)
    made = _Strict().object({"additionalProperties": False, **root}, "")
    made = {**picked(root, ("description",)), **made}
    _check_limits(made)
    return made


class _Strict(Narrow):
    def alternative(self, node: Schema, path: str) -> Schema:
        kind = node.get("type")
        if kind is None:
            raise refused(path, "any value is allowed here, which strict cannot say")

        told = picked(node, ("description",))
        if kind == "object":
            return {**told, **self.object(node, path)}

        if kind == "array":
            return {**told, **self.array(node, path)}

        return {**told, **_scalar(node)}

    def object(self, node: Schema, path: str) -> Schema:
        """An object that names all its properties."""
        named = node.get("properties", {})
        if not named and node.get("additionalProperties") is not False:
            raise refused(path, "the names of its properties are free, which strict cannot say")

        required = node.get("required", ())
        unnamed = [name for name in required if name not in named]
        if unnamed:
            raise refused(path, f'"{unnamed[0]}" is required, and no property says what it is')

        made: Schema = {}
        for name, one in named.items():
            here = step(path, "properties", name)
            if name in required:
                made[name] = self.schema(one, here)
            elif one is not False:
                made[name] = self._optional(one, here)

        return {
            "type": "object",
            "properties": made,
            "required": list(made),
            "additionalProperties": False,
        }

    def _optional(self, node: Any, path: str) -> Schema:
        try:
            return self.schema(node, path, or_null=True)
        except Endless:  # it can be missing, so here it always is
            return dict(_NOTHING)

    def array(self, node: Schema, path: str) -> Schema:
        """An array that says what its items are."""
        items, bounds = items_of(node), bounds_of(node)
        if items is None or (is_open(items) and not isinstance(items, Cut)):
            raise refused(path, "its items may be any value, which strict cannot say")

        if items is False:
            return {"type": "array", "items": dict(_NOTHING), "maxItems": 0}

        try:
            return {"type": "array", "items": self.schema(items, step(path, "items")), **bounds}
        except Endless:  # it can be empty, so here it always is
            if bounds.get("minItems", 0):
                raise

            return {"type": "array", "items": dict(_NOTHING), "maxItems": 0}

    def choice(self, node: Any, path: str) -> Choice:
        """Take a schema apart; what goes on inside itself is no alternative here."""
        found = super().choice(node, path)
        finite = [one for one in found.alternatives if not isinstance(one, Cut)]
        if found.alternatives and not finite and not found.is_nullable:
            raise Endless(str(refused(path, "it goes on inside itself, which strict cannot say")))

        return replace(found, alternatives=finite)

    def together(
        self, choice: Choice, written: Sequence[Schema], path: str, *, or_null: bool
    ) -> Schema:
        is_nullable = choice.is_nullable or or_null
        told = picked(choice.told, ("description",))
        if choice.told.get("default") is not None:
            told = noted(told, f"Default: {dumps(choice.told['default']).decode()}.")

        if len(written) == 1:
            return described(told, _nullable(written[0]) if is_nullable else written[0])

        branches = [*written, dict(_NOTHING)] if is_nullable else [*written]
        return {**told, **(branches[0] if len(branches) == 1 else {"anyOf": branches})}


def _nullable(node: Schema) -> Schema:
    made = {**node, "type": [node["type"], "null"]}
    if "enum" in made:
        made["enum"] = [*made["enum"], None]

    return made


def _scalar(node: Schema) -> Schema:
    made = picked(node, ("type", "enum", *_NUMBER))
    if node.get("format") in _FORMATS and node["type"] == "string":
        made["format"] = node["format"]

    if not any(sign in node.get("pattern", "") for sign in ("(?=", "(?!", "(?<=", "(?<!")):
        made |= picked(node, ("pattern",))

    return made


def _check_limits(schema: Schema) -> None:
    properties, values, characters = 0, 0, 0
    waiting: list[tuple[Schema, int]] = [(schema, 0)]
    while waiting:
        node, level = waiting.pop()
        level += "properties" in node
        if level > MOST_LEVELS:
            raise InvalidSchema(
                f"it has more than the {MOST_LEVELS} levels of objects that strict takes"
            )

        listed = [value for value in node.get("enum", ()) if isinstance(value, str)]
        size = sum(map(len, listed))
        if len(listed) > MANY_VALUES and size > MOST_CHARACTERS_OF_MANY:
            raise InvalidSchema("one of its enumerations is longer than strict takes")

        properties += len(node.get("properties", ()))
        values += len(node.get("enum", ()))
        characters += size + sum(map(len, node.get("properties", ())))
        waiting += [(one, level) for _, one in children(node) if isinstance(one, dict)]

    for count, most, what in (
        (properties, MOST_PROPERTIES, "properties"),
        (values, MOST_VALUES, "values in enumerations"),
        (characters, MOST_CHARACTERS, "characters of names and values"),
    ):
        if count > most:
            raise InvalidSchema(f"it has more than the {most} {what} that strict takes")
