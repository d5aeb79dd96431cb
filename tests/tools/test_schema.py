"""JSON Schemas that people give: admitted or refused at once, and then never in doubt."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import InvalidSchema
from bridge.tools.problems import describe
from bridge.tools.schema import Checker

BROKEN: list[tuple[Any, str]] = [
    ("string", "a schema is an object, not str"),
    (True, "a schema is an object, not bool"),
    ({"type": "strin"}, r"at \$.type"),
    ({"pattern": "["}, r"at \$.pattern"),
    ({"required": "city"}, r"at \$.required"),
    ({"properties": {"a": {"minimum": "1"}}}, r"at \$.properties.a.minimum"),
    ({"$schema": "https://example.com/my-dialect"}, "is not known here"),
    ({"$schema": 5}, "is not known here"),
    ({"$ref": "https://example.com/schema.json"}, "leads nowhere inside the schema"),
    ({"$ref": "file:///etc/passwd"}, "leads nowhere inside the schema"),
    ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "leads nowhere inside the schema"),
    ({"properties": {"a": {"$ref": "#/x"}}, "x": {"$ref": "http://h/"}}, "leads nowhere"),
    ({"properties": {"a": {"$dynamicRef": "#none"}}}, "leads nowhere inside the schema"),
    ({"default": object()}, "is not JSON"),
    ({"default": float("inf")}, "is not JSON"),
]


@pytest.mark.parametrize(("schema", "reason"), BROKEN)
def test_a_broken_schema_is_refused(schema: Any, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        Checker(schema)


@pytest.mark.parametrize(
    "dialect",
    [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ],
)
def test_every_common_dialect_is_known(dialect: str) -> None:
    assert not Checker({"$schema": dialect, "type": "string"}).problems("x")
    assert Checker({"$schema": dialect, "type": "string"}).problems(1)


def test_a_dialect_means_what_it_says() -> None:
    tuple_form = {"items": [{"type": "string"}], "additionalItems": False}
    checker = Checker({"$schema": "http://json-schema.org/draft-07/schema#", **tuple_form})

    assert checker.problems(["a", "b"])
    assert not checker.problems(["a"])


def test_references_inside_the_schema_are_followed() -> None:
    checker = Checker(
        {
            "$id": "https://example.com/tree",
            "type": "object",
            "properties": {
                "value": {"$ref": "#number"},
                "kids": {"items": {"$ref": "https://example.com/tree"}},
            },
            "$defs": {"n": {"$anchor": "number", "type": "number"}},
        }
    )

    assert not checker.problems({"kids": [{"value": 1, "kids": []}]})
    assert describe(checker.problems({"kids": [{"value": "x"}]})) == (
        '"kids[0].value": expected a number, got a string'
    )


def test_what_looks_like_a_reference_in_a_value_is_none() -> None:
    assert not Checker({"const": {"$ref": "https://example.com"}}).problems(
        {"$ref": "https://example.com"}
    )


SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2, "pattern": "^[A-Z]"},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
        "unit": {"enum": ["C", "F", 5]},
        "id": {"type": ["string", "integer"]},
        "any": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "one": {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "fixed": {"const": 1},
        "set": {"uniqueItems": True},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
GOOD = {"city": "Tokyo", "days": 3}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"days": 3.0}, ""),
        ({"city": 5}, '"city": expected a string, got a number'),
        ({"days": True}, '"days": expected an integer, got a boolean'),
        ({"days": 9}, '"days": expected at most 7'),
        ({"city": "T"}, '"city": expected at least 2 characters'),
        ({"city": "tokyo"}, '"city": expected a text that matches "^[A-Z]"'),
        ({"unit": "K"}, '"unit": expected "C", "F" or 5'),
        ({"id": None}, '"id": expected a string or an integer, got null'),
        ({"any": 1}, '"any": expected a string or null, got a number'),
        ({"one": {}}, '"one": fits none of the allowed forms'),
        ({"fixed": 2}, '"fixed": expected exactly 1'),
        ({"set": [1, 1]}, '"set": does not satisfy "uniqueItems"'),
        ({"towns": 1, "x'y": 2}, '"towns": unknown; "x\'y": unknown'),
        ({"dayz": 1}, '"dayz": unknown; did you mean "days"?'),
    ],
)
def test_problems_are_said_in_our_words(change: dict[str, Any], said: str) -> None:
    assert describe(Checker(SCHEMA).problems(GOOD | change)) == said


def test_every_missing_property_is_named() -> None:
    assert describe(Checker(SCHEMA).problems({})) == '"city": missing; "days": missing'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(json_values)
def test_any_value_can_be_described(value: Any) -> None:
    said = describe(Checker(SCHEMA).problems(value))
    assert said or (isinstance(value, dict) and {"city", "days"} <= value.keys())
