"""The calls of one answer: run side by side, answered in order, each for itself."""

from __future__ import annotations

import threading
from contextlib import aclosing
from typing import Any

import anyio
import pytest

from bridge.agents.llm_agent import Agent
from bridge.agents.loop_agent import LoopAgent
from bridge.agents.run_config import RunConfig
from bridge.calls.call import one_by_one
from bridge.core.content import Content, Result
from bridge.core.context import ToolContext
from bridge.models.scripted import ScriptedModel
from bridge.tools.function import function_tool
from bridge.tools.loops import exit_loop
from tests.agents.talk import (
    Talk,
    answer,
    asked,
    brief,
    briefs,
    call,
    content,
    told,
)
from tests.agents.tools import Probe


@pytest.mark.spec("5.1")
@pytest.mark.spec("system-17")
async def test_calls_of_one_batch_run_side_by_side_be_they_async_or_not() -> None:
    # Each call goes on only once all three have begun.
    together = threading.Barrier(3)

    def blocking(n: int) -> int:
        together.wait(timeout=30)
        return n

    async def waiting(n: int) -> int:
        await anyio.to_thread.run_sync(lambda: together.wait(timeout=30))
        return n

    model = ScriptedModel(
        [asked(*(call(f"c{n}", name, n=n) for n, name in enumerate(NAMES))), "Done."]
    )
    tools = [function_tool(blocking), function_tool(waiting)]
    events = await Talk(Agent("w", model, tools=tools)).say()

    assert brief(events[1]) == [
        ("answer", f"c{n}", name, {"result": n}) for n, name in enumerate(NAMES)
    ]
    assert len(events) == 3


NAMES = ("blocking", "waiting", "blocking")


@pytest.mark.spec("5.2")
@pytest.mark.spec("system-18")
async def test_answers_come_in_the_order_asked_whatever_is_done_first() -> None:
    first_is_done = anyio.Event()

    async def add(a: int, b: int) -> int:
        if a == 2:
            await first_is_done.wait()
        if a == 6:
            first_is_done.set()

        return a + b

    sums = [call("x", "add", a=2, b=3), call("y", "add", a=4, b=5), call("z", "add", a=6, b=7)]
    events = await Talk(Agent("w", ScriptedModel([asked(*sums), "Done."]), tools=[add])).say()

    assert brief(events[1]) == [
        ("answer", "x", "add", {"result": 5}),
        ("answer", "y", "add", {"result": 9}),
        ("answer", "z", "add", {"result": 13}),
    ]
    assert events[1].content == Content("user", events[1].parts)


@pytest.mark.spec("system-17")
async def test_a_batch_may_be_run_one_call_after_the_other() -> None:
    running = 0

    async def alone(n: int) -> int:
        nonlocal running
        running += 1
        await anyio.lowlevel.checkpoint()
        assert running == 1
        running -= 1
        return n

    model = ScriptedModel([asked(*(call(f"c{n}", "alone", n=n) for n in range(3))), "Done."])
    talk = Talk(Agent("w", model, tools=[alone]))
    events = await talk.say(config=RunConfig(task_runner=one_by_one))

    assert brief(events[1]) == [("answer", f"c{n}", "alone", {"result": n}) for n in range(3)]


@pytest.mark.spec("5.7")
@pytest.mark.spec("system-19")
async def test_of_two_calls_that_write_one_key_the_later_asked_wins() -> None:
    osaka_is_done = anyio.Event()

    async def note(ctx: ToolContext, city: str) -> str:
        if city == "Tokyo":
            await osaka_is_done.wait()

        ctx.state.set("last_city", city)
        ctx.state.set("seen", {city: True})
        osaka_is_done.set()
        return city

    calls = asked(call("a", "note", city="Tokyo"), call("b", "note", city="Osaka"))
    talk = Talk(Agent("w", ScriptedModel([calls, "Done."]), tools=[note]))
    events = await talk.say()

    wanted = {"last_city": "Osaka", "seen": {"Tokyo": True, "Osaka": True}}
    assert events[1].actions.state_delta == wanted
    assert (await talk.session()).state == wanted


@pytest.mark.spec("5.6")
@pytest.mark.spec("system-23")
async def test_a_tool_that_is_not_there_is_an_answer_and_no_crash() -> None:
    model = ScriptedModel([call("c", "foo"), "Sorry."])
    events = await Talk(Agent("w", model, tools=[Probe("food")])).say()

    ((_, _, name, response),) = brief(events[1])
    assert name == "foo"
    assert response["error"].startswith(
        'the tool "foo" does not exist; did you mean "food"?\nAvailable tools: food'
    )
    assert brief(events[-1]) == ["Sorry."]


@pytest.mark.spec("system-16")
async def test_every_call_of_a_batch_has_a_context_and_actions_of_its_own() -> None:
    tool = Probe()
    kinds = asked(
        call("a", "work"),
        call("b", "unknown"),
        call("c", "stop_streaming", function_name="x"),
        call("d", "pieces"),
        call("e", "work"),
    )

    async def pieces() -> Any:
        yield "one, "
        yield "two"

    events = await Talk(Agent("w", ScriptedModel([kinds, "Ok."]), tools=[tool, pieces])).say()

    answers = events[1].function_responses()
    assert [each.id for each in answers] == ["a", "b", "c", "d", "e"]
    assert answers[2].response == {"status": "No streaming function named x is running."}
    assert answers[3].response == {"result": "one, two"}
    assert [ctx.function_call_id for ctx in tool.contexts] == ["a", "e"]
    assert tool.contexts[0].actions is not tool.contexts[1].actions


async def test_what_a_tool_does_to_its_arguments_does_not_change_what_was_asked() -> None:
    async def body(ctx: Any, args: dict[str, Any]) -> Result:
        args["cities"].append("Osaka")
        return {}

    talk = Talk(
        Agent(
            "w",
            ScriptedModel([call("c", "work", cities=["Tokyo"]), "Done."]),
            tools=[Probe(body=body)],
        )
    )
    events = await talk.say()

    assert events[0].function_calls()[0].args == {"cities": ["Tokyo"]}


@pytest.mark.spec("system-35")
@pytest.mark.spec("8.1")
async def test_whether_it_is_over_is_decided_by_the_last_event() -> None:
    tool = Probe(is_long_running=True)
    model = ScriptedModel([call("c", "work"), "Waiting for it."])
    events = await Talk(Agent("w", model, tools=[tool])).say()

    assert [event.long_running_tool_ids for event in events] == [("c",), (), ()]
    assert events[0].is_final_response()
    assert brief(events[-1]) == ["Waiting for it."]


@pytest.mark.spec("8.2")
@pytest.mark.spec("system-33")
async def test_a_long_call_is_brought_up_to_date_by_the_user() -> None:
    tool = function_tool(pending, is_long_running=True)
    model = ScriptedModel([call("c", "pending"), "It runs.", "one", "two", "three"])
    talk = Talk(Agent("w", model, tools=[tool]))
    await talk.say("Go")
    assert told(model.requests[1]) == [
        ["Go"],
        [("call", "c", "pending", {})],
        [("answer", "c", "pending", {"result": "pending"})],
    ]

    for number, news in enumerate(["still waiting", 2, 3], start=3):
        await talk.say(content(answer("c", "pending", {"result": news})))
        assert len(model.requests) == number
        assert told(model.requests[-1])[:3] == [
            ["Go"],
            [("call", "c", "pending", {})],
            [("answer", "c", "pending", {"result": news})],
        ]
        assert len(model.requests[-1].contents) == 3


async def pending() -> str:
    """Take long."""
    return "pending"


@pytest.mark.spec("8.6")
async def test_a_loop_goes_round_until_the_model_leaves_it() -> None:
    model = ScriptedModel(["one", "two", call("c", "exit_loop"), "never said"])
    loop = LoopAgent("loop", [Agent("w", model, tools=[exit_loop])], max_iterations=5)
    events = await Talk(loop).say()

    assert briefs(events) == [
        ["one"],
        ["two"],
        [("call", "c", "exit_loop", {})],
        [("answer", "c", "exit_loop", {})],
    ]


async def test_a_loop_ends_after_its_last_round() -> None:
    model = ScriptedModel(["one", "two", "three"])
    loop = LoopAgent("loop", [Agent("w", model)], max_iterations=2)

    assert briefs(await Talk(loop).say()) == [["one"], ["two"]]


@pytest.mark.spec("system-24")
async def test_who_stops_at_the_call_stops_the_work() -> None:
    tool = Probe(is_long_running=True)
    talk = Talk(Agent("w", ScriptedModel([call("c", "work"), "Never."]), tools=[tool]))
    async with aclosing(talk.runner.run("Go")) as events:
        async for event in events:
            assert event.is_final_response()
            break

    assert tool.calls == []
    assert briefs((await talk.session()).events) == [["Go"], [("call", "c", "work", {})]]
