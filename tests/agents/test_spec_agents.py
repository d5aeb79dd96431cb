"""Numbered cases of a whole run that belong to no single module."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bridge.agents.flow import is_only_thoughts
from bridge.agents.llm_agent import Agent
from bridge.agents.plugin import Plugin
from bridge.agents.questions import original_call
from bridge.core.content import Part, Result
from bridge.core.context import Context, ToolContext
from bridge.core.event import Event
from bridge.core.session import Session
from bridge.core.stores import Decision
from bridge.errors import StoreError
from bridge.models.scripted import ScriptedModel
from bridge.stores.memory import InMemoryArtifactService, InMemorySessionService
from bridge.tools.function import function_tool
from tests.agents.talk import Talk, asked, brief, briefs, call, content, reply
from tests.agents.tools import Probe

THOUGHT = Part(text="Hm.", thought=True)


@pytest.mark.spec("5.8")
@pytest.mark.parametrize(
    ("parts", "partial", "goes_on"),
    [
        ([THOUGHT], False, True),
        ([THOUGHT, THOUGHT], False, True),
        ([THOUGHT, Part(text="So.")], False, False),
        ([Part(text="So.")], False, False),
        ([Part(function_call=call("c", "work"))], False, False),
        ([THOUGHT, Part(function_call=call("c", "work"))], False, False),
        ([THOUGHT, Part(text="", thought_signature=b"s")], False, False),
        ([THOUGHT], True, False),
        ([], False, False),
        (None, False, False),
    ],
)
def test_only_a_whole_turn_of_thoughts_goes_on(
    parts: list[Part] | None, partial: bool, goes_on: bool
) -> None:
    said = None if parts is None else content(*parts, role="model")

    assert is_only_thoughts(Event(content=said, partial=partial)) is goes_on


class Full(InMemorySessionService):
    """Stores whatever is said, and no answer of a tool."""

    async def append_event(self, session: Session, event: Event) -> None:
        if event.function_responses():
            raise StoreError("the disk is full")

        await super().append_event(session, event)


@pytest.mark.spec("system-53")
async def test_a_file_is_there_even_if_the_event_that_tells_of_it_is_not_stored() -> None:
    async def body(ctx: ToolContext, args: Any) -> Result:
        version = await ctx.artifacts.save("weather.txt", Part(text="sunny"))
        assert ctx.actions.artifact_delta == {"weather.txt": version}
        return {}

    artifacts = InMemoryArtifactService()
    agent = Agent("w", ScriptedModel([call("c", "work")]), tools=[Probe(body=body)])
    talk = Talk(agent, artifacts=artifacts, sessions=Full())
    with pytest.raises(StoreError, match="the disk is full"):
        await talk.say("Go")

    session = await talk.session()
    assert briefs(session.events) == [["Go"], [("call", "c", "work", {})]]
    assert await artifacts.load(session.key, "weather.txt") == Part(text="sunny")


@pytest.mark.spec("system-52")
async def test_what_is_changed_in_place_is_lost_unless_it_is_set() -> None:
    async def body(ctx: ToolContext, args: Any) -> Result:
        cities = ctx.state.get("cities")
        cities.append(args["city"])
        if args["sets"]:
            ctx.state.set("cities", cities)

        return {}

    calls = [call(city, "work", city=city, sets=city == "Lima") for city in ("Oslo", "Lima")]
    talk = Talk(
        Agent("w", ScriptedModel([calls[0], "Lost.", calls[1], "Kept."]), tools=[Probe(body=body)])
    )
    await talk.say(state_delta={"cities": ["Tokyo"]})
    assert (await talk.session()).state == {"cities": ["Tokyo"]}

    await talk.say()
    assert (await talk.session()).state == {"cities": ["Tokyo", "Lima"]}


@pytest.mark.spec("system-59")
async def test_what_is_written_without_an_event_is_read_in_its_run_and_then_gone() -> None:
    seen: list[Any] = []

    class Writing(Plugin):
        async def before_run(self, ctx: Context) -> None:
            if not seen:
                ctx.state.set("unfiled", 1)

    async def body(ctx: ToolContext, args: Any) -> Result:
        seen.append(ctx.state.get("unfiled", None))
        return {}

    model = ScriptedModel([call("a", "work"), "One.", call("b", "work"), "Two."])
    talk = Talk(Agent("w", model, tools=[Probe(body=body)]), plugins=[Writing()])
    await talk.say()
    assert (await talk.session()).state == {}

    await talk.say()
    assert seen == [1, None]


@pytest.mark.spec("7.7")
async def test_a_call_that_was_decided_elsewhere_does_not_run_for_another_of_its_questions() -> (
    None
):
    paid: list[int] = []

    async def pay(amount: int) -> None:
        """Pay."""
        paid.append(amount)

    model = ScriptedModel([call("one", "pay", amount=1), "Done."])
    talk = Talk(Agent("payer", model, tools=[function_tool(pay, require_confirmation=True)]))
    await talk.say("Pay.")
    (question,) = await talk.questions()
    session, ledger = await talk.session(), talk.runner.approvals
    double = Event(author="payer", content=asked(replace(question, id="double")))
    await talk.runner.sessions.append_event(session, double)
    elsewhere = Decision(confirmation_id=question.id, confirmed=True, call=original_call(question))
    assert await ledger.spend(session.key, elsewhere)
    await ledger.record(session.key, question.id, {"paid": "elsewhere"})

    events = await talk.say(reply("double"))

    assert brief(events[0]) == [("answer", "one", "pay", {"paid": "elsewhere"})]
    assert paid == []
