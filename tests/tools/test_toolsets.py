"""Toolsets around toolsets: what is offered, what can be called, and what it costs to list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from bridge.calls.call import Outcome, execute
from bridge.core.confirmation import ToolConfirmation
from bridge.core.content import FunctionCall
from bridge.core.context import (
    Context,
    InvocationContext,
    ReadonlyContext,
    ToolContext,
    local_context,
)
from bridge.core.request import LLMRequest
from bridge.core.session import Session
from bridge.core.tool import Tool, Toolset
from bridge.errors import ConfigError, DuplicateTool, ToolsetError
from bridge.tools.function import function_tool
from bridge.tools.toolsets import (
    CombinedToolset,
    ConfirmedToolset,
    FilteredToolset,
    PrefixedToolset,
    RenamedToolset,
    StaticToolset,
)
from tests.fakes import CustomTool, NativeTool, PlainTool, ScriptedToolset, StreamOnlyTool

CTX = local_context()


@function_tool
async def read_page(page: int = 1) -> dict[str, int]:
    """Read a page."""
    return {"page": page}


def named(tools: Sequence[Tool]) -> list[str]:
    return [tool.name for tool in tools]


async def call(toolset: Toolset, name: str, answer: ToolConfirmation | None = None) -> Outcome:
    """Call a tool of a toolset the way everything does."""
    tools = {tool.name: tool for tool in await toolset.tools(CTX)}
    answers = {} if answer is None else {"c1": answer}
    [outcome] = await execute([FunctionCall("c1", name, {})], tools, CTX, confirmations=answers)
    return outcome


# Filtered


async def test_a_filter_keeps_the_order_and_hides_the_rest() -> None:
    static = StaticToolset([CustomTool("a"), CustomTool("b"), CustomTool("c")], name="abc")
    filtered = static.filtered(lambda ctx, tool: tool.name != "b")

    assert filtered.name == "abc"
    assert named(await filtered.tools(CTX)) == ["a", "c"]
    assert named(await static.filtered(["c", "a*"]).tools(CTX)) == ["a", "c"]  # 1.2
    assert named(await static.filtered(deny=["b"]).tools(CTX)) == ["a", "c"]
    assert named(await static.filtered(["*"], deny=["[bc]"]).tools(CTX)) == ["a"]
    assert named(await static.filtered([]).tools(CTX)) == []


async def test_what_a_filter_hides_cannot_be_called() -> None:
    hidden = CustomTool("hidden")
    filtered = StaticToolset([hidden, CustomTool("shown")]).filtered(["sh*"])

    outcome = await call(filtered, "hidden")

    assert outcome.response is not None
    assert 'the tool "hidden" does not exist' in outcome.response["error"]
    assert hidden.calls == []


async def test_a_predicate_may_look_at_who_asks() -> None:
    def for_vips(ctx: ReadonlyContext, tool: Tool) -> bool:
        return bool(ctx.readonly_state.get("vip")) or tool.name == "plain"

    toolset = StaticToolset([CustomTool("plain"), CustomTool("gold")]).filtered(for_vips)
    vip = Context(InvocationContext(Session("s", state={"vip": True})))

    assert named(await toolset.tools(CTX)) == ["plain"]
    assert named(await toolset.tools(vip)) == ["plain", "gold"]
    assert named(await toolset.tools(CTX)) == ["plain"]


async def test_an_error_of_the_inner_toolset_is_raised_unchanged() -> None:
    error = RuntimeError("away")
    inner = ScriptedToolset("x", [error])
    for toolset in (
        FilteredToolset(inner, ["*"]),
        FilteredToolset(inner, lambda ctx, tool: True),
        ConfirmedToolset(inner),
        RenamedToolset(inner, {}),
        PrefixedToolset(inner, "p"),
    ):
        with pytest.raises(RuntimeError) as caught:
            await toolset.tools(CTX)

        assert caught.value is error


def test_nothing_to_wrap_or_to_filter_by_fails_at_once() -> None:
    nothing: Any = None
    with pytest.raises(ConfigError, match="FilteredToolset wraps a toolset, not None"):
        FilteredToolset(nothing, ["*"])

    with pytest.raises(ConfigError, match="ConfirmedToolset wraps a toolset, not None"):
        ConfirmedToolset(nothing)

    with pytest.raises(ConfigError, match="filters by a predicate or globs, not by None"):
        FilteredToolset(StaticToolset([]), None)

    with pytest.raises(ConfigError, match="globs are a list"):
        ConfirmedToolset(StaticToolset([]), "write_*")


# Confirmed


@pytest.mark.spec("system-27")
async def test_confirmation_wraps_what_runs_here_and_nothing_else() -> None:
    native, identity, custom = NativeTool("search"), PlainTool("note"), CustomTool("pay")
    toolset = StaticToolset([native, identity, custom, read_page]).confirmed()

    listed = await toolset.tools(CTX)

    assert named(listed) == ["search", "note", "pay", "read_page"]
    assert listed[0] is native
    assert listed[1] is identity
    for name in ("pay", "read_page"):
        outcome = await call(toolset, name)
        assert outcome.actions.skip_summarization
        assert list(outcome.actions.requested_tool_confirmations) == ["c1"]
    assert custom.calls == []
    assert (await call(toolset, "search")).response != {"ok": True}


@pytest.mark.spec("1.3")
@pytest.mark.parametrize(
    ("confirm", "answer", "became"),
    [
        (True, None, "asks"),
        (True, True, "runs"),
        (True, False, "rejected"),
        (False, None, "runs"),
        (["p*"], None, "asks"),
        (["read_*"], None, "runs"),
        (lambda name, args: name == "pay", None, "asks"),
        (lambda name, args: False, None, "runs"),
    ],
)
async def test_a_strangers_tool_passes_the_gate_first(
    confirm: Any, answer: bool | None, became: str
) -> None:
    pay = CustomTool("pay")
    decision = None if answer is None else ToolConfirmation(confirmed=answer)

    outcome = await call(StaticToolset([pay]).confirmed(confirm), "pay", decision)

    asked = bool(outcome.actions.requested_tool_confirmations)
    assert (asked, outcome.actions.skip_summarization) == (became == "asks",) * 2  # 1.3
    assert len(pay.calls) == (became == "runs")
    assert ("rejected" in str(outcome.error)) is (became == "rejected")


async def test_without_confirmation_the_tools_are_the_same_objects() -> None:
    tools = (CustomTool("pay"), read_page)
    assert await StaticToolset(tools).confirmed(False).tools(CTX) == tools


async def test_a_tool_that_only_streams_is_refused_by_name() -> None:
    static = StaticToolset([StreamOnlyTool("radio"), CustomTool("pay")], name="media")

    with pytest.raises(ToolsetError, match='"radio" of "media" only streams'):
        await static.confirmed().tools(CTX)

    assert named(await static.confirmed(["pay"]).tools(CTX)) == ["radio", "pay"]


@pytest.mark.parametrize("kind", [CustomTool, lambda name: read_page.relabelled(name)])
async def test_two_confirmations_are_one_question(kind: Any) -> None:
    asked = []

    def first(name: str, args: Any) -> bool:
        asked.append(name)
        return False

    stack = StaticToolset([kind("pay")]).confirmed(first).prefixed("bank__").confirmed()

    outcome = await call(stack, "bank__pay")
    [question] = outcome.actions.requested_tool_confirmations.values()
    yes = ToolConfirmation(confirmed=True, hash=question.payload["hash"])
    again = await call(stack, "bank__pay", yes)

    assert asked == ["pay"]
    assert again.error is None
    assert again.actions.requested_tool_confirmations == {}


async def test_a_provider_that_says_no_does_not_lift_the_tools_own_rule() -> None:
    guarded = read_page.with_rule(_rule_of(function_tool(lambda: 1, name="x")))
    toolset = StaticToolset([guarded]).confirmed(lambda name, args: False)

    assert (await call(toolset, "read_page")).actions.requested_tool_confirmations


def _rule_of(tool: Any) -> Any:
    from_true = function_tool(lambda: 1, name=tool.name, require_confirmation=True)
    return from_true.rule


# Renamed and prefixed


async def test_a_renamed_tool_is_called_by_its_new_name_only() -> None:
    pay = CustomTool("pay", "Pay somebody.")
    toolset = StaticToolset([pay, read_page], name="bank").renamed(
        {"pay": "transfer", "unheard_of": "x"}, {"pay": "Send money.", "read_page": "Read."}
    )

    listed = await toolset.tools(CTX)

    assert toolset.name == "bank"
    assert [(tool.name, tool.description) for tool in listed] == [
        ("transfer", "Send money."),
        ("read_page", "Read."),
    ]
    assert (await call(toolset, "transfer")).response == {"ok": True}
    assert (await call(toolset, "pay")).error is not None
    assert pay.description == "Pay somebody."


async def test_two_tools_may_swap_their_names() -> None:
    toolset = StaticToolset([CustomTool("a"), CustomTool("b")]).renamed({"a": "b", "b": "a"})
    assert named(await toolset.tools(CTX)) == ["b", "a"]


@pytest.mark.parametrize("names", [{"a": "b"}, {"a": "x", "b": "x"}])
async def test_a_new_name_that_is_taken_is_refused_with_both_names(names: Any) -> None:
    toolset = StaticToolset([CustomTool("a"), CustomTool("b")], name="abc").renamed(names)

    with pytest.raises(DuplicateTool, match='"a" and "b" of "abc" would both be named'):
        await toolset.tools(CTX)


async def test_a_prefix_is_put_before_every_name_and_the_name_made_legal() -> None:
    tools = [CustomTool("pay"), CustomTool("get.balance"), CustomTool("x" * 70), NativeTool("n")]
    listed = await StaticToolset(tools).prefixed("bank__").tools(CTX)

    assert named(listed)[0] == "bank__pay"
    assert named(listed)[1].startswith("bank__get_balance_")
    assert len(named(listed)[2]) == 64
    assert listed[3] is tools[3]


async def test_an_empty_prefix_leaves_legal_tools_as_they_are() -> None:
    pay = CustomTool("pay")
    assert await StaticToolset([pay]).prefixed("").tools(CTX) == (pay,)


async def test_providers_are_told_the_names_of_what_their_wrapper_wraps() -> None:
    told: list[str] = []

    def note(name: str, args: Any) -> bool:
        told.append(name)
        return False

    static = StaticToolset([CustomTool("pay")])
    await call(static.confirmed(note).prefixed("bank__"), "bank__pay")
    await call(static.prefixed("bank__").confirmed(note), "bank__pay")

    assert told == ["pay", "bank__pay"]


# Combined


async def test_members_are_listed_in_order_whoever_is_first_to_answer() -> None:
    second_done = anyio.Event()

    class Slow(ScriptedToolset):
        async def tools(self, ctx: ReadonlyContext) -> Sequence[Tool]:
            await second_done.wait()
            return await super().tools(ctx)

    class Fast(ScriptedToolset):
        async def tools(self, ctx: ReadonlyContext) -> Sequence[Tool]:
            second_done.set()
            return await super().tools(ctx)

    slow, fast = Slow("slow", [(CustomTool("a"),)]), Fast("fast", [(CustomTool("b"),)])

    assert named(await CombinedToolset([slow, fast]).tools(CTX)) == ["a", "b"]


async def test_the_first_member_that_fails_fails_the_listing() -> None:
    good = StaticToolset([CustomTool("a")])
    first, second = RuntimeError("no route"), RuntimeError("no door")
    toolset = CombinedToolset(
        [good, ScriptedToolset("one", [first]), ScriptedToolset("two", [second])]
    )

    with pytest.raises(ToolsetError, match='"one" cannot be listed: no route') as caught:
        await toolset.tools(CTX)

    assert caught.value.__cause__ is first


async def test_failing_members_are_reported_while_the_others_are_served() -> None:
    error = RuntimeError("no route")
    toolset = CombinedToolset(
        [ScriptedToolset("one", [error, (CustomTool("b"),)]), StaticToolset([CustomTool("a")])],
        on_failure="report",
    )

    assert named(await toolset.tools(CTX)) == ["a"]
    assert toolset.failures == {"one": error}
    assert named(await toolset.tools(CTX)) == ["b", "a"]
    assert toolset.failures == {}


async def test_members_of_one_name_are_told_apart() -> None:
    errors = [RuntimeError("1"), RuntimeError("2"), RuntimeError("3")]
    members = [ScriptedToolset("x", [error]) for error in errors]
    toolset = CombinedToolset(members, on_failure="report")

    assert await toolset.tools(CTX) == ()
    assert toolset.failures == dict(zip(("x", "x#2", "x#3"), errors, strict=True))


async def test_one_member_alone_is_asked_in_the_callers_own_task() -> None:
    asked_in: list[int] = []

    class Noting(ScriptedToolset):
        async def tools(self, ctx: ReadonlyContext) -> Sequence[Tool]:
            asked_in.append(anyio.get_current_task().id)
            return await super().tools(ctx)

    here = anyio.get_current_task().id
    await CombinedToolset([Noting("x", [()])]).tools(CTX)
    await CombinedToolset([Noting("x", [()]), Noting("y", [()])]).tools(CTX)

    assert asked_in[0] == here
    assert here not in asked_in[1:]


async def test_cancelling_a_listing_passes() -> None:
    class Hanging(ScriptedToolset):
        async def tools(self, ctx: ReadonlyContext) -> Sequence[Tool]:
            await anyio.sleep_forever()
            return ()

    toolset = CombinedToolset([Hanging("x", [()]), Hanging("y", [()])], on_failure="report")
    with anyio.CancelScope() as scope:
        scope.cancel()
        await toolset.tools(CTX)

    assert scope.cancelled_caught


# What all of them share


def stacked(toolset: Any) -> CombinedToolset:
    """All wrappers, around one toolset."""
    stack = toolset.filtered(["*"]).confirmed().renamed({"a": "b"}).prefixed("p__")
    return CombinedToolset([stack])


async def test_the_full_stack_offers_what_each_wrapper_made_of_it() -> None:
    stack = stacked(StaticToolset([CustomTool("a"), read_page]))

    assert named(await stack.tools(CTX)) == ["p__b", "p__read_page"]
    outcome = await call(stack, "p__read_page")
    [question] = outcome.actions.requested_tool_confirmations.values()
    assert (question.payload["upstream"], question.payload["tool"]) == ("local", "read_page")


async def test_a_listing_in_which_nothing_changed_is_the_very_same_tuple() -> None:
    stack = stacked(StaticToolset([CustomTool("a"), read_page]))
    assert await stack.tools(CTX) is await stack.tools(CTX)

    chosen = stacked(StaticToolset([CustomTool("a")]).filtered(lambda ctx, tool: True))
    assert await chosen.tools(CTX) is await chosen.tools(CTX)


async def test_a_listing_that_changed_is_made_anew() -> None:
    class Scripted(ScriptedToolset, StaticToolset):
        pass

    stack = stacked(Scripted("x", [(CustomTool("a"),), (CustomTool("c"), read_page)]))

    assert named(await stack.tools(CTX)) == ["p__b"]
    assert named(await stack.tools(CTX)) == ["p__c", "p__read_page"]


async def test_a_list_that_grew_is_not_taken_for_the_old_one() -> None:
    class Growing(StaticToolset):
        def __init__(self) -> None:
            super().__init__([])
            self.grown: list[Tool] = [CustomTool("a")]

        async def tools(self, ctx: ReadonlyContext) -> Any:
            return self.grown

    growing = Growing()
    stack, combined = stacked(growing), CombinedToolset([growing])
    assert named(await stack.tools(CTX)) == ["p__b"]
    assert named(await combined.tools(CTX)) == ["a"]

    growing.grown.append(CustomTool("c"))

    assert named(await stack.tools(CTX)) == ["p__b", "p__c"]
    assert named(await combined.tools(CTX)) == ["a", "c"]


class Instructing(StaticToolset):
    """A toolset that edits requests, too."""

    async def process_request(self, ctx: ToolContext, request: LLMRequest) -> None:
        request.model += f"+{self.name}"


async def test_every_wrapper_keeps_the_inner_toolsets_own_request_processing() -> None:
    inner = Instructing([CustomTool("a")], name="x")
    for toolset in (
        inner.filtered(["a"]),
        inner.confirmed(),
        inner.renamed({}),
        inner.prefixed("p"),
        CombinedToolset([StaticToolset([]), inner]),
        stacked(inner),
    ):
        request = LLMRequest("m")
        await toolset.process_request(ToolContext(CTX), request)
        assert request.model == "m+x"


async def test_a_toolset_without_request_processing_is_not_given_any() -> None:
    inner = StaticToolset([CustomTool("a")])
    for toolset in (
        inner.filtered(["a"]),
        inner.confirmed(),
        inner.renamed({}),
        inner.prefixed("p"),
        stacked(inner),
    ):
        assert not hasattr(toolset, "process_request")


async def test_a_member_that_could_not_be_listed_does_not_edit_requests() -> None:
    class Failing(Instructing):
        async def tools(self, ctx: ReadonlyContext) -> Any:
            raise RuntimeError("away")

    toolset = CombinedToolset(
        [Failing([], name="bad"), Instructing([], name="good")], on_failure="report"
    )
    request = LLMRequest("m")

    await toolset.tools(CTX)
    await toolset.process_request(ToolContext(CTX), request)

    assert request.model == "m+good"


@pytest.mark.parametrize("confirm", [None, 0, 1.5])
def test_what_cannot_say_what_is_confirmed_is_refused(confirm: Any) -> None:
    with pytest.raises(ConfigError, match="confirm is True, False, a list of names and globs"):
        ConfirmedToolset(StaticToolset([]), confirm)
