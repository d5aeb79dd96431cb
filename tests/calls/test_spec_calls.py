"""Numbered cases of what becomes of a call, from its name to its answer."""

from __future__ import annotations

from typing import Any, Literal

import anyio
import pytest

from bridge.calls.call import Outcome, execute
from bridge.core.content import FunctionCall
from bridge.core.context import local_context
from bridge.errors import ConfirmationRequired, InvalidArguments, ToolError
from bridge.tools.function import LocalTool, function_tool

CTX = local_context()


async def called(*asked: tuple[LocalTool, dict[str, Any]]) -> list[Outcome]:
    """What became of these calls, run as one batch."""
    calls = [FunctionCall(f"c{n}", tool.name, args) for n, (tool, args) in enumerate(asked)]
    return await execute(calls, {tool.name: tool for tool, _ in asked}, CTX)


@pytest.mark.spec("2.2")
async def test_a_text_is_answered_as_a_result() -> None:
    async def describe(city: str) -> str:
        return f"It rains in {city}."

    (outcome,) = await called((function_tool(describe), {"city": "london"}))

    assert outcome.response == {"result": "It rains in london."}


@pytest.mark.spec("system-9")
@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"fruit": "kiwi", "size": 1}, '"size": unknown'),
        ({}, '"fruit": missing'),
        ({"fruit": "banana"}, "\"fruit\": expected 'mandarin' or 'kiwi'"),
    ],
)
async def test_arguments_that_do_not_fit_are_an_answer_and_neither_run_nor_ask(
    args: dict[str, Any], said: str
) -> None:
    eaten: list[str] = []
    asked: list[str] = []

    async def eat(fruit: Literal["mandarin", "kiwi"]) -> None:
        eaten.append(fruit)

    def ask(name: str, args: dict[str, Any]) -> bool:
        asked.append(name)
        return True

    for rule in (True, ask):
        tool = function_tool(eat, require_confirmation=rule)
        (outcome,) = await called((tool, args))
        assert isinstance(outcome.error, InvalidArguments)
        assert outcome.response == {"error": f'the arguments of "eat" do not fit: {said}'}
        assert outcome.actions.requested_tool_confirmations == {}
        assert not outcome.actions.skip_summarization

    assert (eaten, asked) == ([], [])


@pytest.mark.spec("system-10")
async def test_a_result_is_wrapped_if_it_fits_and_an_error_if_it_does_not() -> None:
    def say() -> str:
        return "x"

    wrapped, misfit = await called(
        (function_tool(say), {}),
        (function_tool(say, name="count", output_schema={"type": "integer"}), {}),
    )

    assert (wrapped.response, wrapped.error) == ({"result": "x"}, None)
    assert misfit.response == {
        "error": 'the result of "count" does not fit its output schema: '
        "the whole: expected an integer, got a string"
    }


@pytest.mark.spec("system-11")
async def test_whatever_fails_in_a_call_its_effects_stay_and_its_siblings_are_unharmed() -> None:
    effects: list[str] = []

    async def handle(n: int) -> int:
        effects.append(f"handled {n}")
        if n < 0:
            raise OSError("the handler failed")

        return n

    def decide(name: str, args: dict[str, Any]) -> bool:
        raise OSError("the provider failed")

    fine = function_tool(handle, name="fine")
    conversion, provider, handler, sibling = await called(
        (fine, {"n": "one"}),
        (function_tool(handle, name="gated", require_confirmation=decide), {"n": 2}),
        (fine, {"n": -3}),
        (fine, {"n": 4}),
    )

    assert isinstance(conversion.error, InvalidArguments)
    assert isinstance(provider.error, ConfirmationRequired)
    assert isinstance(handler.error, ToolError)
    assert handler.response == {"error": "the handler failed"}
    assert isinstance(handler.error.__cause__, OSError)
    assert (sibling.response, sibling.error) == ({"result": 4}, None)
    assert sorted(effects) == ["handled -3", "handled 4"]


@pytest.mark.spec("system-11")
async def test_cancelling_a_batch_is_nobodys_failure() -> None:
    begun = anyio.Event()

    async def wait() -> None:
        begun.set()
        await anyio.sleep_forever()

    tool = function_tool(wait)
    outcomes: list[Outcome] = []

    async def run() -> None:
        outcomes.extend(await called((tool, {}), (tool, {})))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await begun.wait()
        tasks.cancel_scope.cancel()

    assert outcomes == []
