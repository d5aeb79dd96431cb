"""Schemas in the dialects of the providers: what holds for any schema that somebody may write."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, event, given, settings
from jsonschema import Draft202012Validator
from referencing.jsonschema import EMPTY_REGISTRY

from bridge.core.dialects.dialect import DIALECTS, to_dialect
from bridge.core.dialects.inline import inlined
from bridge.core.dialects.shape import children
from bridge.errors import InvalidSchema

Json = dict[str, Any]

SHELVED = ("a", "b/c", "d~e %é")
NAMES = ("x", "y", "$ref")
SLOW = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

scalars = st.sampled_from([None, True, -1, 0, 1, 3, "", "ab", "abc"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=4,
)


def quoted(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1").replace("%", "%25").replace(" ", "%20")


BESIDE: list[Json] = [
    {},
    {},
    {"description": "It."},
    {"minimum": 1},
    {"type": "object"},
    {"properties": {"x": {"type": "string"}}},
    {"additionalProperties": False},
    {"unevaluatedProperties": False},
    {"items": {"type": "integer"}},
    {"allOf": [{"minLength": 3}]},
    {"required": ["x"]},
]
PLAIN: list[Any] = [
    *({"type": kind} for kind in ("string", "integer", "null", "object", "array", "boolean")),
    {"type": ["string", "null"]},
    {"type": ["object", "array", "number"]},
    {"enum": ["ab", 1, None]},
    {"enum": [["ab"], {"x": 1}]},
    {"const": "ab"},
    {"minLength": 3, "minimum": 1},
    {"unevaluatedProperties": False},
    True,
    False,
]


def references(to: tuple[str, ...]) -> st.SearchStrategy[Any]:
    """A `$ref` to one of these shelves, by pointer or anchor, perhaps with something beside it."""
    forms = [
        form
        for name in to
        for form in (
            f"#/$defs/{quoted(name)}",
            f"https://acme.example/root#n{SHELVED.index(name)}",
        )
    ]
    return st.builds(
        lambda form, beside: {"$ref": form, **beside},
        st.sampled_from(forms),
        st.sampled_from(BESIDE),
    )


def schemas(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        some = st.lists(inner, min_size=1, max_size=2)
        named = st.dictionaries(st.sampled_from(NAMES), inner, max_size=2)
        required = st.sampled_from([[], ["x"]])
        make = st.fixed_dictionaries
        return st.one_of(
            make({"properties": named, "required": required}),
            make({"type": st.just("object"), "properties": named, "additionalProperties": inner}),
            make({"type": st.just("array"), "items": inner}),
            make({"prefixItems": some, "items": inner}),
            make({"anyOf": some, "description": st.just("Something.")}),
            make({"anyOf": some, "properties": named}),
            make({"oneOf": some}),
            make({"allOf": some, "properties": named}),
            make({"allOf": some, "unevaluatedProperties": st.just(False)}),
            make({"not": inner}),
            make({"if": inner, "then": inner}),
            make({"contains": inner, "maxContains": st.integers(0, 1)}),
        )

    return st.recursive(leaf, around, max_leaves=5)


plain = st.sampled_from(PLAIN)


def whole(shelves: Mapping[str, Any], root: Any) -> Json:
    """A schema of an object, with shelves that have anchors, too."""
    anchored = {}
    for name, one in shelves.items():
        schema = {} if one is True else {"not": {}} if one is False else one
        anchored[name] = {"$anchor": f"n{SHELVED.index(name)}", **schema}

    return {
        "$id": "https://acme.example/root",
        "type": "object",
        "properties": {"x": root, "y": {"type": "integer"}},
        "$defs": anchored,
    }


@st.composite
def finite_schemas(draw: st.DrawFn) -> Json:
    """Shelves refer to later shelves only."""
    shelves: Json = {}
    for index in reversed(range(len(SHELVED))):
        later = SHELVED[index + 1 :]
        leaf = plain | references(later) if later else plain
        shelves[SHELVED[index]] = draw(schemas(leaf))

    return whole(shelves, draw(schemas(references(SHELVED) | plain)))


@st.composite
def any_schemas(draw: st.DrawFn) -> Json:
    """Shelves refer to any shelf and to the root: back only from inside, as values are finite."""
    back = references(SHELVED) | st.just({"$ref": "#"})
    inside = back.map(lambda one: {"properties": {"x": one}}) | back.map(lambda one: {"items": one})
    shelves: Json = {}
    for index in reversed(range(len(SHELVED))):
        later = SHELVED[index + 1 :]
        leaf = plain | inside | references(later) if later else plain | inside
        shelves[SHELVED[index]] = draw(schemas(leaf))

    return whole(shelves, draw(schemas(references(SHELVED) | plain | inside)))


def accepts(schema: Json, value: Any) -> bool:
    return Draft202012Validator(schema, registry=EMPTY_REGISTRY).is_valid(value)


def inside(schema: Any) -> Iterator[Json]:
    """Every schema in a schema, itself included."""
    if isinstance(schema, dict):
        yield schema
        for _, child in children(schema, shelves=True):
            yield from inside(child)


def check_is_closed(schema: Json) -> None:
    """It is finite JSON and a schema, and refers to nothing."""
    json.dumps(schema)
    Draft202012Validator.check_schema(schema)
    for one in inside(schema):
        assert not one.keys() & {"$ref", "$dynamicRef", "$defs", "$id", "$anchor", "$schema"}


@SLOW
@given(finite_schemas(), st.lists(values, min_size=1, max_size=8))
def test_written_out_a_schema_takes_the_same_values(schema: Json, found: list[Any]) -> None:
    made = inlined(schema)

    check_is_closed(made)
    for value in (*found, *({"x": one} for one in found)):
        assert accepts(made, value) == accepts(schema, value)


@SLOW
@given(any_schemas(), st.lists(values, min_size=1, max_size=8))
def test_a_recursive_schema_takes_no_fewer_values(schema: Json, found: list[Any]) -> None:
    made = inlined(schema)

    check_is_closed(made)
    dialects = [to_dialect(schema, "openai"), to_dialect(schema, "anthropic")]
    for value in ({"x": one} for one in found):
        is_taken = accepts(schema, value)
        for one in (made, *dialects):
            assert accepts(one, value) or not is_taken


@SLOW
@given(any_schemas())
def test_a_schema_in_a_dialect_has_the_words_of_that_dialect_alone(schema: Json) -> None:
    for dialect in DIALECTS:
        try:
            made = to_dialect(schema, dialect)
        except InvalidSchema as exc:
            event(f"{dialect}: refused")
            assert dialect in ("openai-strict", "gemini")
            assert str(exc).startswith(("at ", "it "))
            continue

        event(f"{dialect}: made")
        check_is_closed(made)
        assert made["type"] == "object"
        assert isinstance(made["properties"], dict)
        assert not made.keys() & {"anyOf", "oneOf", "allOf", "not", "enum", "const", "if"}
        for one in inside(made):
            WORDS[dialect](one)


def check_plain(one: Json) -> None:
    assert "nullable" not in one
    assert one.get("type") != "array" or "items" in one


def check_strict(one: Json) -> None:
    words = "additionalProperties anyOf description enum items maxItems minimum properties required"
    assert one.keys() <= {"type", *words.split()}
    assert ("type" in one) != ("anyOf" in one)
    assert not isinstance(one.get("items"), bool)
    if "properties" in one:
        assert one["additionalProperties"] is False
        assert one["required"] == [*one["properties"]]


def check_gemini(one: Json) -> None:
    words = "description enum items maxItems minLength minimum nullable properties required type"
    assert one.keys() == {"anyOf"} or one.keys() <= {*words.split()}
    assert "anyOf" in one or isinstance(one["type"], str)
    assert all(isinstance(value, str) and value for value in one.get("enum", ()))
    assert set(one.get("required", ())) <= one.get("properties", {}).keys()
    assert (one.get("type") == "array") == ("items" in one)


WORDS: dict[str, Callable[[Json], None]] = {
    "openai": check_plain,
    "openai-strict": check_strict,
    "gemini": check_gemini,
    "anthropic": check_plain,
}
