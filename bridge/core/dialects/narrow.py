"""JSON Schema for providers that take a part of it: every schema as a choice between types.

A schema is taken apart into alternatives of one type each, with `allOf` folded in, `oneOf` as
`anyOf`, `const` as `enum`, and null apart. A provider's rules are a `Narrow` that writes one
alternative, and puts several together. What cannot be said in the provider's words is left out:
then the schema takes more than it did, and the tool itself is the judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from bridge.core.dialects.inline import MOST_SCHEMAS, Cut, TooLarge
from bridge.core.dialects.merge import any_of, both, folded, noted, types_of
from bridge.core.dialects.shape import Schema, picked, refused, step, type_of
from bridge.core.wire import dumps

ANY: Final = "any"
"""The type of an alternative that may be any value."""

_TOLD: Final = ("description", "default")

_OF_TYPE: Final = {
    "object": (
        "additionalProperties",
        "maxProperties",
        "minProperties",
        "patternProperties",
        "properties",
        "required",
    ),
    "array": ("items", "maxItems", "minItems", "prefixItems"),
    "string": ("enum", "format", "maxLength", "minLength", "pattern"),
    "boolean": ("enum",),
    **dict.fromkeys(
        ("number", "integer"),
        (
            "enum",
            "exclusiveMaximum",
            "exclusiveMinimum",
            "format",
            "maximum",
            "minimum",
            "multipleOf",
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class Choice:
    """What a schema takes: alternatives of one type each, and null or not.

    `told` are the annotations of the whole. An alternative that is open because a recursive schema
    was cut there is a `Cut`.
    """

    told: Schema
    alternatives: Sequence[Schema]
    is_nullable: bool


class Narrow:
    """The rules of one provider: `object`, `array` and the like write one alternative.

    An instance serves one schema: it counts how many it has written.
    """

    def __init__(self) -> None:
        self._left = MOST_SCHEMAS

    def schema(self, node: Any, path: str, *, or_null: bool = False) -> Schema:
        """`node` in the provider's words.

        Raises:
            InvalidSchema: It cannot be said in them, or nothing fits the schema.
        """
        choice = self.choice(node, path)
        if not choice.alternatives and not choice.is_nullable:
            raise refused(path, "no value fits this schema")

        written = [self.alternative(one, path) for one in choice.alternatives]
        return self.together(choice, written, path, or_null=or_null)

    def alternative(self, node: Schema, path: str) -> Schema:
        """One alternative, in the provider's words."""
        raise NotImplementedError

    def together(
        self, choice: Choice, written: Sequence[Schema], path: str, *, or_null: bool
    ) -> Schema:
        """The whole, of its written alternatives."""
        raise NotImplementedError

    def choice(self, node: Any, path: str) -> Choice:
        """Take a schema apart."""
        found = list(self._apart(node, path))
        once = {dumps(one): one for one in found if one.get("type") != "null"}
        is_nullable = any(one.get("type") == "null" for one in found)
        return Choice(_told(node), list(once.values()), is_nullable)

    def _apart(self, node: Any, path: str) -> list[Schema]:
        self._left -= 1
        if self._left < 0:
            raise TooLarge(f"written out, it is more than {MOST_SCHEMAS} schemas")

        is_cut = _is_cut(node)
        node = {} if node is True else folded(node) if isinstance(node, dict) else node
        if node is False:
            return []

        whole = {key: value for key, value in node.items() if key not in _TOLD}
        if is_cut:
            return [one if one.get("type") == "null" else Cut(one) for one in _by_type(whole)]

        branches = whole.pop("anyOf", None) or whole.pop("oneOf", None)
        whole.pop("oneOf", None)
        if branches is None:
            return _by_type(whole)

        found: list[Schema] = []
        for index, branch in enumerate(branches):
            one = branch if isinstance(branch, Cut) else both(whole, branch)
            apart = self._apart(one, step(path, "anyOf", index))
            found += [described(_told(branch), one) for one in apart]

        return found


def described(told: Schema, node: Schema) -> Schema:
    """The schema with what is told of the whole: its description comes before the schema's own."""
    made = type(node)({**told, **node})
    texts = [one["description"] for one in (told, node) if one.get("description")]
    if texts:
        made["description"] = " ".join(texts)

    return made


def _told(node: Any) -> Schema:
    return picked(node, _TOLD) if isinstance(node, dict) else {}


def _is_cut(node: Any) -> bool:
    if not isinstance(node, dict):
        return False

    return isinstance(node, Cut) or any(isinstance(one, Cut) for one in node.get("allOf", ()))


def _by_type(node: Schema) -> list[Schema]:
    """A schema without alternatives of its own, as one alternative a type."""
    if "const" in node:
        node = {**node, "enum": [node["const"]]}

    kinds = types_of(node)
    if node.get("nullable") and kinds and "null" not in kinds:
        kinds.append("null")

    values = node.get("enum")
    if values is not None:
        kinds = _types_of_values(values, kinds)

    return [_of_type(node, kind) for kind in kinds or _implied(node)]


def _types_of_values(values: Sequence[Any], kinds: Sequence[str]) -> list[str]:
    found = list(dict.fromkeys(type_of(value) for value in values))
    if not kinds:
        return found

    if "number" in kinds and "integer" in found:
        found = list(dict.fromkeys("number" if kind == "integer" else kind for kind in found))

    return [kind for kind in kinds if kind in found]


def _implied(node: Schema) -> list[str]:
    """The type that the keywords of an untyped schema speak of; any, if they do not say."""
    for kind, keywords in _OF_TYPE.items():
        if node.keys() & ({*keywords} - {"enum", "format"}):
            return [kind]

    return [ANY]


def _of_type(node: Schema, kind: str) -> Schema:
    made = picked(node, _OF_TYPE.get(kind, ()))
    if kind != ANY:
        made = {"type": kind, **made}

    if kind in ("object", "array", "null") and "enum" in node:
        values = [value for value in node["enum"] if type_of(value) == kind]
        return made if kind == "null" else noted(made, one_of(values))

    if "enum" in made:
        fitting = (kind, "integer") if kind == "number" else (kind,)
        made["enum"] = [value for value in made["enum"] if type_of(value) in fitting]

    return made


def one_of(values: Sequence[Any]) -> str:
    """A sentence that lists the values allowed."""
    return f"One of: {', '.join(dumps(value).decode() for value in values)}."


def items_of(node: Schema) -> Any:
    """What any item of an array may be; None where nothing says it. A tuple's are put together."""
    parts = [*node.get("prefixItems", ())]
    rest = node.get("items")
    if not parts:
        return rest

    if rest is not None and rest is not False:
        parts.append(rest)

    return any_of(parts)


def bounds_of(node: Schema) -> Schema:
    """How many items an array has at least and at most; of a closed tuple no more than it has."""
    bounds = picked(node, ("minItems", "maxItems"))
    if "prefixItems" in node and node.get("items") is False:
        most = len(node["prefixItems"])
        bounds["maxItems"] = min(most, bounds.get("maxItems", most))

    return bounds
