"""An agent as a tool: what it is told, what it keeps to itself, and what it answers."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.agents.agent_tool import AgentTool
from bridge.agents.llm_agent import Agent
from bridge.agents.plugin import Plugin
from bridge.core.content import Content, Part, Result
from bridge.core.context import CallbackContext, Context, ToolContext
from bridge.core.response import LLMResponse
from bridge.core.scope import BACKGROUND, Key
from bridge.models.scripted import ScriptedModel
from bridge.stores.memory import InMemoryArtifactService
from bridge.tools.function import function_tool
from tests.agents.talk import Talk, brief, briefs, call, declared, told
from tests.agents.tools import Probe

MAGIC = {
    "type": "object",
    "properties": {"is_magic": {"type": "boolean"}, "name": {"type": "string"}},
    "required": ["is_magic", "name"],
    "additionalProperties": False,
}
VALID = {
    "type": "object",
    "properties": {"is_valid": {"type": "boolean"}, "message": {"type": "string"}},
    "required": ["is_valid", "message"],
}


def child(*says: Any, **options: Any) -> Agent:
    return Agent("child", ScriptedModel(says), description="Knows things.", **options)


def parent(tool: AgentTool, args: dict[str, Any] | None = None, **options: Any) -> Talk:
    given = {"request": "magic"} if args is None else args
    model = ScriptedModel([call("c", "child", **given), "Done."])
    return Talk(Agent("parent", model, tools=[tool]), **options)


async def answered(tool: AgentTool, args: dict[str, Any] | None = None, **options: Any) -> Result:
    """What the child answered, through the parent's flow."""
    events = await parent(tool, args, **options).say()
    ((_, _, _, response),) = brief(events[1])
    result: Result = response
    return result


def model_of(agent: Agent) -> ScriptedModel:
    assert isinstance(agent.model, ScriptedModel)
    return agent.model


@pytest.mark.spec("10.1")
def test_an_agent_is_declared_with_its_input_or_with_a_request() -> None:
    plain, strict = AgentTool(child()).declaration(), AgentTool(child(input_schema=MAGIC))

    assert (plain.name, plain.description) == ("child", "Knows things.")
    assert plain.parameters_json_schema is not None
    assert plain.parameters_json_schema["properties"]["request"]["type"] == "string"
    assert plain.parameters_json_schema["required"] == ["request"]
    assert strict.declaration().parameters_json_schema == MAGIC
    assert strict.is_long_running is False


@pytest.mark.spec("10.2")
@pytest.mark.spec("system-42")
@pytest.mark.parametrize(
    "args",
    [
        {"is_magic": True, "name": "x", "extra": 1},
        {"is_magic": "yes", "name": "x"},
        {"is_magic": 1, "name": "x"},
        {"is_magic": True},
        {"is_magic": True, "name": None},
    ],
)
async def test_arguments_that_do_not_fit_never_reach_the_agent(args: dict[str, Any]) -> None:
    agent = child("never", input_schema=MAGIC)
    response = await answered(AgentTool(agent), args)

    assert response["error"].startswith('the arguments of agent "child" do not fit')
    assert model_of(agent).requests == []


async def test_arguments_that_fit_reach_the_agent_as_json() -> None:
    agent = child("ok", input_schema=MAGIC)
    await answered(AgentTool(agent), {"is_magic": True, "name": "東京"})

    assert told(model_of(agent).requests[0]) == [['{"is_magic": true, "name": "東京"}']]


@pytest.mark.spec("10.3")
@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ('{"is_valid": true, "message": "success"}', {"is_valid": True, "message": "success"}),
        ('{"is_valid": "invalid type", "message": ""}', "does not fit its schema"),
        ("not JSON", "is not JSON"),
    ],
)
async def test_a_structured_answer_is_checked(said: str, wanted: Any) -> None:
    response = await answered(AgentTool(child(said, output_schema=VALID)))

    if isinstance(wanted, str):
        assert wanted in response["error"]
    else:
        assert response == wanted


async def test_a_structured_answer_that_is_no_object_becomes_one() -> None:
    listed = {"type": "array", "items": {"type": "integer"}}

    assert await answered(AgentTool(child("[1, 2]", output_schema=listed))) == {"result": [1, 2]}


@pytest.mark.spec("10.4")
@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("Hello, all of it.", {"result": "Hello, all of it."}),
        (Content("model", ()), {}),
        (Content("model", (Part(text=""),)), {}),
        ([Part(text="one"), Part(text=""), Part(text="two")], {"result": "one\ntwo"}),
    ],
)
async def test_the_answer_is_all_the_text_of_the_last_content(said: Any, wanted: Result) -> None:
    agent = child(said)
    assert await answered(AgentTool(agent)) == wanted
    assert told(model_of(agent).requests[0]) == [["magic"]]


@pytest.mark.spec("10.5")
@pytest.mark.spec("8.5")
@pytest.mark.spec("19.5")
@pytest.mark.parametrize("skips", [True, False])
async def test_an_answer_may_be_shown_as_it_is(skips: bool) -> None:
    talk = parent(AgentTool(child("An answer."), skip_summarization=skips))
    events = await talk.say()

    assert events[1].actions.skip_summarization is skips
    shown = ["An answer."] if skips else []
    assert brief(events[1]) == [("answer", "c", "child", {"result": "An answer."}), *shown]
    assert briefs(events)[2:] == ([] if skips else [["Done."]])


async def test_an_answer_that_would_be_shown_is_so_marked_even_if_the_arguments_are_wrong() -> None:
    events = await parent(AgentTool(child(), skip_summarization=True), {}).say()

    assert events[1].actions.skip_summarization
    assert len(events) == 2


@pytest.mark.spec("10.6")
@pytest.mark.spec("system-41")
async def test_an_agent_starts_from_a_copy_of_the_state_and_gives_nothing_back() -> None:
    seen: list[dict[str, Any]] = []

    async def look(ctx: ToolContext) -> str:
        """Look around and leave things behind."""
        seen.append(dict(ctx.state.all()))
        ctx.state.get("list").append("spoiled")
        ctx.state.get("temp:list").append("spoiled")
        ctx.state.set("child", True)
        await ctx.artifacts.save("child.txt", Part(text="mine"))
        return "looked"

    async def peek(ctx: ToolContext) -> Any:
        """Look at what is left."""
        return [ctx.state.get("list"), ctx.state.get("temp:list")]

    artifacts = InMemoryArtifactService()
    agent = child(call("l", "look"), "Seen.", tools=[look])
    model = ScriptedModel([call("c", "child", request="magic"), call("p", "peek"), "Done."])
    talk = Talk(Agent("parent", model, tools=[AgentTool(agent), peek]), artifacts=artifacts)
    state = {"a": 1, "_adk_x": 2, "list": [1], "user:name": "Ann", "temp:list": [0]}
    events = await talk.say(state_delta=state)

    assert seen == [
        {"a": 1, "list": [1, "spoiled"], "user:name": "Ann", "temp:list": [0, "spoiled"]}
    ]
    session = await talk.session()
    assert session.state == {"a": 1, "_adk_x": 2, "list": [1], "user:name": "Ann"}
    assert await artifacts.list(session.key) == []
    assert briefs(events) == [
        [("call", "c", "child", {"request": "magic"})],
        [("answer", "c", "child", {"result": "Seen."})],
        [("call", "p", "peek", {})],
        [("answer", "p", "peek", {"result": [[1], [0]]})],
        ["Done."],
    ]
    assert all(event.author == "parent" for event in events)


@pytest.mark.spec("10.7")
@pytest.mark.spec("system-42")
async def test_thoughts_are_no_answer_and_earlier_words_are_not_found_again() -> None:
    thought = Part(text="hmm", thought=True)
    assert await answered(AgentTool(child([thought, Part(text="42")]))) == {"result": "42"}

    spoken = LLMResponse(content=Content("model", (Part(text="An answer."),)))
    last = LLMResponse(content=Content("model", (thought,)))
    thinking = child([spoken, last], *[last] * 10)
    assert await answered(AgentTool(thinking)) == {}


@pytest.mark.spec("10.8")
async def test_a_missing_request_is_an_error_in_the_flow() -> None:
    response = await answered(AgentTool(child("never")), {})

    assert response == {"error": 'the agent "child" needs "request": what is it to do?'}


@pytest.mark.parametrize("given", [3, ["a"], {"x": 1}])
async def test_a_request_that_is_no_text_is_told_as_json(given: Any) -> None:
    agent = child("ok")
    await answered(AgentTool(agent), {"request": given})

    ((said,),) = told(model_of(agent).requests[0])
    assert said == {3: "3"}.get(given) if isinstance(given, int) else said in ('["a"]', '{"x": 1}')


@pytest.mark.spec("system-42")
@pytest.mark.parametrize(
    ("says", "wanted"),
    [
        (OSError("unreachable"), 'the agent "child" failed: unreachable'),
        (
            LLMResponse(error_code="BLOCKED", error_message="No."),
            'the agent "child" failed: No. (BLOCKED)',
        ),
    ],
)
async def test_what_fails_in_the_agent_is_the_calls_failure(says: Any, wanted: str) -> None:
    assert await answered(AgentTool(child(says))) == {"error": wanted}


async def test_an_agent_that_asks_for_approval_says_that_it_cannot_be_answered() -> None:
    paid: list[int] = []

    async def pay(amount: int) -> int:
        """Pay."""
        paid.append(amount)
        return amount

    guarded = function_tool(pay, require_confirmation=True)
    agent = child(call("p", "pay", amount=1), "never", tools=[guarded])
    response = await answered(AgentTool(agent))

    assert 'the agent "child" asked for approval of "pay"' in response["error"]
    assert (paid, len(model_of(agent).requests)) == ([], 1)


@pytest.mark.spec("system-41")
async def test_an_agent_runs_without_the_callers_plugins_and_in_a_session_of_its_own() -> None:
    runs: list[tuple[str, str]] = []

    class Noting(Plugin):
        async def before_run(self, ctx: Context) -> None:
            runs.append((ctx.agent_name, ctx.session_id))

    agent = child("one", "two")
    tool = AgentTool(agent)
    model = ScriptedModel([call("c", "child", request="a"), call("d", "child", request="b"), "."])
    await Talk(Agent("parent", model, tools=[tool]), plugins=[Noting()]).say()

    assert runs == [("parent", "default")]
    assert [told(request) for request in model_of(agent).requests] == [[["a"]], [["b"]]]


async def test_tools_of_the_agent_are_its_own() -> None:
    agent = child("ok", tools=[Probe("inner")])
    talk = parent(AgentTool(agent))
    await talk.say()

    assert declared(model_of(agent).requests[0]) == ["inner"]
    assert isinstance(talk.runner.agent, Agent)
    assert declared(model_of(talk.runner.agent).requests[0]) == ["child"]


async def test_an_event_without_content_does_not_hide_the_answer() -> None:
    def file(ctx: CallbackContext) -> None:
        ctx.state.set("filed", True)

    assert await answered(AgentTool(child("42", after_agent=file))) == {"result": "42"}


async def test_an_agent_works_in_its_callers_time_and_with_what_its_scope_carries() -> None:
    key: Key[str] = Key("note")
    seen: list[str | None] = []

    async def look(ctx: ToolContext) -> str:
        """Look at what is carried."""
        seen.append(ctx.scope.value(key))
        return "looked"

    talk = parent(AgentTool(child(call("l", "look"), "Ok.", tools=[look])))
    await talk.say(scope=BACKGROUND.with_value(key, "carried"))

    assert seen == ["carried"]
