"""Tools by their shape, and the one way into a request."""

from __future__ import annotations

import pytest

from bridge.core.declaration import Declaration, ModelTool
from bridge.core.request import GenerateConfig, LLMRequest
from bridge.core.tool import (
    FunctionTool,
    RequestProcessor,
    StreamingFunctionTool,
    Tool,
    Toolset,
    is_function_tool,
    pack_tool,
)
from bridge.errors import DuplicateTool
from tests.fakes import CustomTool, NativeTool, PlainTool, ScriptedToolset, StreamOnlyTool


class Invisible(CustomTool):
    """A tool that a model does not read of."""

    def declaration(self) -> None:
        return None


def packed(*tools: CustomTool, request: LLMRequest | None = None) -> LLMRequest:
    """A request that these tools have entered."""
    request = LLMRequest() if request is None else request
    for tool in tools:
        pack_tool(request, tool)

    return request


def told(request: LLMRequest) -> list[ModelTool | None]:
    """What the model reads of."""
    return [] if request.config is None else request.config.tools


def declared(name: str) -> Declaration:
    return CustomTool(name).declaration() or Declaration(name)


@pytest.mark.parametrize(
    ("thing", "shapes"),
    [
        (PlainTool("a"), {Tool}),
        (CustomTool("a"), {Tool, FunctionTool}),
        (NativeTool("a"), {Tool, RequestProcessor}),
        (StreamOnlyTool("a"), {Tool, StreamingFunctionTool}),
        (ScriptedToolset("a", [[]]), {Toolset}),
        ("a", set()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_thing_is_what_its_methods_make_it(thing: object, shapes: set[type]) -> None:
    kinds = (Tool, FunctionTool, StreamingFunctionTool, RequestProcessor, Toolset)

    assert {kind for kind in kinds if isinstance(thing, kind)} == shapes
    assert is_function_tool(thing) is (FunctionTool in shapes)


@pytest.mark.spec("3.1")
def test_a_tool_is_entered_where_it_is_looked_up_and_where_the_model_reads() -> None:
    tool = CustomTool("a")
    request = packed(tool)

    assert request.tools == {"a": tool}
    assert told(request) == [ModelTool([declared("a")])]


@pytest.mark.spec("3.2")
def test_a_second_tool_is_declared_beside_the_first() -> None:
    first, second = CustomTool("a"), CustomTool("b")
    request = packed(first, second)

    assert request.tools == {"a": first, "b": second}
    assert told(request) == [ModelTool([declared("a"), declared("b")])]


@pytest.mark.spec("3.3")
def test_a_name_that_is_taken_is_refused_and_nothing_is_changed() -> None:
    first, second = CustomTool("a"), CustomTool("a", "Another's.")
    request = packed(first)

    with pytest.raises(DuplicateTool, match='two tools are named "a"'):
        pack_tool(request, second)

    assert request.tools is not None
    assert request.tools["a"] is first
    assert told(request) == [ModelTool([declared("a")])]


@pytest.mark.spec("3.4")
def test_a_tool_that_declares_nothing_is_looked_up_and_not_read_of() -> None:
    hidden = Invisible("a")
    request = packed(hidden)

    assert request.tools == {"a": hidden}
    assert told(request) == []


@pytest.mark.spec("3.5")
def test_a_tool_that_declares_nothing_keeps_its_name() -> None:
    hidden = Invisible("x")
    request = packed(hidden)

    with pytest.raises(DuplicateTool, match='two tools are named "x"'):
        pack_tool(request, CustomTool("x"))

    assert request.tools == {"x": hidden}
    assert told(request) == []


@pytest.mark.spec("3.6")
async def test_a_providers_own_tool_keeps_its_entry_and_the_function_gets_one_behind_it() -> None:
    request = LLMRequest(config=GenerateConfig(tools=[ModelTool(native={"search": {}})]))
    packed(CustomTool("f"), request=request)

    assert told(request) == [ModelTool(native={"search": {}}), ModelTool([declared("f")])]


def test_the_first_list_of_declarations_is_used_be_it_empty() -> None:
    empty, other = ModelTool([]), ModelTool([declared("z")])
    request = LLMRequest(config=GenerateConfig(tools=[None, ModelTool(), empty, other]))
    packed(CustomTool("f"), request=request)

    assert told(request) == [None, ModelTool(), ModelTool([declared("f")]), other]
    assert request.config is not None
    assert request.config.tools[2] is empty
