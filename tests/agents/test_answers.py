"""What became of a batch of calls, as one event; and what of it a person is shown."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.agents.answers import displayed_text, response_event
from bridge.agents.llm_agent import Agent
from bridge.calls.call import Outcome
from bridge.core.actions import EventActions
from bridge.core.confirmation import ToolConfirmation
from bridge.core.content import Result
from bridge.core.context import Context, InvocationContext
from bridge.core.session import Session
from bridge.models.scripted import ScriptedModel
from tests.agents.talk import Talk, brief, briefs, call
from tests.agents.tools import DeferringProbe, DisplayedProbe, Probe


def outcome(tool: Probe, response: Result | None, call_id: str = "c") -> Outcome:
    return Outcome(call(call_id, tool.name), response, None, None, EventActions(), tool)


def context() -> Context:
    return Context(InvocationContext(Session("s"), "e-1", Agent("worker"), branch="main"))


@pytest.mark.spec("8.4")
@pytest.mark.parametrize(
    ("response", "shown"),
    [
        (None, ""),
        ({}, ""),
        ({"error": "boom"}, ""),
        ({"error": "boom", "result": "x"}, ""),
        ({"result": ""}, ""),
        ({"result": None}, ""),
        ({"result": "sub-agent output"}, "sub-agent output"),
        ({"result": 42}, '{"result":42}'),
        ({"status": "ok", "count": 3}, '{"count":3,"status":"ok"}'),
        ({"url": "http://x/?a=1&b=<東京>"}, '{"url":"http://x/?a=1&b=<東京>"}'),
    ],
)
def test_what_of_a_result_is_shown(response: Result | None, shown: str) -> None:
    assert displayed_text(response) == shown


def test_an_answer_carries_the_run_the_agent_and_the_branch() -> None:
    made = response_event(context(), [outcome(Probe(), {"ok": True})])

    assert made is not None
    assert (made.author, made.invocation_id, made.branch) == ("worker", "e-1", "main")
    assert made.content is not None
    assert made.content.role == "user"
    assert brief(made) == [("answer", "c", "work", {"ok": True})]


@pytest.mark.spec("system-18")
@pytest.mark.spec("system-34")
def test_silence_is_an_answer_only_where_the_tool_may_not_be_silent() -> None:
    silent = [
        outcome(Probe(is_long_running=True), None),
        outcome(DeferringProbe(), None),
    ]

    assert response_event(context(), silent) is None
    assert brief(response_event(context(), [outcome(Probe(), None)])) == [
        ("answer", "c", "work", None)
    ]
    assert brief(response_event(context(), [*silent, outcome(DeferringProbe(), {}, "d")])) == [
        ("answer", "d", "work", {})
    ]


def test_a_silent_tool_that_asks_a_person_is_heard() -> None:
    silent = outcome(Probe(is_long_running=True), None)
    ctx = context()
    silent.actions.requested_tool_confirmations["c"] = ToolConfirmation("Sure?")

    assert brief(response_event(ctx, [silent])) == [("answer", "c", "work", None)]


@pytest.mark.spec("8.3")
@pytest.mark.spec("5.5")
@pytest.mark.parametrize(
    ("tool", "kinds", "asked"),
    [
        (DeferringProbe(gives=None), ["call", "text"], 2),
        (Probe(gives=None, is_long_running=True), ["call"], 1),
        (DeferringProbe(gives=None, is_long_running=True), ["call"], 1),
        (Probe(gives=None), ["call", "answer", "text"], 2),
        (DeferringProbe(gives={"answer": "ok"}), ["call", "answer", "text"], 2),
        (Probe(gives={"status": "pending"}, is_long_running=True), ["call", "answer", "text"], 2),
    ],
)
async def test_whether_there_is_an_answer_event_is_decided_by_result_and_tool(
    tool: Probe, kinds: list[str], asked: int
) -> None:
    # A call whose answer comes another way is told as unanswered; the model goes on.
    model = ScriptedModel([call("c", "work"), "Done."])
    events = await Talk(Agent("worker", model, tools=[tool])).say("Work!")

    assert [_kind(parts) for parts in briefs(events)] == kinds
    assert (len(model.requests), len(tool.calls)) == (asked, 1)


@pytest.mark.spec("system-37")
@pytest.mark.spec("8.5")
@pytest.mark.parametrize("skips", [True, False])
@pytest.mark.parametrize("is_displayed", [True, False])
async def test_a_result_is_shown_only_if_nobody_sums_it_up_and_it_is_for_people(
    skips: bool, is_displayed: bool
) -> None:
    async def body(ctx: Any, args: Any) -> Result:
        ctx.actions.skip_summarization = skips
        return {"result": "for people"}

    model = ScriptedModel([call("c", "work"), "Summed up."])
    tool = DisplayedProbe(body=body, is_displayed=is_displayed)
    events = await Talk(Agent("worker", model, tools=[tool])).say()

    extra = ["for people"] if skips and is_displayed else []
    assert brief(events[1]) == [("answer", "c", "work", {"result": "for people"}), *extra]
    assert events[1].is_final_response() is skips
    assert len(model.requests) == (1 if skips else 2)


@pytest.mark.spec("system-36")
async def test_a_tool_that_ends_summarising_by_itself_shows_nothing() -> None:
    async def body(ctx: Any, args: Any) -> Result:
        ctx.actions.skip_summarization = True
        return {"result": "not shown"}

    model = ScriptedModel([call("c", "work")])
    events = await Talk(Agent("worker", model, tools=[Probe(body=body)])).say()

    assert briefs(events)[1:] == [[("answer", "c", "work", {"result": "not shown"})]]
    assert len(model.requests) == 1


def _kind(parts: list[Any]) -> str:
    return parts[0][0] if isinstance(parts[0], tuple) else "text"
