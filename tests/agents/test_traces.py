"""Whole conversations, event by event, over stores in memory and in a database."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.agents.llm_agent import Agent
from bridge.core.content import Blob, Part, Result
from bridge.core.context import ToolContext
from bridge.core.event import Event
from bridge.models.scripted import ScriptedModel
from bridge.stores.database import open_database
from bridge.stores.memory import InMemoryArtifactService
from bridge.stores.sql import SqlSessionService
from bridge.stores.sql_approvals import SqlApprovalStore
from bridge.tools.artifacts import load_artifacts
from bridge.tools.function import function_tool
from tests.agents.talk import (
    CONFIRMATION,
    Talk,
    asked,
    brief,
    briefs,
    call,
    declared,
    instruction,
    told,
)

ROOT = Path(__file__).resolve().parents[2]
CALL = call("call-weather-1", "get_weather", city="Tokyo")
SUNNY = {"temperature_c": 22, "condition": "sunny"}
ANSWERED = ("answer", "call-weather-1", "get_weather", SUNNY)
CALLED = ("call", "call-weather-1", "get_weather", {"city": "Tokyo"})


class Weather:
    """A weather service that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def tool(self, **options: Any) -> Any:
        async def get_weather(ctx: ToolContext, city: str) -> Result:
            """The weather in a city."""
            self.asked += 1
            ctx.state.set("last_city", city)
            return SUNNY

        return function_tool(get_weather, **options)


@asynccontextmanager
async def stores(kind: str, folder: Path) -> AsyncIterator[dict[str, Any]]:
    """The stores for a runner: none of its own, or in a database."""
    if kind == "memory":
        yield {}
        return

    async with open_database(f"sqlite:///{folder / 'trace.db'}") as database:
        yield {
            "sessions": SqlSessionService(database),
            "approvals": SqlApprovalStore(database),
        }


@pytest.fixture(params=["memory", "sqlite"])
async def services(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[dict[str, Any]]:
    async with stores(request.param, tmp_path) as opened:
        yield opened


def agent_of(weather: Weather, *says: Any, **options: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(says)
    return Agent("weather_agent", model, tools=[weather.tool(**options)]), model


@pytest.mark.spec("19.1")
@pytest.mark.spec("2.3")
async def test_weather_without_confirmation(services: dict[str, Any]) -> None:
    weather = Weather()
    agent, model = agent_of(weather, CALL, "Sunny in Tokyo.")
    talk = Talk(agent, **services)
    e1, e2, e3 = await talk.say("What is the weather in Tokyo?")

    assert model.requests[0].tools is not None
    assert list(model.requests[0].tools) == declared(model.requests[0]) == ["get_weather"]
    assert (e1.author, e1.content and e1.content.role, brief(e1)) == (
        "weather_agent",
        "model",
        [CALLED],
    )
    assert (e1.long_running_tool_ids, e1.is_final_response()) == ((), False)
    assert (e2.author, e2.content and e2.content.role, brief(e2)) == (
        "weather_agent",
        "user",
        [ANSWERED],
    )
    assert (e2.actions.state_delta, e2.is_final_response()) == ({"last_city": "Tokyo"}, False)
    assert told(model.requests[1]) == [["What is the weather in Tokyo?"], [CALLED], [ANSWERED]]
    assert (brief(e3), e3.is_final_response()) == (["Sunny in Tokyo."], True)
    session = await talk.session()
    assert session.state == {"last_city": "Tokyo"}
    assert session.events[1:] == [e1, e2, e3]


async def ask(talk: Talk) -> tuple[Event, Event, Event]:
    """The first turn: a call, its placeholder, the question."""
    e1, e2, e3 = await talk.say("What is the weather in Tokyo?")
    return e1, e2, e3


@pytest.mark.spec("19.2")
@pytest.mark.spec("2.10")
async def test_weather_with_confirmation(services: dict[str, Any]) -> None:
    weather = Weather()
    agent, model = agent_of(weather, CALL, "Sunny in Tokyo.", require_confirmation=True)
    talk = Talk(agent, **services)
    e1, e2, e3 = await ask(talk)

    assert brief(e1) == [CALLED]
    assert list(e2.actions.requested_tool_confirmations) == ["call-weather-1"]
    assert e2.actions.skip_summarization
    (question,) = e3.function_calls()
    assert (question.name, e3.long_running_tool_ids) == (CONFIRMATION, (question.id,))
    assert e3.is_final_response()
    assert (weather.asked, len(model.requests)) == (0, 1)

    assert briefs(await talk.decide(get_weather=True)) == [[ANSWERED], ["Sunny in Tokyo."]]
    assert told(model.requests[1]) == [["What is the weather in Tokyo?"], [CALLED], [ANSWERED]]
    assert (weather.asked, len(model.requests)) == (1, 2)
    assert (await talk.session()).state == {"last_city": "Tokyo"}


@pytest.mark.spec("19.2")
async def test_weather_that_is_refused_or_not_decided(services: dict[str, Any]) -> None:
    weather = Weather()
    agent, model = agent_of(weather, CALL, "Wait?", "No weather.", require_confirmation=True)
    talk = Talk(agent, **services)
    await ask(talk)

    assert briefs(await talk.say("Never mind.")) == [["Wait?"]]
    assert "needs confirmation" in told(model.requests[1])[2][0][3]["error"]

    events = await talk.decide(get_weather=False)
    assert "was rejected" in brief(events[0])[0][3]["error"]
    assert brief(events[1]) == ["No weather."]
    assert weather.asked == 0


@pytest.mark.spec("19.3")
async def test_of_two_calls_one_needs_confirmation(services: dict[str, Any]) -> None:
    bought: list[str] = []

    async def buy_report(city: str) -> Result:
        """Buy a report."""
        bought.append(city)
        return {"bought": city}

    model = ScriptedModel([asked(CALL, call("b", "buy_report", city="Tokyo")), "Bought."])
    tools = [Weather().tool(), function_tool(buy_report, require_confirmation=True)]
    talk = Talk(Agent("weather_agent", model, tools=tools), **services)
    e1, e2, e3 = await ask(talk)

    assert len(e1.function_calls()) == 2
    assert brief(e2)[0] == ANSWERED
    assert "needs confirmation" in brief(e2)[1][3]["error"]
    assert list(e2.actions.requested_tool_confirmations) == ["b"]
    assert (e2.actions.skip_summarization, len(e3.parts)) == (True, 1)
    assert len(model.requests) == 1

    bought_now = ("answer", "b", "buy_report", {"bought": "Tokyo"})
    assert briefs(await talk.decide(buy_report=True)) == [[bought_now], ["Bought."]]
    assert told(model.requests[1])[2:] == [[ANSWERED, bought_now]]
    assert bought == ["Tokyo"]


@pytest.mark.spec("19.6")
@pytest.mark.spec("system-47")
async def test_an_artifact_is_seen_in_the_request_after_it_was_asked_for(
    services: dict[str, Any],
) -> None:
    chart = Part(inline_data=Blob("image/png", b"chart"))
    wanted = call("l", "load_artifacts", artifact_names=["chart.png"])
    model = ScriptedModel([wanted, call("w", "get_weather", city="Tokyo"), "Up."])
    agent = Agent("analyst", model, tools=[load_artifacts, Weather().tool()])
    artifacts = InMemoryArtifactService()
    talk = Talk(agent, artifacts=artifacts, **services)
    await artifacts.save((await talk.session()).key, "chart.png", chart)
    events = await talk.say("What is in the chart?")

    assert all("chart.png" in instruction(request) for request in model.requests)
    assert brief(events[1]) == [
        ("answer", "l", "load_artifacts", {"artifact_names": ["chart.png"]})
    ]
    assert told(model.requests[1])[-1] == ["Artifact chart.png is:", chart.inline_data]
    assert not any("Artifact chart.png is:" in said for said in told(model.requests[2]))


async def desk(folder: Path, word: str) -> list[list[Any]]:
    """What a process of its own said in one turn."""
    command = [sys.executable, "-m", "tests.agents.desk", str(folder), word]
    done = await anyio.run_process(command, cwd=ROOT, stderr=None)
    return briefs([Event.from_json(json.loads(line)) for line in done.stdout.splitlines()])


@pytest.mark.spec("system-31")
@pytest.mark.parametrize("decision", ["yes", "no"])
async def test_a_call_survives_the_end_of_its_process(decision: str, tmp_path: Path) -> None:
    called, answered, question = await desk(tmp_path, "ask")
    assert [each[2] for each in called] == ["buy_report", "note", "ann", "get_weather"]
    waiting, note, ann, sky = answered
    assert "needs confirmation" in waiting[3]["error"]
    assert (note[3], ann[3]) == ({"result": "asked"}, {"result": "Noon."})
    assert sky[3]["output"]["city"] == "Tokyo"
    assert question[0][2] == CONFIRMATION

    ((_, call_id, name, response),), last = await desk(tmp_path, decision)
    assert (call_id, name, last) == ("buy", "buy_report", ["All done."])
    if decision == "yes":
        assert response["output"]["city"] == "Tokyo"
    else:
        assert response == {"error": 'the call of "buy_report" was rejected; nothing ran'}

    assert await desk(tmp_path, "yes") == [["All done."]]
    assert (tmp_path / "notes").read_text() == "asked\n"
