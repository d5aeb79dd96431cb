from __future__ import annotations

import logging
from typing import Any, Literal, TypedDict

import pytest

from bridge.calls.hooks import Hook, Hooks
from bridge.core.content import Args, Result
from bridge.core.context import ToolContext, local_context
from bridge.core.declaration import Declaration
from bridge.core.rpc import INVALID_PARAMS, RpcError
from bridge.core.tool import Tool
from bridge.downstream.asker import Asker
from bridge.downstream.handlers import Handlers
from bridge.downstream.jsonrpc import InvalidParams
from bridge.errors import OutcomeUnknown
from bridge.tools.function import function_tool
from tests.downstream.offer import (
    ODD_ANSWER,
    RICH_ANSWER,
    RICH_DEFINITION,
    Runs,
    Shelf,
    everything,
    servers_tool,
    text,
)

MODERN = Asker()
LEGACY = Asker(modern=False)
STAMP = {"name": "tests", "version": "1"}
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
MODERN_PARTS = {"resultType": "complete", "_meta": {SERVER_INFO: STAMP}}


async def handlers_of(*tools: Tool, hooks: Hooks | None = None) -> Handlers:
    catalog = await Shelf(*tools).offered()
    return Handlers(catalog, hooks=hooks or Hooks(), name="tests", version="1")


async def call(handlers: Handlers, name: str, asker: Asker = LEGACY, **args: Any) -> Result:
    return await handlers.call_tool(asker, {"name": name, "arguments": args})


async def nothing(ctx: ToolContext, args: Args) -> Result:
    return text("nothing")


class Silent:
    """A tool that is callable, and that nobody is told of."""

    name, description, is_long_running = "silent", "", False

    def declaration(self) -> None:
        return None

    async def run(self, ctx: ToolContext, args: Args) -> Result | None:
        return None


class RequestOnly:
    """A tool that runs elsewhere."""

    name, description, is_long_running = "elsewhere", "", False

    def declaration(self) -> Declaration:
        return Declaration(self.name)


async def test_a_servers_definition_is_listed_untouched_but_for_its_name() -> None:
    tool = servers_tool("docs__rich", nothing, definition=RICH_DEFINITION)
    listed = await (await handlers_of(tool)).list_tools(MODERN, {})

    expected = {"tools": [{**RICH_DEFINITION, "name": "docs__rich"}]}
    assert listed == {**expected, **MODERN_PARTS, "ttlMs": 0, "cacheScope": "private"}


async def test_a_legacy_listing_has_no_modern_fields() -> None:
    tool = servers_tool("docs__rich", nothing, definition=RICH_DEFINITION)
    listed = await (await handlers_of(tool)).list_tools(LEGACY, {})

    assert listed == {"tools": [{**RICH_DEFINITION, "name": "docs__rich"}]}


async def test_a_description_of_our_own_takes_the_place_of_the_servers() -> None:
    described = servers_tool("a", nothing, definition=RICH_DEFINITION, description="Ours.")
    bare = {"name": "b", "inputSchema": {"type": "object"}}
    handlers = await handlers_of(described, servers_tool("b", nothing, definition=bare))

    listed = (await handlers.list_tools(LEGACY, {}))["tools"]

    assert [tool.get("description") for tool in listed] == ["Ours.", None]


async def test_tools_are_listed_by_name_whatever_order_they_came_in() -> None:
    handlers = await handlers_of(*(servers_tool(name, nothing) for name in "cab"))

    assert [tool["name"] for tool in (await handlers.list_tools(MODERN, {}))["tools"]] == [*"abc"]


class Point(TypedDict):
    x: int


def total(points: list[Point]) -> int:
    """Sum up."""
    return sum(point["x"] for point in points)


def corner() -> Point:
    return {"x": 3}


def corners() -> list[Point]:
    return [{"x": 3}]


def maybe() -> Point | None:
    return None


async def test_a_local_tool_is_listed_as_it_declares_itself() -> None:
    tools = [function_tool(total), function_tool(lambda: None, name="void")]
    listed = (await (await handlers_of(*tools)).list_tools(MODERN, {}))["tools"]

    assert [tool["name"] for tool in listed] == ["total", "void"]
    assert listed[0]["description"] == "Sum up."
    assert listed[0]["inputSchema"] == function_tool(total).declaration().parameters_json_schema
    assert listed[1]["inputSchema"]["type"] == "object"
    assert "outputSchema" not in listed[1]


async def test_what_is_wrapped_on_the_way_out_is_listed_wrapped() -> None:
    tools = (function_tool(corner), function_tool(corners), function_tool(maybe))
    listed = {
        t["name"]: t for t in (await (await handlers_of(*tools)).list_tools(LEGACY, {}))["tools"]
    }

    assert listed["corner"]["outputSchema"]["properties"]["x"]["type"] == "integer"
    wrapped = listed["corners"]["outputSchema"]
    assert (wrapped["type"], wrapped["required"]) == ("object", ["result"])
    assert wrapped["properties"]["result"]["type"] == "array"
    assert "$defs" not in wrapped["properties"]["result"]
    assert "outputSchema" not in listed["maybe"]


async def test_local_answers_are_structured_and_have_the_same_as_text() -> None:
    handlers = await handlers_of(function_tool(corner), function_tool(corners))

    assert await call(handlers, "corner") == {
        "content": [{"type": "text", "text": '{"x":3}'}],
        "structuredContent": {"x": 3},
    }
    assert (await call(handlers, "corners"))["structuredContent"] == {"result": [{"x": 3}]}


async def test_no_answer_is_empty_but_where_an_object_was_promised() -> None:
    promised = function_tool(lambda: None, name="promised", output_schema={"type": "object"})
    handlers = await handlers_of(function_tool(maybe), promised)

    assert await call(handlers, "maybe") == {"content": []}
    assert (await call(handlers, "promised"))["structuredContent"] == {}


async def test_a_legacy_client_is_not_shown_an_output_schema_it_cannot_read() -> None:
    odd = {"name": "odd", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}}
    handlers = await handlers_of(servers_tool("odd", nothing, definition=odd))

    (modern,) = (await handlers.list_tools(MODERN, {}))["tools"]
    (legacy,) = (await handlers.list_tools(LEGACY, {}))["tools"]

    assert modern == odd
    assert legacy == {"name": "odd", "inputSchema": {"type": "object"}}


async def test_what_cannot_run_or_is_undeclared_is_not_listed() -> None:
    handlers = await handlers_of(Silent(), RequestOnly(), function_tool(corner))

    assert [tool["name"] for tool in (await handlers.list_tools(MODERN, {}))["tools"]] == ["corner"]
    assert await call(handlers, "silent") == {"content": []}


async def test_a_tool_that_fails_to_declare_itself_hides_only_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tools: dict[str, Any] = {"silent": Silent(), "good": servers_tool("good", nothing)}

    def broken() -> None:
        raise RuntimeError("no words")

    tools["silent"].declaration = broken

    class Snapshot:
        version = 1
        on_change: list[Any] = []  # noqa: RUF012

    Snapshot.tools = tools  # type: ignore[attr-defined]
    with caplog.at_level(logging.WARNING, "bridge"):
        listed = await Handlers(Snapshot()).list_tools(LEGACY, {})  # type: ignore[arg-type]

    assert [tool["name"] for tool in listed["tools"]] == ["good"]
    assert caplog.messages == ['the tool "silent" cannot be listed: no words']


async def test_the_listing_is_built_once_for_each_version() -> None:
    shelf = Shelf(servers_tool("a", nothing))
    catalog = await shelf.offered()
    handlers = Handlers(catalog)
    first = await handlers.list_tools(MODERN, {})
    again = await handlers.list_tools(MODERN, {})
    shelf.listing = (*shelf.listing, servers_tool("b", nothing))
    await catalog.refresh(local_context())
    later = await handlers.list_tools(MODERN, {})

    assert again["tools"] is first["tools"]
    assert [tool["name"] for tool in later["tools"]] == ["a", "b"]


async def test_only_schemas_that_put_arguments_in_headers_are_compared_with_headers() -> None:
    schema = {"type": "object", "properties": {"to": {"type": "string", "x-mcp-header": "To"}}}
    mirrored = servers_tool("m", nothing, definition={"name": "m", "inputSchema": schema})
    handlers = await handlers_of(servers_tool("a", nothing), mirrored)

    assert handlers.mirrored_schema("m") == schema
    assert handlers.mirrored_schema("a") is None
    assert handlers.mirrored_schema(None) is None


@pytest.mark.parametrize("cursor", ["", "next", 1])
async def test_an_unknown_cursor_is_refused(cursor: Any) -> None:
    with pytest.raises(InvalidParams, match="unknown cursor") as refused:
        await (await handlers_of()).list_tools(MODERN, {"cursor": cursor})

    assert refused.value.code == INVALID_PARAMS


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"name": "nope"}, 'unknown tool "nope"'),
        ({"name": "elsewhere"}, 'unknown tool "elsewhere"'),
        ({}, 'needs a "name"'),
        ({"name": 1}, 'needs a "name"'),
        ({"name": "silent", "arguments": []}, '"arguments" of "silent" must be an object'),
    ],
)
async def test_what_is_no_call_of_an_offered_tool_is_an_error(
    params: dict[str, Any], message: str
) -> None:
    handlers = await handlers_of(Silent(), RequestOnly())
    with pytest.raises(InvalidParams, match=message):
        await handlers.call_tool(MODERN, params)


async def test_arguments_may_be_absent_or_null() -> None:
    handlers = await handlers_of(function_tool(corner))

    for params in ({"name": "corner"}, {"name": "corner", "arguments": None}):
        assert (await handlers.call_tool(LEGACY, params))["structuredContent"] == {"x": 3}


async def test_a_servers_answer_goes_out_as_it_came() -> None:
    handlers = await handlers_of(*everything(Runs()))

    assert await call(handlers, "odd") == ODD_ANSWER
    assert await call(handlers, "rich") == RICH_ANSWER
    modern = await call(handlers, "odd", MODERN)
    meta = {**ODD_ANSWER["_meta"], SERVER_INFO: STAMP}
    assert modern == {**ODD_ANSWER, "_meta": meta, "resultType": "complete"}


async def test_one_servers_stamp_gives_way_to_ours_and_the_rest_of_meta_stays() -> None:
    answer = text("x", _meta={SERVER_INFO: {"name": "theirs"}, "k": 1}, resultType="complete")

    async def stamped(ctx: ToolContext, args: Args) -> Result:
        return {**answer, "ttlMs": 5, "cacheScope": "public"}

    handlers = await handlers_of(servers_tool("stamped", stamped))

    modern = await call(handlers, "stamped", MODERN)
    assert modern["_meta"] == {SERVER_INFO: STAMP, "k": 1}
    assert await call(handlers, "stamped") == text("x", _meta={"k": 1})
    assert answer["_meta"] == {SERVER_INFO: {"name": "theirs"}, "k": 1}


async def test_meta_that_held_nothing_but_the_stamp_is_gone_for_a_legacy_client() -> None:
    async def stamped(ctx: ToolContext, args: Args) -> Result:
        return text("x", _meta={SERVER_INFO: {"name": "theirs"}})

    async def empty(ctx: ToolContext, args: Args) -> Result:
        return text("x", _meta={})

    handlers = await handlers_of(servers_tool("stamped", stamped), servers_tool("empty", empty))

    assert await call(handlers, "stamped") == text("x")
    assert await call(handlers, "empty") == text("x", _meta={})


async def test_a_servers_protocol_error_is_passed_on() -> None:
    handlers = await handlers_of(*everything(Runs()))
    with pytest.raises(RpcError) as passed:
        await call(handlers, "broken")

    expected = {"code": -32050, "message": "broken there", "data": {"why": [1, None]}}
    assert passed.value.error == expected


async def test_any_other_failure_is_a_text_with_is_error() -> None:
    async def gone(ctx: ToolContext, args: Args) -> Result:
        raise OutcomeUnknown("the server went away")

    def bad() -> int:
        raise ZeroDivisionError("by zero")

    handlers = await handlers_of(servers_tool("gone", gone), function_tool(bad))

    assert await call(handlers, "gone") == text("the server went away", isError=True)
    assert await call(handlers, "bad", MODERN) == {**text("by zero", isError=True), **MODERN_PARTS}


class Replacing(Hook):
    def __init__(self, result: Result) -> None:
        self.result = result

    async def after_tool(self, *_: Any) -> Result | None:
        return self.result


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ({"output": "words"}, text("words")),
        ({"output": {"a": 1}}, text('{"a":1}', structuredContent={"a": 1})),
        ({"output": 0}, text("0", structuredContent=0)),
        (
            {"output": "x", "b": 1},
            text('{"output":"x","b":1}', structuredContent={"output": "x", "b": 1}),
        ),
    ],
)
async def test_what_a_hook_put_in_a_servers_place_is_answered_in_its_shape(
    result: Result, answer: Result
) -> None:
    async def plain(ctx: ToolContext, args: Args) -> Result:
        return text("theirs", unknown=1)

    handlers = await handlers_of(servers_tool("plain", plain), hooks=Hooks([Replacing(result)]))

    assert await call(handlers, "plain") == answer


async def test_an_output_key_of_a_local_tool_is_its_own_affair() -> None:
    def local() -> dict[Literal["output"], str]:
        return {"output": "x"}

    handlers = await handlers_of(function_tool(local))

    assert (await call(handlers, "local"))["structuredContent"] == {"output": "x"}


class Watching(Hook):
    async def after_tool(self, *_: Any) -> Result | None:
        return None


async def test_a_hook_that_only_looks_leaves_the_answer_raw() -> None:
    handlers = await handlers_of(*everything(Runs()), hooks=Hooks([Watching()]))

    assert await call(handlers, "rich") == RICH_ANSWER
    assert await call(handlers, "odd") == ODD_ANSWER
