"""How a request is put together: tools are listed, and prepare it, in one order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bridge.agents.llm_agent import Agent
from bridge.core.context import ReadonlyContext, ToolContext
from bridge.core.request import LLMRequest
from bridge.errors import DuplicateTool, ToolsetError
from bridge.models.scripted import ScriptedModel
from bridge.tools.toolsets import StaticToolset
from tests.agents.talk import (
    Talk,
    asked,
    brief,
    call,
    declared,
    instruction,
    text,
    told,
)
from tests.agents.tools import InstructionOnly, Probe
from tests.fakes import NativeTool, PlainTool, ScriptedToolset


def advice(words: str) -> InstructionOnly:
    def edit(ctx: ToolContext, request: LLMRequest) -> None:
        request.contents.append(text(words))

    return InstructionOnly(edit=edit)


@pytest.mark.spec("4.3")
@pytest.mark.spec("system-13")
async def test_tools_are_listed_once_a_run_and_prepared_for_every_question() -> None:
    tool = Probe()
    toolset = ScriptedToolset("set", [[tool]])
    model = ScriptedModel([call("c", "work"), "Done.", "Again."])
    talk = Talk(Agent("w", model, toolsets=[toolset]))

    await talk.say()
    assert (toolset.listed, tool.processed) == (1, 2)

    await talk.say()
    assert (toolset.listed, tool.processed) == (2, 3)


async def test_tools_may_be_functions_and_toolsets_and_come_before_toolsets() -> None:
    async def plain(city: str) -> str:
        """Say something of a city."""
        return city

    inner, outer = StaticToolset([Probe("inner")]), StaticToolset([Probe("outer")])
    agent = Agent("w", ScriptedModel(["Hi"]), tools=[inner, plain, Probe("own")], toolsets=[outer])
    await Talk(agent).say()

    assert isinstance(agent.model, ScriptedModel)
    assert declared(agent.model.requests[0]) == ["plain", "own", "inner", "outer"]


@pytest.mark.spec("4.4")
@pytest.mark.spec("system-1")
@pytest.mark.spec("system-25")
async def test_a_tool_that_cannot_prepare_a_request_ends_the_step_before_the_model() -> None:
    model = ScriptedModel(["Hi"])

    with pytest.raises(ToolsetError, match='"bare" cannot be offered to a model'):
        await Talk(Agent("w", model, tools=[PlainTool("bare")])).say()

    assert model.requests == []


@pytest.mark.spec("4.1")
@pytest.mark.spec("system-2")
async def test_a_toolset_that_cannot_be_listed_ends_the_step_before_the_model() -> None:
    model = ScriptedModel(["Hi"])
    toolset = ScriptedToolset("files", [OSError("disk gone")])

    with pytest.raises(ToolsetError, match='tools of "files" cannot be listed: disk gone'):
        await Talk(Agent("w", model, toolsets=[toolset])).say()

    assert model.requests == []


@pytest.mark.spec("system-2")
async def test_a_toolset_may_choose_by_what_it_reads_of_the_session() -> None:
    class Chosen:
        name = "chosen"

        async def tools(self, ctx: ReadonlyContext) -> list[Probe]:
            return [Probe("vip") if ctx.readonly_state.get("vip") else Probe("plain")]

    model = ScriptedModel(["a", "b"])
    talk = Talk(Agent("w", model, toolsets=[Chosen()]))
    await talk.say(session_id="one")
    await talk.say(session_id="two", state_delta={"vip": True})

    assert [declared(request) for request in model.requests] == [["plain"], ["vip"]]


@pytest.mark.spec("4.5")
async def test_one_name_for_two_tools_ends_the_step_before_the_model() -> None:
    model = ScriptedModel(["Hi"])
    agent = Agent("w", model, tools=[Probe("x")], toolsets=[StaticToolset([Probe("x")])])

    with pytest.raises(DuplicateTool, match='two tools are named "x"'):
        await Talk(agent).say()

    assert model.requests == []


async def test_a_tool_may_not_be_named_as_what_stops_streams() -> None:
    with pytest.raises(DuplicateTool, match="name your tool otherwise"):
        await Talk(Agent("w", ScriptedModel(["Hi"]), tools=[Probe("stop_streaming")])).say()


class Preparing:
    """A toolset that edits the request."""

    name = "preparing"

    def __init__(self, edit: Any) -> None:
        self.edit = edit

    async def tools(self, ctx: ReadonlyContext) -> list[Any]:
        return []

    async def process_request(self, ctx: ToolContext, request: LLMRequest) -> None:
        self.edit(ctx, request)


@pytest.mark.spec("4.1")
async def test_toolsets_that_prepare_requests_do_and_the_others_are_left_alone() -> None:
    def edit(ctx: ToolContext, request: LLMRequest) -> None:
        request.model = "modified-model"

    model = ScriptedModel(["Hi"])
    await Talk(Agent("w", model, toolsets=[StaticToolset([]), Preparing(edit)])).say()

    assert model.requests[0].model == "modified-model"


@pytest.mark.spec("4.2")
async def test_what_a_toolset_adds_to_the_instruction_reaches_the_model() -> None:
    def edit(ctx: ToolContext, request: LLMRequest) -> None:
        assert request.config is not None
        request.config.system_instruction = text("from the toolset")

    model = ScriptedModel(["Hi"])
    await Talk(Agent("w", model, toolsets=[Preparing(edit)])).say()

    assert instruction(model.requests[0]) == "from the toolset"


@pytest.mark.spec("4.1")
async def test_a_toolset_that_fails_to_prepare_is_named() -> None:
    def edit(ctx: ToolContext, request: LLMRequest) -> None:
        raise OSError("no")

    model = ScriptedModel(["Hi"])
    with pytest.raises(ToolsetError, match='"preparing" cannot prepare the request: no'):
        await Talk(Agent("w", model, toolsets=[Preparing(edit)])).say()

    assert model.requests == []


@pytest.mark.spec("system-14")
async def test_the_request_is_built_in_one_order() -> None:
    order: list[str] = []

    def noting(name: str) -> InstructionOnly:
        def edit(ctx: ToolContext, request: LLMRequest) -> None:
            order.append(f"{name} after {len(request.contents)} contents")

        return InstructionOnly(name, edit=edit)

    def edit(ctx: ToolContext, request: LLMRequest) -> None:
        order.append("toolset")

    agent = Agent(
        "w", ScriptedModel(["Hi"]), tools=[noting("A"), noting("B")], toolsets=[Preparing(edit)]
    )
    await Talk(agent).say("Hello")

    assert order == ["A after 1 contents", "B after 1 contents", "toolset"]


@pytest.mark.spec("system-15")
async def test_what_is_filed_while_preparing_becomes_no_event() -> None:
    seen: list[str] = []

    def edit(ctx: ToolContext, request: LLMRequest) -> None:
        seen.append(ctx.function_call_id)
        ctx.actions.state_delta["lost"] = 1
        ctx.actions.skip_summarization = True

    agent = Agent("w", ScriptedModel(["Hi"]), tools=[InstructionOnly(edit=edit)])
    talk = Talk(agent)
    (event,) = await talk.say()

    assert seen == [""]
    assert (event.actions.state_delta, event.actions.skip_summarization) == ({}, False)
    assert (await talk.session()).state == {}


@pytest.mark.spec("1.7")
@pytest.mark.spec("system-5")
@pytest.mark.spec("system-23")
async def test_a_tool_that_only_prepares_works_and_cannot_be_called() -> None:
    model = ScriptedModel([call("c", "advice"), "Done."])
    events = await Talk(Agent("w", model, tools=[advice("Consider this.")])).say("Hi")

    assert told(model.requests[0]) == [["Hi"], ["Consider this."]]
    ((_, _, _, response),) = brief(events[1])
    assert response["error"].startswith('the tool "advice" does not exist')


@pytest.mark.spec("system-6")
async def test_a_native_tool_enters_the_request_and_nothing_else() -> None:
    model = ScriptedModel(["Found."])
    await Talk(Agent("w", model, tools=[NativeTool("web_search"), Probe()])).say()

    (request,) = model.requests
    assert request.config is not None
    assert [entry and entry.native for entry in request.config.tools] == [{"web_search": {}}, {}]
    assert list(request.tools or {}) == ["work"]


@pytest.mark.spec("system-3")
async def test_a_tool_that_is_filtered_out_is_not_declared_and_cannot_be_called() -> None:
    hidden, shown = Probe("hidden"), Probe("shown")
    toolset = StaticToolset([hidden, shown]).filtered(["shown"])
    model = ScriptedModel([call("c", "hidden"), "Sorry."])
    events = await Talk(Agent("w", model, toolsets=[toolset])).say()

    assert declared(model.requests[0]) == ["shown"]
    assert 'the tool "hidden" does not exist' in brief(events[1])[0][3]["error"]
    assert hidden.calls == []


class WeatherTool:
    """A stranger's tool: it has no base class, and knows a request only by its shape."""

    name = "get_weather"
    description = "The weather in a city."
    is_long_running = False

    def declaration(self) -> Any:
        schema = {"type": "object", "properties": {"city": {"type": "string"}}}
        return SimpleNamespace(
            name=self.name,
            description=self.description,
            parameters_json_schema=schema,
            response_json_schema=None,
        )

    async def process_request(self, ctx: Any, request: Any) -> None:
        request.tools = {**(request.tools or {}), self.name: self}
        entry = SimpleNamespace(function_declarations=[self.declaration()], native={})
        request.config.tools.append(entry)

    async def run(self, ctx: Any, args: dict[str, Any]) -> dict[str, Any]:
        if not args.get("city"):
            raise ValueError("city is required")

        return {"city": args["city"], "temperature_c": 22}


@pytest.mark.spec("system-4")
async def test_a_tool_is_what_has_the_methods_of_one_and_checks_its_own_arguments() -> None:
    calls = asked(call("a", "get_weather"), call("b", "get_weather", city="Tokyo"))
    model = ScriptedModel([calls, "Done."])
    events = await Talk(Agent("w", model, tools=[WeatherTool(), Probe()])).say()

    assert declared(model.requests[0]) == ["get_weather", "work"]
    assert brief(events[1]) == [
        ("answer", "a", "get_weather", {"error": "city is required"}),
        ("answer", "b", "get_weather", {"city": "Tokyo", "temperature_c": 22}),
    ]


async def test_a_run_that_is_ended_while_preparing_asks_no_model() -> None:
    def edit(ctx: ToolContext, request: LLMRequest) -> None:
        ctx.with_delta(None).end_invocation()

    model = ScriptedModel(["never"])

    assert await Talk(Agent("w", model, tools=[InstructionOnly(edit=edit)])).say() == []
    assert model.requests == []
