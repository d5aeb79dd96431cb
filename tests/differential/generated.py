"""Servers and answers that nobody wrote: everything that the protocol lets them hold.

Values are JSON as `json` reads it. Nothing is generated that the protocol forbids: what bridge
does with such is tested where it is done.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from bridge.upstream.protocol import UNSUPPORTED_VERSION

Json = dict[str, Any]

BIG = [2**53, 2**53 + 1, -(2**63), 2**63, 2**64 + 1, 10**40, -(10**30)]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
KEYS = st.text("abcXYZ019_-./ äß東🎈$", min_size=1, max_size=8)
NUMBERS = st.integers() | st.sampled_from(BIG) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
EMPTY = st.sampled_from([0, False, None, [], {}, "", 0.0, -0.0])


def _nested(inner: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)


VALUES: SearchStrategy[Any] = EMPTY | st.recursive(SCALARS, _nested, max_leaves=8)
UNKNOWN = st.dictionaries(st.sampled_from(["x", "futureField", "vendor.example/a", "$odd"]), VALUES)
META = st.dictionaries(
    st.sampled_from(["example.com/a", "progress", "ui/other", "traceparent", "x"]), VALUES
)

_REFERENCES = st.sampled_from(["#", "#/$defs/node", "#here", "#/properties/a", "urn:example:x"])


def _keywords(inner: SearchStrategy[Any]) -> SearchStrategy[Json]:
    several = st.lists(inner, min_size=1, max_size=2)
    named = st.dictionaries(st.sampled_from(["a", "node", "ä b"]), inner, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["string", "object", "array", "null", ["string", "null"]]),
            "$ref": _REFERENCES,
            "$anchor": st.just("here"),
            "$dynamicRef": st.just("#node"),
            "$comment": TEXTS,
            "$defs": named,
            "properties": named,
            "patternProperties": st.dictionaries(st.just("^x-"), inner, max_size=1),
            "dependentSchemas": named,
            "anyOf": several,
            "allOf": several,
            "oneOf": several,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "items": inner,
            "prefixItems": several,
            "contains": inner,
            "additionalProperties": inner,
            "unevaluatedProperties": inner,
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "const": VALUES,
            "default": VALUES,
            "examples": st.lists(VALUES, max_size=2),
            "minimum": NUMBERS,
            "multipleOf": st.sampled_from([0.1, 3, 1e-300]),
            "maxLength": st.sampled_from([0, 2**53 + 1]),
            "pattern": st.sampled_from(["^(a+)+$", "\\p{L}", ""]),
            "format": TEXTS,
            "x-unknown": VALUES,
        },
    )


SCHEMAS: SearchStrategy[Any] = st.recursive(st.booleans() | st.just({}), _keywords, max_leaves=10)


@st.composite
def object_schemas(draw: st.DrawFn) -> Json:
    """A schema of an object, as tools have them."""
    schema: Any = draw(_keywords(SCHEMAS))
    properties = schema.get("properties", {})
    required = draw(st.lists(st.sampled_from(["a", "b", "ä b"]), unique=True))
    more = {"required": required} if required else {}
    draft = draw(st.sampled_from([None, "https://json-schema.org/draft/2020-12/schema"]))
    if draft is not None:
        more["$schema"] = draft

    return {**schema, "type": "object", "properties": properties, **more}


ANNOTATIONS = st.fixed_dictionaries(
    {},
    optional={
        "audience": st.lists(st.sampled_from(["user", "assistant"]), max_size=2),
        "priority": st.sampled_from([0, 1, 0.5, 0.0]),
        "lastModified": st.just("2026-01-02T03:04:05Z"),
        "example.com/x": VALUES,
    },
)
BASE64 = st.sampled_from(["", "aGVsbG8=", "iVBORw0KGgo="])
URIS = st.sampled_from(["told://a", "told://b?c=d", "ui://app", "file:///tmp/a%20b", "urn:x:y"])
ICONS = st.lists(st.fixed_dictionaries({"src": st.just("data:,x"), "x": VALUES}), max_size=1)


def _with_more(required: Json, /, **optional: SearchStrategy[Any]) -> SearchStrategy[Json]:
    """An object of the protocol's with its fields, annotations, `_meta` and unknown fields."""
    known = st.fixed_dictionaries(
        required, optional={**optional, "annotations": ANNOTATIONS, "_meta": META}
    )
    return st.builds(lambda known, unknown: {**unknown, **known}, known, UNKNOWN)


CONTENTS = _with_more({"uri": URIS, "text": TEXTS}, mimeType=TEXTS) | _with_more(
    {"uri": URIS, "blob": BASE64}, mimeType=TEXTS
)
BLOCKS = st.one_of(
    _with_more({"type": st.just("text"), "text": TEXTS}),
    _with_more({"type": st.just("image"), "data": BASE64, "mimeType": st.just("image/png")}),
    _with_more({"type": st.just("audio"), "data": BASE64, "mimeType": st.just("audio/wav")}),
    _with_more(
        {"type": st.just("resource_link"), "uri": URIS, "name": TEXTS},
        title=TEXTS,
        size=st.integers(0, 2**60),
    ),
    _with_more({"type": st.just("resource"), "resource": CONTENTS}),
    _with_more({"type": st.just("vendor/unknown"), "data": VALUES}),
)
RESULTS = st.builds(
    lambda known, unknown: {**unknown, **known},
    st.fixed_dictionaries(
        {"content": st.lists(BLOCKS, max_size=3)},
        optional={"structuredContent": VALUES, "isError": st.booleans(), "_meta": META},
    ),
    UNKNOWN,
)
ANY_CODES = st.integers(-32768, -1) | st.sampled_from(
    [0, 1, -32700, -32603, -32602, -32042, -32002]
)
CODES = ANY_CODES.filter(lambda code: code != UNSUPPORTED_VERSION)
"""The one that is left out says that nothing ran: bridge then shakes hands anew and asks again."""

ERRORS = st.fixed_dictionaries(
    {"code": CODES, "message": TEXTS}, optional={"data": VALUES, "x": VALUES}
)
REPLIES = st.fixed_dictionaries({"result": RESULTS}) | st.fixed_dictionaries({"error": ERRORS})
"""What a tool may be told to say."""

NAMES = st.from_regex(r"[A-Za-z0-9_.\-/]{1,100}", fullmatch=True) | st.sampled_from(["a", "ä", " "])

TOOLS = _with_more(
    {"name": NAMES, "inputSchema": object_schemas()},
    title=TEXTS,
    description=TEXTS,
    outputSchema=object_schemas() | st.just({"type": "array", "items": {}}),
    icons=ICONS,
)
PROMPTS = _with_more(
    {"name": NAMES},
    title=TEXTS,
    description=TEXTS,
    arguments=st.lists(_with_more({"name": TEXTS}, required=st.booleans()), max_size=2),
    icons=ICONS,
)
RESOURCES = _with_more(
    {"uri": st.builds("told://{}".format, st.integers(0, 99)), "name": TEXTS},
    title=TEXTS,
    mimeType=TEXTS,
    size=st.integers(0, 2**60),
)
TEMPLATES = _with_more(
    {"uriTemplate": st.builds("told://{}/{{+id}}".format, st.integers(0, 99)), "name": TEXTS},
    mimeType=TEXTS,
)
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant"]), "content": BLOCKS}
)
GOT = st.fixed_dictionaries({"messages": st.lists(MESSAGES, max_size=2)}, optional={"_meta": META})
READ = st.fixed_dictionaries({"contents": st.lists(CONTENTS, max_size=2)}, optional={"_meta": META})
COMPLETED = st.fixed_dictionaries(
    {"completion": _with_more({"values": st.lists(TEXTS, max_size=2)}, total=st.integers(0, 2**60))}
)


def _replies(results: SearchStrategy[Any]) -> SearchStrategy[Json]:
    return st.fixed_dictionaries({"result": results}) | st.fixed_dictionaries({"error": ERRORS})


def _unique(entries: SearchStrategy[Json], key: str) -> SearchStrategy[list[Json]]:
    return st.lists(entries, max_size=7, unique_by=lambda one: str(one[key]))


@st.composite
def offers(draw: st.DrawFn) -> Json:
    """All that one server offers, and how it answers for each thing."""
    prompts = draw(_unique(PROMPTS, "name"))
    resources = draw(_unique(RESOURCES, "uri"))
    tools = draw(_unique(TOOLS, "name").filter(_has_no_twin))
    return {
        "tools": tools,
        "prompts": prompts,
        "resources": resources,
        "resourceTemplates": draw(_unique(TEMPLATES, "uriTemplate")),
        "get": {one["name"]: draw(_replies(GOT)) for one in prompts},
        "read": {one["uri"]: draw(_replies(READ)) for one in resources},
        "complete": draw(_replies(COMPLETED)),
    }


def _has_no_twin(tools: list[Json]) -> bool:
    return all(not tool["name"].startswith(("become", "marker", "say")) for tool in tools)
