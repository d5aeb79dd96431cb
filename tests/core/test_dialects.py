"""Schemas in the dialects of the providers: what is written out, and what is put how."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from bridge.core.declaration import Declaration
from bridge.core.dialects.dialect import DIALECTS, in_dialect, to_dialect
from bridge.core.dialects.inline import MOST_SCHEMAS, inlined
from bridge.core.dialects.nulls import without_nulls
from bridge.core.dialects.references import MOST_NESTED
from bridge.errors import InvalidSchema

Json = dict[str, Any]

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
NODE: Json = {
    "type": "object",
    "description": "A node.",
    "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
}
TREE: Json = {
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/node"}},
    "$defs": {"node": NODE},
}


def properties(**named: Any) -> Json:
    return {"type": "object", "properties": named}


def strict(named: Json, required: list[str] | None = None) -> Json:
    needed = [*named] if required is None else required
    return {
        "type": "object",
        "properties": named,
        "required": needed,
        "additionalProperties": False,
    }


def one(schema: Any, dialect: Any) -> Any:
    """The schema of one required property, in a dialect."""
    whole = {**properties(a=schema), "required": ["a"]}
    return to_dialect(whole, dialect)["properties"]["a"]


@pytest.mark.parametrize(
    ("reference", "shelved"),
    [
        ("#/$defs/n", {"$defs": {"n": WHOLE}}),
        ("#/definitions/n", {"definitions": {"n": WHOLE}}),
        ("#/definitions/a~1b%20~0c%25", {"definitions": {"a/b ~c%": WHOLE}}),
        ("#n", {"$defs": {"n": {"$anchor": "n", **WHOLE}}}),
        ("#n", {"$defs": {"n": {"$dynamicAnchor": "n", **WHOLE}}}),
        ("#n", {"definitions": {"n": {"$id": "#n", **WHOLE}}}),
        ("n.json", {"$defs": {"n": {"$id": "n.json", **WHOLE}}}),
        ("https://acme.example/n", {"$defs": {"n": {"$id": "https://acme.example/n", **WHOLE}}}),
        ("urn:acme:n", {"$defs": {"n": {"$id": "urn:acme:n", **WHOLE}}}),
        ("#/$defs/all/anyOf/1", {"$defs": {"all": {"anyOf": [TEXT, WHOLE]}}}),
        ("#/components/schemas/n", {"components": {"schemas": {"n": WHOLE}}}),
        ("#/$defs/m", {"$defs": {"m": {"$ref": "#/$defs/n"}, "n": WHOLE}}),
    ],
)
def test_a_reference_is_written_out(reference: str, shelved: Json) -> None:
    schema = {**properties(n={"$ref": reference}), **shelved}

    assert inlined(schema)["properties"] == {"n": WHOLE}


def test_references_are_relative_to_the_id_around_them() -> None:
    inner = {"$id": "/b", "$ref": "#/$defs/n", "$defs": {"n": WHOLE}}
    schema = {"$id": "https://acme.example/a", **properties(n=inner), "$defs": {"n": TEXT}}

    assert inlined(schema) == properties(n=WHOLE)


def test_only_schemas_are_read_as_schemas() -> None:
    schema = properties(
        **{"$ref": {"const": {"$ref": "#/nowhere"}}, "$defs": {"default": {"$id": 1}, **TEXT}}
    )

    assert inlined(schema) == schema


@pytest.mark.parametrize(
    ("beside", "made"),
    [
        ({"description": "How many."}, {"type": "integer", "description": "How many."}),
        ({"minimum": 1}, {"type": "integer", "minimum": 1}),
        ({"type": "number"}, {"type": "number", "allOf": [WHOLE]}),
        ({"allOf": [{"minimum": 1}]}, {"type": "integer", "allOf": [{"minimum": 1}]}),
    ],
)
def test_what_stands_beside_a_reference_holds_too(beside: Json, made: Json) -> None:
    schema = {**properties(n={"$ref": "#/$defs/n", **beside}), "$defs": {"n": WHOLE}}

    assert inlined(schema)["properties"] == {"n": made}


def test_keywords_that_look_at_each_other_are_not_put_together() -> None:
    closed = {"additionalProperties": False}
    schema = {
        **properties(o={"$ref": "#/$defs/o", **closed}),
        "$defs": {"o": properties(a=TEXT)},
    }

    assert inlined(schema)["properties"] == {"o": {**closed, "allOf": [properties(a=TEXT)]}}


def test_up_to_draft_7_only_descriptions_count_beside_a_reference() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **properties(n={"$ref": "#/definitions/n", "minimum": 1, "description": "How many."}),
        "definitions": {"n": WHOLE},
    }

    assert inlined(schema) == properties(n={"type": "integer", "description": "How many."})


def test_keywords_of_older_drafts_become_those_of_2020() -> None:
    schema = properties(
        a={"type": "array", "items": [TEXT], "additionalItems": False},
        b={"minimum": 1, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": False},
        c={"dependencies": {"x": ["y"], "y": TEXT}},
        d={"examples": "one"},
    )

    assert inlined(schema)["properties"] == {
        "a": {"type": "array", "prefixItems": [TEXT], "items": False},
        "b": {"exclusiveMinimum": 1, "maximum": 9},
        "c": {"dependentRequired": {"x": ["y"]}, "dependentSchemas": {"y": TEXT}},
        "d": {},
    }


def test_a_recursive_reference_is_written_out_three_times_and_then_open() -> None:
    found = inlined(TREE)["properties"]["tree"]
    for _ in range(3):
        assert found["properties"]["children"]["type"] == "array"
        found = found["properties"]["children"]["items"]

    assert found == {"type": "object", "description": "A node."}


def test_a_schema_that_refers_to_its_root_is_finite() -> None:
    schema = properties(all={"type": "array", "items": {"$ref": "#"}})
    inner = properties(all={"type": "array", "items": {"type": "object"}})

    deep = properties(all={"type": "array", "items": inner})
    assert inlined(schema) == properties(all={"type": "array", "items": deep})


def test_what_would_grow_too_large_is_cut_earlier() -> None:
    refs = {f"p{i}": {"$ref": f"#/$defs/d{i}"} for i in range(30)}
    schema = {**properties(**refs), "$defs": {f"d{i}": properties(**refs) for i in range(30)}}

    found = inlined(schema)

    assert found["properties"]["p3"]["properties"]["p7"] == {"type": "object"}


@pytest.mark.parametrize("rest", [{}, {"then": False}])
def test_a_cut_never_forbids_more(rest: Json) -> None:
    keyword = "if" if rest else "not"
    node = {"type": "object", keyword: properties(n={"$ref": "#/$defs/node"}), **rest}
    schema = {**properties(n={"$ref": "#/$defs/node"}), "$defs": {"node": node}}

    assert inlined(schema) == properties(n={"type": "object"})


def test_a_choice_that_a_cut_makes_ambiguous_is_one_of_any() -> None:
    node = {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/node"}, TEXT]}
    schema = {**properties(n={"$ref": "#/$defs/node"}), "$defs": {"node": node}}

    assert '"oneOf"' not in json.dumps(inlined(schema))


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ([], "the schema of arguments is an object"),
        ({"$ref": "#/$defs/n", "$defs": {"n": True}}, "the schema of arguments is an object"),
        (properties(a=1), 'at "/properties/a": a schema is an object or a boolean, not a JSON int'),
        (properties(a={"type": "text"}), 'at "/properties/a": "type" has to be a type of JSON'),
        (properties(a={"enum": []}), 'at "/properties/a": "enum" has to be a list with a value'),
        (properties(a={"required": True}), 'at "/properties/a": "required" has to be a list of n'),
        ({"properties": []}, 'at the root: "properties" has to be an object'),
        (properties(**{"a/b": {"anyOf": [{"minLength": -1}]}}), 'at "/properties/a~1b/anyOf/0": '),
        (properties(a={"$ref": "#/$defs/x"}), '"$ref": "#/$defs/x" leads to no schema'),
        (properties(a={"$ref": "#x"}), '"$ref": "#x" leads to no schema'),
        (properties(a={"$ref": "#/required"}), '"$ref": "#/required" leads to no schema'),
        (properties(a={"$ref": "http://[x"}), "leads out of the schema, and nothing is fetched"),
        (properties(a={"$ref": "http://127.0.0.1:9/a"}), "leads out of the schema, and nothing is"),
        (properties(a={"$dynamicRef": "#n"}), '"$dynamicRef" cannot be written out; use "$ref"'),
        (properties(a={"$recursiveRef": "#"}), '"$recursiveRef" cannot be written out'),
        ({"$schema": "https://acme.example/schema"}, "is not known here"),
        (properties(a={"default": float("nan")}), "the schema is not JSON"),
    ],
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_schema_that_cannot_be_used_is_refused_with_the_reason(
    schema: Any, problem: str, dialect: Any
) -> None:
    with pytest.raises(InvalidSchema) as found:
        to_dialect(schema, dialect)

    assert problem in str(found.value)


def test_a_bomb_of_references_is_refused() -> None:
    shelves = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(25)}
    schema = {**properties(n={"$ref": "#/$defs/d0"}), "$defs": {**shelves, "d25": TEXT}}

    with pytest.raises(InvalidSchema, match=f"more than {MOST_SCHEMAS} schemas"):
        inlined(schema)


def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    schema = TEXT
    for _ in range(MOST_NESTED + 1):
        schema = {"not": schema}

    with pytest.raises(InvalidSchema, match=f"more than {MOST_NESTED} schemas stand inside"):
        inlined(properties(n=schema))


def test_a_reference_that_leads_nowhere_but_to_itself_is_open() -> None:
    schema = {**properties(n={"$ref": "#/$defs/n"}), "$defs": {"n": {"$ref": "#/$defs/n"}}}

    assert inlined(schema) == properties(n={})


def test_the_schema_that_was_given_is_untouched() -> None:
    before = json.dumps(TREE)
    for dialect in DIALECTS:
        to_dialect(TREE, dialect)

    assert json.dumps(TREE) == before


@pytest.mark.parametrize("dialect", DIALECTS)
def test_alternatives_at_the_root_become_one_object(dialect: Any) -> None:
    schema = {
        **properties(a=TEXT, b=TEXT, c=TEXT),
        "required": ["c"],
        "oneOf": [{"required": ["a"]}, {"required": ["b", "c"]}],
        "not": {"required": ["a", "b"]},
    }

    found = to_dialect(schema, dialect)

    assert (found["type"], [*found["properties"]]) == ("object", ["a", "b", "c"])
    assert found["description"] == 'Needed: "a", or "b".'
    assert found["required"] == (["a", "b", "c"] if dialect == "openai-strict" else ["c"])
    assert not {"anyOf", "oneOf", "allOf", "not", "enum"} & found.keys()


def test_properties_of_alternatives_are_put_together() -> None:
    cat = {**properties(kind={"const": "cat"}, lives=WHOLE), "required": ["kind", "lives"]}
    dog = {**properties(kind={"const": "dog"}, name=TEXT), "required": ["kind"]}

    assert to_dialect({"anyOf": [cat, {"allOf": [dog]}, {"type": "null"}]}, "anthropic") == {
        "type": "object",
        "properties": {
            "kind": {"anyOf": [{"const": "cat"}, {"const": "dog"}]},
            "lives": WHOLE,
            "name": TEXT,
        },
        "required": ["kind"],
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"enum": ["a"]},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"allOf": [{"type": "object"}, {"type": "array"}]},
        {"allOf": [False]},
    ],
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_root_that_takes_no_object_is_refused(schema: Json, dialect: Any) -> None:
    with pytest.raises(InvalidSchema, match="at the root: arguments are an object"):
        to_dialect(schema, dialect)


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        (True, {}),
        (False, {"not": {}}),
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        (
            {"type": "string", "nullable": True, "enum": ["a"]},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (
            {"type": "object", "additionalProperties": True},
            {"type": "object", "additionalProperties": True},
        ),
        ({"oneOf": [TEXT, {"const": 1}]}, {"oneOf": [TEXT, {"const": 1}]}),
    ],
)
@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_json_schema_stays_but_for_what_providers_stumble_over(
    schema: Any, made: Json, dialect: Any
) -> None:
    assert one(schema, dialect) == made


def test_anthropic_refuses_names_of_properties_at_the_root_alone() -> None:
    inner = properties(**{"$filter": TEXT})

    assert to_dialect(properties(**{"$top": WHOLE, "in.ner-1": inner}), "anthropic") == properties(
        **{"in.ner-1": inner}
    )
    with pytest.raises(InvalidSchema, match=r'at "/properties/\$top": the name is required'):
        to_dialect({**properties(**{"$top": WHOLE}), "required": ["$top"]}, "anthropic")


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"anyOf": [TEXT, {"type": "null"}]}, {"type": ["string", "null"]}),
        ({"oneOf": [TEXT, WHOLE]}, {"anyOf": [TEXT, WHOLE]}),
        ({"type": ["string", "integer"], "maximum": 3}, {"anyOf": [TEXT, {**WHOLE, "maximum": 3}]}),
        ({"enum": [1, None]}, {"type": ["integer", "null"], "enum": [1, None]}),
        ({"allOf": [WHOLE, {"minimum": 1}, {"minimum": 2}]}, {"type": "integer", "minimum": 2}),
        ({**TEXT, "pattern": "^(?=a)", "format": "uri", "minLength": 1}, TEXT),
        ({**TEXT, "pattern": "^a", "format": "uuid"}, {**TEXT, "pattern": "^a", "format": "uuid"}),
        ({**WHOLE, "default": 3, "title": "N"}, {"type": "integer", "description": "Default: 3."}),
        (
            {"type": "array", "prefixItems": [TEXT, WHOLE], "items": False},
            {"type": "array", "items": {"anyOf": [TEXT, WHOLE]}, "maxItems": 2},
        ),
        (
            {**properties(a=TEXT, b=False), "anyOf": [{"required": ["a"]}, {"required": ["c"]}]},
            None,
        ),
        (properties(a=WHOLE), strict({"a": {"type": ["integer", "null"]}})),
        ({"type": "object", "additionalProperties": False}, strict({})),
        ({"type": "null"}, {"type": "null"}),
    ],
)
def test_strict_words(schema: Any, made: Json | None) -> None:
    if made is None:
        with pytest.raises(InvalidSchema, match='"c" is required, and no property says what'):
            one(schema, "openai-strict")
    else:
        assert one(schema, "openai-strict") == made


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({}, "any value is allowed here"),
        ({"description": "Anything."}, "any value is allowed here"),
        ({"type": "array"}, "its items may be any value"),
        ({"type": "array", "items": {"title": "x"}}, "its items may be any value"),
        ({"type": "object"}, "the names of its properties are free"),
        ({"type": "object", "additionalProperties": TEXT}, "the names of its properties are free"),
        (False, "no value fits this schema"),
        ({"allOf": [TEXT, WHOLE]}, "no value fits this schema"),
    ],
)
def test_what_strict_cannot_say_is_refused(schema: Any, problem: str) -> None:
    with pytest.raises(InvalidSchema, match=f'^at "/properties/a": {problem}'):
        one(schema, "openai-strict")


def test_strict_ends_recursion_where_something_can_be_missing() -> None:
    found = to_dialect(TREE, "openai-strict")["properties"]["tree"]
    for _ in range(2):
        found = found["properties"]["children"]["items"]

    empty = {"type": ["array", "null"], "items": {"type": "null"}, "maxItems": 0}
    assert found == {"description": "A node.", **strict({"children": empty})}


def test_strict_leaves_out_what_goes_on_in_an_optional_property() -> None:
    found = to_dialect(properties(n=TEXT, next={"$ref": "#"}), "openai-strict")
    inner = found["properties"]["next"]["properties"]["next"]["properties"]

    assert inner == {"n": {"type": ["string", "null"]}, "next": {"type": "null"}}


def test_strict_refuses_what_has_no_end() -> None:
    node = {**properties(next={"$ref": "#/$defs/node"}), "required": ["next"]}
    schema = {**properties(n={"$ref": "#/$defs/node"}), "required": ["n"], "$defs": {"node": node}}

    with pytest.raises(InvalidSchema, match="it goes on inside itself, which strict cannot say"):
        to_dialect(schema, "openai-strict")


def nested(levels: int) -> Json:
    schema: Json = properties(a=TEXT)
    for _ in range(levels - 1):
        schema = properties(a=schema)

    return schema


@pytest.mark.parametrize(
    ("make", "most", "problem"),
    [
        (nested, 10, "more than the 10 levels of objects"),
        (lambda n: properties(a={"enum": [*range(n - 1)]}), 1000, "more than the 1000 values"),
        (lambda n: properties(**{"a" * n: TEXT}), 120_000, "more than the 120000 characters"),
        (
            lambda n: properties(a={"enum": ["a" * (n - 250), *map(chr, range(256, 506))]}),
            15_000,
            "one of its enumerations is longer than strict takes",
        ),
    ],
)
def test_strict_has_limits(make: Callable[[int], Json], most: int, problem: str) -> None:
    required = to_dialect(make(most), "openai-strict")["required"]

    assert len(required) == 1
    with pytest.raises(InvalidSchema, match=problem):
        to_dialect(make(most + 1), "openai-strict")


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        (TEXT, TEXT),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({**TEXT, "nullable": True}, {"type": "string", "nullable": True}),
        ({"anyOf": [WHOLE, {"type": "null"}]}, {"type": "integer", "nullable": True}),
        (
            {"oneOf": [TEXT, WHOLE, {"type": "null"}], "description": "It."},
            {
                "anyOf": [
                    {"type": "string", "description": "It.", "nullable": True},
                    {"type": "integer", "nullable": True},
                ]
            },
        ),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"enum": [1, 2]}, {"type": "integer", "description": "One of: 1, 2."}),
        ({"enum": ["a", ""]}, {"type": "string", "description": 'One of: "a", "".'}),
        ({**TEXT, "format": "date-time"}, {**TEXT, "format": "date-time"}),
        ({**TEXT, "format": "uri"}, {**TEXT, "description": "Format: uri."}),
        ({**WHOLE, "exclusiveMinimum": 1}, {**WHOLE, "minimum": 2}),
        ({"type": "number", "exclusiveMaximum": 1.5}, {"type": "number", "maximum": 1.5}),
        ({**WHOLE, "multipleOf": 5}, {**WHOLE, "description": "A multiple of 5."}),
        (
            {"type": "array", "prefixItems": [TEXT, TEXT], "items": False},
            {"type": "array", "items": TEXT, "maxItems": 2},
        ),
        (
            {**properties(b=TEXT), "additionalProperties": False, "required": ["b", "c"]},
            {**properties(b=TEXT), "required": ["b"]},
        ),
        (
            {"type": "object", "additionalProperties": TEXT, "description": "Labels."},
            {**properties(), "description": "Labels. Its property names are free."},
        ),
        ({"type": "null"}, {"type": "null"}),
    ],
)
def test_gemini_words(schema: Json, made: Json) -> None:
    assert one(schema, "gemini") == made


@pytest.mark.parametrize("schema", [{"type": "array"}, {"type": "array", "items": {}}])
def test_gemini_always_hears_what_items_are(schema: Json) -> None:
    kinds = ("string", "number", "boolean", "object")
    assert one(schema, "gemini")["items"] == {"anyOf": [{"type": kind} for kind in kinds]}


def test_a_declaration_takes_on_a_dialect() -> None:
    told = Declaration("count", "Counts.", TREE, {"type": "nonsense"})

    found = in_dialect(told, "openai")

    assert found == Declaration("count", "Counts.", to_dialect(TREE, "openai"))
    assert in_dialect(Declaration("now"), "gemini").parameters_json_schema == properties()
    assert in_dialect(told, None) is told


def test_a_declaration_that_cannot_is_named() -> None:
    told = Declaration("count", "", properties(a={"$ref": "#x"}))

    with pytest.raises(InvalidSchema) as found:
        in_dialect(told, "gemini")

    assert str(found.value) == (
        'the schema of tool "count" cannot be used as gemini: at "/properties/a": "$ref": "#x" '
        "leads to no schema"
    )


def test_arguments_lose_the_nulls_that_strict_alone_asked_for() -> None:
    told = Declaration("add", "", properties(a=TEXT, b={"type": ["string", "null"]}))
    args = {"a": None, "b": None, "c": None}

    assert in_dialect(told, "openai-strict").arguments(args) == {"b": None, "c": None}
    assert in_dialect(Declaration("now"), "openai-strict").arguments({}) == {}
    for dialect in (None, "openai", "gemini", "anthropic"):
        assert in_dialect(told, dialect).arguments(args) == args


def test_an_unknown_dialect_is_named() -> None:
    unknown: Any = "esperanto"
    with pytest.raises(ValueError, match='there is no dialect "esperanto"; use one of openai, '):
        to_dialect({}, unknown)


def test_nulls_that_stand_for_what_is_missing_are_taken_out() -> None:
    schema = {
        **properties(
            a=TEXT,
            b={"type": ["string", "null"]},
            c={},
            d={"type": "array", "items": properties(x=TEXT)},
            e={"anyOf": [properties(y=TEXT), properties(z=TEXT)]},
            f=TEXT,
        ),
        "required": ["f"],
    }
    args = {"a": None, "b": None, "c": None, "d": [{"x": None}, 1], "e": {"z": None}, "f": None}

    assert without_nulls(schema, args) == {
        "b": None,
        "c": None,
        "d": [{}, 1],
        "e": {},
        "f": None,
    }
    assert without_nulls(TREE, {"tree": None, "new": None}) == {"new": None}
