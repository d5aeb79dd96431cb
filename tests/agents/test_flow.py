"""A model in the loop: one step after the other, and when it is over."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.agents.llm_agent import Agent
from bridge.agents.run_config import RunConfig
from bridge.core.content import Part, Result
from bridge.core.context import ReadonlyContext, ToolContext
from bridge.core.response import LLMResponse
from bridge.errors import BridgeError
from bridge.models.scripted import ScriptedModel
from tests.agents.talk import (
    Talk,
    asked,
    brief,
    briefs,
    call,
    content,
    instruction,
    text,
    told,
)
from tests.agents.tools import Probe


async def test_a_text_is_an_answer() -> None:
    model = ScriptedModel(["Hello."])
    (event,) = await Talk(Agent("greeter", model, "Be kind.", "Greets.")).say("Hi")

    assert (event.author, brief(event), event.is_final_response()) == ("greeter", ["Hello."], True)
    (request,) = model.requests
    assert told(request) == [["Hi"]]
    assert instruction(request).startswith("Be kind.\n\n")
    assert '"greeter"' in instruction(request)
    assert '"Greets."' in instruction(request)


async def test_an_instruction_may_be_worked_out_anew_for_every_question() -> None:
    async def instruct(ctx: ReadonlyContext) -> str:
        return f"The mood is {ctx.readonly_state.get('mood', 'unknown')}."

    async def set_mood(ctx: ToolContext, args: Any) -> Result:
        ctx.state.set("mood", "good")
        return {}

    model = ScriptedModel([call("c", "work"), "Done."])
    await Talk(Agent("moody", model, instruct, tools=[Probe(body=set_mood)])).say()

    moods = [instruction(request).partition("\n")[0] for request in model.requests]
    assert moods == ["The mood is unknown.", "The mood is good."]


async def test_an_agent_without_a_model_says_so() -> None:
    with pytest.raises(BridgeError, match='"nobody" has no model'):
        await Talk(Agent("nobody")).say()


async def test_a_model_that_never_ends_is_stopped() -> None:
    model = ScriptedModel([call(f"c{n}", "work") for n in range(9)])
    talk = Talk(Agent("worker", model, tools=[Probe()]))

    with pytest.raises(BridgeError, match="asked its model 3 times and is not done"):
        await talk.say(config=RunConfig(most_model_calls=3))

    assert len(model.requests) == 3


async def test_who_is_stopped_reads_both_names_of_the_bound() -> None:
    model = ScriptedModel([call(f"c{n}", "work") for n in range(9)])
    talk = Talk(Agent("worker", model, tools=[Probe()]))

    with pytest.raises(BridgeError, match=r"agent\.max_steps.*RunConfig\.most_model_calls"):
        await talk.say(config=RunConfig(most_model_calls=2))


@pytest.mark.spec("5.8")
@pytest.mark.parametrize(
    ("said", "asks"),
    [
        ([Part(text="Hm.", thought=True)], 2),
        ([Part(text="Hm.", thought=True), Part(text="So.")], 1),
        ([Part(text="So.")], 1),
        ([Part(text="Hm.", thought=True), Part(text="", thought_signature=b"s")], 1),
    ],
)
async def test_a_turn_of_nothing_but_thoughts_is_not_the_end(said: list[Part], asks: int) -> None:
    model = ScriptedModel([said, "The answer."])
    await Talk(Agent("thinker", model)).say()

    assert len(model.requests) == asks


@pytest.mark.spec("5.8")
async def test_a_call_beside_a_thought_is_run() -> None:
    thinking = content(
        Part(text="Hm.", thought=True), Part(function_call=call("c", "work")), role="model"
    )
    tool = Probe()
    events = await Talk(Agent("w", ScriptedModel([thinking, "Done."]), tools=[tool])).say()

    assert (len(tool.calls), brief(events[-1])) == (1, ["Done."])


async def test_thoughts_come_to_an_end() -> None:
    model = ScriptedModel([Part(text="Hm.", thought=True)] * 20)
    await Talk(Agent("thinker", model)).say()

    assert len(model.requests) == 11


async def test_an_answer_that_breaks_off_is_an_error() -> None:
    piece = LLMResponse(content=text("Hel", "model"), partial=True)

    with pytest.raises(BridgeError, match="ended in the middle of its answer"):
        await Talk(Agent("w", ScriptedModel([[piece]]))).say()


async def test_pieces_of_an_answer_are_passed_on_and_not_stored_and_their_calls_not_run() -> None:
    tool = Probe()
    whole = asked(call("c", "work"))
    responses = [LLMResponse(content=whole, partial=True), LLMResponse(content=whole)]
    talk = Talk(Agent("w", ScriptedModel([responses, "All done."]), tools=[tool]))
    events = await talk.say(config=RunConfig(streaming=True))

    assert [event.partial for event in events] == [True, False, False, True, True, False]
    assert len(tool.calls) == 1
    assert len((await talk.session()).events) == 4


async def test_an_answer_with_nothing_in_it_is_no_event() -> None:
    model = ScriptedModel([[LLMResponse(), LLMResponse(content=text("Hi", "model"))]])
    assert briefs(await Talk(Agent("w", model)).say()) == [["Hi"]]


@pytest.mark.parametrize(
    "response", [LLMResponse(error_code="BLOCKED"), LLMResponse(interrupted=True)]
)
async def test_what_a_provider_reports_is_an_event(response: LLMResponse) -> None:
    (event,) = await Talk(Agent("w", ScriptedModel([response]))).say()

    assert (event.error_code, event.interrupted) == (response.error_code, response.interrupted)


@pytest.mark.spec("20.7")
async def test_calls_without_an_id_or_with_one_that_is_taken_get_one_of_ours() -> None:
    model = ScriptedModel(
        [asked(call("", "work"), call("1", "work"), call("1", "work")), call("1", "work"), "Done."]
    )
    events = await Talk(Agent("w", model, tools=[Probe()])).say()

    ids = [each.id for event in events for each in event.function_calls()]
    assert (len(set(ids)), ids[1]) == (4, "1")
    assert all(each.startswith("adk-") for each in (ids[0], ids[2], ids[3]))
    answered = [each.id for event in events for each in event.function_responses()]
    assert answered == ids
