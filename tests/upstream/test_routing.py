"""What rides in headers is what the SDK would send, and names are the SDK's names."""

from __future__ import annotations

import typing
from typing import Any

import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import inbound
from mcp_types import version

from bridge.upstream import protocol
from bridge.upstream.capabilities import LEVELS
from bridge.upstream.routing import (
    NAMED_BY,
    SHORT_NAME,
    header_value,
    mirror,
    mirrored,
    routing_headers,
)

NAMES = st.sampled_from(["a", "b", "city", "Region", "region", "x y", "", 7])
LEAF = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "number", "boolean", ["string"], "object"]),
        "x-mcp-header": NAMES,
        "default": st.just({"x-mcp-header": "data"}),
    },
)
SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    LEAF,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("pqr"), inner, max_size=3),
            "items": inner,
            "anyOf": st.lists(inner, max_size=2),
            "$defs": st.dictionaries(st.sampled_from("de"), inner, max_size=2),
            "type": st.just("object"),
        },
    ),
    max_leaves=6,
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False),
    lambda inner: st.dictionaries(st.sampled_from("pqr"), inner, max_size=3),
    max_leaves=6,
)


def test_names_are_those_of_the_sdk() -> None:
    assert protocol.MODERN_VERSION == version.LATEST_MODERN_VERSION
    assert tuple(version.HANDSHAKE_PROTOCOL_VERSIONS) == protocol.HANDSHAKE_VERSIONS
    assert protocol.UNSUPPORTED_VERSION == mcp_types.UNSUPPORTED_PROTOCOL_VERSION
    assert protocol.PROTOCOL_VERSION_KEY == mcp_types.PROTOCOL_VERSION_META_KEY
    assert protocol.CLIENT_INFO_KEY == mcp_types.CLIENT_INFO_META_KEY
    assert protocol.CLIENT_CAPABILITIES_KEY == mcp_types.CLIENT_CAPABILITIES_META_KEY
    assert protocol.SERVER_INFO_KEY == mcp_types.SERVER_INFO_META_KEY
    assert protocol.LOG_LEVEL_KEY == mcp_types.LOG_LEVEL_META_KEY
    assert typing.get_args(mcp_types.LoggingLevel) == LEVELS
    assert dict(inbound.NAME_BEARING_METHODS) == NAMED_BY
    requests = (mcp_types.ElicitRequest, mcp_types.CreateMessageRequest, mcp_types.ListRootsRequest)
    asked = [one.model_fields["method"].default for one in requests]
    assert asked == [protocol.ELICIT, protocol.SAMPLE, protocol.LIST_ROOTS]


@given(st.text(max_size=30) | st.sampled_from(["=?base64?eA==?=", " x", "x\ny", "größe"]))
def test_value_is_wrapped_as_the_sdk_wraps_it_and_can_be_read_back(text: str) -> None:
    try:
        expected = inbound.encode_header_value(text)
    except UnicodeEncodeError:
        return

    assert header_value(text) == expected
    assert inbound.decode_header_value(header_value(text)) == text


@given(SCHEMAS, VALUES)
def test_schema_is_understood_as_the_sdk_understands_it(schema: Any, args: Any) -> None:
    if inbound.find_invalid_x_mcp_header(schema) is not None:
        with pytest.raises(ValueError, match="x-mcp-header"):
            mirrored(schema)
        return

    args = args if isinstance(args, dict) else {}
    expected = inbound.mcp_param_headers(inbound.x_mcp_header_map(schema), args)
    assert mirror(mirrored(schema), args) == expected


def test_method_and_name_ride_along() -> None:
    assert routing_headers("tools/call", {"name": "grüß"}) == {
        "Mcp-Method": "tools/call",
        "Mcp-Name": "=?base64?Z3LDvMOf?=",
    }
    assert routing_headers("tools/list", {}) == {"Mcp-Method": "tools/list"}
    long = {"uri": "ü" * (SHORT_NAME + 1)}
    assert routing_headers("resources/read", long)["Mcp-Name"] == header_value(long["uri"])
