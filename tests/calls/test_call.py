"""The pipeline: every call has an outcome, in the order asked, and harms no other."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from bridge.calls.call import Job, execute, one_by_one
from bridge.calls.hooks import Hook, Hooks
from bridge.core.confirmation import ToolConfirmation
from bridge.core.content import Args, FunctionCall, Result
from bridge.core.context import ToolContext, local_context
from bridge.core.request import LLMRequest
from bridge.core.tool import Tool, pack_tool
from bridge.errors import (
    BridgeError,
    ConfirmationRejected,
    ConfirmationRequired,
    DuplicateTool,
    ToolError,
    ToolNotFound,
)
from bridge.tools.function import LocalTool, function_tool
from tests.fakes import CustomTool, NativeTool, PlainTool, StreamOnlyTool

CTX = local_context()


def calls(*names: str) -> list[FunctionCall]:
    return [FunctionCall(f"c{i}", name, {}) for i, name in enumerate(names)]


def table(*tools: Any) -> dict[str, Tool]:
    return {tool.name: tool for tool in tools}


@function_tool
async def add(a: int, b: int) -> dict[str, int]:
    """Add."""
    return {"sum": a + b}


async def test_a_call_becomes_an_outcome() -> None:
    call = FunctionCall("c1", "add", {"a": 2, "b": 3})

    [outcome] = await execute([call], table(add), CTX)

    assert (outcome.call, outcome.response, outcome.tool) == (call, {"sum": 5}, add)
    assert (outcome.raw, outcome.error) == (None, None)


async def test_no_calls_have_no_outcomes() -> None:
    assert await execute([], table(add), CTX) == []


async def test_outcomes_come_in_the_order_asked_whatever_finishes_first() -> None:
    turns = [anyio.Event() for _ in range(4)]
    turns[3].set()

    @function_tool
    async def backwards(n: int) -> dict[str, int]:
        await turns[n + 1].wait()
        turns[n].set()
        return {"n": n}

    asked = [FunctionCall(f"c{n}", "backwards", {"n": n}) for n in range(3)]
    outcomes = await execute(asked, table(backwards), CTX)

    assert [outcome.response for outcome in outcomes] == [{"n": 0}, {"n": 1}, {"n": 2}]  # 5.2
    assert [outcome.call for outcome in outcomes] == asked


async def test_blocking_functions_run_side_by_side() -> None:
    together = threading.Barrier(3, timeout=30)

    @function_tool
    def meet() -> dict[str, bool]:
        together.wait()
        return {"met": True}

    outcomes = await execute(calls("meet", "meet", "meet"), table(meet), CTX)

    assert [outcome.response for outcome in outcomes] == [{"met": True}] * 3  # 5.1


async def test_one_call_alone_runs_in_the_callers_own_task() -> None:
    @function_tool
    async def where() -> dict[str, int]:
        return {"task": anyio.get_current_task().id}

    here = {"task": anyio.get_current_task().id}
    [alone] = await execute(calls("where"), table(where), CTX)
    two = await execute(calls("where", "where"), table(where), CTX)

    assert alone.response == here
    assert here not in [outcome.response for outcome in two]


async def test_calls_can_be_run_one_by_one_with_the_same_outcomes() -> None:
    running: list[str] = []

    @function_tool
    async def alone(ctx: ToolContext) -> dict[str, str]:
        running.append(ctx.function_call_id)
        seen = ",".join(running)
        await anyio.lowlevel.checkpoint()
        running.remove(ctx.function_call_id)
        return {"running": seen}

    outcomes = await execute(calls("alone", "alone"), table(alone), CTX, runner=one_by_one)

    assert [o.response for o in outcomes] == [{"running": "c0"}, {"running": "c1"}]


async def test_a_runner_that_leaves_a_call_out_is_an_error() -> None:
    async def lazy(jobs: Sequence[Job]) -> None:
        await jobs[0]()

    with pytest.raises(BridgeError, match="before every call was done"):
        await execute(calls("x", "y"), {}, CTX, runner=lazy)


async def test_each_call_has_a_context_and_actions_of_its_own() -> None:
    seen: list[ToolContext] = []

    @function_tool
    async def note(ctx: ToolContext) -> None:
        seen.append(ctx)
        ctx.state.set(ctx.function_call_id, True)

    outcomes = await execute(calls("note", "note"), table(note), CTX)

    assert [ctx.function_call_id for ctx in seen] == ["c0", "c1"]
    assert [o.actions.state_delta for o in outcomes] == [{"c0": True}, {"c1": True}]
    assert outcomes[0].actions is not outcomes[1].actions


async def test_one_yes_is_good_for_one_run_however_often_it_is_given() -> None:
    runs: list[str] = []

    @function_tool(require_confirmation=True)
    async def pay(ctx: ToolContext) -> None:
        runs.append(ctx.function_call_id)

    yes = ToolConfirmation(confirmed=True)
    first, second = await execute(
        calls("pay", "pay"), table(pay), CTX, confirmations={"c0": yes, "c1": yes}
    )
    [third] = await execute(calls("pay"), table(pay), CTX, confirmations={"c0": yes})

    assert len(runs) == 1
    assert sum(isinstance(each.error, ConfirmationRequired) for each in (first, second)) == 1
    assert isinstance(third.error, ConfirmationRequired)
    assert list(third.actions.requested_tool_confirmations) == ["c0"]


async def test_decisions_reach_the_calls_they_are_about() -> None:
    @function_tool(require_confirmation=True)
    async def pay() -> dict[str, bool]:
        return {"paid": True}

    decisions = {"c0": ToolConfirmation(confirmed=True), "c1": ToolConfirmation(confirmed=False)}
    yes, no, none = await execute(
        calls("pay", "pay", "pay"), table(pay), CTX, confirmations=decisions
    )

    assert yes.response == {"paid": True}
    assert isinstance(no.error, ConfirmationRejected)
    assert list(none.actions.requested_tool_confirmations) == ["c2"]


async def test_progress_reaches_whoever_listens() -> None:
    heard: list[Any] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    @function_tool
    async def work(ctx: ToolContext) -> None:
        await ctx.report_progress(1, 2, "half")

    await execute(calls("work"), table(work), CTX, on_progress=listen)
    await execute(calls("work"), table(work), CTX)

    assert heard == [(1, 2, "half")]


class Failing(CustomTool):
    """A stranger's tool with a bug."""

    async def run(self, ctx: ToolContext, args: Args) -> Result:
        return {"n": 1 / 0}


async def test_a_bug_in_a_tool_fails_that_call_and_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "bridge"):
        bad, good = await execute(
            [FunctionCall("c0", "bad", {}), FunctionCall("c1", "add", {"a": 1, "b": 1})],
            table(Failing("bad"), add),
            CTX,
        )

    assert bad.response == {"error": "division by zero"}
    assert isinstance(bad.error, ZeroDivisionError)
    assert good.response == {"sum": 2}
    assert 'the call of "bad" failed unexpectedly' in caplog.text


@pytest.mark.parametrize("failing", [ToolError("out of paper"), LookupError("out of paper")])
async def test_every_failure_is_that_calls_answer(failing: Exception) -> None:
    [outcome] = await execute(calls("f"), table(CustomTool("f", answer=failing)), CTX)

    assert outcome.response == {"error": "out of paper"}
    assert outcome.error is failing


async def test_an_error_without_a_message_is_told_by_its_kind() -> None:
    [outcome] = await execute(calls("f"), table(CustomTool("f", answer=ValueError())), CTX)
    assert outcome.response == {"error": "ValueError"}


@pytest.mark.parametrize("answer", ["text", ["a"], 5, False, object()])
async def test_a_tool_that_answers_with_no_dict_is_an_error_that_says_so(answer: Any) -> None:
    [outcome] = await execute(calls("f"), table(CustomTool("f", answer=answer)), CTX)

    kind = type(answer).__name__
    assert outcome.response == {
        "error": f'the tool "f" returned a {kind}; a tool returns a dict or None'
    }


@pytest.mark.parametrize("answer", [{}, {"result": None}])
async def test_an_empty_answer_is_an_answer(answer: Any) -> None:
    [outcome] = await execute(calls("f"), table(CustomTool("f", answer=answer)), CTX)
    assert outcome.response == answer


async def test_arguments_too_deep_to_copy_fail_their_call_and_no_other() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}

    class Watching(Hook):
        async def before_tool(self, ctx: ToolContext, tool: Tool, args: Args) -> None:
            return None

        async def on_tool_error(
            self, ctx: ToolContext, tool: Tool, args: Args, error: Exception
        ) -> None:
            return None

    asked = [FunctionCall("c0", name, deep) for name in ("f", "missing")] + calls("f")
    outcomes = await execute(asked, table(CustomTool("f")), CTX, hooks=Hooks([Watching()]))

    assert [type(outcome.error) for outcome in outcomes] == [
        RecursionError,
        RecursionError,
        type(None),
    ]


async def test_cancelling_passes_and_is_nobodys_outcome() -> None:
    seen: list[Any] = []

    class Watching(Hook):
        async def on_tool_error(
            self, ctx: ToolContext, tool: Tool, args: Args, error: Exception
        ) -> None:
            seen.append(error)

    @function_tool
    async def hang() -> None:
        await anyio.sleep_forever()

    for names in (["hang"], ["hang", "hang"]):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await execute(calls(*names), table(hang), CTX, hooks=Hooks([Watching()]))
        assert scope.cancelled_caught

    assert seen == []


async def test_what_is_no_exception_passes() -> None:
    with pytest.raises(SystemExit):
        await execute(calls("f"), table(CustomTool("f", answer=SystemExit(3))), CTX)


# What cannot run here


async def test_an_unknown_name_is_answered_with_what_there_is() -> None:
    tools = table(CustomTool("read_page"), CustomTool("write_page"), NativeTool("search"))

    [outcome] = await execute(calls("read_pages"), tools, CTX)

    assert outcome.response == {
        "error": 'the tool "read_pages" does not exist; did you mean "read_page"?\n'
        "Available tools: read_page, write_page"
    }
    assert isinstance(outcome.error, ToolNotFound)
    assert (outcome.tool.name, outcome.tool.is_long_running) == ("read_pages", False)


async def test_with_no_tools_at_all_the_answer_says_so() -> None:
    [outcome] = await execute(calls("x"), {}, CTX)
    assert outcome.response == {"error": 'the tool "x" does not exist\nAvailable tools: none'}


async def test_a_name_of_any_length_is_answered_shortly() -> None:
    [outcome] = await execute(calls("x" * 1_000_000), table(add), CTX)

    assert outcome.response is not None
    assert len(outcome.response["error"]) < 300


async def test_the_list_of_available_tools_has_a_bound() -> None:
    tools = table(*(CustomTool(f"tool_{i:04}") for i in range(250)))

    [outcome] = await execute(calls("x"), tools, CTX)

    assert outcome.response is not None
    assert outcome.response["error"].count("tool_") == 100
    assert outcome.response["error"].endswith("and 150 more")


class Undeclared(PlainTool):
    """Has a run and no declaration, so it is no function tool."""

    async def run(self, ctx: ToolContext, args: Args) -> Result:
        raise AssertionError("it ran")


@pytest.mark.parametrize("kind", [PlainTool, NativeTool, Undeclared])
async def test_a_tool_that_cannot_run_here_is_missing_too(kind: Any) -> None:
    [outcome] = await execute(calls("f"), table(kind("f"), add), CTX)

    assert outcome.response == {"error": 'the tool "f" cannot be called\nAvailable tools: add'}
    assert outcome.tool.name == "f"


async def test_a_tool_that_streams_is_answered_with_its_pieces_joined() -> None:
    class Both(StreamOnlyTool):
        async def run(self, ctx: ToolContext, args: Args) -> Result:
            raise AssertionError("streaming wins")

    for kind in (StreamOnlyTool, Both):
        [outcome] = await execute(calls("f"), table(kind("f")), CTX)
        assert outcome.response == {"result": "piece"}


async def test_for_a_missing_tool_only_the_error_hooks_are_asked() -> None:
    seen: list[Any] = []

    class Watching(Hook):
        answer: Any = None

        async def before_tool(self, ctx: ToolContext, tool: Tool, args: Args) -> None:
            seen.append("before")

        async def on_tool_error(
            self, ctx: ToolContext, tool: Tool, args: Args, error: Exception
        ) -> Result | None:
            seen.append((tool.name, tool.is_long_running, type(error)))
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer

        async def after_tool(
            self,
            ctx: ToolContext,
            tool: Tool,
            args: Args,
            result: Result | None,
            error: Exception | None,
        ) -> None:
            seen.append("after")

    async def asked(answer: Any) -> Any:
        hook = Watching()
        hook.answer = answer
        [outcome] = await execute(calls("foo"), table(NativeTool("foo")), CTX, hooks=Hooks([hook]))
        return outcome.response

    assert await asked({"result": "x"}) == {"result": "x"}  # 5.6
    assert await asked({}) == {}
    assert await asked(ValueError("worse")) == {"error": "worse"}
    assert "cannot be called" in (await asked(None))["error"]
    assert seen == [("foo", False, ToolNotFound)] * 4


# Packing and calling go together


@pytest.mark.spec("3.4")
@pytest.mark.spec("3.5")
@pytest.mark.spec("system-12")
async def test_a_tool_without_a_declaration_is_callable_invisible_and_keeps_its_name() -> None:
    class Hidden(CustomTool):
        def declaration(self) -> None:
            return None

    request, hidden = LLMRequest(), Hidden("x")
    pack_tool(request, hidden)

    with pytest.raises(DuplicateTool, match='two tools are named "x"'):
        pack_tool(request, CustomTool("x"))  # 3.5

    assert request.config is not None
    assert request.config.tools == []  # 3.4
    assert request.tools is not None
    [outcome] = await execute(calls("x"), request.tools, CTX)
    assert outcome.response == {"ok": True}


async def test_what_was_packed_is_what_is_called() -> None:
    request = LLMRequest()
    await add.process_request(ToolContext.preparing(CTX), request)

    assert request.tools is not None
    [outcome] = await execute([FunctionCall("c", "add", {"a": 1, "b": 2})], request.tools, CTX)

    assert outcome.response == {"sum": 3}
    assert isinstance(outcome.tool, LocalTool)
