"""Tools that answer in pieces: made of generators, behind the same schema and gate."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

import anyio
import pytest

from bridge.core.confirmation import ToolConfirmation
from bridge.core.context import ToolContext, local_context
from bridge.core.request import LLMRequest
from bridge.errors import (
    ConfigError,
    ConfirmationRejected,
    ConfirmationRequired,
    InvalidArguments,
    ToolError,
)
from bridge.tools.gate import Rule
from bridge.tools.streaming import StreamingTool, streaming_tool


async def count(n: int) -> AsyncIterator[str]:
    """Count to a number.

    Args:
        n: How far to count.
    """
    for each in range(n):
        yield f"chunk {each}"


def count_in_thread(ctx: ToolContext, n: int) -> Iterator[str]:
    for each in range(n):
        yield f"{ctx.function_call_id}:{each}"


def context(confirmation: ToolConfirmation | None = None) -> ToolContext:
    return ToolContext(local_context(), "call-id", None, confirmation)


async def pieces(tool: StreamingTool, ctx: ToolContext | None = None, **args: Any) -> list[str]:
    async with aclosing(tool.run_stream(ctx or context(), args)) as stream:
        return [piece async for piece in stream]


async def test_a_generator_becomes_a_tool_with_its_schema_and_words() -> None:
    tool = streaming_tool(count)
    declared = tool.declaration()

    assert (tool.name, tool.description, tool.is_long_running) == (
        "count",
        "Count to a number.",
        False,
    )
    assert declared.parameters_json_schema == {
        "type": "object",
        "properties": {"n": {"type": "integer", "description": "How far to count."}},
        "required": ["n"],
        "additionalProperties": False,
    }
    assert declared.response_json_schema is None
    assert await pieces(tool, n=2) == ["chunk 0", "chunk 1"]
    assert await pieces(tool, n=0) == []


async def test_a_generator_that_is_not_async_is_driven_in_threads() -> None:
    threads: set[int] = set()

    @streaming_tool(name="threads", description="Where am I?", is_long_running=True)
    def where() -> Iterator[str]:
        threads.add(threading.get_ident())
        yield "here"

    assert await pieces(where) == ["here"]
    assert threading.get_ident() not in threads
    assert (where.name, where.is_long_running) == ("threads", True)
    assert await pieces(streaming_tool(count_in_thread), n=2) == ["call-id:0", "call-id:1"]


async def test_a_tool_enters_a_request_as_any_other() -> None:
    request, tool = LLMRequest(), streaming_tool(count)
    await tool.process_request(context(), request)

    assert request.tools == {"count": tool}


@pytest.mark.spec("2.11")
@pytest.mark.parametrize("confirmed", [True, False, None])
async def test_a_stream_passes_the_gate_before_its_first_piece(confirmed: bool | None) -> None:
    handled: list[str] = []

    @streaming_tool(require_confirmation=True)
    async def streaming_tool_here() -> AsyncIterator[str]:
        handled.append("handled")
        yield "handled request"

    decision = None if confirmed is None else ToolConfirmation(confirmed=confirmed)
    ctx = context(decision)
    if confirmed:
        assert await pieces(streaming_tool_here, ctx) == ["handled request"]
        return

    error = ConfirmationRequired if confirmed is None else ConfirmationRejected
    with pytest.raises(error):
        await pieces(streaming_tool_here, ctx)

    assert handled == []
    asked = ctx.actions.requested_tool_confirmations
    assert list(asked) == (["call-id"] if confirmed is None else [])
    assert ctx.actions.skip_summarization is (confirmed is None)
    if confirmed is None:
        assert "streaming_tool_here" in asked["call-id"].hint


async def test_arguments_are_converted_before_anybody_is_asked() -> None:
    asked: list[Any] = []

    def provider(name: str, args: dict[str, Any]) -> bool:
        asked.append((name, args))
        return False

    tool = streaming_tool(count, require_confirmation=provider)
    with pytest.raises(InvalidArguments, match="expected an integer"):
        await pieces(tool, n="x")

    assert asked == []
    assert await pieces(tool, n=1) == ["chunk 0"]
    assert asked == [("count", {"n": 1})]


@pytest.mark.spec("2.12")
@pytest.mark.parametrize("is_async", [True, False])
async def test_who_stops_listening_lets_the_generator_clean_up(is_async: bool) -> None:
    cleaned: list[bool] = []

    async def endless() -> AsyncIterator[str]:
        try:
            while True:
                yield "more"
        finally:
            cleaned.append(True)

    def endless_in_thread() -> Iterator[str]:
        try:
            while True:
                yield "more"
        finally:
            cleaned.append(True)

    tool = streaming_tool(endless if is_async else endless_in_thread)
    async with aclosing(tool.run_stream(context(), {})) as stream:
        assert await anext(stream) == "more"

    assert cleaned == [True]


async def test_a_failure_is_the_calls_failure_with_its_own_message() -> None:
    async def broken() -> AsyncIterator[str]:
        yield "one"
        raise OSError("boom")

    with pytest.raises(ToolError, match="boom") as caught:
        await pieces(streaming_tool(broken))

    assert isinstance(caught.value.__cause__, OSError)


async def test_a_generator_that_blocks_in_a_thread_is_left_behind() -> None:
    entered, release = threading.Event(), threading.Event()

    def blocking() -> Iterator[str]:
        entered.set()
        release.wait(timeout=60)
        yield "too late"

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pieces, streaming_tool(blocking))
            await anyio.to_thread.run_sync(lambda: entered.wait(timeout=60))
            tasks.cancel_scope.cancel()
    finally:
        release.set()


async def test_a_tool_under_another_name_or_rule_is_another_tool() -> None:
    tool = streaming_tool(count)
    named = tool.relabelled("tally", "Count.")
    guarded = tool.with_rule(Rule("count", require=True))

    assert (named.name, named.description, tool.name) == ("tally", "Count.", "count")
    with pytest.raises(ConfirmationRequired):
        await pieces(guarded, n=1)

    assert await pieces(tool, n=1) == ["chunk 0"]


@pytest.mark.spec("2.6")
async def test_what_does_not_yield_is_no_streaming_tool() -> None:
    async def once() -> str:
        return "once"

    with pytest.raises(ConfigError, match="yields text"):
        streaming_tool(once)

    with pytest.raises(ConfigError, match="has no output_schema"):
        streaming_tool(count, output_schema={"type": "string"})
