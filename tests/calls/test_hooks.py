"""Hooks around one call: who is asked, in which order, and whose word counts (spec §6)."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.calls.call import Outcome, execute
from bridge.calls.hooks import NO_HOOKS, Hook, Hooks
from bridge.core.content import Args, FunctionCall, Result
from bridge.core.context import ToolContext, local_context
from bridge.core.tool import Tool
from bridge.errors import ConfigError, ConfirmationRequired, UpstreamError
from bridge.tools.gate import Rule
from bridge.tools.wrapped import guarded
from tests.fakes import CustomTool

CTX = local_context()


class Scripted(Hook):
    """A hook that answers each stage as it is told, and writes down that it was asked."""

    def __init__(self, log: list[Any] | None = None, name: str = "", **answers: Any) -> None:
        self.log = [] if log is None else log
        self.name = name
        self.answers = answers

    def _answer(self, stage: str, *told: Any) -> Any:
        self.log.append((self.name + stage, *told))
        answer = self.answers.get(stage)
        if isinstance(answer, Exception):
            raise answer

        return answer

    async def before_tool(self, ctx: ToolContext, tool: Tool, args: Args) -> Result | None:
        return self._answer("before")

    async def on_tool_error(
        self, ctx: ToolContext, tool: Tool, args: Args, error: Exception
    ) -> Result | None:
        return self._answer("on_error", str(error))

    async def after_tool(
        self,
        ctx: ToolContext,
        tool: Tool,
        args: Args,
        result: Result | None,
        error: Exception | None,
    ) -> Result | None:
        return self._answer("after", result, None if error is None else str(error))


async def called(tool: Any, *hooks: Hook, args: Args | None = None) -> Outcome:
    call = FunctionCall("c1", tool.name, {} if args is None else args)
    [outcome] = await execute([call], {tool.name: tool}, CTX, hooks=Hooks(hooks))
    return outcome


def tool(answer: Any = None) -> CustomTool:
    return CustomTool("f", answer={"result": "success"} if answer is None else answer)


BOOM = RuntimeError("tool error")


@pytest.mark.parametrize(
    ("answer", "hooks", "response"),
    [
        (None, [{}], {"result": "success"}),  # 6.8
        (BOOM, [{}], {"error": "tool error"}),  # 6.2
        (None, [{"before": {"result": "early"}}], {"result": "early"}),  # 6.3
        (None, [{"before": {}}], {}),
        (None, [{"before": ValueError("no")}], {"error": "no"}),  # 6.4
        (None, [{"after": {"result": "late"}}], {"result": "late"}),  # 6.5
        (None, [{"after": {}}], {}),
        (BOOM, [{"after": {"result": "handled"}}], {"result": "handled"}),  # 6.6
        (None, [{"after": ValueError("no")}], {"error": "no"}),  # 6.7
        (BOOM, [{"after": ValueError("no")}], {"error": "no"}),
        (None, [{"before": {"a": 1}, "after": {"a": 2}}], {"a": 2}),  # 6.9
        (None, [{"before": BOOM, "after": {"a": 2}}], {"a": 2}),  # 6.10
        (None, [{"before": BOOM, "on_error": {"a": 1}}], {"a": 1}),  # 6.11
        (BOOM, [{"on_error": {}}], {}),
        (BOOM, [{"on_error": ValueError("worse")}], {"error": "worse"}),
        (
            BOOM,
            [{"on_error": ValueError("worse"), "after": ValueError("worst")}],
            {"error": "worst"},
        ),  # 6.13
        (BOOM, [{"on_error": ValueError("worse"), "after": {"a": 1}}], {"a": 1}),  # 6.14
        (BOOM, [{}, {"on_error": {"a": 1}}, {"on_error": {"a": 2}}], {"a": 1}),
    ],
)
async def test_each_stage_may_replace_a_result_or_an_error(
    answer: Any, hooks: list[dict[str, Any]], response: Any
) -> None:
    outcome = await called(tool(answer), *(Scripted(**answers) for answers in hooks))

    assert outcome.response == response
    assert (outcome.error is None) is ("error" not in response)
    assert outcome.raw is None


async def test_the_first_answer_ends_a_stage_and_a_before_answer_ends_the_tool() -> None:
    log: list[Any] = []
    f = tool()

    outcome = await called(
        f, Scripted(log, "1:"), Scripted(log, "2:", before={"a": 1}), Scripted(log, "3:")
    )

    assert outcome.response == {"a": 1}
    assert f.calls == []
    assert log == [
        ("1:before",),
        ("2:before",),
        *((f"{n}:after", {"a": 1}, None) for n in (1, 2, 3)),  # 6.17
    ]


async def test_an_after_answer_ends_its_stage() -> None:
    log: list[Any] = []

    await called(tool(), Scripted(log, "1:", after={"a": 1}), Scripted(log, "2:"))

    assert log[2:] == [("1:after", {"result": "success"}, None)]


async def test_after_sees_no_error_exactly_when_an_error_hook_made_a_result() -> None:
    kept, recovered = Scripted(), Scripted(on_error={"a": 1})

    await called(tool(BOOM), kept)
    await called(tool(BOOM), recovered)

    assert kept.log[1:] == [("on_error", "tool error"), ("after", None, "tool error")]
    assert recovered.log[1:] == [("on_error", "tool error"), ("after", {"a": 1}, None)]  # 6.12


async def test_a_tool_without_an_answer_is_seen_after_and_stays_without() -> None:
    class Silent(CustomTool):
        async def run(self, ctx: ToolContext, args: Args) -> Result | None:
            return None

    hook = Scripted()
    outcome = await called(Silent("f"), hook)

    assert hook.log[1:] == [("after", None, None)]
    assert (outcome.response, outcome.error) == (None, None)


class Editing(Hook):
    """Edits what it is given, in place."""

    async def before_tool(self, ctx: ToolContext, tool: Tool, args: Args) -> None:
        args["city"] = "Tokyo"
        args["more"].append(1)


async def test_edited_arguments_reach_later_hooks_and_the_tool_and_not_the_call() -> None:
    class Looking(Hook):
        seen: Any = None

        async def before_tool(self, ctx: ToolContext, tool: Tool, args: Args) -> None:
            self.seen = dict(args)

    f, looking, sent = tool(), Looking(), {"city": "東京", "more": []}

    outcome = await called(f, Editing(), looking, args=sent)

    assert looking.seen == {"city": "Tokyo", "more": [1]}
    assert f.calls == [{"city": "Tokyo", "more": [1]}]  # 6.15
    assert outcome.call.args == {"city": "東京", "more": []}


@pytest.mark.parametrize("answer", [["a"], "text", 5, True])
async def test_a_hook_that_answers_with_no_dict_is_an_error_that_names_it(answer: Any) -> None:
    outcome = await called(tool(), Scripted(before=answer))

    assert outcome.response is not None
    assert "Scripted.before_tool returned a" in outcome.response["error"]


async def test_hooks_may_use_the_context_of_the_call() -> None:
    class Asking(Hook):
        async def before_tool(self, ctx: ToolContext, tool: Tool, args: Args) -> Result:
            ctx.state.set("asked", True)
            ctx.request_confirmation("Really?", {"why": "because"})
            return {"status": "waiting"}

    outcome = await called(tool(), Asking())

    assert outcome.response == {"status": "waiting"}
    assert outcome.actions.state_delta == {"asked": True}
    assert list(outcome.actions.requested_tool_confirmations) == ["c1"]
    assert outcome.actions.skip_summarization


async def test_replacing_the_placeholder_of_a_question_leaves_the_question() -> None:
    outcome = await called(
        guarded(tool(), Rule("f", require=True)), Scripted(on_error={"status": "asked"})
    )

    assert (outcome.response, outcome.error) == ({"status": "asked"}, None)
    assert list(outcome.actions.requested_tool_confirmations) == ["c1"]
    assert outcome.actions.skip_summarization

    outcome = await called(guarded(tool(), Rule("f", require=True)))
    assert isinstance(outcome.error, ConfirmationRequired)


RAW = {"content": [{"type": "text", "text": "x"}], "_meta": {"a": 1}, "isError": False}


class Upstream(CustomTool):
    """A tool of an MCP server, which answers with `RAW`."""

    async def run(self, ctx: ToolContext, args: Args) -> Result:
        response: Result = {"output": {"n": 1, "list": [1]}}
        ctx.upstream_answer = (response, RAW)
        return response


class Viewing(Hook):
    """Looks at the result and does with it what it is told."""

    def __init__(self, edit: Any) -> None:
        self.edit = edit

    async def after_tool(
        self,
        ctx: ToolContext,
        tool: Tool,
        args: Args,
        result: Result | None,
        error: Exception | None,
    ) -> Result | None:
        return self.edit(result)


def leave(result: Any) -> None:
    return None


def give_back(result: Any) -> Any:
    return result


def give_an_equal(result: Any) -> Any:
    return {"output": {"n": 1, "list": [1]}}


def edit_in_place(result: Any) -> None:
    result["output"]["list"].append(2)


def edit_a_type(result: Any) -> None:
    result["output"]["n"] = True


def replace_it(result: Any) -> Any:
    return {"output": {"n": 2, "list": [1]}}


@pytest.mark.parametrize("edit", [leave, give_back, give_an_equal])
async def test_a_servers_own_answer_goes_out_where_no_hook_changed_it(edit: Any) -> None:
    outcome = await called(Upstream("f"), Viewing(edit))

    assert outcome.raw is RAW
    assert outcome.response == {"output": {"n": 1, "list": [1]}}


@pytest.mark.parametrize(
    ("edit", "response"),
    [
        (edit_in_place, {"output": {"n": 1, "list": [1, 2]}}),
        (edit_a_type, {"output": {"n": True, "list": [1]}}),
        (replace_it, {"output": {"n": 2, "list": [1]}}),
    ],
)
async def test_a_servers_own_answer_stays_back_where_a_hook_changed_it(
    edit: Any, response: Any
) -> None:
    outcome = await called(Upstream("f"), Viewing(edit))

    assert outcome.raw is None
    assert outcome.response == response


async def test_a_before_answer_sends_out_nothing_raw() -> None:
    assert (await called(Upstream("f"), Scripted(before={"a": 1}))).raw is None


async def test_a_servers_error_goes_out_raw_while_it_stands() -> None:
    failing = tool(UpstreamError("refused", RAW, is_protocol_error=False))

    assert (await called(failing)).raw is RAW
    assert (await called(failing, Scripted())).raw is RAW
    assert (await called(failing, Scripted(on_error={"a": 1}))).raw is None
    assert (await called(failing, Scripted(after=ValueError("no")))).raw is None


def test_only_what_a_hook_overrides_is_ever_called() -> None:
    hooks = Hooks([Hook(), Editing(), Viewing(leave)])

    assert (len(hooks.before), len(hooks.on_error), len(hooks.after)) == (1, 0, 1)
    assert not Hooks([Hook(), Hook()])
    assert not NO_HOOKS


async def test_anything_with_the_methods_of_a_hook_is_one() -> None:
    class Shaped:
        async def before_tool(self, ctx: ToolContext, tool: Tool, args: Args) -> Result:
            return {"shaped": True}

    shaped: Any = Shaped()
    assert (await called(tool(), shaped)).response == {"shaped": True}


def test_a_hook_that_is_none_is_refused() -> None:
    nothing: Any = None
    with pytest.raises(ConfigError, match="a hook is None"):
        Hooks([nothing])
