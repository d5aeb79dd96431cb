"""What an agent is told to be: its form of answer, its peers, its name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from bridge.agents.llm_agent import Agent
from bridge.core.content import Part
from bridge.core.context import local_context
from bridge.errors import BridgeError, ConfigError, DuplicateTool
from bridge.models.scripted import ScriptedModel
from tests.agents.talk import (
    Talk,
    briefs,
    call,
    declared,
    instruction,
    text,
    told,
)
from tests.agents.tools import Probe

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


async def test_an_agent_without_tools_is_asked_for_its_form_directly() -> None:
    model = ScriptedModel(['{"n": 1}'])
    talk = Talk(Agent("w", model, output_schema=SCHEMA, output_key="answer"))
    await talk.say()

    (request,) = model.requests
    assert request.config is not None
    assert (request.config.response_schema, declared(request)) == (SCHEMA, [])
    assert (await talk.session()).state == {"answer": {"n": 1}}


@pytest.mark.spec("20.5")
async def test_an_agent_with_tools_answers_in_form_through_a_tool() -> None:
    model = ScriptedModel(
        [call("a", "work"), call("b", "set_model_response", n="one"), call("c", RESPONSE, n=1)]
    )
    talk = Talk(Agent("w", model, tools=[Probe()], output_schema=SCHEMA, output_key="answer"))
    events = await talk.say()

    assert declared(model.requests[0]) == ["set_model_response", "work"]
    assert model.requests[0].config is not None
    assert model.requests[0].config.response_schema is None
    assert RESPONSE in instruction(model.requests[0])
    assert "expected an integer" in events[3].function_responses()[0].response["error"]
    assert briefs(events)[-2:] == [[("answer", "c", RESPONSE, {"n": 1})], ['{"n": 1}']]
    assert events[-1].content == text(json.dumps({"n": 1}), "model")
    assert (await talk.session()).state == {"answer": {"n": 1}}


RESPONSE = "set_model_response"


@pytest.mark.spec("20.4")
async def test_a_tool_of_ones_own_cannot_take_the_name_of_an_injected_one() -> None:
    agent = Agent("w", ScriptedModel(["Hi"]), tools=[Probe(RESPONSE)], output_schema=SCHEMA)

    with pytest.raises(DuplicateTool, match=RESPONSE):
        await Talk(agent).say()


@pytest.mark.spec("20.6")
async def test_a_model_hands_over_to_another_agent_which_stays_with_the_user() -> None:
    helper_model = ScriptedModel(["How can I help?", "Still me."])
    helper = Agent("helper", helper_model, description="Helps.")
    boss_model = ScriptedModel([call("t", "transfer_to_agent", agent_name="helper")])
    boss = Agent("boss", boss_model, sub_agents=[helper])
    talk = Talk(boss)
    events = await talk.say("Help!")

    assert [event.author for event in events] == ["boss", "boss", "helper"]
    assert events[1].actions.transfer_to_agent == "helper"
    assert "- helper: Helps." in instruction(boss_model.requests[0])
    assert "hand over to boss" in instruction(helper_model.requests[0])
    assert told(helper_model.requests[0])[0] == ["Help!"]

    (again,) = await talk.say("Who is there?")
    assert again.author == "helper"


@pytest.mark.spec("20.6")
async def test_handing_over_to_somebody_else_is_an_error_that_names_the_targets() -> None:
    model = ScriptedModel([call("t", "transfer_to_agent", agent_name="ghost")])
    boss = Agent("boss", model, sub_agents=[Agent("helper")])

    with pytest.raises(BridgeError, match='"boss" cannot hand over to "ghost", but to: "helper"'):
        await Talk(boss).say()


@pytest.mark.parametrize("closed", [True, False])
async def test_parents_and_peers_may_be_out_of_reach(closed: bool) -> None:
    model = ScriptedModel(["Hi"])
    helper = Agent(
        "helper", model, disallow_transfer_to_parent=closed, disallow_transfer_to_peers=closed
    )
    boss_model = ScriptedModel([call("t", "transfer_to_agent", agent_name="helper")])
    await Talk(Agent("boss", boss_model, sub_agents=[helper, Agent("peer")])).say()

    assert declared(model.requests[0]) == ([] if closed else ["transfer_to_agent"])
    config = model.requests[0].config
    assert config is not None
    if not closed:
        (entry,) = config.tools
        assert entry is not None and entry.function_declarations is not None
        schema = entry.function_declarations[0].parameters_json_schema
        assert schema is not None
        assert schema["properties"]["agent_name"]["enum"] == ["boss", "peer"]


@pytest.mark.parametrize("name", ["", "user", "a.b", "two words", "x" * 65])
def test_a_name_that_means_something_else_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot name an agent"):
        Agent(name)


def test_what_is_no_tool_is_refused() -> None:
    with pytest.raises(ConfigError, match='a int among the tools of "w"'):
        Agent("w", tools=[3])


def test_a_broken_schema_is_refused() -> None:
    with pytest.raises(ConfigError, match='output_schema of "w"'):
        Agent("w", output_schema={"type": "nonsense"})


async def test_the_answer_is_kept_in_the_state() -> None:
    first: list[Any] = ["Let me see.", call("c", "work")]
    model = ScriptedModel([first, [Part(text="Hm", thought=True), "Forty", "-two"]])
    talk = Talk(Agent("w", model, tools=[Probe()], output_key="answer"))
    events = await talk.say()

    assert [event.actions.state_delta for event in events] == [{}, {}, {"answer": "Forty-two"}]
    assert (await talk.session()).state == {"answer": "Forty-two"}


async def test_an_agent_may_be_told_of_the_current_turn_alone() -> None:
    model = ScriptedModel(["one", call("c", "work"), "two"])
    talk = Talk(Agent("w", model, tools=[Probe()], include_contents="none"))
    await talk.say("First")
    await talk.say("Second")

    assert [told(request) for request in model.requests] == [
        [["First"]],
        [["Second"]],
        [["Second"], [("call", "c", "work", {})], [("answer", "c", "work", {"ok": True})]],
    ]


def test_how_much_is_told_is_a_choice_of_two() -> None:
    given: Any = "some"
    with pytest.raises(ConfigError, match='include_contents of "w"'):
        Agent("w", include_contents=given)


class Answer(BaseModel):
    """An answer in a form of the user's own."""

    n: int


def test_a_form_may_be_a_pydantic_model() -> None:
    agent = Agent("w", input_schema=Answer, output_schema=Answer)

    assert agent.output_form == agent.input_form == Answer.model_json_schema()


def test_an_agent_among_the_tools_is_told_how_to_become_one() -> None:
    with pytest.raises(ConfigError, match="an agent becomes a tool by AgentTool"):
        Agent("w", tools=[Agent("inner")])


async def test_without_a_runner_an_agent_runs_and_nothing_is_kept() -> None:
    ctx = local_context()
    model = ScriptedModel([call("c", "work"), "Done."])
    tool = Probe()
    events = [event async for event in Agent("w", model, tools=[tool]).run(ctx)]

    assert briefs(events)[-1] == ["Done."]
    assert (len(tool.calls), ctx.session.events) == (1, [])
    assert model.requests[1].contents == []
