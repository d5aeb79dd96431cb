"""JSON Schemas: checked when they are given, used to check values, inferred from Python types."""

from __future__ import annotations

from typing import Any, Literal

from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for
from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import PydanticSerializationError
from referencing import Specification
from referencing.exceptions import Unresolvable
from referencing.jsonschema import EMPTY_REGISTRY, UnknownDialect, specification_with

from bridge.core.confirmation import json_hash
from bridge.core.declaration import Schema
from bridge.errors import InvalidSchema
from bridge.tools.problems import Problem, from_schema

DEFAULT_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_LONGEST_REASON = 200


class Checker:
    """A JSON Schema, ready to check values with. It never looks beyond the schema itself."""

    __slots__ = ("_validator", "schema")

    def __init__(self, schema: Schema) -> None:
        """Admit `schema`.

        Raises:
            InvalidSchema: It is not JSON Schema, in a dialect that is not known here, or refers
                to something outside of itself; nothing is ever fetched.
        """
        if not isinstance(schema, dict):
            raise InvalidSchema(f"a schema is an object, not {type(schema).__name__}")

        dialect = schema.get("$schema", DEFAULT_DIALECT)
        try:
            specification = specification_with(str(dialect))
        except UnknownDialect as exc:
            raise InvalidSchema(f'the dialect "{dialect}" is not known here') from exc

        validator = validator_for({"$schema": dialect})
        try:
            json_hash(schema)
            validator.check_schema(schema)
            _check_references(schema, specification)
        except (ValueError, TypeError) as exc:
            raise InvalidSchema(f"the schema is not JSON: {exc}") from exc
        except SchemaError as exc:
            raise InvalidSchema(f"at {exc.json_path}: {exc.message[:_LONGEST_REASON]}") from exc

        self.schema = schema
        self._validator = validator(schema, registry=EMPTY_REGISTRY)

    def problems(self, value: Any) -> list[Problem]:
        """Everything about `value`, a JSON value, that the schema forbids."""
        return from_schema(self._validator.iter_errors(value))


def _check_references(schema: Schema, specification: Specification[Any]) -> None:
    """Follow every reference once, so that none is found broken in the middle of a call."""
    root = specification.create_resource(schema)
    base = root.id() or ""
    waiting = [(root, EMPTY_REGISTRY.with_resource(base, root).resolver(base))]
    seen: set[int] = set()
    while waiting:
        resource, resolver = waiting.pop()
        if id(resource.contents) in seen:
            continue

        seen.add(id(resource.contents))
        waiting += [(sub, resolver.in_subresource(sub)) for sub in resource.subresources()]
        for reference in _references(resource.contents):
            try:
                found = resolver.lookup(reference)
            except Unresolvable as exc:
                raise InvalidSchema(
                    f'"$ref": "{reference}" leads nowhere inside the schema, and nothing is fetched'
                ) from exc

            waiting.append((specification.create_resource(found.contents), found.resolver))


def _references(contents: Any) -> list[str]:
    if not isinstance(contents, dict):
        return []

    found = (contents.get("$ref"), contents.get("$dynamicRef"))
    return [reference for reference in found if isinstance(reference, str)]


def admits_object(schema: Schema) -> bool:
    """Whether the root's type is, or includes, object."""
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind)


class _Plain(GenerateJsonSchema):
    """Pydantic's schemas without the titles it makes up, and without warnings."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {  # noqa: RUF012
        "skipped-choice",
        "non-serializable-default",
    }

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def encode_default(self, dft: Any) -> Any:
        """Leave out a default that JSON has no word for, such as infinity."""
        default = super().encode_default(dft)
        try:
            json_hash(default)
        except ValueError as exc:
            raise PydanticSerializationError(str(exc)) from exc

        return default


def inferred(adapter: TypeAdapter[Any], mode: Literal["validation", "serialization"]) -> Schema:
    """The JSON Schema of a Python type, with JSON names.

    Objects with named properties allow no others, unless their type says so. A recursive type's
    root is spelled out, so that the root says what kind of value it is.

    Raises:
        InvalidSchema: The type has no JSON Schema.
    """
    try:
        schema = adapter.json_schema(mode=mode, schema_generator=_Plain)
    except PydanticUserError as exc:
        raise InvalidSchema(_first_line(exc)) from exc

    definitions = schema.get("$defs", {})
    if "$ref" in schema:
        name = schema.pop("$ref").removeprefix("#/$defs/")
        schema = {**definitions[name], **schema}

    for part in (schema, *definitions.values()):
        if "properties" in part:
            part.setdefault("additionalProperties", False)

    return schema


def has_open_objects(schema: Schema) -> bool:
    """Whether an inferred schema lets any object with named properties take others, too."""
    return any(
        "properties" in part and part.get("additionalProperties") is not False
        for part in (schema, *schema.get("$defs", {}).values())
    )


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
