"""Numbered cases of tools and toolsets that belong to no single module."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from bridge.agents.agent_tool import AgentTool
from bridge.agents.llm_agent import Agent
from bridge.core.context import ToolContext, local_context
from bridge.core.instructions import append_instructions
from bridge.core.request import LLMRequest
from bridge.core.tool import FunctionTool, RequestProcessor, StreamingFunctionTool, pack_tool
from bridge.errors import ConfigError, ConfirmationRequired, ToolError
from bridge.tools.artifacts import load_artifacts
from bridge.tools.examples import ExampleTool
from bridge.tools.function import function_tool
from bridge.tools.memory import load_memory, preload_memory
from bridge.tools.native import NativeTool, google_search
from bridge.tools.streaming import streaming_tool
from bridge.tools.toolsets import StaticToolset
from tests.agents.talk import instruction
from tests.agents.tools import DeferringProbe
from tests.fakes import CustomTool, PlainTool

CTX = local_context()


def desk() -> ToolContext:
    return ToolContext(CTX, "c1")


@function_tool
async def plain() -> None:
    """Do nothing."""


@streaming_tool
async def pieces() -> AsyncIterator[str]:
    """Say nothing."""
    for each in ():
        yield each


RUNS, STREAMS, PREPARES = FunctionTool, StreamingFunctionTool, RequestProcessor


@pytest.mark.spec("1.1")
@pytest.mark.parametrize(
    ("tool", "shapes"),
    [
        (plain, {RUNS, PREPARES}),
        (load_artifacts, {RUNS, PREPARES}),
        (load_memory, {RUNS, PREPARES}),
        (AgentTool(Agent("helper")), {RUNS, PREPARES}),
        (pieces, {STREAMS, PREPARES}),
        (google_search, {PREPARES}),
        (NativeTool("maps", "Maps.", {"maps": {}}), {PREPARES}),
        (preload_memory, {PREPARES}),
        (ExampleTool([]), {PREPARES}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_each_kind_of_tool_can_what_it_should_and_no_more(tool: object, shapes: set[type]) -> None:
    assert {kind for kind in (RUNS, STREAMS, PREPARES) if isinstance(tool, kind)} == shapes


@pytest.mark.spec("1.2")
async def test_a_name_lets_no_longer_name_through() -> None:
    tools = [CustomTool("get_weather"), CustomTool("get_weather1")]

    for allow in (["get_weather"], lambda ctx, tool: tool.name == "get_weather"):
        filtered = StaticToolset(tools).filtered(allow)
        assert await filtered.tools(CTX) == (tools[0],)


class Instructing(CustomTool):
    """Adds to the instruction, and leaves it to others to enter it in the request."""

    async def process_request(self, ctx: ToolContext, request: LLMRequest) -> None:
        append_instructions(request, "Mind the gap.")


class SelfPacking(CustomTool):
    """Enters itself in the request."""

    async def process_request(self, ctx: ToolContext, request: LLMRequest) -> None:
        pack_tool(request, self)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        pytest.param(Instructing, "Mind the gap.", marks=pytest.mark.spec("1.4")),
        pytest.param(SelfPacking, "", marks=pytest.mark.spec("1.5")),
    ],
)
async def test_behind_a_confirmation_a_tool_prepares_as_before_and_runs_through_the_gate(
    kind: type[CustomTool], told: str
) -> None:
    inner, request, ctx = kind("pay"), LLMRequest(), desk()
    (guarded,) = await StaticToolset([inner]).confirmed().tools(CTX)
    assert isinstance(guarded, RequestProcessor)
    await guarded.process_request(ToolContext.preparing(CTX), request)

    assert instruction(request) == told
    assert request.tools is not None
    assert request.tools["pay"] is guarded
    with pytest.raises(ConfirmationRequired):
        await request.tools["pay"].run(ctx, {})

    assert ctx.actions.skip_summarization
    assert inner.calls == []


@pytest.mark.spec("1.6")
async def test_only_a_tool_that_says_so_defers_its_answer() -> None:
    assert DeferringProbe().defers_response()
    (guarded,) = await StaticToolset([DeferringProbe("work")]).confirmed().tools(CTX)
    for tool in (plain, pieces, AgentTool(Agent("helper")), PlainTool("a"), guarded):
        assert not hasattr(tool, "defers_response")


@dataclasses.dataclass
class SumData:
    a: int
    b: int


class SumModel(BaseModel):
    a: int
    b: int


class SumDict(TypedDict):
    a: int
    b: int


def from_data(args: SumData) -> dict[str, int]:
    return {"sum": args.a + args.b}


def from_model(args: SumModel) -> dict[str, int]:
    return {"sum": args.a + args.b}


def from_typed_dict(args: SumDict) -> dict[str, int]:
    return {"sum": args["a"] + args["b"]}


def from_mapping(args: dict[str, int]) -> dict[str, int]:
    return {"sum": sum(args.values())}


def from_keywords(a: int, b: int) -> dict[str, int]:
    return {"sum": a + b}


@pytest.mark.spec("2.1")
@pytest.mark.parametrize(
    "handler", [from_data, from_model, from_typed_dict, from_mapping, from_keywords]
)
async def test_a_sum_is_the_same_whatever_form_the_arguments_take(handler: Any) -> None:
    assert await function_tool(handler).run(desk(), {"a": 2, "b": 3}) == {"sum": 5}


async def asks_nothing() -> bool:
    return False


@pytest.mark.spec("2.6")
@pytest.mark.parametrize(
    "provider",
    [
        123,
        "a text",
        SumData(1, 2),
        asks_nothing,
        lambda: False,
        lambda name: False,
        lambda name, args, more: False,
    ],
)
def test_what_cannot_be_a_provider_is_refused_when_the_tool_is_made(provider: Any) -> None:
    async def stream() -> AsyncIterator[str]:
        yield "never"

    with pytest.raises(ConfigError, match=r'tool "work": .*confirmation'):
        function_tool(lambda: None, name="work", require_confirmation=provider)

    with pytest.raises(ConfigError, match=r'tool "stream": .*confirmation'):
        streaming_tool(stream, require_confirmation=provider)


@pytest.mark.spec("2.6")
@pytest.mark.parametrize("answer", [None, 0, "", (False, False)])
async def test_a_provider_that_says_neither_yes_nor_no_lets_no_call_run_unasked(
    answer: Any,
) -> None:
    ran: list[str] = []

    def work() -> None:
        ran.append("ran")

    with pytest.raises(ConfirmationRequired):
        await function_tool(work, require_confirmation=lambda name, args: answer).run(desk(), {})

    assert ran == []


@pytest.mark.spec("2.6")
@pytest.mark.parametrize("provider", [None, False, lambda name, args: False])
async def test_no_provider_and_one_that_says_no_let_a_call_run(provider: Any) -> None:
    tool = function_tool(lambda: {"ok": True}, name="work", require_confirmation=provider)

    assert await tool.run(desk(), {}) == {"ok": True}


NOTHING_FITS = "does not fit"


@pytest.mark.spec("2.8")
@pytest.mark.parametrize(
    ("output", "schema", "answer"),
    [
        (None, {"type": "object"}, None),
        (None, {"type": "string"}, NOTHING_FITS),
        ("a text", {"type": "object"}, NOTHING_FITS),
        (None, None, None),
        ([1, 2, 3], {"type": "array"}, {"result": [1, 2, 3]}),
    ],
)
async def test_what_fits_which_schema(output: Any, schema: Any, answer: Any) -> None:
    tool = function_tool(lambda: output, name="work", output_schema=schema)

    if answer is NOTHING_FITS:
        with pytest.raises(ToolError, match=NOTHING_FITS):
            await tool.run(desk(), {})
    else:
        assert await tool.run(desk(), {}) == answer
