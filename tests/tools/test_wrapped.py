"""A stranger's tool, dressed: what it keeps, what it hides, and how it enters a request."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from bridge.core.content import Args, Result
from bridge.core.context import ToolContext, local_context
from bridge.core.declaration import Declaration
from bridge.core.request import LLMRequest
from bridge.core.tool import FunctionTool, pack_tool
from bridge.errors import ConfirmationRequired, DuplicateTool
from bridge.tools.gate import Rule
from bridge.tools.wrapped import WrappedTool, guarded, relabelled
from tests.fakes import CustomTool, NativeTool

ALWAYS = Rule("pay", require=True)


def desk() -> ToolContext:
    return ToolContext(local_context(), "c1")


class SelfPacking(CustomTool):
    """Enters itself in the request, and an instruction too."""

    async def process_request(self, ctx: ToolContext, request: LLMRequest) -> None:
        request.model += "+instruction"
        pack_tool(request, self)


class OnlyInstructing(CustomTool):
    """Runs, but edits the request without entering itself."""

    async def process_request(self, ctx: ToolContext, request: LLMRequest) -> None:
        request.model += "+instruction"


class Talented(CustomTool):
    """Can all that a tool can."""

    upstream = "bank"

    def defers_response(self) -> bool:
        return True

    async def run_stream(self, ctx: ToolContext, args: Args) -> Any:
        yield "piece"


class Unable(CustomTool):
    """Has no declaration to show."""

    def declaration(self) -> Declaration | None:
        return None


async def processed(tool: Any, request: LLMRequest | None = None) -> LLMRequest:
    request = request or LLMRequest("m")
    await tool.process_request(desk(), request)
    return request


def declared(request: LLMRequest) -> list[Declaration]:
    entries = request.config.tools if request.config else []
    return [d for entry in entries if entry for d in entry.function_declarations or []]


async def test_behind_a_rule_a_tool_runs_only_through_the_gate() -> None:
    pay = CustomTool("pay")
    wrapped = guarded(pay, ALWAYS)

    assert isinstance(wrapped, FunctionTool)
    with pytest.raises(ConfirmationRequired):
        await wrapped.run(desk(), {"amount": 1})

    assert pay.calls == []


def test_behind_a_rule_nothing_leads_around_the_gate() -> None:
    wrapped = guarded(Talented("pay"), ALWAYS)

    assert not hasattr(wrapped, "run_stream")
    assert not hasattr(wrapped, "defers_response")


def test_without_a_rule_a_tool_can_all_that_it_could_and_no_more() -> None:
    talented = relabelled(Talented("pay"), "p__pay")
    plain = relabelled(CustomTool("pay"), "p__pay")

    assert hasattr(talented, "run_stream")
    assert hasattr(talented, "defers_response")
    assert getattr(talented, "upstream", "") == "bank"
    assert not hasattr(talented, "process_request")
    assert not hasattr(plain, "run_stream")
    assert not hasattr(plain, "defers_response")


@pytest.mark.parametrize("kind", [SelfPacking, OnlyInstructing, CustomTool])
async def test_a_guarded_tool_enters_the_request_itself(kind: Any) -> None:
    wrapped: Any = guarded(kind("pay"), ALWAYS)

    request = await processed(wrapped)

    assert request.tools == {"pay": wrapped}  # 1.4, 1.5
    assert declared(request) == [wrapped.declaration()]
    assert ("instruction" in request.model) is (kind is not CustomTool)


async def test_a_renamed_tool_enters_the_request_under_its_new_name() -> None:
    wrapped: Any = relabelled(SelfPacking("pay"), "bank__pay", "Send money.")

    request = await processed(wrapped)

    assert request.tools == {"bank__pay": wrapped}
    assert declared(request) == [Declaration("bank__pay", "Send money.", {"type": "object"})]
    assert request.model == "m+instruction"


async def test_a_renamed_tool_that_does_not_enter_itself_stays_out() -> None:
    request = await processed(relabelled(OnlyInstructing("pay"), "bank__pay"))

    assert request.tools is None
    assert declared(request) == []


async def test_a_name_that_was_changed_because_it_is_taken_does_no_harm() -> None:
    request, other = LLMRequest("m"), CustomTool("pay", "Another's.")
    pack_tool(request, other)
    wrapped: Any = relabelled(SelfPacking("pay"), "bank__pay")

    await processed(wrapped, request)

    assert request.tools == {"pay": other, "bank__pay": wrapped}
    assert declared(request) == [other.declaration(), wrapped.declaration()]


async def test_a_name_that_is_taken_is_refused() -> None:
    request, other = LLMRequest("m"), CustomTool("pay")
    pack_tool(request, other)

    with pytest.raises(DuplicateTool):
        await processed(guarded(SelfPacking("pay"), ALWAYS), request)

    assert request.tools == {"pay": other}
    assert declared(request) == [other.declaration()]


async def test_a_tool_that_fails_to_enter_leaves_the_table_as_it_was() -> None:
    class Failing(CustomTool):
        async def process_request(self, ctx: ToolContext, request: LLMRequest) -> None:
            raise RuntimeError("no")

    request, other = LLMRequest("m"), CustomTool("pay")
    pack_tool(request, other)

    with pytest.raises(RuntimeError, match="no"):
        await processed(relabelled(Failing("pay"), "p"), request)

    assert request.tools == {"pay": other}


async def test_what_a_tool_enters_beside_itself_stays() -> None:
    beside = CustomTool("beside")

    class Generous(SelfPacking):
        async def process_request(self, ctx: ToolContext, request: LLMRequest) -> None:
            pack_tool(request, beside)
            await super().process_request(ctx, request)

    wrapped: Any = relabelled(Generous("pay"), "p")

    assert (await processed(wrapped)).tools == {"beside": beside, "p": wrapped}


async def test_a_tool_that_declares_nothing_stays_invisible() -> None:
    wrapped: Any = guarded(Unable("pay"), ALWAYS)

    request = await processed(wrapped)

    assert wrapped.declaration() is None
    assert request.tools == {"pay": wrapped}
    assert declared(request) == []
    with pytest.raises(ConfirmationRequired):
        await wrapped.run(desk(), {})


def test_a_tool_that_nobody_calls_by_name_is_not_renamed() -> None:
    native = NativeTool("search")
    assert relabelled(native, "p__search") is native


def test_dressing_twice_is_dressing_once() -> None:
    pay = CustomTool("pay", "Pay.")
    tool: Any = relabelled(guarded(relabelled(pay, "a"), ALWAYS), "b", "New.")

    assert isinstance(tool, WrappedTool)
    assert (tool.inner, tool.name, tool.description, tool.rule) == (pay, "b", "New.", ALWAYS)
    assert tool.declaration() == Declaration("b", "New.", {"type": "object"})
    assert tool.subject == guarded(pay, ALWAYS).subject  # type of approval: the inner tool
    assert guarded(tool, ALWAYS).rule == ALWAYS.and_also(ALWAYS)


def test_a_yes_is_bound_to_what_the_inner_tool_declares() -> None:
    one: Any = guarded(CustomTool("pay", "Pay."), ALWAYS)
    other: Any = guarded(CustomTool("pay", "Pay twice."), ALWAYS)

    assert one.subject.tool == other.subject.tool == "pay"
    assert one.subject.definition != other.subject.definition


async def test_a_tool_that_describes_itself_to_models_alone_keeps_that() -> None:
    class Noted(CustomTool):
        def declaration(self) -> Declaration:
            return Declaration(self.name, f"{self.description} NOTE")

    assert relabelled(Noted("pay", "Pay."), "p").declaration() == Declaration("p", "Pay. NOTE")
    assert relabelled(Noted("pay", "Pay."), "p", "New.").declaration() == Declaration("p", "New.")


async def test_a_wrapped_tool_can_be_copied() -> None:
    wrapped: Any = copy.deepcopy(guarded(CustomTool("pay"), ALWAYS))

    with pytest.raises(ConfirmationRequired):
        await wrapped.run(desk(), {})

    free: Any = copy.deepcopy(relabelled(CustomTool("pay"), "p"))
    result: Result = await free.run(desk(), {})
    assert result == {"ok": True}
